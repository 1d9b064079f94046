"""Parquet files that are read as one table: no file's values become others, and no row's bytes fail a question."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.check import check, refresh
from proxy.open_policy.parquet_files import is_lossless
from proxy.open_policy.pins import read_pinned_catalog
from proxy.sources.shared import open_policy_source
from tests.in_turn import in_turn

POLICY = """\
[source]
url = "duckdb://"
[budget]
epsilon_per_predicate = 4
epsilon_per_query = 2
[tables.x]
relation = "lake/*.parquet"
privacy_unit = "row"
refresh = "explicit"
[tables.x.columns.v]
"""


def write(folder: Path, **values: str) -> Path:
    (folder / "lake").mkdir(exist_ok=True)
    for name, value in values.items():
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT {value}) TO '{folder}/lake/{name}.parquet' (COMPRESSION uncompressed)")
    path = folder / "keyhole.toml"
    path.write_text(POLICY, encoding="utf-8")
    return path


def rows(path: Path) -> list[object]:
    """What a question would read, by the pinned catalog's own relation."""
    policy = Policy.load(path)
    with closing(open_policy_source(policy)) as source:
        (table,) = read_pinned_catalog(policy, source).tables
        return [one for (one,) in source.read_for_owner("x", f"SELECT v FROM {table.relation} ORDER BY 1")]


def test_the_first_file_does_not_decide_the_type(tmp_path: Path) -> None:
    path = write(tmp_path, a="1::INTEGER AS v", b="5000000000::BIGINT AS v")
    check(path, confirm=False)
    assert rows(path) == [1, 5_000_000_000]


def test_doubles_are_not_rounded_to_the_first_file_s_floats(tmp_path: Path) -> None:
    path = write(tmp_path, a="1.5::FLOAT AS v", b="1.23456789012::DOUBLE AS v")
    check(path, confirm=False)
    assert [str(one) for one in rows(path)] == ["1.23456789012", "1.5"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("9007199254740993::BIGINT AS v", "1.5::DOUBLE AS v"),
        ("1::INTEGER AS v", "'n/a' AS v"),
        ("1.5::DECIMAL(9,2) AS v", "1.5::DOUBLE AS v"),
        ("1 AS v", "1 AS w"),
        ("DATE '2026-01-01' AS v", "TIMESTAMP '2026-01-01' AS v"),
    ],
)
def test_files_that_have_no_type_in_common_are_refused_by_name(tmp_path: Path, one: str, other: str) -> None:
    path = write(tmp_path, a=one, b=other)
    with pytest.raises(KeyholeError, match=r"KH014.*lake/[ab]\.parquet") as refused:
        check(path, confirm=False)
    assert '"v"' in refused.value.message


FIXED = b"\x15\x4c"  # a decimal's 38 digits, in a footer's coding; in 16 bytes


@pytest.mark.parametrize(
    ("value", "digits", "told"),
    [
        ("TIMESTAMP_MS '2026-01-01' AS v", 38, "milliseconds"),
        ("CAST(1 AS DECIMAL(38,2)) AS v", 9, "9 digits in 16 bytes"),
    ],
)
def test_a_column_whose_reader_fails_on_a_value_is_refused_by_name(
    tmp_path: Path, value: str, digits: int, told: str
) -> None:
    """DuckDB cannot be made to read it otherwise. Rows decide nothing: these values are ordinary."""
    path = write(tmp_path, a=f"{value}, {{'v': 1}} AS pair")
    file = tmp_path / "lake" / "a.parquet"
    file.write_bytes(file.read_bytes().replace(FIXED, bytes([FIXED[0], 2 * digits])))
    with pytest.raises(KeyholeError, match=rf'KH014.*"v" as .*{told}.*a\.parquet'):
        check(path, confirm=False)
    write(tmp_path, a=f"{value}, 1 AS w, {{'w': TIMESTAMP_MS '2026-01-01'}} AS pair")
    path.write_text(POLICY.replace("columns.v", "columns.w"), encoding="utf-8")
    check(path, confirm=False)  # a column that is not exposed is not read


def test_another_type_later_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, a="1::INTEGER AS v", b="2::INTEGER AS v")
    check(path, confirm=False)
    write(tmp_path, c="5000000000::BIGINT AS v")
    with pytest.raises(KeyholeError, match=r'KH007.*"v"'):
        refresh(path, "x")
    check(path, confirm=True)
    refresh(path, "x")
    assert rows(path) == [1, 2, 5_000_000_000]


def test_bytes_that_are_no_text_fail_no_question(tmp_path: Path) -> None:
    path = write(tmp_path, a="unnest(['abcdefghijkl', 'mnopqrstuvwx']) AS v")
    file = tmp_path / "lake" / "a.parquet"
    content = file.read_bytes()
    assert b"abcdefghijkl" in content
    file.write_bytes(content.replace(b"abcdefghijkl", b"abc\xff\xfefghijkl"))
    check(path, confirm=False)
    assert rows(path) == ["abc??fghijkl", "mnopqrstuvwx"]


WHOLE = {
    "TINYINT": (-128, 127),
    "UTINYINT": (0, 255),
    "SMALLINT": (-(2**15), 2**15 - 1),
    "USMALLINT": (0, 2**16 - 1),
    "INTEGER": (-(2**31), 2**31 - 1),
    "UINTEGER": (0, 2**32 - 1),
    "BIGINT": (-(2**63), 2**63 - 1),
    "UBIGINT": (0, 2**64 - 1),
    "HUGEINT": (-(2**127), 2**127 - 1),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@in_turn("wide", [*WHOLE, "FLOAT", "DOUBLE", "DECIMAL(18,4)", "DECIMAL(38,0)"])
def test_a_type_that_holds_another_gives_back_its_extremes(engine: duckdb.DuckDBPyConnection, wide: str) -> None:
    for one, ends in WHOLE.items():
        if is_lossless(one, wide):
            near = {end + step for end in ends for step in (0, 1, -1) if ends[0] <= end + step <= ends[1]}
            for value in near:
                sql = f"SELECT CAST(CAST(CAST('{value}' AS {one}) AS {wide}) AS {one})::VARCHAR"
                assert engine.execute(sql).fetchall() == [(str(value),)], (one, value)
