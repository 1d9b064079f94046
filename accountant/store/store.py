"""The ledger's storage, and the accountant's only I/O: SQLite in WAL mode, or PostgreSQL.

Guarantee: inside `writing()` one writer at a time, over all threads, processes and machines, sees every event
committed so far; when the block ends without an error, what it appended survives the death of process and machine.
"""

import json
import shutil
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import tenacity
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import event as engine_event
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from accountant.errors import LedgerUnavailable
from accountant.events.digests import Domain, canonical, digest, domain_body
from accountant.events.events import GENESIS, Record, Reserved, domain_digests
from accountant.events.owner_events import WindowOpened
from accountant.model import PathState
from accountant.store.attempts import Attempts

LOCK_TIMEOUT_MS = 30_000
CONNECT_TIMEOUT_S = 10
READ_ROWS = 5_000
CACHED_DOMAINS = 1_024
# Any number, the same for every version: openers queue on it before the tables exist.
MIGRATION_LOCK = 0x4B6579686F6C65

_metadata = sa.MetaData()
_events = sa.Table(
    "events",
    _metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("kind", "reservation", "at", "payload")),
    sa.Column("spent_keys", sa.LargeBinary),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("previous_hash", "hash")),
)
_domains = sa.Table(
    "domains",
    _metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
_answers = sa.Table(
    "answers",
    _metadata,
    sa.Column("reservation", sa.Text, primary_key=True),
    sa.Column("event", sa.BigInteger, nullable=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("fingerprint", "version", "analyst")),
    sa.Column("answer", sa.LargeBinary, nullable=False),
)
_paths = sa.Table(
    "paths",
    _metadata,
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("reservation", "identity")),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("family_table", "version")),
    sa.Column("event", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
_pruned = sa.Table(
    "pruned",
    _metadata,
    sa.Column("event", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("family_table", "version")),
)
_snapshots = sa.Table(
    "snapshots",
    _metadata,
    sa.Column("event", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("hash", "digest")),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
_writer = sa.Table("writer", _metadata, sa.Column("id", sa.Integer, primary_key=True))

# built once: every transaction reads it
_EVENTS_FROM = sa.select(_events).where(_events.c.id >= sa.bindparam("first")).order_by(_events.c.id).limit(READ_ROWS)


class DomainCache:
    """The key values last seen and their digests, so that a steady workload neither hashes nor reads them again."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, Domain] = OrderedDict()
        self._digests: dict[Domain, str] = {}

    def digest_of(self, values: Domain) -> str:
        """The digest of key values."""
        known = self._digests.get(values)
        if known is None:
            known = digest(domain_body(values))
            self.remember(known, values)
        return known

    def get(self, domain: str) -> Domain | None:
        """The key values of a digest, if they were seen lately."""
        return self._values.get(domain)

    def remember(self, domain: str, values: Domain) -> None:
        """Keep a pair, and forget the oldest beyond the cache's size."""
        self._values[domain] = values
        self._digests[values] = domain
        while len(self._values) > CACHED_DOMAINS:
            _, oldest = self._values.popitem(last=False)
            del self._digests[oldest]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Balances after one event: the event's number and hash, and the balances' own SHA-256 and form."""

    event: int
    hash: str
    digest: str
    body: bytes = field(repr=False)


class Transaction:
    """What can be done inside one transaction. `newest` is the id and hash of the last event it has seen or written,
    `attempts` the requests that are answered once."""

    def __init__(self, connection: sa.Connection, cache: DomainCache) -> None:
        self.newest = (0, GENESIS)
        self.attempts = Attempts(connection)
        self._connection = connection
        self._cache = cache

    def records_from(self, first: int) -> Iterator[Record]:
        """The events numbered `first` and above, in order, in batches."""
        while True:
            rows = self._connection.execute(_EVENTS_FROM, {"first": first}).all()
            yield from (Record(*row) for row in rows)
            if len(rows) < READ_ROWS:
                return
            first = rows[-1].id + 1

    def append(self, record: Record) -> None:
        """Append an event."""
        self._connection.execute(_events.insert(), _row(record))
        self.newest = (record.id, record.hash)

    def digests(self, domains: Iterable[Domain]) -> dict[Domain, str]:
        """Store key values that are not stored yet; their digests."""
        digests = {values: self._cache.digest_of(values) for values in domains}
        missing = set(digests.values()).difference(
            self._connection.scalars(sa.select(_domains.c.digest).where(_domains.c.digest.in_(digests.values())))
        )
        if missing:
            rows = {
                found: {"digest": found, "body": zlib.compress(domain_body(values), 1)}
                for values, found in digests.items()
                if found in missing
            }
            self._connection.execute(_domains.insert(), list(rows.values()))
        return digests

    def domains_of(self, records: Sequence[Record]) -> dict[str, Domain]:
        """The key values that the records refer to, by digest, each checked against it."""
        wanted = {domain for record in records for domain in domain_digests(record)}
        found = {domain: values for domain in wanted if (values := self._cache.get(domain)) is not None}
        missing = sorted(wanted.difference(found))
        for start in range(0, len(missing), 500):
            chunk = missing[start : start + 500]
            for row in self._connection.execute(sa.select(_domains).where(_domains.c.digest.in_(chunk))):
                found[row.digest] = self._open_domain(row.digest, row.body)
        return found

    def _open_domain(self, stored_digest: str, body: bytes) -> Domain:
        try:
            content = zlib.decompress(body)
            if digest(content) != stored_digest:
                raise LedgerUnavailable("stored key values are not the ones that were charged")
            values = tuple(json.loads(content))
        except (zlib.error, ValueError) as error:
            raise LedgerUnavailable("stored key values cannot be read") from error
        self._cache.remember(stored_digest, values)
        return values

    def add_answer(
        self, *, reservation: str, event: int, fingerprint: str, version: str, analyst: str, answer: bytes
    ) -> None:
        """Store a released answer beside the event that committed it."""
        self._connection.execute(
            _answers.insert(),
            {
                "reservation": reservation,
                "event": event,
                "fingerprint": fingerprint,
                "version": version,
                "analyst": analyst,
                "answer": answer,
            },
        )

    def answer(self, *, fingerprint: str, version: str, reservation: str | None) -> tuple[bytes, list[Record]] | None:
        """A stored answer with the events of its reservation, in order: the answer of `reservation`, or the first
        one to the question on that data version."""
        chosen = (
            sa.select(_answers.c.reservation, _answers.c.answer)
            .where(_answers.c.fingerprint == fingerprint, _answers.c.version == version)
            .order_by(_answers.c.event)
            .limit(1)
        )
        if reservation is not None:
            chosen = chosen.where(_answers.c.reservation == reservation)
        return self._with_events(chosen)

    def answer_of(self, reservation: str) -> tuple[bytes, list[Record]] | None:
        """The answer that a reservation stored, with that reservation's events, in order."""
        chosen = sa.select(_answers.c.reservation, _answers.c.answer).where(_answers.c.reservation == reservation)
        return self._with_events(chosen)

    def _with_events(self, chosen: sa.Select[tuple[str, bytes]]) -> tuple[bytes, list[Record]] | None:
        row = self._connection.execute(chosen).one_or_none()
        if row is None:
            return None
        events = sa.select(_events).where(_events.c.reservation == row.reservation).order_by(_events.c.id)
        return row.answer, [Record(*event) for event in self._connection.execute(events)]

    def reserved(self, *, analyst: str | None, before: int | None, limit: int | None) -> list[str]:
        """The newest reservations, the newest first: of one analyst, before an event, and so many, if so asked."""
        chosen = sa.select(_events.c.reservation).where(*_reserved(analyst=analyst, before=before))
        return list(self._connection.scalars(chosen.order_by(_events.c.id.desc()).limit(limit)))

    def count_reserved(self, *, analyst: str | None, before: int | None) -> int:
        """How many reservations there are: of one analyst, before an event, if so asked."""
        chosen = sa.select(sa.func.count()).select_from(_events).where(*_reserved(analyst=analyst, before=before))
        return int(self._connection.scalar(chosen) or 0)

    def reserved_as(self, identity: str) -> list[str]:
        """The reservations whose id, or whose question's id, starts like that, the oldest first."""
        found = sa.func.strpos if self._connection.dialect.name == "postgresql" else sa.func.instr
        begins = sa.func.substr(_events.c.reservation, 1, len(identity)) == identity
        asks = found(_events.c.payload, f'"question":{canonical(identity)[:-1]}') > 0
        chosen = sa.select(_events.c.reservation).where(_events.c.kind == Reserved.__name__, begins | asks)
        return list(self._connection.scalars(chosen.order_by(_events.c.id)))

    def number_of(self, reservation: str) -> int:
        """The number of the event that reserved it; 0 where there is none."""
        chosen = sa.select(_events.c.id).where(
            _events.c.reservation == reservation, _events.c.kind == Reserved.__name__
        )
        return int(self._connection.scalar(chosen) or 0)

    def events_about(self, reservations: Sequence[str]) -> list[Record]:
        """All events about some reservations, and every opening of a window, in order."""
        records = self._connection.execute(sa.select(_events).where(_events.c.kind == WindowOpened.__name__)).all()
        for start in range(0, len(reservations), 500):
            about = _events.c.reservation.in_(reservations[start : start + 500])
            records = [*records, *self._connection.execute(sa.select(_events).where(about))]
        return sorted((Record(*row) for row in records), key=lambda record: record.id)

    def answers(self) -> Iterator[tuple[str, int, bytes]]:
        """Reservation, commit event and content of every stored answer."""
        for row in self._connection.execute(sa.select(_answers.c.reservation, _answers.c.event, _answers.c.answer)):
            yield row[0], row[1], row[2]

    def add_paths(self, *, reservation: str, event: int, table: str, version: str, bodies: Mapping[str, bytes]) -> None:
        """Store noise paths, by identity, beside the event that committed them."""
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
            self._connection.execute(_paths.insert(), rows)

    def path_bodies(self, states: Iterable[PathState]) -> dict[PathState, bytes]:
        """The values of paths in these states, where they are in the store, each checked against its event."""
        found = {}
        for state in states:
            row = self._connection.execute(
                sa.select(_paths.c.body, _events.c.payload)
                .join(_events, _events.c.id == _paths.c.event)
                .where(
                    _paths.c.reservation == state.reservation,
                    _paths.c.identity == state.identity,
                    _paths.c.version == state.version,
                )
            ).one_or_none()
            if row is not None:
                if json.loads(row.payload)["paths"].get(state.identity) != digest(row.body):
                    raise LedgerUnavailable("a stored noise path is not the one that was committed")
                found[state] = row.body
        return found

    def paths(self) -> Iterator[tuple[str, str, str, str, int, bytes]]:
        """Reservation, identity, table, version, commit event and content of every stored path."""
        for row in self._connection.execute(sa.select(_paths).order_by(_paths.c.event, _paths.c.identity)):
            yield row[0], row[1], row[2], row[3], row[4], row[5]

    def path_sizes(self) -> Iterator[tuple[str, str, int, int]]:
        """Table, version, number of states and bytes of the stored paths."""
        size = sa.func.coalesce(sa.func.sum(sa.func.length(_paths.c.body)), 0)
        chosen = sa.select(_paths.c.family_table, _paths.c.version, sa.func.count(), size)
        grouped = chosen.group_by(_paths.c.family_table, _paths.c.version)
        for table, version, count, total in self._connection.execute(
            grouped.order_by(_paths.c.family_table, _paths.c.version)
        ):
            yield table, version, int(count), int(total)

    def prune(self, *, event: int, table: str, version: str) -> None:
        """Remove the values of a table's paths on one data version, which `event` says are pruned."""
        self._connection.execute(_pruned.insert(), {"event": event, "family_table": table, "version": version})
        self._connection.execute(_paths.delete().where(_paths.c.family_table == table, _paths.c.version == version))

    def snapshots(self) -> Iterator[Snapshot]:
        """Stored balances of the chain that this ledger is, the newest first."""
        same = (_events.c.id == _snapshots.c.event) & (_events.c.hash == _snapshots.c.hash)
        rows = self._connection.execute(sa.select(_snapshots).join(_events, same).order_by(_snapshots.c.event.desc()))
        for row in rows:
            yield Snapshot(row.event, row.hash, row.digest, row.body)

    def replace_snapshot(self, snapshot: Snapshot) -> None:
        """Store balances, and forget older ones."""
        self._connection.execute(_snapshots.delete())
        self._connection.execute(
            _snapshots.insert(),
            {
                "event": snapshot.event,
                "hash": snapshot.hash,
                "digest": snapshot.digest,
                "body": snapshot.body,
            },
        )


class LedgerStore:
    """An open database that holds one ledger."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._cache = DomainCache()

    @classmethod
    def open(cls, url: str) -> "LedgerStore":
        """Open or create the ledger at an SQLAlchemy URL and bring its schema up to date.

        `postgresql://` is read as `postgresql+psycopg://`. Raises `LedgerUnavailable`; never shows the URL, which may
        hold a password.
        """
        with _translated():
            engine = _engine(url)
            try:
                _migrate(engine)
            except BaseException:
                engine.dispose()
                raise
        return cls(engine)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def check_room(self, *, room_bytes: int) -> None:
        """Look whether a SQLite file could grow by so much on its disk. Raises `LedgerUnavailable`."""
        file = self._engine.url.database
        if self._engine.dialect.name == "sqlite" and file and file != ":memory:":
            with suppress(OSError):
                if shutil.disk_usage(Path(file).parent).free < room_bytes:
                    raise LedgerUnavailable("the disk is full")

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """One serialised transaction; durable when the block ends, undone when it raises."""
        with _translated(), self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SET LOCAL synchronous_commit = on"))
                connection.execute(sa.text(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}"))
                connection.execute(sa.text(f"SET LOCAL idle_in_transaction_session_timeout = {LOCK_TIMEOUT_MS}"))
                connection.execute(sa.select(_writer.c.id).with_for_update()).one()
            yield Transaction(connection, self._cache)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One read-only look at what is committed at one moment; waits for nobody."""
        with _translated(), self._engine.connect() as connection:
            connection.execution_options(keyhole_begin="BEGIN")
            if connection.dialect.name == "postgresql":
                # SQLite's readers have one snapshot anyway
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield Transaction(connection, self._cache)


def _reserved(*, analyst: str | None, before: int | None) -> Iterator[sa.ColumnElement[bool]]:
    yield _events.c.kind == Reserved.__name__
    if analyst is not None:
        # canonical JSON starts with the first of its sorted keys
        start = f'{{"analyst":{canonical(analyst)},'
        yield sa.func.substr(_events.c.payload, 1, len(start)) == start
    if before is not None:
        yield _events.c.id < before


def _row(record: Record) -> Mapping[str, Any]:
    return {column.name: getattr(record, column.name) for column in _events.columns}


def _engine(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "postgresql":
        return sa.create_engine(
            parsed,
            # the queue is a row lock: only READ COMMITTED sees what was committed while waiting for it
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,
            connect_args={"connect_timeout": CONNECT_TIMEOUT_S},
        )
    if parsed.get_backend_name() != "sqlite":
        raise LedgerUnavailable(f"a ledger lives in SQLite or PostgreSQL, not in {parsed.get_backend_name()}")
    if parsed.database in (None, "", ":memory:") or "mode" in parsed.query:
        raise LedgerUnavailable("a ledger in memory would forget what was spent")
    engine = sa.create_engine(parsed, connect_args={"timeout": LOCK_TIMEOUT_MS / 1000})
    engine_event.listen(engine, "connect", _prepare_sqlite)
    engine_event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(dbapi_connection: Any, _: object) -> None:
    dbapi_connection.isolation_level = None  # the driver begins nothing by itself
    for pragma in (
        f"busy_timeout = {LOCK_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = FULL",
        "fullfsync = ON",
        "foreign_keys = ON",
    ):
        dbapi_connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("keyhole_begin", "BEGIN IMMEDIATE"))


@tenacity.retry(
    retry=tenacity.retry_if_exception(
        # two processes that create one file at once: the switch to WAL does not wait for the busy timeout
        lambda error: isinstance(error, OperationalError) and "database is locked" in str(error.orig)
    ),
    wait=tenacity.wait_random(min=0.01, max=0.1),
    stop=tenacity.stop_after_delay(10),
    reraise=True,
)
def _migrate(engine: sa.Engine) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent.parent / "migrations").replace("%", "%%"))
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, CommandError, OSError) as error:
        # the driver's text may hold the address or statement values: only its kind is passed on
        raise LedgerUnavailable(f"the ledger's storage failed ({type(error).__name__})") from error
