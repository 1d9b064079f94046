"""Every cell of a ledger is covered by `verify`, and so is every bit of an SQLite file that anything depends on."""

import random
import shutil
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from accountant.charges import Wording
from accountant.errors import LedgerUnavailable, NotApproved
from accountant.ledger import Ledger
from accountant.store import integrity
from accountant.store.attempts import Attempt
from tests.accountant.balances.test_noise_paths import engine_of
from tests.accountant.conftest import now
from tests.accountant.examples import all_of, cells, charge, limits, per_key
from tests.accountant.watching import horizon, look_at, start
from tests.effort import rounds

BY = {"by": "the owner", "why": "to see"}
CAPS = limits(10_000)
MONITORS = ("monitor_state", "monitor_alerts", "monitor_leases")
TABLES = (
    *("events", "domains", "answers", "paths", "pruned", "snapshots", "attempts", "relations", "waiting", "writer"),
    *MONITORS,
)
COMPRESSED = {("domains", "body"), ("snapshots", "body")}


def write_everything(url: str, *, monitors: bool = True) -> None:
    """Rows of all kinds in all tables."""
    with Ledger.open(url, clock=now, snapshot_every=1) as ledger:
        for number, version in enumerate(("v1", "v2")):
            asked = charge(60, keys=cells(country=("DE", "FR", "UK"), month=(version,)), version=version)
            begun = ledger.idempotency.begin_attempt(
                "ann", f"key {number}", request="r" * 64, lease=timedelta(hours=1), keep=timedelta(days=1)
            )
            assert isinstance(begun, Attempt)
            reservation = ledger.reserve(asked, CAPS, attempt=begun)
            ledger.commit(reservation, per_key([60, 1, 2]), b"FR", paths={"f": b"values", "g": b"more"})
            ledger.idempotency.store_response(begun, response=b'{"keys": ["FR"]}', answer=reservation.id)
        ledger.owner.prune_paths("sales", "v1", **BY)
        ledger.release(ledger.reserve(charge(5, question="released"), CAPS))
        dead = ledger.reserve(charge(5, question="dead"), CAPS)
        ledger.owner.settle_reservation(dead.id, untouched=False, **BY)
        ledger.owner.approve_question("q9", **BY)
        for question in ("dear", "dearer"):
            refusal = NotApproved(question=question, needed_nano=9, above_nano=5, declined=None)
            ledger.store_waiting_question(
                refusal, charge(9, question=question), Wording("SELECT ? " * 200, "at most", "0.05", "0.1")
            )
        ledger.exposures.store_relations({"sales": ["public.sales", "shop oid 7"]})
        uniform = ledger.reserve(charge(3, question="uniform"), CAPS)
        ledger.commit(uniform, all_of(uniform.charge), b"UK")
        ledger.owner.open_window(**BY)
        ledger.reserve(charge(7, question="open"), CAPS)
        if not monitors:
            return
        run = start(ledger, horizon(60)).run
        look_at(ledger, run, 0, 1, number=1, keys=(0, 2))
        ledger.monitors.close_window(run, 0, np.array([1, 2, 3]))
        look_at(ledger, run, 1, number=2, cleared=(2,))
        look_at(ledger, run, 1, number=3, keys=(2,))
        ledger.monitors.begin_window(run, 2, b"drawn" * 3000)
        ledger.monitors.take_leases(["crowded"], holder="a proxy", seconds=60)


@pytest.fixture
def whole(ledger_url: str) -> str:
    write_everything(ledger_url)
    verify(ledger_url)
    return ledger_url


def verify(url: str) -> int:
    with Ledger.open(url, clock=now, snapshot_every=10**9) as ledger:
        return ledger.verify_everything()


def is_refused(url: str) -> bool:
    try:
        verify(url)
    except LedgerUnavailable:
        return True
    return False


@contextmanager
def unguarded(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection to which no trigger applies, as somebody has who may do anything to the database."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SET session_replication_role = replica"))
            yield connection
            connection.execute(sa.text("SET session_replication_role = DEFAULT"))
            return
        triggers = connection.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")).all()
        for name, _ in triggers:
            connection.execute(sa.text(f"DROP TRIGGER {name}"))
        yield connection
        for _, statement in triggers:
            connection.exec_driver_sql(statement)


def test_every_cell_is_covered(whole: str) -> None:
    """A cell is given another value of its type, then put back: one of each column, of every third column at quick."""
    engine = engine_of(whole)
    columns = [(table, column) for table in TABLES for column in sa.inspect(engine).get_columns(table)]
    assert len(columns) > 35
    for table, column in columns[:: rounds(1, quick=3)]:
        named = sa.table(table, sa.column(column["name"]))
        cell = named.c[column["name"]]
        with unguarded(engine) as connection:
            former = connection.scalars(sa.select(cell).where(cell.is_not(None)).limit(1)).one()
            connection.execute(named.update().where(cell == former).values({cell.name: other_than(former)}))
        assert is_refused(whole), f"{table}.{cell.name}"
        with unguarded(engine) as connection:
            connection.execute(named.update().where(cell == other_than(former)).values({cell.name: former}))
    assert verify(whole) > 0
    engine.dispose()


def other_than(value: Any) -> Any:
    match value:
        case int():
            return value + 1000
        case bytes():
            return value[:-1] + bytes([value[-1] ^ 1])
        case _:
            return value[:-1] + ("z" if value[-1] != "z" else "y")


def test_rows_that_are_gone_are_missed(whole: str) -> None:
    """Of requests, relations and leases nobody can tell: they are forgotten in time anyway."""
    engine = engine_of(whole)
    for table in ("domains", "answers", "paths", "pruned", "writer", "monitor_state", "monitor_alerts"):
        with unguarded(engine) as connection:
            named = sa.table(table, *(sa.column(one["name"]) for one in sa.inspect(engine).get_columns(table)))
            rows = connection.execute(sa.select(named)).all()
            connection.execute(named.delete())
        with pytest.raises(LedgerUnavailable):
            verify(whole)
        with unguarded(engine) as connection:
            connection.execute(named.insert(), [dict(row._mapping) for row in rows])
    assert verify(whole) > 0
    engine.dispose()


def test_a_trigger_that_is_gone_is_missed(whole: str) -> None:
    engine = engine_of(whole)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("ALTER TABLE events DISABLE TRIGGER events_append_only"))
        else:
            connection.execute(sa.text("DROP TRIGGER events_no_update"))
    engine.dispose()
    with pytest.raises(LedgerUnavailable, match="trigger"):
        verify(whole)


def test_postgresql_says_what_it_was_not_asked(new_database: Callable[[], str]) -> None:
    with Ledger.open(new_database(), clock=now) as ledger:
        told = " ".join(ledger.owner.list_impossible_checks())
        assert "amcheck is not there" in told


def test_rows_beside_the_log_of_before_are_digested_when_they_are_migrated(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    write_everything(url, monitors=False)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database:
        for table in ("attempts", "relations"):
            database.execute(f"ALTER TABLE {table} DROP COLUMN digest")
        for table in ("waiting", *MONITORS):
            database.execute(f"DROP TABLE {table}")
        database.execute("UPDATE ledger_version SET version_num = '0004'")
        database.commit()
    assert verify(url) > 0


def contents(file: Path) -> Any:
    """All that a database holds, read table by table without an index; None where that fails."""
    try:
        with closing(sqlite3.connect(file)) as database:
            database.text_factory = bytes
            if database.execute("PRAGMA integrity_check").fetchone() != (b"ok",):
                return None
            found: dict[str, Any] = {"ledger_version": database.execute("SELECT * FROM ledger_version").fetchall()}
            for table in TABLES:
                rows = database.execute(f"SELECT * FROM {table} NOT INDEXED")
                names = [name for name, *_ in rows.description]
                shown = [
                    [
                        zlib.decompress(cell) if (table, name) in COMPRESSED else cell
                        for name, cell in zip(names, row, strict=True)
                    ]
                    for row in rows
                ]
                found[table] = sorted(map(repr, shown))
    except (sqlite3.Error, zlib.error, TypeError):
        return None
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        found["form"] = integrity._read_form(connection)
    engine.dispose()
    return found


def test_bits_that_flip_are_found_or_change_nothing(tmp_path: Path) -> None:
    """Each bit of the file has the same chance. What is not reported leaves every row, table, index and trigger equal:
    it is in bytes of a page that nothing uses, or in a field of the header that nothing reads."""
    sound = tmp_path / "sound.db"
    write_everything(f"sqlite:///{sound}")
    with closing(sqlite3.connect(sound)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("VACUUM")
    before, size = contents(sound), sound.stat().st_size
    assert before is not None
    seeded, became = random.Random(2026), Counter[str]()
    used = [place for place, byte in enumerate(sound.read_bytes()) if byte]
    for _ in range(rounds(1000, quick=25)):
        place, bit = seeded.choice([seeded.choice(used), seeded.randrange(size)]), seeded.randrange(8)
        flipped = tmp_path / "flipped.db"
        for beside in tmp_path.glob("flipped.db*"):
            beside.unlink()
        shutil.copy(sound, flipped)
        with flipped.open("r+b") as file:
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ 1 << bit]))
        if is_refused(f"sqlite:///{flipped}"):
            became["reported"] += 1
        else:
            assert contents(flipped) == before, f"bit {bit} of byte {place}"
            became["without meaning"] += 1
    assert became["reported"] > became["without meaning"]
