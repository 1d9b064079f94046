"""One unit's work is bounded: a join of private tables reads a public number of a unit's rows of each, on any rows.

The joined rows are compared with every joining of that many rows, and with what the other engine joined.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from itertools import permutations
from math import prod
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.bind.unit_join import join_on_unit
from planner.catalog.catalog import MOST_LISTED, Catalog, Column, PublicTable, SqlType, Table, UnitRoot
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.joins import join_members, list_busy_units
from planner.lower.kept.named_steps import define_steps, merge_steps
from planner.lower.row import RowSql
from planner.plan.build import plan_question
from tests.effort import examples
from tests.planner.asked import asked
from tests.proxy.sources.test_work_of_a_row import lowest, walk
from tests.proxy.sources.worlds import Engines, spelled
from tests.worlds.retail import retail

TYPES = {"person": "text", "code": "bigint", "seen": "timestamp", "dose": "double precision", "price": "numeric(12,2)"}
KINDS = (SqlType.TEXT, SqlType.INTEGER, SqlType.TIMESTAMP, SqlType.DOUBLE, SqlType.NUMERIC)
NAMES = ("first", "second", "third")
_ODD = {
    "person": ("ann", "bob", "", None),
    "code": (0, 1, 2**62, None),
    "seen": (datetime(2026, 1, 5, 7, 30, 0, 120), datetime(1, 1, 1), None),
    "dose": (0.0, -0.0, 1e-300, 0.1, 0.1 + 2**-30, 1e308, -1e308, float("nan"), float("inf"), None),
    "price": (Decimal("0.50"), Decimal(-11), None),
}


def member(name: str, *, rows: int | None) -> Table:
    """One of the joined tables, each with the same person."""
    declared = {"timestamp": "timestamp without time zone"}
    columns = tuple(
        Column(
            column,
            kind,
            declared.get(type_name, type_name),
            max_length=2 if column == "person" else None,
            ledger=column if column == "person" else f"{name}.{column}",
        )
        for (column, type_name), kind in zip(TYPES.items(), KINDS, strict=True)
    )
    return Table(
        name=name,
        relation=name,
        columns=columns,
        unit=("person",),
        groups_per_unit=1,
        rows_per_unit=100,
        row_cap=None,
        refresh="static",
        seed=name,
        root=UnitRoot(NAMES[0], ("person",)),
        joined_rows=rows,
    )


def rows() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows of few persons, so that each has several; some are the same in all columns."""
    return st.lists(st.tuples(*(st.sampled_from(_ODD[name]) for name in TYPES)), max_size=14)


def load_sql(name: str, found: Sequence[tuple[Any, ...]]) -> list[str]:
    """The statements that make a table of the rows."""
    columns = ", ".join(f"{column} {kind}" for column, kind in TYPES.items())
    values = ", ".join(f"({', '.join(map(spelled, row, TYPES.values()))})" for row in found)
    return [f"CREATE TABLE {name} ({columns})", *([f"INSERT INTO {name} VALUES {values}"] if values else [])]


def joined_rows_sql(tables: Sequence[Table], dialect: Dialect) -> str:
    """The joined rows as whole numbers, which every engine gives alike."""
    row = RowSql(table=join_members(join_on_unit(tables), dialect=dialect), dialect=dialect)
    codes = [f"COALESCE({row.write_column(f'{table.name}.code')}, -1)" for table in tables]
    least = dialect.spelling.write_double(0.05)
    doses = [f"CASE WHEN {row.write_column(f'{table.name}.dose')} > {least} THEN 1 ELSE 0 END" for table in tables]
    read = f"SELECT {row.write_column('person')}, {', '.join([*codes, *doses])} FROM {row.table.relation}"
    return define_steps(row.table.steps, read, dialect=dialect)


def read_joined(shown: str, tables: Sequence[Table], dialect: Dialect) -> str:
    """A statement that reads these expressions of the joined rows."""
    joined = join_members(join_on_unit(tables), dialect=dialect)
    return define_steps(joined.steps, f"SELECT {shown} FROM {joined.relation}", dialect=dialect)


def busy_units_sql(table: Table, most: int, dialect: Dialect) -> str:
    """The units of rows that are read whose rows, or joined rows, are more than so many, and one unit more."""
    row, steps = (
        RowSql(table=join_members(table, dialect=dialect), dialect=dialect),
        list_busy_units(table, most, dialect=dialect),
    )
    person = row.write_column("person")
    read = f"SELECT DISTINCT {person} FROM {row.table.relation} JOIN {steps[-1].name} AS busy ON {person} = keyhole_m0"
    return define_steps(merge_steps(row.table.steps, steps), read, dialect=dialect)


def check_joined(
    found: Sequence[Sequence[tuple[Any, ...]]], caps: Sequence[int], joined: Sequence[tuple[Any, ...]]
) -> None:
    """Each unit has as many joined rows as rows of it count, none of which joins more often than it could."""
    counts = [Counter(row[0] for row in one if row[0] is not None) for one in found]
    expected = {
        person: size
        for person in counts[0]
        if (size := prod(min(count[person], cap) for count, cap in zip(counts, caps, strict=True)))
    }
    assert Counter(row[0] for row in joined) == expected
    for place, (one, cap) in enumerate(zip(found, caps, strict=True), start=1):
        there = Counter((row[0], -1 if row[1] is None else row[1]) for row in one)
        others = {person: size // min(counts[place - 1][person], cap) for person, size in expected.items()}
        for (person, code), times in Counter((row[0], row[place]) for row in joined).items():
            assert times % others[person] == 0
            assert times // others[person] <= there[person, code]


@examples(200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    found=st.lists(rows(), min_size=2, max_size=3),
    caps=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    turned=st.booleans(),
    most=st.integers(1, 9),
)
def test_one_unit_has_a_public_number_of_joined_rows(
    engines: Engines, found: list[list[tuple[Any, ...]]], caps: list[int], turned: bool, most: int
) -> None:
    """On both engines the same rows are joined, whatever the order in which they are stored, and the units with more
    than so many of them are listed."""
    tables = [member(name, rows=cap) for name, cap in zip(NAMES, caps, strict=False)][: len(found)]
    asked, busy = [], []
    lists = [join_on_unit(tables), tables[0]]
    with duckdb.connect() as duck:
        for table, one in zip(tables, found, strict=True):
            for statement in load_sql(table.name, one):
                duck.execute(statement)
            stored = one[::-1] if turned else one
            engines.writer.execute(f"DROP TABLE IF EXISTS {table.name}; {'; '.join(load_sql(table.name, stored))}")
        asked.append(duck.execute(joined_rows_sql(tables, DUCKDB)).fetchall())
        busy.append([set(duck.execute(busy_units_sql(one, most, DUCKDB)).fetchall()) for one in lists])
    busy.append([set(engines.writer.execute(busy_units_sql(one, most, POSTGRES).encode()).fetchall()) for one in lists])
    asked.append(engines.writer.execute(joined_rows_sql(tables, POSTGRES)).fetchall())
    engines.writer.execute(f"DROP TABLE {', '.join(table.name for table in tables)}")
    assert Counter(asked[0]) == Counter(asked[1])
    check_joined(found, caps[: len(found)], asked[0])
    assert busy[0] == busy[1]
    of_first = Counter(row[:1] for row in found[0] if row[0] is not None)
    for listed, rows_of in zip(busy[0], (Counter(row[:1] for row in asked[0]), of_first), strict=True):
        least = {min(of_first)} if of_first else set()
        assert listed == {unit for unit, size in rows_of.items() if size > most or unit in least}


def test_the_rows_of_a_unit_are_drawn_and_not_the_first_or_least(tmp_path: Path) -> None:
    """Of 1,000 persons with 20 rows each, 5 of which count: rows of each rank by value count about as often.

    A rank is drawn 250 times with a standard deviation of 14; 5 of these are left by chance once in 90,000 runs, and
    the hash draws the same in each.
    """
    tables = [member(name, rows=cap) for name, cap in zip(NAMES, (5, 1), strict=False)]
    with duckdb.connect(str(tmp_path / "drawn.duckdb")) as duck:
        for table in tables:
            duck.execute(load_sql(table.name, ())[0])
        duck.execute(
            "INSERT INTO first SELECT 'p' || CAST(i // 20 AS text), i % 20, NULL, 0, NULL FROM range(20000) AS r(i)"
        )
        duck.execute("INSERT INTO second SELECT DISTINCT person, 1, NULL, 0, NULL FROM first")
        wide = [replace(table, columns=tuple(replace(c, max_length=None) for c in table.columns)) for table in tables]
        drawn = Counter(row[1] for row in duck.execute(joined_rows_sql(wide, DUCKDB)).fetchall())
    assert set(drawn) == set(range(20))
    assert all(abs(times - 250) <= 5 * 14 for times in drawn.values())


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES], ids=lambda dialect: dialect.name)
def test_which_rows_are_joined_is_the_same_for_every_question(dialect: Dialect) -> None:
    """The relation has nothing of a question in it: bounds of groups decide which of its rows count."""
    tables = [member(name, rows=None) for name in NAMES]
    other = [replace(table, groups_per_unit=7, rows_per_unit=3) for table in tables]
    assert read_joined("*", tables, dialect) == read_joined("*", other, dialect)


def test_a_join_carries_no_long_text_and_keeps_units_apart(engines: Engines) -> None:
    """Behind a join a text is read once for each joined row: it is short there, and other ids stay others."""
    ids = ["p" * 100_000 + end for end in "ab"] + ["é" * 500, "é" * 501]
    tables = []
    for name in NAMES[:2]:
        columns = (
            Column("person", SqlType.TEXT, "text", ledger="person"),
            Column("note", SqlType.TEXT, "text", max_length=7, ledger=f"{name}.note"),
        )
        tables.append(replace(member(name, rows=None), columns=columns))
    loads = [
        statement
        for table in tables
        for statement in (
            f"CREATE TABLE {table.name} (person text, note text)",
            *(f"INSERT INTO {table.name} VALUES ('{one}', repeat('x', 50000))" for one in ids),
        )
    ]
    asked = 'count(*), count(DISTINCT person), max(length(person)), max(length("first.note"))'
    lists = (join_on_unit(tables), tables[0])
    with duckdb.connect() as duck:
        for statement in loads:
            duck.execute(statement)
        found = [duck.execute(read_joined(asked, tables, DUCKDB)).fetchone()]
        busy = [duck.execute(busy_units_sql(one, 0, DUCKDB)).fetchall() for one in lists]
    engines.writer.execute("DROP TABLE IF EXISTS first, second; " + "; ".join(loads))
    found.append(engines.writer.execute(read_joined(asked, tables, POSTGRES).encode()).fetchone())
    busy += [engines.writer.execute(busy_units_sql(one, 0, POSTGRES).encode()).fetchall() for one in lists]
    engines.writer.execute("DROP TABLE first, second")
    assert found == [(4, 4, 532, 8)] * 2
    assert [len(units) for units in busy] == [4] * 4


def _noting_tables(domain: tuple[str, ...] | None) -> list[Table]:
    """Two tables with a text of each row, of which conditions see four characters."""
    tables = []
    for name in NAMES[:2]:
        note = Column("note", SqlType.TEXT, "text", max_length=4, domain=domain, ledger=f"{name}.note")
        found = member(name, rows=10)
        tables.append(replace(found, columns=(found.columns[0], note)))
    return tables


def _answer_noted(engines: Engines, sql: str, *, catalog: Catalog) -> list[list[tuple[Any, ...]]]:
    """The rows of each engine for a question over twenty persons with the note `abcdef` in both tables."""
    question = asked(sql, catalog=catalog)
    some = "SELECT 'p' || CAST(i AS text) AS person, 'abcdef' AS note FROM generate_series(1, 20) AS t(i)"
    made = {dialect: plan_question(question, dialect=dialect).rewritten for dialect in (DUCKDB, POSTGRES)}
    pinned = made[DUCKDB].pinned_relations
    loads = [f"CREATE TABLE {one.name} AS {some}" for one in catalog.tables]
    for one in pinned:
        shown = ", ".join(f"{column.name} {column.type_name}" for column in one.columns)
        found = zip(*(column.values for column in one.columns), strict=True)
        loads += [f"CREATE TABLE {one.name} ({shown})", f"INSERT INTO {one.name} VALUES {', '.join(map(str, found))}"]
    with duckdb.connect() as duck:
        for statement in loads:
            duck.execute(statement)
        answers = [duck.execute(made[DUCKDB].sql).fetchall()]
    names = ", ".join([*(one.name for one in catalog.tables), *(one.name for one in pinned)])
    engines.writer.execute(f"DROP TABLE IF EXISTS {names}; " + "; ".join(loads))
    answers.append(engines.writer.execute(made[POSTGRES].sql.encode()).fetchall())
    engines.writer.execute(f"DROP TABLE {names}")
    return answers


def test_a_join_carries_a_key_as_long_as_its_longest_value(engines: Engines) -> None:
    catalog = replace(retail(), tables=tuple(_noting_tables(("abcdef", "b"))))
    joined = "SELECT s.note FROM first f JOIN second s ON s.person = f.person GROUP BY s.note HAVING count(*) > 5"
    assert _answer_noted(engines, joined, catalog=catalog) == [[("abcdef", 20)]] * 2


_JOINS = ("JOIN words w ON w.note = s.note", "LEFT JOIN codes c ON c.note = s.note")


@pytest.mark.parametrize("joins", list(permutations(_JOINS)), ids=["words first", "codes first"])
def test_a_join_carries_a_text_that_each_public_table_finds(engines: Engines, joins: Sequence[str]) -> None:
    """One of two public tables has longer texts. Both have so many that none becomes a list of the column's values."""
    codes = [(f"{i:04}", "a code") for i in range(MOST_LISTED + 1)]
    words = [("abcdef", "a word"), *((f"word {i}", "another") for i in range(MOST_LISTED))]
    columns = (Column("note", SqlType.TEXT, "text"), Column("meaning", SqlType.TEXT, "text"))
    public = tuple(
        PublicTable(name, columns, tuple(found), f"digest of {name}", unique=("note",))
        for name, found in (("codes", codes), ("words", words))
    )
    catalog = replace(retail(), tables=tuple(_noting_tables(None)), public_tables=public)
    joined = f"SELECT w.meaning FROM first f JOIN second s ON s.person = f.person {' '.join(joins)}"
    counted = "count(*) > 5 AND count(*) FILTER (WHERE c.meaning = 'a code') < 5"
    answers = _answer_noted(engines, f"{joined} GROUP BY w.meaning HAVING {counted}", catalog=catalog)
    assert [sorted(map(str, row)) for (row,) in answers] == [["0", "20", "a word"]] * 2


def test_a_join_carries_no_long_numeric_and_compares_as_before(engines: Engines) -> None:
    """PostgreSQL's numerics have up to 131,072 digits before the point and 16,383 behind it. Carried ones have at most
    201 and 640, and lie on the same side of each constant, which a question writes with 512 bits at most. Those that
    are equal stay equal, and no others become equal."""
    far = "0." + "0" * 700 + "1"
    values = ["0", "0.5", "0.50", f"0.5 + {far}", f"0.5 - {far}", far, f"-{far}", "-3.25", f"-3.25 + {far}", "1e154"]
    values += [
        "1e5000",
        "1e5000 + 0.5",
        f"1e5000 + 0 * {far}",
        "-1e5000",
        f"0.5 + 3 * {far}",
        "1e-16000",
        "'NaN'",
        "'Infinity'",
        "'-Infinity'",
        "NULL",
        f"2 + 0 * {far}",
    ]
    rows = ", ".join(
        f"({i}, CAST({one} AS numeric) + CAST(0 AS numeric))" if one[0] in "'N" else f"({i}, CAST({one} AS numeric))"
        for i, one in enumerate(values)
    )
    short = POSTGRES.shorten_numeric("x", "numeric")
    constants = ["-3.25", "0", "0.5", "2", "-1e154", "1e154", "1e-154", f"{2**-510:.160f}"]
    compared = [f"({{0}} {sign} CAST('{one}' AS numeric))" for one in constants for sign in ("<", "=", ">")]
    before = ", ".join(one.format("x") for one in compared)
    after = ", ".join(one.format("carried") for one in compared)
    found = engines.writer.execute(
        f"SELECT array[{before}], array[{after}], length(CAST(carried AS text)) FROM"
        f" (SELECT x, {short} AS carried FROM (VALUES {rows}) AS t(i, x)) AS made".encode()
    ).fetchall()
    assert len(found) == len(values)
    assert all(first == second for first, second, _ in found)
    assert max(size or 0 for *_, size in found) <= 644
    apart = engines.writer.execute(
        f"SELECT count(DISTINCT x), count(DISTINCT {short}), count(DISTINCT (x, {short}))"
        f" FROM (VALUES {rows}) AS t(i, x) WHERE x IS NOT NULL".encode()
    ).fetchone()
    assert apart is not None
    assert len(set(apart)) == 1
    columns = (
        Column("person", SqlType.NUMERIC, "numeric", ledger="person"),
        Column("price", SqlType.NUMERIC, "numeric", ledger="first.price"),
    )
    tables = [replace(member(name, rows=None), columns=columns) for name in NAMES[:2]]
    tables[1] = replace(tables[1], columns=(columns[0], replace(columns[1], ledger="second.price")))
    ids = ", ".join(f"(CAST({one} AS numeric))" for one in ("1e50000", "1e50000 + 1", "7", f"7 + {far}", "7.0"))
    loads = (
        f"CREATE TABLE {one.name} AS SELECT p AS person, 1 / p AS price FROM (VALUES {ids}) AS t(p)" for one in tables
    )
    engines.writer.execute("DROP TABLE IF EXISTS first, second; " + "; ".join(loads))
    sizes = [f"max(length(CAST({one} AS text)))" for one in ("person", '"first.price"')]
    asked = f"count(*), count(DISTINCT person), {', '.join(sizes)}"
    carried = engines.writer.execute(read_joined(asked, tables, POSTGRES).encode()).fetchone()
    engines.writer.execute("DROP TABLE first, second")
    assert carried == (1 + 1 + 2 * 2 + 1, 4, 642, 642)


MARK = "zebra"
PATTERNS = {
    "WHERE of both": f"WHERE f.note LIKE '%{MARK}%' AND s.note LIKE '%{MARK}%' GROUP BY f.ward HAVING count(*) > 5",
    "either": "GROUP BY f.ward"
    f" HAVING count(*) FILTER (WHERE NOT (f.note NOT LIKE '%{MARK}%' AND s.note NOT LIKE '%{MARK}%')) > 5",
    "CASE": "GROUP BY f.ward"
    f" HAVING count(CASE WHEN f.note LIKE '%{MARK}%' THEN CASE WHEN s.note LIKE '%{MARK}' THEN 1 END END) > 5",
    "looked up": "JOIN words w ON w.note = s.note"
    f" WHERE w.meaning LIKE '%{MARK}%' AND f.note LIKE '%{MARK}%' GROUP BY f.ward HAVING count(*) > 5",
}


def check_work(root: dict[str, Any], children: str, *, word: str, rows: Callable[[dict[str, Any]], float]) -> None:
    """What computes a pattern gives the rows that are joined, 10 of one person and 20 of others, and no joined one.

    Rows that are looked up are fewer still; the join itself gives 120.
    """
    computing = lowest(root, children, word)
    assert computing
    assert max(map(rows, computing)) <= 30
    assert max(map(rows, walk(root, children))) >= 120


@pytest.mark.parametrize("asking", PATTERNS.values(), ids=PATTERNS)
def test_a_pattern_is_looked_for_once_in_each_row_that_is_joined(engines: Engines, asking: str) -> None:
    """As the engines executed it, with the integer that all joined rows of the person add up to."""
    tables = []
    for name in NAMES[:2]:
        ward = Column("ward", SqlType.TEXT, "text", domain=("A",), ledger=f"{name}.ward")
        note = Column("note", SqlType.TEXT, "text", ledger=f"{name}.note")
        found = member(name, rows=10)
        tables.append(replace(found, columns=(found.columns[0], ward, note)))
    words = [("a zebra", "of zebras"), *((f"word {i}", "nothing") for i in range(1_001))]
    public = PublicTable(
        "words",
        (Column("note", SqlType.TEXT, "text"), Column("meaning", SqlType.TEXT, "text")),
        tuple(words),
        "digest",
        unique=("note",),
    )
    catalog = replace(retail(), tables=tuple(tables), public_tables=(public,))
    question = asked(f"SELECT f.ward FROM first f JOIN second s ON s.person = f.person {asking}", catalog=catalog)
    loads = [
        f"CREATE TABLE {one.name} AS SELECT 'p' || CAST(i AS text) AS person, 'A' AS ward, 'nothing' AS note"
        f" FROM generate_series(1, 20) AS t(i) UNION ALL SELECT 'q', 'A', 'a {MARK}' FROM generate_series(1, 30)"
        for one in tables
    ]
    made = {dialect: plan_question(question, dialect=dialect).rewritten for dialect in (DUCKDB, POSTGRES)}
    assert all(one.rollup is None for one in made.values())
    for rewritten in made.values():
        for one in rewritten.pinned_relations:
            loads += [f"CREATE TABLE {one.name} (k text, v0 text)"]
            loads += [f"INSERT INTO {one.name} VALUES {', '.join(map(str, words))}"]
        break
    with duckdb.connect() as duck:
        for statement in loads:
            duck.execute(statement)
        answered = [duck.execute(made[DUCKDB].sql).fetchall()]
        told = duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {made[DUCKDB].sql}").fetchone()
        assert told is not None
        executed = json.loads(told[1])["operator"][0]  # where a column is computed, its name stands for it
        check_work(executed, "children", word="keyhole_holds", rows=lambda node: node["intermediate_rows"])
    engines.writer.execute("DROP TABLE IF EXISTS first, second; " + "; ".join(loads))
    answered.append(engines.writer.execute(made[POSTGRES].sql).fetchall())
    told = engines.writer.execute(f"EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) {made[POSTGRES].sql}").fetchone()
    assert told is not None
    dropped = [*(one.name for one in tables), *(one.name for one in made[POSTGRES].pinned_relations)]
    engines.writer.execute(f"DROP TABLE {', '.join(dropped)}")
    check_work(told[0][0]["Plan"], "Plans", word=MARK, rows=lambda node: node["Actual Rows"] * node["Actual Loops"])
    assert answered == [[("A", 100)]] * 2
