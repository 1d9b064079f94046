"""The accountant's exceptions.

    LedgerError
    |-- OverBudget          the question does not fit; nothing was written
    |-- NotApproved         the question waits for its owner's approval; nothing was written
    |-- LedgerMisuse        the caller broke the verbs' rules; nothing was written
    |   |-- PathTaken       a noise path cannot be continued: ask with new noise
    |   |-- MonitorNotEnded a monitor runs or is paused, and must be ended first
    |   |-- MonitorStopped  a monitor is paused or ended: it makes no looks
    |   |-- LookAlreadyRecorded  another process recorded a look: read the states again
    |   |-- WindowClosed    a window is closed, or was begun by an earlier run: no look is made in it
    |   `-- WindowLost      the state of a window that has begun is gone: it can only be closed
    `-- LedgerUnavailable   the storage failed, or its content is wrong; treat every open reservation as spent
        |-- StorageFailed   the storage failed; its content is not known to be wrong
        |   |-- StorageFull its disk is full
        |   `-- LedgerMoved its path no longer leads to the open file
        |-- NoLedger        there is no ledger
        `-- LedgerBehind    it lacks an event that its witness knows
    WitnessNotKept          is passed to `on_fault`, and never raised

None of them has text for analysts except an owner's reason for declining. The proxy writes its own messages from the
fields.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from mechanisms.formula import Booleans


class BalanceScope(StrEnum):
    """The balances a question must fit into."""

    PER_QUERY = "per_query"
    PER_PREDICATE = "per_predicate"
    PER_UNIT = "per_unit"
    PER_TABLE = "per_table"
    ANALYST_PER_PREDICATE = "analyst_per_predicate"
    ANALYST_PER_UNIT = "analyst_per_unit"


class LedgerError(Exception):
    """The base of all errors by which the ledger refuses an operation."""


class OverBudget(LedgerError):
    """A balance has less left than the charge needs.

    `needed_nano` and `left_nano` are in 1e-9 epsilon. `left_nano` is the least left among the question's keys (0 if a
    limit was lowered below the amount already spent). `short_keys` of `total_keys` keys have less than needed left.
    `short` marks these keys, in the order of the charge's cells (None: all keys share one balance). All of this follows
    from the ledger and the limits, never from data.
    """

    def __init__(
        self,
        *,
        scope: BalanceScope,
        needed_nano: int,
        left_nano: int,
        short_keys: int,
        total_keys: int,
        short: Booleans | None = None,
    ) -> None:
        super().__init__(
            f"{scope.value}: needs {needed_nano}e-9, left {left_nano}e-9, {short_keys} of {total_keys} keys short"
        )
        self.scope = scope
        self.needed_nano = needed_nano
        self.left_nano = left_nano
        self.short_keys = short_keys
        self.total_keys = total_keys
        self.short = short


class LedgerMisuse(LedgerError):
    """The error for a verb out of order (commit twice, release after commit), or an amount that was not reserved."""


class PathTaken(LedgerMisuse):
    """The error for a noise path that is no longer in the named state, or that another question continues.

    That question may be open or dead. Two refinements of one noisy value reveal more than the finer of them, so only
    one question may continue a path.
    """


class MonitorNotEnded(LedgerMisuse):
    """The error for an operation that needs a monitor to have ended, while it runs or is paused.

    The owner must end it first.
    """

    def __init__(self, *, monitor: str, run: str) -> None:
        super().__init__(f"the monitor {monitor} has not ended (its reservation is {run}): end it first")
        self.monitor = monitor
        self.run = run


class MonitorStopped(LedgerMisuse):
    """A monitor is paused or has ended: no window begins, no look is recorded."""

    def __init__(self, *, monitor: str, state: str) -> None:
        super().__init__(f"the monitor {monitor} is {state}")
        self.monitor = monitor
        self.state = state


class LookAlreadyRecorded(LedgerMisuse):
    """The error for a look that another process has recorded, or that is older than a recorded one.

    The caller's result used outdated states.
    """


class WindowClosed(LedgerMisuse):
    """The error for a window that is closed, or that an earlier run had begun.

    A new draw of its noise would be a second release.
    """


class WindowLost(LedgerMisuse):
    """The error for windows whose states are missing, or differ from the digests in the events.

    These windows cannot begin again, as a new draw would be a second release. They can be closed.
    """

    def __init__(self, windows: tuple[int, ...]) -> None:
        super().__init__(f"the state of the window {', '.join(map(str, windows))} is lost")
        self.windows = windows


@dataclass(frozen=True, slots=True)
class DeclineReason:
    """The time and the reason of an owner's decision against a question."""

    at: datetime
    why: str


class NotApproved(LedgerError):
    """The error for a question whose worst case is above the owner's threshold, without the owner's approval.

    `question` is its fingerprint, `needed_nano` its worst case per key, `above_nano` the threshold. `declined` is the
    owner's last decision, if the question was declined.
    """

    def __init__(self, *, question: str, needed_nano: int, above_nano: int, declined: DeclineReason | None) -> None:
        super().__init__(f"needs approval: {needed_nano}e-9 is above {above_nano}e-9")
        self.question = question
        self.needed_nano = needed_nano
        self.above_nano = above_nano
        self.declined = declined


class LedgerUnavailable(LedgerError):
    """The error for a storage that failed, or whose content is no unbroken chain of known events."""


class StorageFailed(LedgerUnavailable):
    """The error for a storage that failed. Its content may be correct."""


class StorageFull(StorageFailed):
    """The error for a storage whose disk is full."""


class LedgerMoved(StorageFailed):
    """The path of an SQLite ledger does not lead to the file that this process has open."""


class NoLedger(LedgerUnavailable):
    """The error for an address without a ledger, if the caller did not allow making one."""


class LedgerBehind(LedgerUnavailable):
    """The error for a ledger that lacks an event which was durable before: an older copy, another ledger, or a new one.

    `known` is the number of that event, `newest` that of the ledger's last one.
    """

    def __init__(self, *, known: int, newest: int) -> None:
        lost = (
            f"it ends at event {newest:,}, and its witness has seen event {known:,}"
            if newest < known
            else f"its event {known:,} is another one than its witness has seen"
        )
        super().__init__(f"the ledger is not the one that was in use: {lost}")
        self.known = known
        self.newest = newest


class WitnessNotKept(LedgerError):
    """The witness of a ledger cannot be written. It is passed to `on_fault`, and never raised."""


def report_changed_answer() -> LedgerUnavailable:
    """Return the error for a stored answer that differs from the digest in its event."""
    return LedgerUnavailable("a stored answer is not the one that was released")


def report_changed_path() -> LedgerUnavailable:
    """Return the error for a stored noise path that differs from the digest in its event."""
    return LedgerUnavailable("a stored noise path is not the one that was committed")


def report_missing_event(number: int) -> LedgerUnavailable:
    """Return the error for an event that was folded before and is no longer in the log."""
    return LedgerUnavailable(f"event {number} is gone: the ledger was replaced under a running process")


def refuse_cells(most: int) -> LedgerMisuse:
    """Return the error for a partition that would outgrow memory."""
    return LedgerMisuse(f"a partition of more than {most} cells")
