"""The reads and writes inside one transaction of the ledger's storage."""

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from accountant.charges import Charge, PathState
from accountant.errors import LedgerUnavailable, report_changed_path, report_missing_event
from accountant.events.digests import Domain, digest, encode_domain, write_canonical
from accountant.events.events import GENESIS, Record, Reserved, list_domain_digests
from accountant.events.owner_events import WindowOpened
from accountant.store import ledger_tables
from accountant.store.attempts import Attempts
from accountant.store.charged_relations import Relations
from accountant.store.domain_cache import DomainCache
from accountant.store.integrity import check_database, list_impossible_checks
from accountant.store.monitor_rows import MonitorRows
from accountant.store.waiting import WaitingQuestions

# memory against round trips when the log is read; set, not measured
READ_ROWS = 5_000
# of one IN list, below the least number of parameters that any SQLite admits (999)
READ_NAMES = 500

# of an event that is only held against its hash no losses are read, which may be those of millions of keys
_LOSSES = sa.case(
    (ledger_tables.EVENTS.c.id == sa.bindparam("known"), sa.null()), else_=ledger_tables.EVENTS.c.spent_keys
)
_EVENT_COLUMNS = tuple(column.name for column in ledger_tables.EVENTS.columns)
# built once: every transaction reads it
_EVENTS_FROM = (
    sa.select(
        *(
            _LOSSES.label(one.name) if one is ledger_tables.EVENTS.c.spent_keys else one
            for one in ledger_tables.EVENTS.c
        )
    )
    .where(ledger_tables.EVENTS.c.id >= sa.bindparam("first"))
    .order_by(ledger_tables.EVENTS.c.id)
    .limit(READ_ROWS)
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The stored balances after one event: its number and hash, and the balances' bytes with their SHA-256."""

    event_number: int
    hash: str
    digest: str
    body: bytes = field(repr=False)


class Transaction:
    """The operations inside one transaction.

    `newest` is the id and hash of the last event that it has read or written. `attempts` are the idempotent requests,
    `relations` the source's names of tables, `waiting` the questions that wait for the owner's approval, and `monitors`
    the states, alerts and leases of monitors.
    """

    def __init__(self, connection: sa.Connection, cache: DomainCache) -> None:
        self.newest = (0, GENESIS)
        self.attempts = Attempts(connection)
        self.relations = Relations(connection)
        self.waiting = WaitingQuestions(connection)
        self.monitors = MonitorRows(connection)
        self._connection = connection
        self._cache = cache

    def read_records_after(self, number: int, event_hash: str) -> list[Record]:
        """Return the events after the one with this number and hash, in order. With 0 and `GENESIS`, return all events.

        Raise `LedgerUnavailable` if that event is no longer there.
        """
        records = list(self._read_events(max(1, number), known=number))
        if not number:
            return records
        if not records or (records[0].id, records[0].hash) != (number, event_hash):
            raise report_missing_event(number)
        return records[1:]

    def find_hash(self, number: int) -> str | None:
        """Return the hash of the event with this number, or None if the log has no such event."""
        return self._connection.scalar(
            sa.select(ledger_tables.EVENTS.c.hash).where(ledger_tables.EVENTS.c.id == number)
        )

    def _read_events(self, first: int, *, known: int) -> Iterator[Record]:
        while True:
            rows = self._connection.execute(_EVENTS_FROM, {"first": first, "known": known}).all()
            yield from (Record(*row) for row in rows)
            if len(rows) < READ_ROWS:
                return
            first = rows[-1].id + 1

    def append_record(self, record: Record) -> None:
        """Append an event."""
        self._connection.execute(ledger_tables.APPEND_EVENT, _make_row(record))
        self.newest = (record.id, record.hash)

    def store_domains(self, domains: Iterable[Domain]) -> dict[Domain, str]:
        """Store the key values that are not stored yet. Return the digest of each."""
        digests = {values: self._cache.digest(values) for values in domains}
        missing = set(digests.values()).difference(
            self._connection.scalars(ledger_tables.FIND_DOMAINS, {"digests": list(digests.values())})
        )
        if missing:
            rows = {
                found: {"digest": found, "body": zlib.compress(encode_domain(values), 1)}
                for values, found in digests.items()
                if found in missing
            }
            self._connection.execute(ledger_tables.DOMAINS.insert(), list(rows.values()))
        return digests

    def read_domains(self, records: Sequence[Record]) -> dict[str, Domain]:
        """Return the key values that the records refer to, by digest. Each is checked against its digest."""
        wanted = {domain for record in records for domain in list_domain_digests(record)}
        found = {domain: values for domain in wanted if (values := self._cache.find_values(domain)) is not None}
        missing = sorted(wanted.difference(found))
        for start in range(0, len(missing), READ_NAMES):
            chunk = missing[start : start + READ_NAMES]
            for row in self._connection.execute(
                sa.select(ledger_tables.DOMAINS).where(ledger_tables.DOMAINS.c.digest.in_(chunk))
            ):
                found[row.digest] = self._open_domain(row.digest, row.body)
        return found

    def _open_domain(self, stored_digest: str, body: bytes) -> Domain:
        values = open_domain(stored_digest, body)
        self._cache.store_values(stored_digest, values)
        return values

    def add_answer(self, *, reservation: str, event: int, charge: Charge, answer: bytes) -> None:
        """Store a released answer with the number of its commit event and the charged question."""
        self._connection.execute(
            ledger_tables.ADD_ANSWER,
            {
                "reservation": reservation,
                "event": event,
                "fingerprint": charge.question,
                "version": charge.family.version,
                "analyst": charge.analyst,
                "answer": answer,
            },
        )

    def find_answer(
        self, *, fingerprint: str, version: str, reservation: str | None
    ) -> tuple[bytes, list[Record]] | None:
        """Return a stored answer with the events of its reservation, in order.

        It is the answer of `reservation` if given, else the first one to the question on that data version.
        """
        given = {"question": fingerprint, "of_version": version}
        if reservation is None:
            return self._add_events(ledger_tables.FIND_FIRST_ANSWER, given)
        return self._add_events(ledger_tables.FIND_PAID_ANSWER, {**given, "paid_by": reservation})

    def read_answer(self, reservation: str) -> tuple[bytes, list[Record]] | None:
        """Return the answer that a reservation stored, with that reservation's events, in order."""
        chosen = sa.select(ledger_tables.ANSWERS.c.reservation, ledger_tables.ANSWERS.c.answer).where(
            ledger_tables.ANSWERS.c.reservation == reservation
        )
        return self._add_events(chosen, {})

    def _add_events(
        self, chosen: sa.Select[tuple[str, bytes]], given: Mapping[str, str]
    ) -> tuple[bytes, list[Record]] | None:
        row = self._connection.execute(chosen, given).one_or_none()
        if row is None:
            return None
        events = self._connection.execute(ledger_tables.FIND_EVENTS, {"by_reservation": row.reservation})
        return row.answer, [Record(*event) for event in events]

    def list_reservations(self, *, analyst: str | None, before: int | None, limit: int | None) -> list[str]:
        """Return reservations, newest first: of one analyst, before an event, and at most `limit`, if given."""
        chosen = sa.select(ledger_tables.EVENTS.c.reservation).where(
            *_filter_reservations(analyst=analyst, before=before)
        )
        return list(self._connection.scalars(chosen.order_by(ledger_tables.EVENTS.c.id.desc()).limit(limit)))

    def count_reservations(self, *, analyst: str | None, before: int | None) -> int:
        """Return the number of reservations: of one analyst, before an event, if given."""
        chosen = (
            sa.select(sa.func.count())
            .select_from(ledger_tables.EVENTS)
            .where(*_filter_reservations(analyst=analyst, before=before))
        )
        return int(self._connection.scalar(chosen) or 0)

    def find_reservations(self, identity: str) -> list[str]:
        """Return the reservations whose id, or whose question's id, starts with this text, the oldest first."""
        found = sa.func.strpos if self._connection.dialect.name == "postgresql" else sa.func.instr
        begins = sa.func.substr(ledger_tables.EVENTS.c.reservation, 1, len(identity)) == identity
        asks = found(ledger_tables.EVENTS.c.payload, f'"question":{write_canonical(identity)[:-1]}') > 0
        chosen = sa.select(ledger_tables.EVENTS.c.reservation).where(
            ledger_tables.EVENTS.c.kind == Reserved.__name__, begins | asks
        )
        return list(self._connection.scalars(chosen.order_by(ledger_tables.EVENTS.c.id)))

    def find_event_number(self, reservation: str) -> int:
        """Return the number of the event that made this reservation, or 0 if the log has no such event."""
        chosen = sa.select(ledger_tables.EVENTS.c.id).where(
            ledger_tables.EVENTS.c.reservation == reservation, ledger_tables.EVENTS.c.kind == Reserved.__name__
        )
        return int(self._connection.scalar(chosen) or 0)

    def has_event(self, kind: str, about: str) -> bool:
        """Return True if there is an event of this kind about this subject."""
        chosen = sa.select(ledger_tables.EVENTS.c.id).where(
            ledger_tables.EVENTS.c.reservation == about, ledger_tables.EVENTS.c.kind == kind
        )
        return self._connection.scalar(chosen) is not None

    def read_newest_records(self, kinds: Sequence[str], *, limit: int) -> list[Record]:
        """Return the newest events of some kinds, the newest first."""
        chosen = (
            sa.select(ledger_tables.EVENTS)
            .where(ledger_tables.EVENTS.c.kind.in_(kinds))
            .order_by(ledger_tables.EVENTS.c.id.desc())
            .limit(limit)
        )
        return [Record(*row) for row in self._connection.execute(chosen)]

    def read_events_of_reservations(self, reservations: Sequence[str]) -> list[Record]:
        """Return all events about some reservations, and every opening of a budget window, in order."""
        records = self._connection.execute(
            sa.select(ledger_tables.EVENTS).where(ledger_tables.EVENTS.c.kind == WindowOpened.__name__)
        ).all()
        for start in range(0, len(reservations), READ_NAMES):
            about = ledger_tables.EVENTS.c.reservation.in_(reservations[start : start + READ_NAMES])
            records = [*records, *self._connection.execute(sa.select(ledger_tables.EVENTS).where(about))]
        return sorted((Record(*row) for row in records), key=lambda record: record.id)

    def read_events_of_kind(self, kind: str, *, about: str | None) -> list[Record]:
        """Return the events of one kind, in order. With `about`, return only the events about that subject."""
        chosen = sa.select(ledger_tables.EVENTS).where(ledger_tables.EVENTS.c.kind == kind)
        if about is not None:
            chosen = chosen.where(ledger_tables.EVENTS.c.reservation == about)
        return [Record(*row) for row in self._connection.execute(chosen.order_by(ledger_tables.EVENTS.c.id))]

    def list_columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns, in one order for both databases."""
        return tuple(sorted(column["name"] for column in sa.inspect(self._connection).get_columns(table)))

    def read_rows(self, table: str, columns: Sequence[str]) -> Iterator[Sequence[Any]]:
        """Yield every row of a table. A table with an `id`, such as the log, is read in its order."""
        named: list[sa.ColumnClause[Any]] = [sa.column(name) for name in columns]
        ordered: list[sa.ColumnClause[Any]] = [sa.column("id")] if "id" in columns else []
        chosen = sa.select(*named).select_from(sa.table(table)).order_by(*ordered)
        with self._connection.execute(chosen, execution_options={"yield_per": READ_NAMES}) as found:
            yield from found

    def has_rows(self, table: str) -> bool:
        """Return True if a table has a row."""
        return self._connection.execute(sa.select(1).select_from(sa.table(table)).limit(1)).first() is not None

    def insert_rows(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows that were read from another ledger, unchanged."""
        there = sa.table(table, *(sa.column(name) for name in columns))
        self._connection.execute(there.insert(), [dict(zip(columns, row, strict=True)) for row in rows])

    def check_database(self) -> None:
        """Raise `LedgerUnavailable` if the database is damaged, or lacks the ledger's tables and triggers."""
        check_database(self._connection)

    def list_impossible_checks(self) -> tuple[str, ...]:
        """Return the checks that `check_database` could not make on this database, as sentences for its owner."""
        return list_impossible_checks(self._connection)

    def check_domains(self) -> frozenset[str]:
        """Read and hash all stored key values, and return their digests.

        Raise `LedgerUnavailable` for values that do not match their digest.
        """
        return frozenset(
            stored
            for stored, body in self._connection.execute(sa.select(ledger_tables.DOMAINS))
            if open_domain(stored, body) is not None
        )

    def read_answers(self) -> Iterator[sa.Row[tuple[str, int, str, str, str, bytes]]]:
        """Yield every stored answer: reservation, commit event, fingerprint, version, analyst and content."""
        yield from self._connection.execute(sa.select(ledger_tables.ANSWERS))

    def store_noise_paths(
        self, *, reservation: str, event: int, table: str, version: str, bodies: Mapping[str, bytes]
    ) -> None:
        """Store noise paths, by identity, with the number of the event that committed them."""
        rows = [
            {
                "reservation": reservation,
                "identity": identity,
                "family_table": table,
                "version": version,
                "event": event,
                "body": body,
            }
            for identity, body in bodies.items()
        ]
        if rows:
            self._connection.execute(ledger_tables.ADD_PATHS, rows)

    def read_path_bodies(self, states: Iterable[PathState]) -> dict[PathState, bytes]:
        """Return the stored values of paths in these states, each checked against its event."""
        found = {}
        for state in states:
            given = {"by_reservation": state.reservation, "path": state.identity, "of_version": state.version}
            row = self._connection.execute(ledger_tables.FIND_PATH, given).one_or_none()
            if row is not None:
                if json.loads(row.payload)["paths"].get(state.identity) != digest(row.body):
                    raise report_changed_path()
                found[state] = row.body
        return found

    def read_paths(self) -> Iterator[tuple[str, str, str, str, int, bytes]]:
        """Yield reservation, identity, table, version, commit event and content of every stored path."""
        for row in self._connection.execute(
            sa.select(ledger_tables.PATHS).order_by(ledger_tables.PATHS.c.event, ledger_tables.PATHS.c.identity)
        ):
            yield row[0], row[1], row[2], row[3], row[4], row[5]

    def measure_paths(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield table, version, number of states and bytes of the stored paths."""
        size = sa.func.coalesce(sa.func.sum(sa.func.length(ledger_tables.PATHS.c.body)), 0)
        chosen = sa.select(ledger_tables.PATHS.c.family_table, ledger_tables.PATHS.c.version, sa.func.count(), size)
        grouped = chosen.group_by(ledger_tables.PATHS.c.family_table, ledger_tables.PATHS.c.version)
        for table, version, count, total in self._connection.execute(
            grouped.order_by(ledger_tables.PATHS.c.family_table, ledger_tables.PATHS.c.version)
        ):
            yield table, version, int(count), int(total)

    def list_prunings(self) -> Iterator[tuple[int, str, str]]:
        """Yield event, table and version of every pruning."""
        for row in self._connection.execute(sa.select(ledger_tables.PRUNED).order_by(ledger_tables.PRUNED.c.event)):
            yield row[0], row[1], row[2]

    def delete_pruned_values(self, *, event: int, table: str, version: str) -> None:
        """Delete the values of a table's paths on one data version, after the pruning event `event`."""
        self._connection.execute(
            ledger_tables.PRUNED.insert(), {"event": event, "family_table": table, "version": version}
        )
        self._connection.execute(
            ledger_tables.PATHS.delete().where(
                ledger_tables.PATHS.c.family_table == table, ledger_tables.PATHS.c.version == version
            )
        )

    def read_snapshots(self) -> Iterator[Snapshot]:
        """Yield the stored balances of this ledger's chain, the newest first."""
        same = (ledger_tables.EVENTS.c.id == ledger_tables.SNAPSHOTS.c.event) & (
            ledger_tables.EVENTS.c.hash == ledger_tables.SNAPSHOTS.c.hash
        )
        rows = self._connection.execute(
            sa.select(ledger_tables.SNAPSHOTS)
            .join(ledger_tables.EVENTS, same)
            .order_by(ledger_tables.SNAPSHOTS.c.event.desc())
        )
        for row in rows:
            yield Snapshot(row.event, row.hash, row.digest, row.body)

    def read_all_snapshots(self) -> Iterator[Snapshot]:
        """Yield the stored balances of every chain."""
        for row in self._connection.execute(sa.select(ledger_tables.SNAPSHOTS)):
            yield Snapshot(row.event, row.hash, row.digest, row.body)

    def replace_snapshot(self, snapshot: Snapshot) -> None:
        """Store balances, and forget older ones."""
        self._connection.execute(ledger_tables.SNAPSHOTS.delete())
        self._connection.execute(
            ledger_tables.SNAPSHOTS.insert(),
            {
                "event": snapshot.event_number,
                "hash": snapshot.hash,
                "digest": snapshot.digest,
                "body": snapshot.body,
            },
        )


def open_domain(stored_digest: str, body: bytes) -> Domain:
    """Return stored key values. Raise `LedgerUnavailable` unless they match the digest."""
    try:
        content = zlib.decompress(body)
        if digest(content) != stored_digest:
            raise LedgerUnavailable("stored key values are not the ones that were charged")
        return tuple(json.loads(content))
    except (zlib.error, ValueError, TypeError) as error:
        raise LedgerUnavailable("stored key values cannot be read") from error


def _filter_reservations(*, analyst: str | None, before: int | None) -> Iterator[sa.ColumnElement[bool]]:
    yield ledger_tables.EVENTS.c.kind == Reserved.__name__
    if analyst is not None:
        # canonical JSON starts with the first of its sorted keys
        start = f'{{"analyst":{write_canonical(analyst)},'
        yield sa.func.substr(ledger_tables.EVENTS.c.payload, 1, len(start)) == start
    if before is not None:
        yield ledger_tables.EVENTS.c.id < before


def _make_row(record: Record) -> Mapping[str, Any]:
    return {name: getattr(record, name) for name in _EVENT_COLUMNS}
