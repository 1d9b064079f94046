"""A monitor in the ledger: one reservation for its horizon, and its windows look by look."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from accountant.charges import Charge
from accountant.errors import LedgerMisuse


class MonitorState(StrEnum):
    """The state of a started monitor: running, paused or ended."""

    RUNNING = "running"
    PAUSED = "paused"  # no look is made; its open windows stay charged
    ENDED = "ended"  # no look is ever made again


@dataclass(frozen=True, slots=True)
class WindowAxis:
    """The windows of a monitor as cells of its charge.

    Window `first + i` is the `i`th value of `column`, one of the charge's columns by its name in the ledger. A monitor
    without a `WindowAxis` has windows that share all cells. Windows below 0 never begin: later ones read their rows.

    `overlap` is the largest number of successive windows in which one row can count. It is 1 for tumbling windows, the
    length over the hop, rounded up, for hopping windows, and 2 for sliding windows, whose epochs share rows. If windows
    are compared with ones up to `n` earlier it is `n + 1`. If it is more than 1, a cell's charge covers all windows of
    a row together, and is refunded for all of them or not at all.
    """

    column: str
    overlap: int
    first: int = 0

    def __post_init__(self) -> None:
        if self.overlap < 1 or self.first <= -self.overlap:
            raise LedgerMisuse("a row is in one window at least, and windows that begin are numbered from 0")


@dataclass(frozen=True, slots=True)
class MonitorRun:
    """A monitor from its start to its end. `run` is the id of the reservation that pays for all its windows.

    `fingerprint` is that of its plan at the start. The run may not continue under a plan with another one. `looks_made`
    is the number of looks, `last_look` the number of the newest one (0: none), `reason` its owner's reason for its
    state. `excluded_windows` are windows that an earlier run of the same fingerprint had begun. This run never looks at
    them. A run that `is_restarted` has none.
    """

    run: str
    monitor: str
    fingerprint: str
    charge: Charge
    windows: WindowAxis | None
    started_at: datetime
    state: MonitorState
    looks_made: int
    last_look: int
    reason: str
    excluded_windows: frozenset[int] = frozenset()
    is_restarted: bool = False


@dataclass(frozen=True, slots=True)
class WindowState:
    """The state of a window that is open, after its last look `look` (0: none).

    `body` is as secret as the data.
    """

    run: str
    window: int
    look: int
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WindowLook:
    """The changes that one look made to one window: its new state, and the keys that entered or left the answer.

    `look` counts from 1 in its window. Looks may be skipped. `since` is the look of the state from which `body` was
    made (`WindowState.look`). If that is no longer the window's newest look, another process has looked meanwhile.
    `keys` are ascending places in the C order of the charge's cells without the window's column. A key can enter the
    answer again in a window only after a look has `cleared` it.
    """

    window: int
    since: int
    look: int
    body: bytes = field(repr=False)
    keys: tuple[int, ...]
    cleared: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.since < self.look:
            raise LedgerMisuse("a look follows the one whose state it was made of")
        for keys in (self.keys, self.cleared):
            if list(keys) != sorted(set(keys)):
                raise LedgerMisuse("the keys of an alert are distinct, and rise")
        if not set(self.keys).isdisjoint(self.cleared):
            raise LedgerMisuse("a key does not come and go with one look")


@dataclass(frozen=True, slots=True)
class MonitorAlert:
    """A key that entered a monitor's answer.

    `number` is that of the look over the whole horizon, as `MonitorRun` counts looks; `at` is the look's moment. The
    key left the answer at the look `cleared_number`, at `cleared_at`. None means that it did not leave.
    """

    monitor: str
    run: str
    number: int
    window: int
    key: int
    at: datetime
    cleared_number: int | None = None
    cleared_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AlertPage:
    """Alerts of whole looks, by the look's number, then window and key.

    `last_look` is the number of the last look of the page. The next page starts after it. `has_more` is True if there
    is one.
    """

    alerts: tuple[MonitorAlert, ...]
    last_look: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class ChangePage:
    """The changes of whole looks: alerts and cleared alerts.

    `alerts` are the alerts of these looks, by the look's number, then window and key. `cleared` are the alerts, of
    these or earlier looks, that these looks cleared, by the number of the clearing look. The rest is as in `AlertPage`.
    """

    alerts: tuple[MonitorAlert, ...]
    cleared: tuple[MonitorAlert, ...]
    last_look: int
    has_more: bool
