"""What both sources promise besides the integers: shapes, refusals that tell nothing, and no way to write."""

import pickle
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import numpy as np
import psycopg
import pytest

from planner.catalog.catalog import Column, SqlType
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.policy.compile import SourceColumn
from planner.question.plan import Rewritten
from proxy.cli.init import write_policy_from_source
from proxy.open_policy.pins import MAX_PUBLIC_ROWS
from proxy.sources.open import Source, TrueAggregates, open_source
from proxy.sources.postgres_source import PostgresSource
from tests.worlds.house import new_database
from tests.worlds.stopped import own_server

HIDDEN = """
CREATE ROLE hidden_keeper; CREATE ROLE hidden_reader LOGIN PASSWORD 'x';
CREATE TABLE kept (id integer, tenant text); CREATE TABLE plain (LIKE kept); CREATE TABLE own (LIKE kept);
CREATE TABLE forced (LIKE kept); CREATE TABLE parts (LIKE kept) PARTITION BY LIST (id);
CREATE TABLE open_parts (LIKE kept) PARTITION BY LIST (id);
CREATE TABLE one PARTITION OF open_parts FOR VALUES IN (1);
ALTER TABLE kept ENABLE ROW LEVEL SECURITY; ALTER TABLE own ENABLE ROW LEVEL SECURITY;
ALTER TABLE forced ENABLE ROW LEVEL SECURITY; ALTER TABLE forced FORCE ROW LEVEL SECURITY;
ALTER TABLE parts ENABLE ROW LEVEL SECURITY; ALTER TABLE one ENABLE ROW LEVEL SECURITY;
ALTER TABLE kept OWNER TO hidden_keeper; ALTER TABLE forced OWNER TO hidden_keeper;
ALTER TABLE own OWNER TO hidden_reader;
CREATE VIEW through AS SELECT * FROM kept; CREATE VIEW through_forced AS SELECT * FROM forced;
CREATE VIEW through_invoker WITH (security_invoker) AS SELECT * FROM kept;
CREATE VIEW through_superuser AS SELECT * FROM forced;
ALTER VIEW through OWNER TO hidden_keeper; ALTER VIEW through_forced OWNER TO hidden_keeper;
ALTER VIEW through_invoker OWNER TO hidden_keeper;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO hidden_reader
"""

_COLUMNS = (
    "ward text, day date, seen_at timestamp, age integer, big bigint, "
    "cost numeric(10,2), x double precision, ok boolean"
)
_ROWS = (
    ("a", date(2026, 1, 1), datetime(2026, 1, 1, 5), 3, 2**40, Decimal("1.50"), Decimal("0.25"), True),
    ("o'hare", date(2026, 1, 2), datetime(2026, 1, 1, 5), 4, 2**41, Decimal("2.00"), Decimal("0.5"), False),
)
_INSERTED = (
    "('o''hare', '2026-01-02', '2026-01-01 05:00', 4, 2199023255552, 2.00, 0.5, FALSE), "
    "('a', '2026-01-01', '2026-01-01 05:00', 3, 1099511627776, 1.50, 0.25, TRUE)"
)
_KEYS = KeySpace(columns=(Column("ward", SqlType.TEXT, "text", domain=("a", "b")),), values=(("a", "b"),))
_SECRET = "topsecret"


Opened = tuple[Source, str, Callable[[], object]]


@pytest.fixture(params=["duckdb file", "parquet", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> Iterator[Opened]:
    """A source with one small table, the table's name there, and a count of its rows by another way."""
    name = "small"
    if request.param == "postgres":
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute(f"DROP TABLE IF EXISTS small CASCADE; CREATE TABLE small ({_COLUMNS})")
            server.execute(f"INSERT INTO small VALUES {_INSERTED}")
            server.execute("CREATE VIEW seen AS SELECT * FROM small")
        opened = open_source(postgres_url, directory=tmp_path)
    else:
        with duckdb.connect(str(tmp_path / "small.duckdb")) as writer:
            writer.execute(f"CREATE TABLE small ({_COLUMNS})")
            writer.execute(f"INSERT INTO small VALUES {_INSERTED}")
            writer.execute("CREATE VIEW seen AS SELECT * FROM small")
            writer.execute(f"COPY small TO '{tmp_path / 'small.parquet'}'")
        if request.param == "parquet":
            name = f"read_parquet('{tmp_path / 'small.parquet'}')"
        opened = open_source("duckdb:///small.duckdb" if name == "small" else "duckdb://", directory=tmp_path)
    yield opened, name, lambda: opened.read_table_rows(name, ("age",), most=MAX_PUBLIC_ROWS)
    opened.close()


def _ask(source: Source, sql: str, *, timeout_ms: int = 20_000) -> TrueAggregates:
    rewritten = Rewritten(dialect=source.dialect.name, sql=sql)
    return source.read_aggregates(rewritten, _KEYS, functionals=1, timeout_ms=timeout_ms)


def test_schema(source: Opened) -> None:
    opened, name, _ = source
    declared = {
        "ward": "text",
        "day": "date",
        "seen_at": "timestamp without time zone",
        "age": "integer",
        "big": "bigint",
        "cost": "numeric(10,2)",
        "x": "double precision",
        "ok": "boolean",
    }
    prunable = opened.dialect is DUCKDB
    assert opened.read_schema(name) == tuple(
        SourceColumn(column, kind, nullable=True, prunable=prunable) for column, kind in declared.items()
    )


def test_ranges_that_may_spare_reading_rows(postgres_url: str) -> None:
    """Columns that an index or a partition key leads with, and every column of a view, whose tables are unknown."""
    made = """
        DROP TABLE IF EXISTS pruned, parted CASCADE;
        CREATE TABLE pruned (a integer PRIMARY KEY, b date, c date);
        CREATE INDEX ON pruned (b, c);
        CREATE VIEW pruned_view AS SELECT * FROM pruned;
        CREATE TABLE parted (day date, x integer) PARTITION BY RANGE (day)
    """
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(made)
        opened = open_source(postgres_url, directory=Path())
        try:
            found = {
                name: [column.prunable for column in opened.read_schema(name)]
                for name in ("pruned", "pruned_view", "parted")
            }
        finally:
            opened.close()
            owner.execute("DROP TABLE pruned, parted CASCADE")
    assert found == {"pruned": [True, True, False], "pruned_view": [True, True, True], "parted": [True, False]}


def test_public_rows_are_values_in_a_fixed_order(source: Opened) -> None:
    opened, name, _ = source
    assert (
        opened.read_table_rows(name, ("ward", "day", "seen_at", "age", "big", "cost", "x", "ok"), most=MAX_PUBLIC_ROWS)
        == _ROWS
    )


def test_relations_and_views(source: Opened) -> None:
    opened, name, _ = source
    if name == "small":
        assert {relation.strip('"') for relation in opened.list_relations()} >= {"small", "seen"}
        assert opened.identify("seen").is_view
        assert not opened.identify("small").is_view
    else:
        assert opened.list_relations() == ()
        assert not opened.identify(name).is_view


def test_missing_relations_are_named(source: Opened) -> None:
    opened, _, _ = source
    with pytest.raises(KeyholeError, match=r"KH006.*absent"):
        opened.read_schema("absent")
    with pytest.raises(KeyholeError, match=r"KH006.*absent"):
        opened.read_table_rows("absent", ("a",), most=MAX_PUBLIC_ROWS)


def test_aggregates_are_aligned_and_never_shown(source: Opened) -> None:
    opened, name, _ = source
    found = _ask(opened, f"SELECT ward AS k0, sum(age)::bigint AS f0 FROM {name} GROUP BY 1")
    np.testing.assert_array_equal(found.values, [[3, 0]])
    assert found.values.dtype == np.int64
    assert "3" not in f"{found!r} {found!s} {found}"
    with pytest.raises(TypeError):
        pickle.dumps(found)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT CAST('{_SECRET}' AS integer) AS k0, 1 AS f0",
        f"SELECT {_SECRET}",
        f"SELECT '{_SECRET}' AS k0, CAST(power(10, 40) AS bigint) AS f0",
        "SELECT count(*) AS k0, count(*) AS f0 FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b",
    ],
    ids=["cast", "name", "overflow", "timeout"],
)
def test_every_failure_is_the_same_and_carries_nothing(
    source: Opened, sql: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    opened, name, _ = source
    with pytest.raises(KeyholeError) as caught:
        _ask(opened, sql, timeout_ms=300)
    error = caught.value
    assert (error.code, error.message) == ("KH501", "the source could not answer")
    assert error.__cause__ is None
    assert error.__context__ is None
    printed = "".join(traceback.format_exception(error)) + caplog.text + "".join(capfd.readouterr())
    assert _SECRET not in printed.replace(sql, "")
    np.testing.assert_array_equal(_ask(opened, f"SELECT ward AS k0, 1 AS f0 FROM {name}").values, [[1, 0]])


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM small", "DROP TABLE small", "CREATE TABLE other AS SELECT 1", "INSERT INTO small(age) VALUES (1)"],
)
def test_nothing_can_be_written(source: Opened, sql: str) -> None:
    opened, _, count = source
    before = count()
    if opened.list_relations():
        with pytest.raises(KeyholeError, match="KH501"):
            _ask(opened, sql)
    assert count() == before


def test_many_threads_at_once(source: Opened) -> None:
    opened, name, _ = source
    found: list[int] = []

    def ask() -> None:
        for _ in range(5):
            answer = _ask(opened, f"SELECT ward AS k0, sum(age)::bigint AS f0 FROM {name} GROUP BY 1")
            found.append(int(answer.values[0, 0]))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3] * 40


def test_settings_are_the_sources_own(source: Opened) -> None:
    opened, _, _ = source
    found = _ask(opened, "SELECT 'a' AS k0, CASE WHEN current_setting('TimeZone') = 'UTC' THEN 1 ELSE 0 END AS f0")
    assert found.values[0, 0] == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'a' AS k0, count(*) AS f0 FROM read_text('/etc/hostname')",
        "SELECT 'a' AS k0, count(*) AS f0 FROM read_csv('/etc/passwd')",
        "SET threads = 1",
        "INSTALL httpfs",
        "ATTACH 'other.duckdb'",
    ],
)
def test_duckdb_is_closed(tmp_path: Path, sql: str) -> None:
    opened = open_source("duckdb://", directory=tmp_path)
    with pytest.raises(KeyholeError, match="KH501"):
        _ask(opened, sql)
    opened.close()


@pytest.mark.parametrize(
    "url", ["mysql://localhost/x", "duckdb:///absent.duckdb", "postgresql://nobody@127.0.0.1:1/none", ""]
)
def test_unreachable_sources(tmp_path: Path, url: str) -> None:
    with pytest.raises(KeyholeError, match="KH008"):
        open_source(url, directory=tmp_path)


def test_a_source_whose_text_has_no_encoding_is_refused(postgres_url: str, tmp_path: Path) -> None:
    """The driver would hand its text on as bytes, names of columns among them."""
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(b"CREATE DATABASE letters ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        try:
            url = urlsplit(postgres_url)._replace(path="/letters").geturl()
            with pytest.raises(KeyholeError, match="KH008") as refused:
                open_source(url, directory=tmp_path)
            assert "SQL_ASCII" in (refused.value.detail or "")
        finally:
            owner.execute(b"DROP DATABASE letters WITH (FORCE)")


def test_a_starter_policy_leaves_out_rollups_and_partitions(postgres_url: str, tmp_path: Path) -> None:
    """An owner is offered neither what Keyhole keeps for itself, nor the parts of a table beside the table. A reader
    who may read a part alone is offered that."""
    with new_database(postgres_url) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("CREATE SCHEMA scratch")
            owner.execute("CREATE TABLE visits (id integer, ward text)")
            owner.execute("CREATE UNLOGGED TABLE scratch.keyhole_rollup_1_2_abc (id integer)")
            owner.execute("CREATE TABLE scratch.keyhole_rolled (id integer)")
            owner.execute("CREATE TABLE stays (id integer, day date) PARTITION BY RANGE (day)")
            owner.execute(
                "CREATE TABLE scratch.recent PARTITION OF stays FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') "
                "PARTITION BY LIST (id)"
            )
            owner.execute("CREATE TABLE few PARTITION OF scratch.recent FOR VALUES IN (1)")
            owner.execute("CREATE ROLE of_a_part LOGIN PASSWORD 'x'; GRANT SELECT ON few TO of_a_part")
        place = urlsplit(url).netloc.rpartition("@")[2]
        part = urlsplit(url)._replace(netloc=f"of_a_part:x@{place}").geturl()
        try:
            for role, seen in ((url, {"visits", "scratch.keyhole_rolled", "stays"}), (part, {"few"})):
                with closing(PostgresSource(role, connections=1, settings={})) as source:
                    assert set(source.list_relations()) == seen
        finally:
            with psycopg.connect(url, autocommit=True) as owner:
                owner.execute("DROP OWNED BY of_a_part; DROP ROLE of_a_part")
        assert "keyhole_rollup_" not in write_policy_from_source(url, directory=tmp_path)


def test_the_catalog_tells_whose_rows_are_hidden_from_the_reader(postgres_url: str) -> None:
    """Policies hold for a reader without BYPASSRLS, and behind a view for its owner; a table's own do not hold for its
    owner unless they are forced."""
    hidden = {
        "kept": True,
        "plain": False,
        "own": False,
        "forced": True,
        "through": False,  # its owner owns the table
        "through_forced": True,
        "through_invoker": True,
        "through_superuser": False,
        "parts": True,
        "open_parts": False,  # the policies of a partition hold for nobody who reads the table
    }
    with new_database(postgres_url) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute(HIDDEN)
        place = urlsplit(url).netloc.rpartition("@")[2]
        reader = urlsplit(url)._replace(netloc=f"hidden_reader:x@{place}").geturl()
        try:
            with closing(PostgresSource(reader, connections=1, settings={})) as source:
                assert {name: source.identify(name).hides_rows for name in hidden} == hidden
                assert source.identify("kept").replay_delay is None
        finally:
            owner.execute("DROP OWNED BY hidden_reader, hidden_keeper CASCADE; DROP ROLE hidden_reader, hidden_keeper")


def test_the_catalog_tells_that_the_source_is_a_standby() -> None:
    """A server in recovery, which waits for changes that nobody sends."""
    with (
        own_server(standby_delay="90min") as server,
        closing(PostgresSource(server.url, connections=1, settings={})) as source,
    ):
        assert source.identify("pg_catalog.pg_class").replay_delay == "90min"
