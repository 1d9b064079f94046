"""No odd value of any type, in any engine, makes a question fail or moves more than its own bound."""

from dataclasses import replace
from pathlib import Path
from struct import pack

import duckdb
import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.open_policy.service import Service
from tests.proxy.sources.rows.odd_values import (
    BINARY,
    DOUBLE,
    FLAG,
    KEY,
    LONG,
    TEXTS,
    Columns,
    Odd,
    check_odd_rows,
    doubles,
    moments,
    numbers,
    others,
    policy,
    statements,
    texts,
    whole,
)
from tests.worlds.house import new_database

ENDS = ("infinity", "-infinity", "290000-01-01", "9999-12-31 23:59:59.999999", "0001-01-01", "4000-01-01 (BC)")
DUCKDB = {
    "tiny": whole("TINYINT", "-128", "127"),
    "unsigned": numbers("UBIGINT", "18446744073709551615"),
    "huge": numbers("HUGEINT", str(2**127 - 1), str(-(2**127)), str(10**38), str(10**38 - 1)),
    "vast": numbers("UHUGEINT", str(2**128 - 1), str(10**38)),
    "long": numbers("DECIMAL(38,0)", "9" * 38, "-" + "9" * 38),
    "wide": numbers("DECIMAL(38,10)", "9" * 28 + "." + "9" * 10, "-" + "9" * 28 + "." + "9" * 10, "0.0000000001"),
    "single": doubles("FLOAT", *BINARY),
    "cost": doubles("DOUBLE", *DOUBLE),
    "born": moments("DATE", "infinity", "-infinity", "5881580-07-10", "5877642-06-25 (BC)", "9999-12-31", "0001-01-01"),
    "seen": moments("TIMESTAMP", *ENDS, "294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00"),
    "seconds": moments("TIMESTAMP_S", *ENDS),
    "millis": moments("TIMESTAMP_MS", *ENDS),
    "nanos": moments("TIMESTAMP_NS", "infinity", "-infinity", "2262-04-11 23:47:16.854775806", "1677-09-22"),
    "name": texts("VARCHAR", *TEXTS, LONG),
    "mood": Odd("text", "ENUM ('ann', 'bob', 'o''hare', '')", ("'ann'", "'bob'", "'o''hare'"), ("''",)),
    "key": KEY,
    "flag": FLAG,
    "zoned": Odd("hidden", "TIMESTAMP WITH TIME ZONE", ("now()", "now()", "now()"), ("'infinity'",)),
    "span": others("INTERVAL", "INTERVAL '178000000 years'"),
    "clock": others("TIME WITH TIME ZONE", "'24:00:00-15:59'"),
    "bits": others("BIT", "'" + "1" * 1000 + "'"),
    "bytes": others("BLOB", r"'\xFF\x00'::BLOB"),
    "either": others("UNION (n INTEGER, t VARCHAR)", "'x'"),
    "pair": others("STRUCT (a INTEGER, b HUGEINT)", f"{{'a': 1, 'b': {2**127 - 1}}}"),
    "many": others("DOUBLE[]", "['NaN'::DOUBLE]"),
    "map": others("MAP (VARCHAR, DOUBLE)", "MAP {'': 'inf'::DOUBLE}"),
}
BEFORE_ALL = (-(2**63), -(2**63) + 2, -9_223_372_022_400_000_001)
NO_PARQUET = {"millis", "either", "bits", "clock", "huge", "vast"}
POSTGRES = {
    "tiny": whole("smallint", "-32768", "32767"),
    "whole": whole("bigint", str(2**63 - 1), str(-(2**63))),
    "any_number": numbers("numeric", "NaN", "Infinity", "-Infinity", "1e100000", "-1e100000", "1e-16000"),
    "long": numbers("numeric(1000,500)", "NaN", "9" * 500 + "." + "9" * 500),
    "rounded": numbers("numeric(5,-3)", "99999000", "NaN"),
    "single": doubles("real", *BINARY),
    "cost": doubles("double precision", *DOUBLE),
    "born": moments("date", "infinity", "-infinity", "5874897-12-31", "4713-01-01 BC", "9999-12-31", "0001-01-01"),
    "seen": moments("timestamp", "infinity", "-infinity", "294276-12-31 23:59:59.999999", "4713-01-01 BC"),
    "name": texts("text", *TEXTS, LONG),
    "short": texts("varchar(12)", *TEXTS),
    "mood": texts("mood", ""),
    "positive": whole("positive", "2147483647"),
    "key": KEY,
    "flag": FLAG,
    "span": others("interval", "'178000000 years'"),
    "clock": others("time with time zone", "'24:00:00-15:59'"),
    "bits": others("bit varying", "'" + "1" * 1000 + "'"),
    "bytes": others("bytea", r"'\xff00'"),
    "pair": others("pair", f"ROW (1, {2**63 - 1})"),
    "many": others("double precision[]", "'{NaN}'"),
    "document": others("jsonb", """'{"a": 1e400}'"""),
    "padded": others("character(3)", "'x'"),
    "zoned": Odd("hidden", "timestamp with time zone", ("now()", "now()", "now()"), ("'infinity'",)),
    "net": others("inet", "'::/0'"),
    "range": others("int4range", "'empty'"),
}
POSTGRES_TYPES = (
    "CREATE TYPE mood AS ENUM ('ann', 'bob', 'o''hare', '')",
    "CREATE DOMAIN positive AS integer CHECK (VALUE > 0)",
    "CREATE TYPE pair AS (a integer, b bigint)",
)


def opened_service(folder: Path, text: str) -> Service:
    path = folder / "keyhole.toml"
    path.write_text(text, encoding="utf-8")
    check(path, confirm=False)
    return Service.open(path)


def write_raw(path: Path, micros: int) -> str:
    """Write a parquet file with one timestamp of so many microseconds, which DuckDB would not write; what reads it."""
    written = 1_700_000_000_123_456
    with duckdb.connect() as writer:
        writer.execute(
            f"COPY (SELECT make_timestamp({written}) AS x) TO '{path}' (FORMAT parquet, COMPRESSION uncompressed)"
        )
    content = path.read_bytes()
    assert pack("<q", written) in content
    path.write_bytes(content.replace(pack("<q", written), pack("<q", micros)))
    return f"(SELECT any_value(x) FROM read_parquet('{path}'))"


def with_raw(columns: Columns, folder: Path) -> Columns:
    """The columns with timestamps before those that DuckDB has a text for, as a file may have them."""
    raw = tuple(write_raw(folder / f"raw{i}.raw", micros) for i, micros in enumerate(BEFORE_ALL))
    return {**columns, "seen": replace(columns["seen"], odd=(*columns["seen"].odd, *raw))}


def write_files(columns: Columns, folder: Path) -> None:
    """A parquet file for each table."""
    with duckdb.connect() as writer:
        for statement in statements(columns):
            writer.execute(statement)
        for (table,) in writer.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            writer.execute(f"COPY {table} TO '{folder / table}.parquet'")


def test_tables_of_duckdb(tmp_path: Path) -> None:
    columns = with_raw(DUCKDB, tmp_path)
    with duckdb.connect(str(tmp_path / "odd.duckdb")) as owner:
        for statement in statements(columns):
            owner.execute(statement)
    with opened_service(tmp_path, policy(columns, source='url = "duckdb:///odd.duckdb"\n')) as service:
        check_odd_rows(service, columns)


def test_parquet_files(tmp_path: Path) -> None:
    columns = {name: column for name, column in with_raw(DUCKDB, tmp_path).items() if name not in NO_PARQUET}
    write_files(columns, tmp_path)
    with opened_service(tmp_path, policy(columns, source='url = "duckdb://"\n', relation="{}.parquet")) as service:
        check_odd_rows(service, columns)


def test_tables_and_views_of_postgresql(postgres_url: str, tmp_path: Path) -> None:
    with new_database(postgres_url) as url:
        with psycopg.connect(url, autocommit=True) as owner:
            for statement in (*POSTGRES_TYPES, *statements(POSTGRES)):
                owner.execute(statement.encode())
            for name in ("odd", *(f"of_{name}" for name, column in POSTGRES.items() if column.is_unit)):
                owner.execute(f"CREATE VIEW seen_{name} AS SELECT * FROM {name}".encode())
        for relation in ("{}", "seen_{}"):
            folder = tmp_path / relation.format("odd")
            folder.mkdir()
            with opened_service(folder, policy(POSTGRES, source=f'url = "{url}"\n', relation=relation)) as service:
                check_odd_rows(service, POSTGRES)


def test_a_view_that_fails_on_a_row_is_warned_of(postgres_url: str, tmp_path: Path) -> None:
    """What Keyhole cannot make total: it is the owner's own SQL."""
    columns = {"age": numbers("integer")}
    text = policy(columns, source='url = "{url}"\n', relation="seen")
    with new_database(postgres_url) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE TABLE odd AS SELECT id, 0 AS ward, '1' AS age FROM generate_series(1, 9) AS t(id)")
        owner.execute("CREATE VIEW seen AS SELECT id, ward, age::integer AS age FROM odd")
        path = tmp_path / "keyhole.toml"
        path.write_text(text.replace("{url}", url), encoding="utf-8")
        warned = check(path, confirm=False).warnings
        assert any("fails on a row, every question that reads the row fails" in one for one in warned)
        with Service.open(path) as service:
            check_odd_rows(service, columns)
            owner.execute("INSERT INTO odd VALUES (10, 0, 'n/a')")
            with pytest.raises(KeyholeError, match="KH501"):
                check_odd_rows(service, columns)


def test_a_virtual_column_and_a_foreign_table_are_warned_of(postgres_url: str, tmp_path: Path) -> None:
    """They are computed where they are read, too: PostgreSQL 18 takes a row on which its virtual column fails."""
    made = {
        "odd": "CREATE TABLE odd (id int, ward int, told text, age int GENERATED ALWAYS AS (told::int) VIRTUAL)",
        "kept": "CREATE TABLE kept (id int, ward int, told text, age int GENERATED ALWAYS AS (told::int) STORED)",
        "far": "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
        " CREATE FOREIGN TABLE far (id int, ward int, age int) SERVER s",
        "parts": "CREATE TABLE parts (id int, ward int, age int) PARTITION BY LIST (ward);"
        " CREATE FOREIGN TABLE part PARTITION OF parts FOR VALUES IN (0) SERVER s",
    }
    columns = {"age": numbers("integer")}
    with new_database(postgres_url) as url, psycopg.connect(url, autocommit=True) as owner:
        warned: dict[str, set[str]] = {}
        for relation, statement in made.items():
            owner.execute(statement.encode())
            (tmp_path / relation).mkdir()
            path = tmp_path / relation / "keyhole.toml"
            path.write_text(policy(columns, source=f'url = "{url}"\n', relation=relation), encoding="utf-8")
            told = " ".join(check(path, confirm=False).warnings)
            warned[relation] = {words for words in ("computes age when", "reads a foreign table") if words in told}
        assert warned == {
            "odd": {"computes age when"},
            "kept": set(),
            "far": {"reads a foreign table"},
            "parts": {"reads a foreign table"},
        }
        owner.execute("INSERT INTO odd VALUES (1, 0, '1')")
        with Service.open(tmp_path / "odd" / "keyhole.toml") as service:
            check_odd_rows(service, columns)
            owner.execute("INSERT INTO odd VALUES (10, 0, 'n/a')")
            with pytest.raises(KeyholeError, match="KH501"):
                check_odd_rows(service, columns)
