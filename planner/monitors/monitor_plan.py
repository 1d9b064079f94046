"""The plan of a monitor: what is computed at each look, by what it is decided, and what a window costs."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mechanisms.alarm.prices import PricedWay, WatchedWindow
from mechanisms.alarm.shapes import Regime
from mechanisms.standing.standing_protocol import Standing
from planner.catalog.catalog import Column
from planner.catalog.key_space import KeySpace
from planner.catalog.monitor import Monitor
from planner.lower.dialects.dialect import Dialect
from planner.question.plan import Rewritten
from planner.question.question import Question


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The windows of a horizon, in order, and the moments at which they are looked at; all of it public, UTC.

    Window `w` begins at `starts[w]` and is `length` long (of what clears at once the one there is, and each look sees
    the last `length`); its look `k`, from 1 to `looks`, sees what was there at
    `first_looks[w] + (k - 1) * every` and is made `lateness` later, and `settling` after that. The last one is its
    close.
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
        """Return the delay of a look after its moment."""
        return self.lateness + self.settling

    def closes(self, window: int) -> datetime:
        """Return the moment of a window's last look."""
        return self.first_looks[window] + (self.looks - 1) * self.every


@dataclass(frozen=True, slots=True)
class MonitorLook:
    """The reading of one look: the statement, and the keys of one window, in the order of the monitor's own keys.

    `values[f, i]` are aligned with `keys`: the window's key column has the single value of the window, and a sliding
    window has no such column. `question` is what is asked of this window: `planner.functionals.per_key_offsets` takes
    off what it compares groups with, before the standing question's cuts mean anything.
    """

    window: int
    look: int
    question: Question
    rewritten: Rewritten

    @property
    def keys(self) -> KeySpace:
        """The keys of the one window."""
        return self.question.keys

    @property
    def functionals(self) -> int:
        """Return the number of functionals."""
        return len(self.question.functionals)


@dataclass(frozen=True, slots=True)
class MonitorPlan:
    """Everything decided about a monitor before data are touched; all of it public.

    `question` is the standing question over the whole horizon, in canonical form: among its keys is `window_column`,
    whose values are the windows in their order, be it the source's or made of a time. `keys` are its keys without that.
    Where it `clears_at_once` the keys are all there are: one state, of "window" 0, has all looks of the horizon.
    Rows count by their time in the column `seen_by`, which is when they `arrived` where that is another column than the
    windows are made of. `regimes` say of each functional how one privacy unit changes it.

    One group of one window costs `epsilon_per_cell` (where windows overlap, all those together that a row is in), one
    privacy unit over the horizon `epsilon_per_unit` at most (0 where the row is the unit). Where `early`
    is false, the only look is the close. Equal fingerprints mean the same monitor.
    `ways` are what else would keep the contract in these windows (`watched`), `taken` which of them is done, and
    `epsilon_per_price` what their prices are worth here.
    """

    monitor: Monitor
    question: Question
    window_column: Column
    keys: KeySpace
    windows: WindowPlan
    watched: WatchedWindow
    seen_by: str
    arrived: bool
    standing: Standing
    regimes: tuple[Regime, ...]
    early: bool
    ways: tuple[PricedWay, ...]
    taken: int
    epsilon_per_price: float
    epsilon_per_cell: float
    epsilon_per_unit: float
    fingerprint: str
    warnings: tuple[str, ...]
    dialect: Dialect

    @property
    def clears_at_once(self) -> bool:
        """Return True if a key is in the answer only at looks at which it holds: there is one window, the horizon."""
        return self.monitor.clears_at_once

    @property
    def way(self) -> PricedWay:
        """Return the way that is taken."""
        return self.ways[self.taken]

    def epsilon_of(self, way: PricedWay) -> float:
        """Return the cost of a way for a group and window, by its price."""
        return self.epsilon_per_cell if way == self.way else self.epsilon_per_price * way.price
