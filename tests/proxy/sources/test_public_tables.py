"""Public tables that cannot be copied: the column is named, its values are not, and nothing else is blamed."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import psycopg
import pytest

from planner.catalog.sql_types import SourceColumn
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.open_policy import pins
from proxy.open_policy.pins import MAX_PUBLIC_ROWS, Pinning, pin
from proxy.sources.open import open_source
from proxy.sources.public_tables import read_public_rows

POLICY = """\
[source]
url = "{url}"
[budget]
epsilon_per_predicate = 4
epsilon_per_query = 2
[tables.visits]
privacy_unit = "row"
refresh = "static"
[tables.visits.columns.floor]
key = {{ range = [1, 3] }}
[tables.ward]
public = true
"""
VISITS = "CREATE TABLE visits (floor integer)"
EDGES = (
    (date(1, 1, 1), datetime(1, 1, 1)),
    (date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999999)),
    (None, None),
)
FIVE = "SELECT CAST(day AS date) AS x FROM (VALUES ('2026-01-05'), ('2026-01-04'), ('2026-01-03'), ('2026-01-02'), \
('2026-01-01')) AS given(day)"
Checked = Callable[..., Pinning]


@pytest.fixture(params=["postgres", "duckdb"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def checked(engine: str, tmp_path: Path, postgres_url: str) -> Iterator[Checked]:
    """Makes the public table `ward` by statements, and pins it."""
    url = postgres_url if engine == "postgres" else "duckdb:///clinic.duckdb"
    path = tmp_path / "keyhole.toml"
    path.write_text(POLICY.format(url=url), encoding="utf-8")

    def work(*statements: str) -> Pinning:
        if engine == "postgres":
            with psycopg.connect(postgres_url, autocommit=True) as server:
                for statement in ("DROP TABLE IF EXISTS ward, visits", VISITS, *statements):
                    server.execute(statement.encode())
        else:
            with duckdb.connect(str(tmp_path / "clinic.duckdb")) as writer:
                for statement in (VISITS, *statements):
                    writer.execute(statement)
        policy = Policy.load(path, environment={})
        source = open_source(policy.source.url, directory=policy.directory)
        try:
            return pin(policy, source, confirm=False, now=datetime(2026, 3, 1, tzinfo=UTC))
        finally:
            source.close()

    yield work
    if engine == "postgres":
        with psycopg.connect(postgres_url, autocommit=True) as server:
            server.execute(b"DROP TABLE IF EXISTS ward, visits")


def refusal(checked: Checked, declared: str, value: str) -> KeyholeError:
    with pytest.raises(KeyholeError) as refused:
        checked(f"CREATE TABLE ward (name text, x {declared})", f"INSERT INTO ward VALUES ('zebra', {value})")
    assert refused.value.code == "KH006"
    assert refused.value.__context__ is None or refused.value.__suppress_context__
    told = f"{refused.value} {refused.value.detail} {refused.value.hint}"
    assert "zebra" not in told
    return refused.value


@pytest.mark.parametrize("declared", ["json", "point", "time", "timestamptz", "integer[]"])
def test_a_type_that_cannot_be_copied_is_named_before_a_row_is_read(
    checked: Checked, engine: str, declared: str
) -> None:
    values = {"json": "'{}'", "point": "'(1,2)'", "time": "'24:00'", "timestamptz": "'infinity'"}
    if engine == "duckdb" and declared == "point":
        declared = "STRUCT(x DOUBLE)"
    message = refusal(checked, declared, values.get(declared, "NULL")).message
    assert 'column "x" of type' in message
    assert "no relation" not in message


@pytest.mark.parametrize("declared", ["date", "timestamp"])
@pytest.mark.parametrize("value", ["infinity", "-infinity", "year 44 BC", "12000-01-01"])
def test_a_date_that_no_copy_holds_is_refused_by_its_column(
    checked: Checked, engine: str, declared: str, value: str
) -> None:
    before = "0044-03-15 (BC)" if engine == "duckdb" else "0044-03-15 BC"
    written = before if value.endswith("BC") else value
    suffix = " 00:00:00" if engine == "duckdb" and declared == "timestamp" and value.endswith("BC") else ""
    message = refusal(checked, declared, f"'{written}{suffix}'").message
    assert 'column "x"' in message
    assert "value that cannot be copied" in message


def test_every_kind_of_duckdb_timestamp(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as writer:
        for kind in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
            writer.execute(f"CREATE TABLE good_{kind} AS SELECT '2020-01-01'::{kind} AS x")
            writer.execute(f"CREATE TABLE bad_{kind} AS SELECT 'infinity'::{kind} AS x")
        writer.execute("CREATE TABLE text AS SELECT 'a' || chr(0) AS x")
        writer.execute("CREATE TABLE enumerated AS SELECT 'a'::ENUM('a') AS x")
    source = open_source("duckdb:///clinic.duckdb", directory=tmp_path)
    for kind in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        assert source.read_table_rows(f"good_{kind}", ("x",), most=MAX_PUBLIC_ROWS) == ((datetime(2020, 1, 1),),)
        with pytest.raises(KeyholeError, match='column "x"'):
            source.read_table_rows(f"bad_{kind}", ("x",), most=MAX_PUBLIC_ROWS)
    assert source.read_table_rows("enumerated", ("x",), most=MAX_PUBLIC_ROWS) == (("a",),)
    with pytest.raises(KeyholeError, match='column "x"'):
        source.read_table_rows("text", ("x",), most=MAX_PUBLIC_ROWS)
    source.close()


def test_the_first_and_the_last_date_are_copied(checked: Checked) -> None:
    written = ", ".join(
        f"('{day}', '{moment}')" if day else "(NULL, NULL)"
        for day, moment in ((day and day.isoformat(), moment and moment.isoformat(sep=" ")) for day, moment in EDGES)
    )
    found = checked("CREATE TABLE ward (day date, moment timestamp)", f"INSERT INTO ward VALUES {written}")
    assert set(found.pins.tables[0].rows) == set(EDGES)


def test_an_empty_public_table_is_copied(checked: Checked) -> None:
    assert checked("CREATE TABLE ward (day date)").pins.tables[0].rows == ()


@pytest.mark.parametrize("most", [4, 5])
def test_a_table_of_too_many_rows_is_refused(checked: Checked, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(pins, "MAX_PUBLIC_ROWS", most)
    made = ("CREATE TABLE ward (x date)", f"INSERT INTO ward {FIVE}")
    if most == 5:
        assert len(checked(*made).pins.tables[0].rows) == 5
    else:
        with pytest.raises(KeyholeError, match=r"KH002: .*has more than 4 rows"):
            checked(*made)


def test_one_row_more_than_may_be_copied_is_all_that_is_read(engine: str, postgres_url: str, tmp_path: Path) -> None:
    """By what the engine is asked and how many rows it sends, of a table of five."""
    sent: list[int] = []
    asked: list[str] = []
    with psycopg.connect(postgres_url) as server, duckdb.connect(str(tmp_path / "clinic.duckdb")) as file:
        connection: Any = server if engine == "postgres" else file
        connection.execute(f"CREATE TEMPORARY TABLE ward AS {FIVE}")

        def run(sql: str) -> list[tuple[Any, ...]]:
            rows = connection.execute(sql).fetchall()
            asked.append(sql)
            sent.append(len(rows))
            return list(rows)

        rows = read_public_rows("ward", ("x",), (SourceColumn("x", "date", nullable=True),), most=2, run=run)
    assert len(rows) == 3
    assert list(rows) == sorted(rows)
    assert max(sent) == 3
    assert [sql.count("LIMIT 3") for sql in asked] == [0, 1, 1]  # the first asks for columns, and LIMIT 0
    assert "LIMIT 0" in asked[0]


def test_rows_that_the_engine_cannot_read_are_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "wards.csv"
    file.write_text("x\n" + "1\n" * 50_000 + "zebra\n", encoding="utf-8")
    source = open_source("duckdb://", directory=tmp_path)
    with pytest.raises(KeyholeError, match=r"KH006: the rows of the public table .* cannot be read") as refused:
        source.read_table_rows(f"read_csv('{file}', sample_size = 10)", ("x",), most=MAX_PUBLIC_ROWS)
    assert refused.value.__context__ is None
    assert "zebra" not in f"{refused.value}{refused.value.detail}"
    source.close()


def test_a_table_that_the_reader_may_not_select_is_said_to_be_that(postgres_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute(b"CREATE ROLE no_reader LOGIN PASSWORD 'x'; CREATE TABLE ward AS SELECT 1 AS x")
        try:
            parts = urlsplit(postgres_url)
            place = parts.netloc.rpartition("@")[2]
            source = open_source(parts._replace(netloc=f"no_reader:x@{place}").geturl(), directory=tmp_path)
            with pytest.raises(KeyholeError, match=r"KH006: .*may not select"):
                source.read_table_rows("ward", ("x",), most=MAX_PUBLIC_ROWS)
            source.close()
        finally:
            server.execute(b"DROP TABLE ward; DROP ROLE no_reader")
