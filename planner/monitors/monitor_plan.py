"""The plan of a monitor: what is computed at each look, how it is decided, and what a window costs."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mechanisms.alarm.prices import PricedWay, WatchedWindow
from mechanisms.alarm.shapes import Regime
from mechanisms.standing.standing_protocol import Standing
from planner.catalog.catalog import Column
from planner.catalog.key_space import KeySpace
from planner.catalog.monitor import Monitor
from planner.lower.dialects.dialect import Dialect
from planner.monitors.trend import Trend
from planner.question.plan import Rewritten
from planner.question.question import Question


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The windows of a horizon, in order, and the moments of their looks. All of it is public, in UTC.

    Window `w` begins at `starts[w]` and lasts `length`. If alerts are cleared at once, there is one window, and each
    look sees the last `length` of time. Look `k`, from 1 to `looks`, sees the rows that exist at `first_looks[w] + (k
    - 1) * every`. It is made `lateness` and `settling` later. The last look is the window's close.
    """

    starts: tuple[datetime, ...]
    first_looks: tuple[datetime, ...]
    length: timedelta
    every: timedelta
    lateness: timedelta
    looks: int
    settling: timedelta = timedelta(0)

    @property
    def delay(self) -> timedelta:
        """The time between a look's moment and the time at which the look is made."""
        return self.lateness + self.settling

    def find_close(self, window: int) -> datetime:
        """Return the moment of a window's last look."""
        return self.first_looks[window] + (self.looks - 1) * self.every


@dataclass(frozen=True, slots=True)
class MonitorLook:
    """One look: the statement to run, and the keys of its window, in the order of the monitor's own keys.

    The statement's values are aligned with `keys`. The window's key column has the single value of the window, and a
    sliding window has no such column. `question` is the question about this window. Before its values are compared,
    `planner.functionals.per_key_offsets` subtracts its offsets.
    """

    window: int
    look: int
    question: Question
    rewritten: Rewritten

    @property
    def keys(self) -> KeySpace:
        """The keys of the look's one window."""
        return self.question.keys

    @property
    def functionals(self) -> int:
        """The number of functionals whose values a look reads."""
        return len(self.question.functionals)


@dataclass(frozen=True, slots=True)
class MonitorPlan:
    """Everything that is decided about a monitor before data are touched. All of it is public.

    `question` is the standing question over the whole horizon, in canonical form. Among its keys is `window_column`,
    whose values are the windows in order. It is a column of the source, or made from a time. `keys` are the other keys.
    If it `clears_at_once`, `keys` are all keys, and all looks of the horizon belong to one state, that of window 0.

    Rows count by their time in the column `time_column`. `counts_by_arrival`: that column is the time of arrival, and
    windows are made from another column. `regimes` say, by functional, how one privacy unit changes it.

    One group of one window costs `epsilon_per_cell`. If windows overlap, this covers all windows that a row is in. One
    privacy unit costs at most `epsilon_per_unit` over the horizon (0 if the row is the unit). Unless it `alerts_early`,
    the only look is the close. Equal fingerprints mean the same monitor.

    With a `trend` the thresholds compare windows with earlier ones, which `question` has among its keys before those of
    the horizon.

    `ways` are all ways that keep the contract in these windows (`watched`), `chosen_way` is the index of the chosen
    one, and `epsilon_per_price` is the worth of their prices.
    """

    monitor: Monitor
    question: Question
    window_column: Column
    keys: KeySpace
    windows: WindowPlan
    watched: WatchedWindow
    time_column: str
    counts_by_arrival: bool
    standing: Standing
    trend: Trend | None
    regimes: tuple[Regime, ...]
    alerts_early: bool
    ways: tuple[PricedWay, ...]
    chosen_way: int
    epsilon_per_price: float
    epsilon_per_cell: float
    epsilon_per_unit: float
    fingerprint: str
    warnings: tuple[str, ...]
    dialect: Dialect

    @property
    def clears_at_once(self) -> bool:
        """True if a key is in the answer only at looks at which the condition holds. Then the horizon is one window."""
        return self.monitor.clears_at_once

    @property
    def way(self) -> PricedWay:
        """The chosen way of watching, with its price."""
        return self.ways[self.chosen_way]

    def find_way_epsilon(self, way: PricedWay) -> float:
        """Return the cost of a way for one group and window, computed from the way's price."""
        return self.epsilon_per_cell if way == self.way else self.epsilon_per_price * way.price
