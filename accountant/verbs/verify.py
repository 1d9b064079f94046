"""Reading everything again: what `keyhole ledger verify` promises."""

from accountant.balances.fold import Balances
from accountant.errors import LedgerUnavailable, answer_changed, path_changed
from accountant.events.digests import digest
from accountant.events.events import Committed, Event, Reserved
from accountant.events.owner_events import Pruned
from accountant.store.journal import all_events, open_snapshot
from accountant.store.snapshot import from_bytes, is_older, to_bytes
from accountant.store.transaction import Snapshot, Transaction


def verify(transaction: Transaction, kept: Balances) -> int:
    """Return the number of events.

    Checks that the chain is unbroken, stored answers and noise paths are the ones that were committed and none is
    missing, and that the balances in use and the stored snapshot are the fold of the events. Raises
    `LedgerUnavailable` on the first fault. The newest events may be missing, though: compare the newest hash with a
    copy kept elsewhere.
    """
    events = [event for _, event in all_events(transaction)]
    snapshots = {snapshot.event: snapshot for snapshot in transaction.snapshots()}
    again = Balances()
    for number, event in enumerate(events, start=1):
        again.apply(event)
        if number in snapshots:
            _check_snapshot(snapshots[number], again)
    if to_bytes(again) != to_bytes(kept):
        raise LedgerUnavailable("the balances kept are not the fold of the events")
    _check_answers(transaction, events)
    _check_paths(transaction, events)
    return len(events)


def _check_snapshot(snapshot: Snapshot, balances: Balances) -> None:
    content = open_snapshot(snapshot)
    if not is_older(content) and to_bytes(from_bytes(content)) != to_bytes(balances):
        raise LedgerUnavailable("the stored balances are not the fold of the events")


def _check_answers(transaction: Transaction, events: list[Event]) -> None:
    missing = {event.reservation for event in events if isinstance(event, Committed) and event.answer is not None}
    for reservation, number, answer in transaction.answers():
        match events[number - 1 : number]:
            case [Committed(reservation=committed, answer=stored)] if (committed, stored) == (
                reservation,
                digest(answer),
            ):
                missing.discard(reservation)
            case _:
                raise answer_changed()
    if missing:
        raise LedgerUnavailable("a stored answer is missing")


def _check_paths(transaction: Transaction, events: list[Event]) -> None:
    expected: dict[tuple[str, str], tuple[str, str, int, str]] = {}
    charges = {event.reservation: event.charge.family for event in events if isinstance(event, Reserved)}
    for number, event in enumerate(events, start=1):
        match event:
            case Committed(reservation=reservation, paths=paths):
                family = charges[reservation]
                for identity, content in paths:
                    expected[reservation, identity] = (family.table, family.version, number, content)
            case Pruned(table=table, version=version):
                expected = {key: path for key, path in expected.items() if path[:2] != (table, version)}
            case _:
                pass
    for reservation, identity, table, version, number, body in transaction.paths():
        if expected.pop((reservation, identity), None) != (table, version, number, digest(body)):
            raise path_changed()
    if expected:
        raise LedgerUnavailable("a stored noise path is missing")
