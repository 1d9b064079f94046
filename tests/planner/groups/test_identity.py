"""Spellings of a computed key: those that make the same groups are one question, and no others are."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import duckdb
import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Lookup
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.row import RowSql
from planner.plan.build import plan_question
from planner.plan.question_identity import identify_paths
from planner.question.plan import Plan
from planner.question.question import Question
from tests.effort import cases, rounds
from tests.planner.asked import TODAY, asking
from tests.planner.groups.drawn_keys import KeyWriter
from tests.planner.groups.test_truth import CATALOG, LINES, STORED, WANTED, draw
from tests.planner.groups.written_keys import WHEN
from tests.rows_at_once import insert

SAME = (
    ("n > 10", "10 < n", "n >= 11", "NOT (n <= 10)", "(n > 10)::int", "n * 2 > 21", "n > 10 OR n > 20"),
    ("CASE WHEN n > 10 THEN 'a' ELSE 'b' END", "coalesce(n, 0) > 10", "CASE WHEN n < 11 OR n IS NULL THEN 1 END"),
    ("floor(price / 10)", "floor(price / 10) * 10", "floor(price * 0.1) + 1"),
    (
        "code IN ('A1', 'B2')",
        "code IN ('B2', 'A1')",
        "code = 'B2' OR 'A1' = code",
        "NOT (code <> 'B2' AND code <> 'A1')",
    ),
    ("CASE WHEN code LIKE 'A%' THEN 1 END", "CASE WHEN code LIKE 'A%%' OR code = 'A1' THEN 'x' ELSE 'y' END"),
    ("code LIKE 'A%' OR code LIKE '_2'", "code LIKE '_2' OR code LIKE 'A%'"),
    ("paid >= '2026-01-20'", "paid > '2026-01-19'", "NOT paid < '2026-01-20'"),
    ("gift", "NOT gift", "CASE WHEN gift THEN 'y' WHEN NOT gift THEN 'n' END"),
    (
        "n > 10 AND gift",
        "gift AND n >= 11",
        "CASE WHEN NOT gift THEN 'n' WHEN n > 10 AND gift THEN 'y' WHEN n <= 10 THEN 'n' END",
    ),
    ("CASE WHEN extract(dow FROM met) IN (0, 6) THEN 'a' ELSE 'b' END", "extract(dow FROM met) % 6 = 0"),
    ("n > 10, price > 5", "NOT (n <= 10), price > 5.00", "CASE WHEN n > 10 THEN 1 WHEN n < 11 THEN 2 END, 5 < price"),
)
OTHERS = (
    ("n > 10", "coalesce(n > 10, false)"),
    ("n > 10", "n > 11"),
    ("n > 10", "price > 10"),
    ("n > 10", "price > 10, n > 10"),
    ("CASE WHEN n > 10 THEN 1 WHEN n > 5 THEN 1 ELSE 2 END", "CASE WHEN n > 10 THEN 1 WHEN n > 5 THEN 3 ELSE 2 END"),
    ("floor(price / 10)", "trunc(price, -1)"),
    ("code LIKE 'A%'", "code LIKE 'A_'"),
    ("code = 'A1'", "code = 'B2'"),
    ("code IN ('A1', 'B2')", "CASE WHEN code = 'A1' THEN 1 WHEN code = 'B2' THEN 2 END"),
    ("paid > '2026-01-20'", "met > '2026-01-20'"),
    ("n > 10 AND gift", "n > 10 OR gift"),
    ("n > 10 AND gift", "n > 10, gift"),
    ("left(city, 1)", "city"),
)
WITH_TOTALS = replace(
    LINES,
    columns=tuple(
        replace(one, per_unit=(Decimal(-30), Decimal(40))) if one.name == "n" else one for one in LINES.columns
    ),
)
WIDE = replace(CATALOG, tables=(WITH_TOTALS,))
TESTS = (
    *("n > 10", "n >= 11", "n < 5", "n <= 10", "n > 20", "gift", "hour < 12"),
    *("code = 'A1'", "code <> 'A1'", "code IN ('B2', 'A1')", "code LIKE 'A%'", "code LIKE 'A%%'", "code LIKE '%2'"),
)
NARROW = replace(CATALOG, tables=(replace(WITH_TOTALS, groups_per_unit=1, rows_per_unit=2),))


def asked(keys: str, catalog: Catalog = WIDE, having: str = "count(*) > 3 AND sum(n) > 20") -> Question:
    (question,) = asking(f"SELECT 1 FROM lines WHERE {WHEN} GROUP BY {keys} HAVING {having}", catalog).questions
    return bind_question(question, catalog, accuracy=WANTED, parameters={}, today=TODAY)


def planned(keys: str, catalog: Catalog = WIDE, having: str = "count(*) > 3 AND sum(n) > 20") -> Plan:
    return plan_question(asked(keys, catalog, having), dialect=DUCKDB)


@pytest.fixture(scope="module")
def rows() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.execute(f"CREATE TABLE lines ({STORED.replace('loose numeric', 'loose decimal(18,3)')})")
    insert(opened, "lines", draw(1, 1500))
    opened.execute(
        "INSERT INTO lines SELECT n % 40, 'Bonn', TIMESTAMP '2026-01-20', n, n, 1, 1, "
        "['A1', 'A', 'B2', 'A__2', '', '_', '%', 'a1', 'x2', '22', 'A%'][1 + n % 11], n % 2 = 0, DATE '2026-01-19' "
        "FROM generate_series(0, 120) AS s(n)"
    )
    return opened


@pytest.mark.parametrize(
    ("spellings", "having"),
    cases(SAME, ["count(*) > 3 AND sum(n) > 20", "count(*) > 3 OR count(DISTINCT person) > 2"], quick=11),
)
def test_spellings_are_one_question(spellings: Sequence[str], having: str) -> None:
    plans = [planned(keys, having=having) for keys in spellings]
    assert len({one.fingerprint for one in plans}) == 1
    assert len({identify_paths(one.question, digest="policy") for one in plans}) == 1
    assert len({tuple(key.label for key in one.question.keys.columns) for one in plans}) == 1


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_other_groups_are_another_question(one: str, other: str) -> None:
    first, second = planned(one), planned(other)
    assert first.fingerprint != second.fingerprint
    assert set(identify_paths(first.question, digest="")).isdisjoint(identify_paths(second.question, digest=""))


@pytest.mark.parametrize("spellings", SAME)
def test_values_are_the_same_where_a_unit_has_rows_in_too_many_groups(
    spellings: Sequence[str], rows: duckdb.DuckDBPyConnection
) -> None:
    """Which of its groups count follows from what they are, not from how they are spelled."""
    found = [rows.execute(planned(keys, NARROW).rewritten.sql).fetchall() for keys in spellings]
    assert all(sorted(one) == sorted(found[0]) for one in found)


def _groups(question: Question, rows: duckdb.DuckDBPyConnection) -> list[tuple[Any, ...]]:
    row = RowSql(table=question.table, dialect=DUCKDB)
    columns = ", ".join(row.write_column(key.name) for key in question.keys.columns)
    return rows.execute(f"SELECT {columns} FROM lines ORDER BY rowid").fetchall()


def _draw_key(writer: KeyWriter) -> str:
    pick = writer.pick

    def test() -> str:
        found = pick(TESTS)
        return pick((found, found, f"NOT ({found})"))

    a, b, c = test(), test(), test()
    if writer.drawn.random() < 0.2:
        return writer.key()
    return pick(
        (
            f"{a} AND {b}",
            f"{a} OR {b}",
            f"({a} AND {b})::int",
            f"CASE WHEN {a} THEN {pick('123')} WHEN {b} THEN {pick('123')} ELSE {pick('123')} END",
            f"CASE WHEN {a} AND {b} THEN 1 WHEN {c} THEN 2 END",
            f"CASE WHEN {a} OR {b} THEN 'yes' ELSE 'no' END",
        )
    )


def test_no_identity_has_two_partitions(rows: duckdb.DuckDBPyConnection) -> None:
    """Keys drawn at random: equal identities put every row into the same group, of the same number.

    On columns with rows for all that is compared, other identities make other groups.
    """
    writer = KeyWriter(Random(20))
    by_identity: dict[str, list[tuple[Any, ...]]] = {}
    by_groups: dict[tuple[frozenset[str], str], set[str]] = {}
    spellings = 0
    for _ in range(rounds(1200, quick=50)):
        key = _draw_key(writer)
        try:
            question = asked(key, having="count(*) > 3")
        except KeyholeError:
            continue
        keys = question.keys.columns
        if any(isinstance(one.derivation, Lookup) for one in keys) or question.keys.size > 2000:
            continue
        found, identity = _groups(question, rows), plan_question(question, dialect=DUCKDB).fingerprint
        assert by_identity.setdefault(identity, found) == found, key
        spellings += 1
        if (read := _read(question)) <= {"code", "gift", "hour"}:
            by_groups.setdefault((read, repr(found)), set()).add(identity)
    assert all(len(identities) == 1 for identities in by_groups.values())
    assert len(by_identity) < spellings


def _read(question: Question) -> frozenset[str]:
    """The columns that the keys read."""
    found: set[str] = set()
    open_ = list(question.keys.columns)
    while open_:
        column = open_.pop()
        if not column.computed:
            found.add(column.name)
            continue
        several = getattr(column.derivation, "columns", None) or (getattr(column.derivation, "column", ""),)
        open_ += [question.table.get_column(name) for name in several]
    return frozenset(found)
