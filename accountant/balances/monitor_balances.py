"""The monitors in the fold: their windows with states, looks and costs.

Guarantee: of a monitor's reservation only the unspent part of closed windows, and windows that never began, are given
back. `check_event` rejects every event that would be a second release of a window, both before a verb writes it and in
the fold. Proof: docs/proofs/accounting.md, theorem 10.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from accountant.balances.account import AccountChange
from accountant.balances.cell_sums import find_charged_cells, merge_moving_labels
from accountant.charges import ROW_UNIT, Amounts, Cells, Charge, NanoArray, Reservation, Spent
from accountant.errors import LedgerMisuse, LookAlreadyRecorded, MonitorNotEnded, MonitorStopped, WindowClosed
from accountant.events.monitor_events import (
    MonitorEnded,
    MonitorEvent,
    MonitorLooked,
    MonitorPaused,
    MonitorResumed,
    MonitorStarted,
    MonitorWindowBegun,
    MonitorWindowClosed,
)
from accountant.monitor_model import MonitorRun, MonitorState, WindowAxis


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """A window that has begun: its last look (0 for none), and the SHA-256 of its state."""

    look: int
    state: str


@dataclass(slots=True)
class MonitorAccount:
    """One run of a monitor.

    `closed_windows` has the cost of each closed window (None: all that was reserved). Windows that were open at the
    monitor's end are among them. `readers` are the analysts who were charged for reading it. A run that `is_restarted`
    is also charged for windows that earlier runs had begun, and draws its own noise for them.
    """

    run: str
    monitor: str
    fingerprint: str
    charge: Charge
    windows: WindowAxis | None
    started_at: datetime
    reason: str
    state: MonitorState = MonitorState.RUNNING
    looks_made: int = 0
    last_look: int = 0
    open_windows: dict[int, OpenWindow] = field(default_factory=dict)
    closed_windows: dict[int, Spent | None] = field(default_factory=dict)
    readers: set[str] = field(default_factory=set)
    is_restarted: bool = False

    @property
    def begun_windows(self) -> frozenset[int]:
        """The windows that have begun, closed ones among them."""
        return frozenset(self.open_windows) | frozenset(self.closed_windows)

    @property
    def window_axis(self) -> int | None:
        """The index of the windows' axis among the axes of the cells. None if all windows share all cells."""
        return None if self.windows is None else self.charge.family.columns.index(self.windows.column)

    @property
    def keys_per_window(self) -> int:
        """The number of keys in one window."""
        axis = self.window_axis
        return (
            self.charge.cells.key_count
            if axis is None
            else self.charge.cells.key_count // self.charge.cells.shape_by_column[axis]
        )

    @property
    def _charged_windows(self) -> frozenset[int]:
        """The windows that have begun, and the charged ones that may share a row with one of these."""
        if self.windows is None or self.windows.overlap == 1:
            return self.begun_windows
        near, first = self.windows.overlap - 1, self.windows.first
        end = first + self.charge.cells.shape_by_column[self.charge.family.columns.index(self.windows.column)]
        return frozenset(
            window for one in self.begun_windows for window in range(max(first, one - near), min(end, one + near + 1))
        )

    def find_place(self, window: int) -> int:
        """Return the place of a window on its axis. Raise `LedgerMisuse` if the charge has no such window."""
        place, axis = window if self.windows is None else window - self.windows.first, self.window_axis
        if place < 0 or (axis is not None and place >= self.charge.cells.shape_by_column[axis]):
            raise LedgerMisuse(f"the monitor's reservation does not pay for window {window}")
        return place

    def make_window_charge(self, window: int) -> Charge:
        """Return the charge restricted to the cells of one window."""
        axis, place = self.window_axis, self.find_place(window)
        if axis is None:
            raise LedgerMisuse("the windows share all cells")
        columns = list(self.charge.cells.columns)
        name, values = columns[axis]
        columns[axis] = (name, (values[place],))
        return replace(self.charge, cells=Cells(tuple(columns)))

    @property
    def is_refunded_at_close(self) -> bool:
        """Return True if a window's unspent loss is given back at its close.

        This needs balances with a label for the window's column. A live table has none if the column may change: it
        keeps the most that a row can have lost, which is known only at the monitor's end.
        """
        kept, _ = find_charged_cells(self.charge)
        return self.windows is not None and any(label.column == self.windows.column for label in kept)

    def find_losses(self, *, is_worst_case: bool) -> NanoArray | int:
        """Return the loss of each cell.

        A cell has lost nothing if none of its windows has begun. If one is open, it has lost all that was reserved. For
        closed windows it has lost their cost, or all that was reserved if `is_worst_case`.
        """
        worst, axis = self.charge.epsilon_nano, self.window_axis
        if axis is None:
            return worst if self.begun_windows else 0
        return self._expand_losses(
            0, {window: None if is_worst_case else self.closed_windows.get(window) for window in self._charged_windows}
        )

    @property
    def counted_losses(self) -> NanoArray | int:
        """Return the loss of each cell in the balances while the monitor has not ended."""
        return self._expand_losses(self.charge.epsilon_nano, self.closed_windows if self.is_refunded_at_close else {})

    def _expand_losses(self, elsewhere: int, windows: Mapping[int, Spent | None]) -> NanoArray | int:
        """Return the losses of all cells of the charge, from those of some windows (None: all that was reserved).

        The cells of all other windows have the loss `elsewhere`.
        """
        worst, axis = self.charge.epsilon_nano, self.window_axis
        if axis is None or not windows:
            return elsewhere
        everywhere = elsewhere == worst or len(windows) == self.charge.cells.shape_by_column[axis]
        if everywhere and all(loss is None for loss in windows.values()):
            return worst
        laid = np.full(self.charge.cells.shape_by_column, elsewhere, dtype=np.int64)
        along = np.moveaxis(laid, axis, 0)
        for window, loss in windows.items():
            along[self.find_place(window)] = (
                worst if loss is None else loss.read_amounts(_drop_axis(self.charge.cells, axis))
            )
        return laid

    def find_largest_losses(self, losses: NanoArray | int) -> Amounts:
        """Return the largest loss of a key, and a bound on a unit's loss, from the losses of the cells.

        The charge says in how many cells a unit counts. The sum of as many of the largest losses bounds the unit's
        loss.
        """
        worst = self.charge.own_amounts
        largest = int(losses.max()) if isinstance(losses, np.ndarray) else losses
        if self.charge.family.unit == ROW_UNIT:
            return Amounts(largest, 0)
        # the reserved amounts may be rounded up each by itself: at least so many cells are meant
        each, together = max(1, worst.epsilon_nano), worst.unit_epsilon_nano
        groups = min(max(-(-together // each), together // max(1, each - 1)), self.charge.cells.key_count)
        together = (
            _sum_largest_losses(losses.reshape(-1), groups) if isinstance(losses, np.ndarray) else groups * losses
        )
        return Amounts(largest, max(largest, min(together, worst.unit_epsilon_nano)))

    def compute_spent_loss(self) -> Spent:
        """Return the cost of the monitor so far, per cell.

        After the monitor's end, this is what a reader is charged.
        """
        losses = self.find_losses(is_worst_case=False)
        most = self.find_largest_losses(losses)
        if isinstance(losses, int):
            return Spent.from_uniform(losses, unit_epsilon_nano=most.unit_epsilon_nano)
        return Spent.from_keys(losses, unit_epsilon_nano=most.unit_epsilon_nano)

    def make_close_change(self, spent: Spent) -> AccountChange:
        """Return the change of the cells' balances when a window closes.

        The unit's and the table's balances do not change.
        """
        family, worst = self.charge.family, self.charge.epsilon_nano
        axis = self.window_axis
        assert axis is not None
        after: NanoArray | int = spent.epsilon_nano
        if spent.keys is not None:
            after = np.expand_dims(np.asarray(spent.read_amounts(_drop_axis(self.charge.cells, axis))), axis)
        lasting = merge_moving_labels(family, after)
        return AccountChange(amounts=after - worst, lasting_amounts=lasting - worst, unit_nano=0, table_nano=0)

    def make_end_changes(self) -> tuple[AccountChange, AccountChange]:
        """Return the change of the shared balances at the monitor's end, and its public part.

        The public part is the charge of the windows that never began.
        """
        worst, begun, lost = (
            self.charge.epsilon_nano,
            self.find_losses(is_worst_case=True),
            self.find_losses(is_worst_case=False),
        )
        return self._make_change(self.counted_losses, lost), self._make_change(worst, begun)

    def make_reader_change(self) -> AccountChange:
        """Return the change of a reader's own balances at the monitor's end."""
        return self._make_change(self.charge.epsilon_nano, self.find_losses(is_worst_case=False))

    def _make_change(self, before: NanoArray | int, after: NanoArray | int) -> AccountChange:
        family, worst, most = self.charge.family, self.charge.own_amounts, self.find_largest_losses(after)
        return AccountChange(
            amounts=after - before,
            lasting_amounts=merge_moving_labels(family, after) - merge_moving_labels(family, before),
            unit_nano=most.unit_epsilon_nano - worst.unit_epsilon_nano,
            table_nano=most.table_nano - worst.table_nano,
        )


@dataclass(slots=True)
class MonitorRuns:
    """All runs of monitors, by their ids, in the order of their starts."""

    runs: dict[str, MonitorAccount] = field(default_factory=dict)

    def find_run(self, run: str) -> MonitorAccount:
        """Return a run. Raise `LedgerMisuse` if there is none."""
        if run not in self.runs:
            raise LedgerMisuse("no monitor was started with that reservation")
        return self.runs[run]

    def find_newest_run(self, monitor: str) -> MonitorAccount | None:
        """Return the newest run of a monitor."""
        return next((one for one in reversed(self.runs.values()) if one.monitor == monitor), None)

    def list_unended(self) -> tuple[MonitorAccount, ...]:
        """Return the runs that have not ended."""
        return tuple(one for one in self.runs.values() if one.state is not MonitorState.ENDED)

    def check_monitor_ended(self, run: str) -> None:
        """Raise `MonitorNotEnded` if a reservation is that of a monitor that has not ended."""
        account = self.runs.get(run)
        if account is not None and account.state is not MonitorState.ENDED:
            raise MonitorNotEnded(monitor=account.monitor, run=run)

    def check_all_monitors_ended(self) -> None:
        """Raise `MonitorNotEnded` if any monitor has not ended."""
        for account in self.list_unended():
            self.check_monitor_ended(account.run)

    def find_excluded_windows(self, account: MonitorAccount) -> frozenset[int]:
        """Return the windows that earlier runs of the same fingerprint had begun.

        Return none if this run pays for them again.
        """
        if account.is_restarted:
            return frozenset()
        found: set[int] = set()
        for one in self.runs.values():
            if one.run == account.run:
                break
            if one.fingerprint == account.fingerprint:
                found |= one.begun_windows
        return frozenset(found)

    def make_run(self, account: MonitorAccount) -> MonitorRun:
        """Return the run's public record."""
        return MonitorRun(
            run=account.run,
            monitor=account.monitor,
            fingerprint=account.fingerprint,
            charge=account.charge,
            windows=account.windows,
            started_at=account.started_at,
            state=account.state,
            looks_made=account.looks_made,
            last_look=account.last_look,
            reason=account.reason,
            excluded_windows=self.find_excluded_windows(account),
            is_restarted=account.is_restarted,
        )

    def check_event(self, event: MonitorEvent, reservations: Mapping[str, Reservation]) -> None:
        """Raise a kind of `LedgerMisuse` unless an event may come next. `reservations` are the open reservations."""
        match event:
            case MonitorStarted():
                self._check_start(event, reservations)
            case MonitorWindowBegun(run=run, window=window):
                self._check_begin(self.find_run(run), window)
            case MonitorLooked(run=run):
                _check_look(self.find_run(run), event)
            case MonitorWindowClosed(run=run):
                _check_close(self.find_run(run), event)
            case MonitorPaused(run=run):
                _check_state(self.find_run(run), MonitorState.RUNNING)
            case MonitorResumed(run=run):
                _check_state(self.find_run(run), MonitorState.PAUSED)
            case MonitorEnded(run=run, spent=spent):
                account = self.find_run(run)
                _check_state(account, MonitorState.RUNNING, MonitorState.PAUSED)
                if spent != account.find_largest_losses(account.find_losses(is_worst_case=False)):
                    raise LedgerMisuse("a monitor ends at what its windows cost")

    def apply_event(self, event: MonitorEvent, reservations: Mapping[str, Reservation]) -> None:
        """Add one event. Raise a kind of `LedgerMisuse` if the event may not come next."""
        self.check_event(event, reservations)
        match event:
            case MonitorStarted(run=run):
                self.runs[run] = MonitorAccount(
                    run=run,
                    monitor=event.monitor,
                    fingerprint=event.fingerprint,
                    charge=reservations[run].charge,
                    windows=event.windows,
                    started_at=event.at,
                    reason=event.why,
                    is_restarted=event.is_restarted,
                )
            case MonitorWindowBegun(run=run, window=window, state=state):
                self.runs[run].open_windows[window] = OpenWindow(0, state)
            case MonitorLooked(run=run, number=number, windows=windows):
                account = self.runs[run]
                account.looks_made += 1
                account.last_look = number
                for one in windows:
                    account.open_windows[one.window] = OpenWindow(one.look, one.state)
            case MonitorWindowClosed(run=run, window=window, spent=spent):
                del self.runs[run].open_windows[window]
                self.runs[run].closed_windows[window] = spent
            case MonitorPaused(run=run, why=why):
                self._set_state(run, MonitorState.PAUSED, why)
            case MonitorResumed(run=run, why=why):
                self._set_state(run, MonitorState.RUNNING, why)
            case MonitorEnded(run=run, why=why):
                self._set_state(run, MonitorState.ENDED, why)
                self.runs[run].closed_windows.update(dict.fromkeys(self.runs[run].open_windows))
                self.runs[run].open_windows.clear()

    def _set_state(self, run: str, state: MonitorState, why: str) -> None:
        self.runs[run].state, self.runs[run].reason = state, why

    def _check_start(self, event: MonitorStarted, reservations: Mapping[str, Reservation]) -> None:
        newest = self.find_newest_run(event.monitor)
        if newest is not None:
            self.check_monitor_ended(newest.run)
        if event.run not in reservations or event.run in self.runs:
            raise LedgerMisuse("a monitor starts with a reservation of its own")
        check_startable(reservations[event.run].charge, event.windows)

    def _check_begin(self, account: MonitorAccount, window: int) -> None:
        _check_running(account)
        account.find_place(window)
        if window < 0:
            raise LedgerMisuse("a window before the horizon is read, and never begins")
        if window in account.closed_windows or window in self.find_excluded_windows(account):
            raise WindowClosed(f"window {window} is closed, or an earlier run had begun it")
        if window in account.open_windows:
            raise LedgerMisuse(f"window {window} has begun")


def check_startable(charge: Charge, windows: WindowAxis | None) -> None:
    """Raise `LedgerMisuse` if no monitor can be charged with this charge and these windows."""
    if not charge.shared or charge.path_continuation is not None or charge.is_by_curve:
        raise LedgerMisuse("a monitor is charged for fresh noise, in pure terms")
    if windows is not None and windows.column not in charge.family.columns:
        raise LedgerMisuse("the windows are along a column of the charge")


def _check_running(account: MonitorAccount) -> None:
    if account.state is not MonitorState.RUNNING:
        raise MonitorStopped(monitor=account.monitor, state=account.state)


def _check_state(account: MonitorAccount, *states: MonitorState) -> None:
    if account.state not in states:
        raise MonitorStopped(monitor=account.monitor, state=account.state)


def _check_look(account: MonitorAccount, event: MonitorLooked) -> None:
    _check_running(account)
    windows = [one.window for one in event.windows]
    if not windows or windows != sorted(set(windows)):
        raise LedgerMisuse("a look is at windows in their order, each once, and at least one")
    if event.number <= account.last_look:
        raise LookAlreadyRecorded(f"look {event.number} or a later one was recorded meanwhile")
    for one in event.windows:
        if one.window not in account.open_windows:
            raise WindowClosed(f"window {one.window} has not begun, or is closed")
        if one.look <= account.open_windows[one.window].look:
            raise LookAlreadyRecorded(f"look {one.look} of window {one.window} was recorded meanwhile")
        for keys in (one.keys, one.cleared):
            if keys and not 0 <= keys[0] <= keys[-1] < account.keys_per_window:
                raise LedgerMisuse("an alert is of one of the monitor's keys")


def _check_close(account: MonitorAccount, event: MonitorWindowClosed) -> None:
    _check_state(account, MonitorState.RUNNING, MonitorState.PAUSED)
    if event.window not in account.open_windows:
        raise WindowClosed(f"window {event.window} has not begun, or is closed")
    spent = event.spent
    if spent is None:
        return
    if account.windows is None or account.windows.overlap > 1:
        raise LedgerMisuse("windows that share cells, or rows, cost all that was reserved")
    spent.check_keys()
    if spent.fresh is not None or (spent.keys is not None and len(spent.keys) != 8 * account.keys_per_window):
        raise LedgerMisuse("a window's losses are one per key")
    if not 0 <= spent.epsilon_nano <= account.charge.epsilon_nano:
        raise LedgerMisuse("more spent than reserved for a key")


def _sum_largest_losses(losses: NanoArray, count: int) -> int:
    """Return the sum of the largest losses.

    Equal losses, the usual case, are handled first: `np.partition` takes a second for millions of equal values.
    """
    if not count:
        return 0
    largest = losses.max()
    if np.count_nonzero(losses == largest) >= count:
        return count * int(largest)
    some = losses[losses > 0]
    return int(some.sum() if some.size <= count else np.partition(some, some.size - count)[some.size - count :].sum())


def _drop_axis(cells: Cells, axis: int) -> Cells:
    return Cells(tuple(column for place, column in enumerate(cells.columns) if place != axis))
