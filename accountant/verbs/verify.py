"""The verification of a whole ledger, for `keyhole ledger verify`."""

from dataclasses import replace

from accountant.balances.fold import Balances
from accountant.errors import LedgerError, LedgerUnavailable, report_changed_answer, report_changed_path
from accountant.events.digests import digest
from accountant.events.events import MAY_HAVE_LOSSES_PER_KEY, Committed, Event, Record, Reserved, list_domain_digests
from accountant.events.monitor_events import MonitorLooked
from accountant.events.owner_events import Pruned
from accountant.store.deadline import limit_waits
from accountant.store.journal import open_snapshot, read_all_events
from accountant.store.monitor_rows import AlertRow
from accountant.store.snapshot import is_older, pack_balances, unpack_balances
from accountant.store.transaction import Snapshot, Transaction

# for a PostgreSQL that holds every index of millions of events against its table
_LONGEST_S = 3600.0


def verify_ledger(transaction: Transaction, kept: Balances) -> int:
    """Check everything that the ledger stores, and return the number of events.

    The database must report no damage, and the chain must be unbroken. Stored key values, answers, noise paths,
    prunings, alerts and states of monitors must match the events, and none may be missing. The balances in use and the
    stored snapshot must equal the fold of the events. Rows beside the log must match their digests. This covers every
    column of every table. Raise `LedgerUnavailable` on the first fault.

    Missing newest events are not noticed. For that, compare the newest hash with a copy kept elsewhere.
    """
    try:
        with limit_waits(_LONGEST_S):
            return _verify_ledger(transaction, kept)
    except LedgerError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # a cell of another type than its column's, which SQLite allows
        raise LedgerUnavailable("a row of the ledger cannot be read") from error


def _verify_ledger(transaction: Transaction, kept: Balances) -> int:
    transaction.check_database()
    found = read_all_events(transaction)
    _check_keys(transaction, [record for record, _ in found])
    events = [event for _, event in found]
    snapshots = {snapshot.event_number: snapshot for snapshot in transaction.read_all_snapshots()}
    if any(found[number - 1 : number] == [] for number in snapshots):
        raise LedgerUnavailable("stored balances are those of an event that is not there")
    reserved = [event.reservation for event in events if isinstance(event, Reserved)]
    if len(set(reserved)) < len(reserved):
        raise LedgerUnavailable("a reservation was written twice")
    again = Balances()
    for number, (record, event) in enumerate(found, start=1):
        again.apply_event(event)
        if number in snapshots:
            _check_snapshot(snapshots[number], record, again)
    if pack_balances(again) != pack_balances(kept):
        raise LedgerUnavailable("the balances kept are not the fold of the events")
    _check_answers(transaction, events)
    _check_paths(transaction, events)
    _check_monitors(transaction, again, events)
    transaction.attempts.check_rows()
    transaction.relations.check_rows()
    transaction.waiting.check_rows()
    return len(events)


def _check_keys(transaction: Transaction, records: list[Record]) -> None:
    """Check the key values that events charge. Losses per key may stand only beside events whose payload says so."""
    stored = transaction.check_domains()
    for record in records:
        if not stored.issuperset(list_domain_digests(record)):
            raise LedgerUnavailable("stored key values are missing")
        if record.spent_keys is not None and record.kind not in MAY_HAVE_LOSSES_PER_KEY:
            raise LedgerUnavailable(f"the losses per key of event {record.id} are not the ones it was written with")


def _check_snapshot(snapshot: Snapshot, record: Record, balances: Balances) -> None:
    if snapshot.hash != record.hash:
        raise LedgerUnavailable("stored balances are those of another event")
    content = open_snapshot(snapshot)
    if not is_older(content) and pack_balances(unpack_balances(content)) != pack_balances(balances):
        raise LedgerUnavailable("the stored balances are not the fold of the events")


def _check_answers(transaction: Transaction, events: list[Event]) -> None:
    missing = {event.reservation for event in events if isinstance(event, Committed) and event.answer is not None}
    charges = {event.reservation: event.charge for event in events if isinstance(event, Reserved)}
    for row in transaction.read_answers():
        charge = charges.get(row.reservation)
        match events[row.event - 1 : row.event]:
            case [Committed(reservation=committed, answer=stored)] if (
                charge is not None
                and (committed, stored) == (row.reservation, digest(row.answer))
                and (charge.question, charge.family.version, charge.analyst)
                == (row.fingerprint, row.version, row.analyst)
            ):
                missing.discard(row.reservation)
            case _:
                raise report_changed_answer()
    if missing:
        raise LedgerUnavailable("a stored answer is missing")


def _check_paths(transaction: Transaction, events: list[Event]) -> None:
    expected: dict[tuple[str, str], tuple[str, str, int, str]] = {}
    charges = {event.reservation: event.charge.family for event in events if isinstance(event, Reserved)}
    pruned: list[tuple[int, str, str]] = []
    for number, event in enumerate(events, start=1):
        match event:
            case Committed(reservation=reservation, paths=paths):
                family = charges[reservation]
                for identity, content in paths:
                    expected[reservation, identity] = (family.table, family.version, number, content)
            case Pruned(table=table, version=version):
                expected = {key: path for key, path in expected.items() if path[:2] != (table, version)}
                pruned.append((number, table, version))
            case _:
                pass
    if pruned != list(transaction.list_prunings()):
        raise LedgerUnavailable("what was pruned is not what the events say")
    for reservation, identity, table, version, number, body in transaction.read_paths():
        if expected.pop((reservation, identity), None) != (table, version, number, digest(body)):
            raise report_changed_path()
    if expected:
        raise LedgerUnavailable("a stored noise path is missing")


def _check_monitors(transaction: Transaction, balances: Balances, events: list[Event]) -> None:
    expected = {
        (account.run, window): (one.look, one.state)
        for account in balances.monitors.runs.values()
        for window, one in account.open_windows.items()
    }
    for state in transaction.monitors.find_states(None):
        if expected.pop((state.run, state.window), None) != (state.look, state.digest):
            raise LedgerUnavailable("the state of a monitor's window is not what was written")
    if expected:
        raise LedgerUnavailable("the state of a monitor's window is missing")
    if _list_alerts(events) != set(transaction.monitors.list_alerts()):
        raise LedgerUnavailable("the alerts of monitors are not those of their looks")
    transaction.monitors.check_leases()


def _list_alerts(events: list[Event]) -> set[AlertRow]:
    """Return the alerts that the looks' events name, with what cleared them."""
    in_answer: dict[tuple[str, int, int], AlertRow] = {}
    cleared: set[AlertRow] = set()
    for event in events:
        if not isinstance(event, MonitorLooked):
            continue
        run, number, at = event.run, event.number, event.at.isoformat(timespec="microseconds")
        for one in event.windows:
            for key in one.cleared:
                alerted = in_answer.pop((run, one.window, key), None)
                if alerted is None:
                    raise LedgerUnavailable("a look cleared an alert that there was not")
                cleared.add(replace(alerted, cleared_number=number, cleared_at=at))
            for key in one.keys:
                if (run, one.window, key) in in_answer:
                    raise LedgerUnavailable("a key came into an answer that it was in")
                in_answer[run, one.window, key] = AlertRow(run, number, one.window, key, at)
    return cleared.union(in_answer.values())
