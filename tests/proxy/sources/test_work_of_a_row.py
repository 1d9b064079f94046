"""No row is spared what a question's conditions cost, and none costs more than is allowed: asked of both engines.

Nothing here is timed. What an engine computes is counted by functions that count, and read in the plans it executed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

import duckdb
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, Computed, Lookup, RowCap, SqlType, Table
from planner.catalog.sql_types import read_text_limit
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.row import RowSql
from planner.plan.build import plan_question
from planner.question.condition import Compare, Condition, Leaf, Like, Not, Within, evaluate, join_all, join_any
from planner.question.question import Question
from planner.question.row_work import are_expensive, is_searched
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.effort import examples, rounds
from tests.in_turn import in_turn
from tests.planner.asked import TODAY, asked
from tests.planner.question.test_row_work import PATTERNS, TEXTS
from tests.planner.spec import SPEC, pairs
from tests.worlds.retail import retail

ROWS = 60
VISITS = f"""
CREATE TABLE noted AS SELECT CAST(i AS integer) AS id, 'p' || CAST(i % 20 AS text) AS person,
  'ward ' || CAST(i % 2 AS text) AS ward, CAST(i % 90 AS integer) AS age, 'note ' || CAST(i AS text) AS note
FROM generate_series(1, {ROWS}) AS t(i)
"""
COLUMNS = (
    Column("id", SqlType.INTEGER, "integer"),
    Column("person", SqlType.TEXT, "text"),
    Column("ward", SqlType.TEXT, "text", domain=("ward 0", "ward 1", "ward without anybody")),
    Column(
        "age",
        SqlType.INTEGER,
        "integer",
        bounds=(Decimal(0), Decimal(110)),
        grid=Decimal(1),
        per_unit=(Decimal(0), Decimal(110)),
    ),
    Column("note", SqlType.TEXT, "text"),
)
BY_ROW = Table(
    name="noted",
    relation="noted",
    columns=COLUMNS,
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="noted",
)
CLIPPED = replace(BY_ROW, unit=("person",), rows_per_unit=3)
TABLES = {
    "rows": BY_ROW,
    "one key of each": CLIPPED,
    "all keys of each": replace(CLIPPED, groups_per_unit=3),
    "some rows of each": replace(BY_ROW, unit=("person",), row_cap=RowCap(rows=2, unique="id")),
}
MARK = "zebra"
SPARING = {
    "FILTER behind a name": "SELECT ward FROM noted GROUP BY ward "
    f"HAVING count(*) FILTER (WHERE person = 'p7' AND note LIKE '%{MARK}%') > 5",
    "WHERE behind a number that nobody has": "SELECT ward FROM noted "
    f"WHERE age = 1000 AND note LIKE '%{MARK}%' GROUP BY ward HAVING count(*) > 5",
    "FILTER behind a WHERE that nobody satisfies": "SELECT ward FROM noted WHERE age = 1000 GROUP BY ward "
    f"HAVING count(*) FILTER (WHERE note LIKE '%{MARK}%') > 5",
    "CASE": "SELECT ward FROM noted GROUP BY ward HAVING "
    f"count(*) FILTER (WHERE CASE WHEN age = 1000 THEN note LIKE '%{MARK}%' ELSE false END) > 5",
    "key": "SELECT CASE WHEN note LIKE '%x%' THEN 1 "
    f"WHEN age > 20 AND note LIKE '%{MARK}%' THEN 2 END AS kind FROM noted "
    "WHERE person = 'p7' GROUP BY kind HAVING count(*) > 5",
    "OR": f"SELECT ward FROM noted GROUP BY ward HAVING count(*) FILTER (WHERE age < 1000 OR note LIKE '%{MARK}%') > 5",
    "a key that nobody is in": "SELECT ward FROM noted WHERE ward = 'ward without anybody' GROUP BY ward "
    f"HAVING count(*) FILTER (WHERE note LIKE '%{MARK}%') > 5",
    "several aggregates": "SELECT ward FROM noted WHERE person <> 'p8' GROUP BY ward "
    f"HAVING count(*) FILTER (WHERE note LIKE '%{MARK}%') > 5 OR avg(age) > 50 OR count(DISTINCT id) > 9",
    "an end": "SELECT ward FROM noted WHERE person = 'p7' AND right(note, 5) = "
    f"'{MARK}' GROUP BY ward HAVING count(*) > 5",
    "spellings": "SELECT ward FROM noted "
    f"WHERE person = 'p7' AND note ILIKE '%{MARK}%' GROUP BY ward HAVING count(*) > 5",
}
PER_UNIT = (
    f"SELECT ward FROM (SELECT person, ward, count(*) FILTER (WHERE person = 'p7' AND note LIKE '%{MARK}%') AS n "
    "FROM noted WHERE age = 1000 GROUP BY person, ward) t GROUP BY ward HAVING count(*) FILTER (WHERE n > 1) > 5"
)


@pytest.fixture(scope="module")
def postgres(postgres_url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA work_of_a_row; SET search_path = work_of_a_row")
        connection.execute(VISITS.encode())
        connection.execute("CREATE INDEX ON noted (age); CREATE INDEX ON noted (person); ANALYZE noted")
        connection.execute("SET enable_seqscan = off")  # indexes would be used wherever they can
        yield connection
        connection.execute("DROP SCHEMA work_of_a_row CASCADE")


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(VISITS)
        yield connection


def catalog(table: Table) -> Catalog:
    return replace(retail(), tables=(table,))


def walk(node: dict[str, Any], children: str) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get(children, []):
        yield from walk(child, children)


def lowest(root: dict[str, Any], children: str, word: str) -> list[dict[str, Any]]:
    """The nodes that say a word and get it from no other."""

    def says(node: dict[str, Any]) -> bool:
        return word in json.dumps({key: value for key, value in node.items() if key != children}).lower()

    found = [node for node in walk(root, children) if says(node)]
    return [node for node in found if not any(says(child) for child in list(walk(node, children))[1:])]


def check_postgres(postgres: psycopg.Connection[tuple[Any, ...]], sql: str) -> None:
    """Patterns are matched where the table is read, for all of its rows, and nowhere else."""
    found = postgres.execute(f"EXPLAIN (ANALYZE, VERBOSE, TIMING OFF, FORMAT JSON) {sql}".encode()).fetchone()
    assert found is not None
    nodes = lowest(found[0][0]["Plan"], "Plans", MARK)
    assert nodes
    for node in nodes:
        assert node["Node Type"] == "Seq Scan"
        assert "Filter" not in node
        assert node["Actual Rows"] * node["Actual Loops"] == ROWS


def check_duckdb(duck: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Conditions are computed in a projection of all that is read, and nowhere else."""
    found = duck.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}").fetchone()
    assert found is not None
    nodes = lowest(json.loads(found[1])["operator"][0], "children", "keyhole_c")
    under = [(node, [one for child in node["children"] for one in walk(child, "children")]) for node in nodes]
    # others read what these have computed
    computing = [(node, below) for node, below in under if "CTE_SCAN" not in {one["type"] for one in below}]
    assert computing
    for node, below in computing:
        assert node["type"] == "PROJECTION"
        assert {one["type"] for one in below} <= {"PROJECTION", "TABLE_SCAN", "STREAMING_LIMIT", "LIMIT"}
        assert not any("Filters" in one["extra_info"] for one in below)


@in_turn("table", TABLES.values())
@in_turn("sql", SPARING.values())
def test_nothing_spares_a_row_a_pattern(
    postgres: psycopg.Connection[tuple[Any, ...]], duck: duckdb.DuckDBPyConnection, table: Table, sql: str
) -> None:
    question = asked(sql, catalog=catalog(table))
    check_postgres(postgres, plan_question(question, dialect=POSTGRES).rewritten.sql)
    check_duckdb(duck, plan_question(question, dialect=DUCKDB).rewritten.sql)


def test_nothing_spares_a_row_a_pattern_of_a_subquery(
    postgres: psycopg.Connection[tuple[Any, ...]], duck: duckdb.DuckDBPyConnection
) -> None:
    question = asked(PER_UNIT, catalog=catalog(CLIPPED))
    check_postgres(postgres, plan_question(question, dialect=POSTGRES).rewritten.sql)
    check_duckdb(duck, plan_question(question, dialect=DUCKDB).rewritten.sql)


def test_postgres_computes_all_that_least_and_greatest_are_given(
    postgres: psycopg.Connection[tuple[Any, ...]],
) -> None:
    postgres.execute("CREATE SEQUENCE calls")
    postgres.execute(
        "CREATE FUNCTION counted(id integer) RETURNS boolean LANGUAGE plpgsql VOLATILE AS "
        "'BEGIN PERFORM nextval(''work_of_a_row.calls''); RETURN id > 0; END'"
    )
    for joined in ("LEAST(COALESCE(id < 0, FALSE), {0})", "GREATEST(COALESCE(id > 0, FALSE), {0})"):
        computed = joined.format("COALESCE(counted(id), FALSE)")
        postgres.execute("ALTER SEQUENCE calls RESTART")
        told = f"SELECT count(*) FROM (SELECT id, {computed} AS c FROM noted OFFSET 0) AS computed WHERE id < 0 AND c"
        postgres.execute(told.encode())
        found = postgres.execute("SELECT last_value FROM calls").fetchone()
        assert found == (ROWS,)


def test_duckdb_computes_all_that_least_and_greatest_are_given(duck: duckdb.DuckDBPyConnection) -> None:
    calls = [0]

    def counted(value: int) -> bool:
        calls[0] += 1
        return value > 0

    duck.create_function("counted", counted, ["INTEGER"], "BOOLEAN", side_effects=False)
    for joined in ("LEAST(COALESCE(id < 0, FALSE), {0})", "GREATEST(COALESCE(id > 0, FALSE), {0})"):
        calls[0] = 0
        computed = joined.format("COALESCE(counted(id), FALSE)")
        stored = f"SELECT {DUCKDB.hide_statistics('id')} AS id FROM noted"
        rows = f"SELECT id, {computed} AS c FROM ({stored}) AS stored {DUCKDB.row_fence}"
        duck.execute(f"SELECT count(*) FROM ({rows}) AS computed WHERE id < 0 AND c").fetchall()
        assert calls[0] == ROWS


def test_duckdb_knows_nothing_of_hidden_values(duck: duckdb.DuckDBPyConnection) -> None:
    """A test that no value can satisfy is computed like any other, so that another greatest value changes nothing."""

    def plan_of(relation: str) -> str:
        found = duck.execute(f"EXPLAIN SELECT count(*) FROM {relation} AS noted WHERE id > 1000").fetchone()
        assert found is not None
        return str(found[1])

    assert "id > 1000" not in plan_of("noted")
    assert "> 1000" in plan_of(f"(SELECT {DUCKDB.hide_statistics('id')} AS id FROM noted)")


TREES = st.recursive(
    st.one_of(
        st.builds(Like, st.just("note"), PATTERNS),
        st.builds(Compare, st.just("age"), st.sampled_from(["<", "=", ">="]), st.integers(0, 3)),
        st.builds(
            Within, st.just("note"), st.just(tuple(sorted({"", "a", "b", "ab", "é", "aa", "bb", "a%", "_", "%"})))
        ),
    ),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3).map(join_all), st.lists(parts, max_size=3).map(join_any), parts.map(Not)
    ),
    max_leaves=6,
)


@given(TREES, st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.one_of(st.none(), TEXTS)), min_size=1))
@examples(200)
def test_computed_conditions_hold_where_they_do(
    postgres_url: str, condition: Condition, found: list[tuple[int | None, str | None]]
) -> None:
    expected = [evaluate(condition, {"age": age, "note": note}) is True for age, note in found]
    table = replace(BY_ROW, columns=tuple(column for column in COLUMNS if column.name in ("age", "note")))
    for dialect in (DUCKDB, POSTGRES):
        row = RowSql(table=table, dialect=dialect)
        told = f"SELECT {row.write_computed(condition)}, ({row.write_condition(condition)}) IS TRUE"
        assert run(postgres_url, dialect, f"{told} FROM ({rows_sql(found)}) AS t ORDER BY place") == [
            (holds, holds) for holds in expected
        ]


def rows_sql(found: list[tuple[int | None, str | None]]) -> str:
    def spelled(value: object) -> str:
        return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"

    return " UNION ALL ".join(
        f"SELECT CAST({spelled(age)} AS integer) AS age, CAST({spelled(note)} AS text) AS note, {i} AS place"
        for i, (age, note) in enumerate(found)
    )


def run(postgres_url: str, dialect: Dialect, sql: str) -> list[tuple[Any, ...]]:
    if dialect is DUCKDB:
        with duckdb.connect() as connection:
            return connection.execute(sql).fetchall()
    with psycopg.connect(postgres_url) as asker:
        return asker.execute(sql.encode()).fetchall()


@in_turn(
    ("condition", "holds"),
    [
        (Like("note", "%z%"), False),  # behind what is seen
        (Like("note", "aaaa%"), True),
        (Like("note", "aaaaa%"), False),
        (Like("note", "____"), True),
        (Compare("note", "=", "aaaa"), True),
        (Compare("note", "=", "aaa"), False),
        (Compare("note", "=", "aaaaz"), False),
        (Within("note", tuple(f"{letter}aaa" for letter in "abcdefghijkl")), True),
        (Within("note", tuple(f"{letter}aa" for letter in "abcdefghijkl")), False),
        (Within("note", ("aaaaz",)), False),
    ],
)
def test_longer_texts_are_seen_as_far_as_max_length(postgres_url: str, condition: Condition, *, holds: bool) -> None:
    cut = replace(COLUMNS[4], max_length=4)
    for dialect in (DUCKDB, POSTGRES):
        row = RowSql(table=replace(BY_ROW, columns=(cut,)), dialect=dialect)
        told = f"SELECT ({row.write_condition(condition)}) IS TRUE FROM (SELECT CAST('aaaaz' AS text) AS note) AS t"
        assert run(postgres_url, dialect, told) == [(holds,)]


def test_a_type_that_holds_no_longer_text_is_not_cut() -> None:
    short = Column("note", SqlType.TEXT, "character varying(40)", max_length=40)
    table = replace(BY_ROW, columns=(short,))
    looked_for = Like("note", "%flu%")
    assert "left(" not in RowSql(table=table, dialect=POSTGRES).write_condition(looked_for)
    assert "left(" in RowSql(table=table, dialect=DUCKDB).write_condition(looked_for)  # which does not keep to the type


def test_a_few_cheap_tests_are_written_as_before() -> None:
    question = asked(
        "SELECT ward FROM noted WHERE age > 5 AND note LIKE 'a%' GROUP BY ward HAVING count(*) > 5",
        catalog=catalog(BY_ROW),
    )
    assert not are_expensive([question.where], BY_ROW)
    for dialect in (DUCKDB, POSTGRES):
        assert "computed" not in plan_question(question, dialect=dialect).rewritten.sql


SPECS = sorted(path.name for path in SPEC.glob("*.sql"))
TEXT = {"postgres": r'CAST\("\w+" AS text\) COLLATE "C"', "duckdb": r'TRY_CAST\("\w+" AS text\) COLLATE "C"'}
NUMBER = {"postgres": "octet_length", "duckdb": "strlen"}
CONSTANT = r"'(?:[^']|'')*'"
CONSTANT_TIME = {
    "CAST",
    "TRY_CAST",
    "IN",
    "BETWEEN",
    "date_trunc",
    "extract",
    "decimal",
    "IS",
    "AND",
    "CASE",
    "THEN",
    "WHEN",
}


OF_CUT_TEXTS = {
    *("abs", "floor", "trunc", "div", "coalesce", "COALESCE", "nullif", "NULLIF", "GREATEST", "LEAST", "epoch_us"),
    "make_timestamp",
    "regexp_matches",
    *(
        "left",
        "right",
        "substring",
        "split_part",
        "replace",
        "length",
        "lower",
        "upper",
        "translate",
        "trim",
        "OR",
        "NOT",
        "ELSE",
        "FROM",
    ),
}
"""What expressions of a row are made of: of texts that are cut, and of numbers that are kept small."""


def is_computed_in_bounded_time(sql: str, read: frozenset[str], dialect: Dialect, table: Table) -> bool:
    """Whether an expression reads every text as far as it is cut, by functions that take no longer than that."""
    bare = re.sub(CONSTANT, "", re.sub(rf"left\({TEXT[dialect.name]}, \d+\)", "", sql))
    texts = [table.get_column(name) for name in read if table.get_column(name).sql_type is SqlType.TEXT]
    longer = [one for one in texts if not dialect.enforces_lengths or read_text_limit(one.declared) is None]
    functions = set(re.findall(r"(\w+)\s*\(", bare))
    return functions <= CONSTANT_TIME | OF_CUT_TEXTS and not any(f'"{one.name}"' in bare for one in longer)


def is_bounded(sql: str, leaf: Leaf, dialect: Dialect, table: Table) -> bool:
    """Whether a test takes the same on every row, or no more than what a text is cut to allows."""
    column = table.get_column(leaf.column)
    text, byte_length = TEXT[dialect.name], NUMBER[dialect.name]
    if isinstance(column.derivation, Computed):
        return is_computed_in_bounded_time(sql, column.derivation.term.columns, dialect, table)
    if column.sql_type is not SqlType.TEXT:
        return set(re.findall(r"(\w+)\s*\(", re.sub(CONSTANT, "", sql))) <= CONSTANT_TIME
    cut = rf"left\({text}, \d+\)"
    if dialect.enforces_lengths and read_text_limit(column.declared) is not None:
        cut = rf"(?:{cut}|{text})"
    forms = [
        rf"\({text}\) IS NULL",
        rf"{text} (?:=|<>) {CONSTANT}",  # compares lengths first
        rf"{text} IN \({CONSTANT}(?:, {CONSTANT}){{0,7}}\)",
        rf"{byte_length}\({text}\) <= \d+ AND {text} IN \(.*\)",
        rf"{cut} (?:=|<>|IN|LIKE) .*",
        rf"length\({cut}\) (?:>=|=) \d+",
    ]
    if isinstance(leaf, Like) and not is_searched(leaf.pattern):
        forms.append(rf"{text} LIKE {CONSTANT}(?: ESCAPE '\\')?")
    return any(re.fullmatch(form, sql, re.DOTALL) for form in forms)


def leaves_of(question: Question) -> Iterator[Leaf]:
    yield from question.where.walk_leaves()
    for functional in question.functionals:
        for term in functional.terms:
            yield from term.condition.walk_leaves()


def test_every_function_and_operator_of_the_corpus_takes_a_bounded_time_on_a_row() -> None:
    """Every statement of tests/spec that is answered, in both dialects; what conditions are made of is all there. At
    quick one statement in three."""
    seen: set[tuple[type[Leaf], SqlType]] = set()
    catalog = retail()
    wanted = read_accuracy({}, catalog.defaults)
    for name in SPECS:
        for sql, outcome in pairs(name)[:: rounds(1, quick=3)]:
            if outcome.startswith("KH"):  # it is refused, as another test says
                continue
            try:
                statement = classify(sql, catalog)
                found = statement.questions if isinstance(statement, Asking) and len(statement.questions) == 1 else ()
                questions = [
                    bind_question(one, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
                    for one in found
                ]
            except KeyholeError:
                continue
            for question in questions:
                for leaf in leaves_of(question):
                    table = question.table
                    column = table.get_column(leaf.column)
                    if isinstance(column.derivation, Lookup):
                        continue
                    seen.add((type(leaf), column.sql_type))
                    for dialect in (DUCKDB, POSTGRES):
                        row = RowSql(table=table, dialect=dialect)
                        assert is_bounded(row.write_condition(leaf), leaf, dialect, table), (
                            sql,
                            row.write_condition(leaf),
                        )
    kinds = {SqlType.TEXT, SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE, SqlType.BOOLEAN, SqlType.DATE}
    assert {kind for leaf, kind in seen if leaf is Compare} >= kinds | {SqlType.TIMESTAMP}
    assert {(leaf, SqlType.TEXT) for leaf in get_args(Leaf)} <= seen
