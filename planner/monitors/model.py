"""The plan of a monitor: what is computed at each look, by what it is decided, and what a window costs."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from mechanisms.alarm.prices import PricedWay
from mechanisms.standing.protocol import Standing
from planner.catalog.key_space import KeySpace
from planner.catalog.monitors import Monitor
from planner.question.model import Question
from planner.question.plan import Rewritten


@dataclass(frozen=True, slots=True)
class WindowPlan:
    """The windows of a horizon, in order, and the moments at which they are looked at; all of it public, UTC.

    Window `w` begins at `starts[w]` and is `length` long; its look `k`, from 1 to `looks`, sees what was there at
    `first_looks[w] + (k - 1) * every` and is made `lateness` later. The last one is its close.
    """

    starts: tuple[datetime, ...]
    first_looks: tuple[datetime, ...]
    length: timedelta
    every: timedelta
    lateness: timedelta
    looks: int

    def closes(self, window: int) -> datetime:
        """The moment of a window's last look."""
        return self.first_looks[window] + (self.looks - 1) * self.every


@dataclass(frozen=True, slots=True)
class MonitorLook:
    """What one look reads: the statement, and the keys of one window, or of those that are open, in its order.

    `values[f, i]` are aligned with `keys`: the window's own key column, if the question has one, has the single value
    of the window.
    """

    window: int
    look: int
    rewritten: Rewritten
    keys: KeySpace
    functionals: int


@dataclass(frozen=True, slots=True)
class MonitorPlan:
    """Everything decided about a monitor before data are touched; all of it public.

    `question` is the standing question over the whole horizon; `keys` its keys without the window column. One window of
    one key costs `epsilon_per_cell`, one privacy unit over the horizon `epsilon_per_unit` at most (0 where the row is
    the unit). Where `early` is false, the only look is the close. Equal fingerprints mean the same monitor.
    `ways` are what else would keep the contract, `taken` which of them is done.
    """

    monitor: Monitor
    question: Question
    keys: KeySpace
    windows: WindowPlan
    standing: Standing
    early: bool
    ways: tuple[PricedWay, ...]
    taken: int
    epsilon_per_cell: float
    epsilon_per_unit: float
    fingerprint: str
    warnings: tuple[str, ...]
