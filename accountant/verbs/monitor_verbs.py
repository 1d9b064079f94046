"""The ledger's verbs for monitors: one reservation for the horizon, one secret draw a window, each look recorded once.

Guarantee: a window's noise is drawn once, before data are read, and never again: not after a crash, not by another
process, not by a later run of the same plan. If several processes look at one moment, one of them records it, and it
used the newest state. So a repeated look has the same result. Proof: docs/proofs/accounting.md, theorem 10.
"""

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import numpy as np

from accountant.balances.dependencies import Knowledge
from accountant.balances.fold import Balances
from accountant.balances.monitor_balances import MonitorAccount, check_startable
from accountant.charges import Charge, NanoArray, Reservation, Spent, Wording
from accountant.errors import LedgerMisuse, LookAlreadyRecorded, WindowLost
from accountant.events.events import Committed
from accountant.events.monitor_events import (
    LookOfWindow,
    MonitorEnded,
    MonitorEvent,
    MonitorLooked,
    MonitorPaused,
    MonitorResumed,
    MonitorStarted,
    MonitorWindowBegun,
    MonitorWindowClosed,
)
from accountant.limits import Limits
from accountant.monitor_model import (
    AlertPage,
    ChangePage,
    MonitorRun,
    MonitorState,
    WindowAxis,
    WindowLook,
    WindowState,
)
from accountant.store.journal import Journal
from accountant.store.monitor_rows import AlertRow, StateRow
from accountant.store.transaction import Transaction
from accountant.verbs.monitor_answers import read_alerts, read_changes
from accountant.verbs.reservation import reserve_charge

NO_WINDOWS: Mapping[int, NanoArray | None] = MappingProxyType({})


class Monitors:
    """The monitors of one open ledger. Safe to share between threads and processes."""

    def __init__(self, journal: Journal, *, clock: Callable[[], datetime], knowledge: Knowledge) -> None:
        self._journal = journal
        self._clock = clock
        self._knowledge = knowledge

    def start_run(
        self,
        monitor: str,
        charge: Charge,
        limits: Limits,
        *,
        windows: WindowAxis | None,
        fingerprint: str,
        wording: Wording | None,
        by: str,
        why: str,
        is_restarted: bool = False,
    ) -> MonitorRun:
        """Reserve all windows of a horizon at their worst case, and begin a run. It stays open until it is ended.

        Windows that an earlier run of this fingerprint had begun are in `excluded_windows`: they never begin again. If
        `is_restarted`, no window is excluded: this run draws its own noise for all, and its charge covers that. Raise
        `MonitorNotEnded` if the monitor runs or is paused. Raise `OverBudget`, `NotApproved`, `LedgerMisuse` as
        `Ledger.reserve` does. In all these cases nothing is written.
        """
        check_startable(charge, windows)
        with self._journal.begin_write() as (transaction, balances):
            newest = balances.monitors.find_newest_run(monitor)
            if newest is not None:
                balances.monitors.check_monitor_ended(newest.run)
            reservation = reserve_charge(
                self._journal,
                transaction,
                balances,
                charge,
                limits,
                at=self._clock(),
                knowledge=self._knowledge,
                wording=wording,
            )
            started = MonitorStarted(
                reservation.id,
                reservation.reserved_at,
                monitor,
                fingerprint,
                windows,
                by=by,
                why=why,
                is_restarted=is_restarted,
            )
            self._journal.append_event(transaction, started)
        return self._read_run(reservation.id)

    def find_newest_run(self, monitor: str) -> MonitorRun | None:
        """Return the newest run of a monitor; None if it was never started."""
        with self._journal.begin_read() as (_, balances):
            account = balances.monitors.find_newest_run(monitor)
            return None if account is None else balances.monitors.make_run(account)

    def list_runs(self) -> tuple[MonitorRun, ...]:
        """Return all runs, the oldest first."""
        with self._journal.begin_read() as (_, balances):
            return tuple(balances.monitors.make_run(account) for account in balances.monitors.runs.values())

    def take_leases(self, monitors: Collection[str], *, holder: str, seconds: float) -> frozenset[str]:
        """Acquire leases, and return the monitors at which this holder may look for the next `seconds`.

        A holder can renew its own lease. The time is the database's, so all processes share it. Leases only avoid
        double work: without one, `record_look` still refuses a look that another process has recorded.
        """
        with self._journal.begin_write() as (transaction, _):
            rows = transaction.monitors
            return frozenset(one for one in monitors if rows.take_lease(one, holder=holder, seconds=seconds))

    def release_leases(self, monitors: Collection[str], *, holder: str) -> None:
        """End the holder's leases, so that another process can look at once. Monitors without its lease are skipped."""
        with self._journal.begin_write() as (transaction, _):
            for one in monitors:
                transaction.monitors.release_lease(one, holder=holder)

    def begin_window(self, run: str, window: int, body: bytes) -> WindowState:
        """Store a window's drawn state durably. Data may be read for the window only after this.

        If the window has begun already, return its stored state and ignore `body`. Raise `WindowClosed` if it is closed
        or in `MonitorRun.excluded_windows`, `WindowLost` if it has begun and its state is missing, `MonitorStopped` if
        the monitor is paused or ended. Nothing is written then.
        """
        drawn = StateRow.draw_salt(run, window, 0, body)
        with self._journal.begin_write() as (transaction, balances):
            account = balances.monitors.find_run(run)
            if window in account.open_windows and account.state is MonitorState.RUNNING:
                (stored,) = _read_states(transaction, account, (window,))
                return stored
            self._append_event(transaction, balances, MonitorWindowBegun(run, self._clock(), window, drawn.digest))
            transaction.monitors.add_state(drawn)
            return WindowState(run, window, 0, body)

    def list_open_windows(self, run: str) -> tuple[WindowState, ...]:
        """Return the windows that have begun and are not closed, in order, with their states.

        Raise `WindowLost`, with their numbers, if states are missing or differ from their digests. The caller should
        close these windows.
        """
        with self._journal.begin_read() as (transaction, balances):
            account = balances.monitors.find_run(run)
            return _read_states(transaction, account, account.open_windows)

    def list_begun_windows(self, run: str) -> frozenset[int]:
        """Return the windows that have begun, closed ones included."""
        with self._journal.begin_read() as (_, balances):
            return balances.monitors.find_run(run).begun_windows

    def list_closed_windows(self, run: str) -> frozenset[int]:
        """Return the closed windows. They are all that have begun if the monitor has ended."""
        with self._journal.begin_read() as (_, balances):
            return frozenset(balances.monitors.find_run(run).closed_windows)

    def record_look(
        self,
        run: str,
        windows: Sequence[WindowLook],
        *,
        number: int,
        at: datetime,
        holder: str = "",
        closing: Mapping[int, NanoArray | None] = NO_WINDOWS,
    ) -> None:
        """Write the result of one look: new states, alerts and cleared alerts. Close the windows in `closing`.

        All of it is written, or nothing. Alerts may be sent only afterwards. `closing` has the losses of
        `close_window` by window.

        `number` counts looks over the horizon and is larger than any before. `at` is the look's moment. Raise
        `LookAlreadyRecorded` if this look or a later one was recorded meanwhile, or if a state is no longer the newest.
        The result must then be discarded. Raise `MonitorStopped`, `WindowClosed`, `WindowLost`. Raise `LedgerMisuse` if
        an alerted key is already in the window's answer, or a cleared one is not.
        """
        in_order = sorted(windows, key=lambda one: one.window)
        written = {one.window: StateRow.draw_salt(run, one.window, one.look, one.body) for one in in_order}
        event = MonitorLooked(
            run=run,
            at=at,
            number=number,
            holder=holder,
            windows=tuple(
                LookOfWindow(one.window, one.look, written[one.window].digest, one.keys, one.cleared)
                for one in in_order
            ),
        )
        with self._journal.begin_write() as (transaction, balances):
            account, rows = balances.monitors.find_run(run), transaction.monitors
            balances.monitors.check_event(event, balances.open_reservations)
            for one in in_order:
                if one.since != account.open_windows[one.window].look:
                    raise LookAlreadyRecorded(f"window {one.window} was looked at meanwhile")
                if one.keys or one.cleared:
                    _check_keys(one, rows.find_keys_in_answer(run, one.window))
                if not rows.replace_state(written[one.window], since=one.since):
                    raise WindowLost((one.window,))
            self._journal.append_event(transaction, event)
            moment = at.astimezone(UTC).isoformat(timespec="microseconds")
            for one in in_order:
                rows.clear_alerts(run, one.window, one.cleared, number=number, at=moment)
            rows.add_alerts(AlertRow(run, number, one.window, key, moment) for one in in_order for key in one.keys)
            for window, losses in closing.items():
                self._close(transaction, balances, run, window, losses)

    def close_window(self, run: str, window: int, losses: NanoArray | None) -> None:
        """Close a window: no look is made in it again, and its state is deleted. This works for a lost state too.

        `losses` has the cost to each key, in 1e-9 epsilon, in the C order of the charge's cells without the window's
        column. None means the whole reserved amount, which always counts if windows share rows or cells. The rest is
        refunded. On the balances of cells this happens at once if they separate windows, otherwise at the monitor's
        end. On the balances of units and tables it happens at the end.

        Raise `WindowClosed` if the window is closed or has not begun, `MonitorStopped` if the monitor has ended,
        `LedgerMisuse` if the losses exceed the reservation.
        """
        with self._journal.begin_write() as (transaction, balances):
            self._close(transaction, balances, run, window, losses)

    def pause_run(self, run: str, *, by: str, why: str) -> None:
        """Stop the looks until the monitor is resumed. Raise `MonitorStopped` if it does not run."""
        with self._journal.begin_write() as (transaction, balances):
            self._append_event(
                transaction, balances, MonitorPaused(uuid.uuid4().hex, self._clock(), run, by=by, why=why)
            )

    def resume_run(self, run: str, *, by: str, why: str) -> None:
        """Resume a paused run's looks.

        Its windows keep their states. Raise `MonitorStopped` if the run is not paused.
        """
        with self._journal.begin_write() as (transaction, balances):
            self._append_event(
                transaction, balances, MonitorResumed(uuid.uuid4().hex, self._clock(), run, by=by, why=why)
            )

    def end_run(self, run: str, *, by: str, why: str) -> None:
        """End a monitor, and close its reservation: no look is ever made again.

        Windows that never began are refunded. Open windows cost all that was reserved, and their states are deleted.
        Raise `MonitorStopped` if it has ended.
        """
        with self._journal.begin_write() as (transaction, balances):
            account = balances.monitors.find_run(run)
            spent = account.find_largest_losses(account.find_losses(is_worst_case=False))
            self._append_event(transaction, balances, MonitorEnded(run, self._clock(), spent, by=by, why=why))
            transaction.monitors.drop_states(run)

    def read_alerts(self, run: str, *, after_number: int = 0, limit: int | None = None) -> AlertPage:
        """Return the alerts of the looks after number `after_number`, the oldest first.

        Only whole looks are returned: the fewest that have `limit` alerts. Cleared alerts are marked as of now.
        `read_changes` returns clearings by their own look.
        """
        account = self._read_run(run)
        with self._journal.begin_log_read() as transaction:
            return read_alerts(transaction, account, after_number=after_number, limit=limit)

    def read_changes(self, run: str, *, after_number: int = 0, limit: int | None = None) -> ChangePage:
        """Return the changes of the looks after number `after_number`: keys that came into the answer, or left it.

        Keys that left may have come earlier. Only whole looks are returned: the fewest that have `limit` changes.
        """
        account = self._read_run(run)
        with self._journal.begin_log_read() as transaction:
            return read_changes(transaction, account, after_number=after_number, limit=limit)

    def find_keys_in_answer(self, run: str, window: int) -> tuple[int, ...]:
        """Return the keys that are in a window's answer now, in ascending order: alerted and not cleared since."""
        with self._journal.begin_log_read() as transaction:
            return tuple(sorted(transaction.monitors.find_keys_in_answer(run, window)))

    def charge_reader(
        self, run: str, analyst: str, limits: Limits, *, wording: Wording | None = None
    ) -> Reservation | None:
        """Charge an analyst once for reading a monitor, on the analyst's own balances only.

        Before the monitor's end, the charge is for the whole horizon, and the end refunds the difference to its cost.
        Afterwards, the charge is the monitor's cost.

        Return None, and charge nothing, if the analyst has paid already. Raise `OverBudget`, `NotApproved`.
        """
        with self._journal.begin_write() as (transaction, balances):
            account = balances.monitors.find_run(run)
            if analyst in account.readers:
                return None
            charge = replace(account.charge, analyst=analyst, shared=False)
            reservation = reserve_charge(
                self._journal,
                transaction,
                balances,
                charge,
                limits,
                at=self._clock(),
                knowledge=self._knowledge,
                wording=wording,
            )
            worst = Spent.from_uniform(charge.epsilon_nano, unit_epsilon_nano=charge.unit_epsilon_nano)
            spent = account.compute_spent_loss() if account.state is MonitorState.ENDED else worst
            self._journal.append_event(
                transaction, Committed(reservation.id, reservation.reserved_at, spent, None, reads=run)
            )
        return reservation

    def _read_run(self, run: str) -> MonitorRun:
        with self._journal.begin_read() as (_, balances):
            return balances.monitors.make_run(balances.monitors.find_run(run))

    def _append_event(self, transaction: Transaction, balances: Balances, event: MonitorEvent) -> None:
        balances.monitors.check_event(event, balances.open_reservations)
        self._journal.append_event(transaction, event)

    def _close(
        self, transaction: Transaction, balances: Balances, run: str, window: int, losses: NanoArray | None
    ) -> None:
        account = balances.monitors.find_run(run)
        spent = None if losses is None else _pack_losses(losses, account)
        self._append_event(transaction, balances, MonitorWindowClosed(run, self._clock(), window, spent))
        transaction.monitors.drop_states(run, (window,))


def _check_keys(look: WindowLook, in_answer: set[int]) -> None:
    if not in_answer.isdisjoint(look.keys):
        raise LedgerMisuse("a key comes into the answer once in a window, or again after it was cleared")
    if not in_answer.issuperset(look.cleared):
        raise LedgerMisuse("a key that is cleared is in the answer")


def _pack_losses(losses: NanoArray, account: MonitorAccount) -> Spent | None:
    """Return the losses of a window in the form for its event: one number if all keys lost the same."""
    if account.windows is None or account.windows.overlap > 1:
        return None
    if losses.size != account.keys_per_window:
        raise LedgerMisuse("a window's losses are one per key")
    spent = Spent.from_keys(losses, unit_epsilon_nano=0)
    if np.any(losses != spent.epsilon_nano):
        return spent
    whole = spent.epsilon_nano == account.charge.epsilon_nano
    return None if whole else Spent.from_uniform(spent.epsilon_nano, unit_epsilon_nano=0)


def _read_states(
    transaction: Transaction, account: MonitorAccount, windows: Sequence[int] | Mapping[int, object]
) -> tuple[WindowState, ...]:
    """Return the states of windows that have begun, each checked against the event that wrote it."""
    found = {row.window: row for row in transaction.monitors.find_states(account.run, windows)}
    lost = [
        window
        for window in windows
        if (row := found.get(window)) is None
        or (row.look, row.digest) != (account.open_windows[window].look, account.open_windows[window].state)
    ]
    if lost:
        raise WindowLost(tuple(sorted(lost)))
    return tuple(WindowState(account.run, window, found[window].look, found[window].body) for window in sorted(windows))
