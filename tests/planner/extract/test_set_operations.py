"""Set operations between questions: one question where it can be exact, the same rows as PostgreSQL's in any case."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, reject
from hypothesis import strategies as st

from mechanisms.formula import evaluate_formula, list_literals
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Column, PublicTable, SqlType, Table
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.question import Question
from planner.statements.settings import read_accuracy
from tests.effort import examples
from tests.in_turn import in_turn
from tests.planner.asked import TODAY, asking
from tests.planner.rendering import question_text
from tests.proxy.sources.oracle import true_aggregates
from tests.worlds.retail import retail

WARDS = ("A", "B", "C")
_WHERES = ("age > 30", "insured", "NOT insured", "disease = 'flu'", "disease IS NULL OR cost > 10", "age <= 30")
# what no row satisfies leaves no group alone, but beside another side the empty ones
_CONTRADICTIONS = ({"insured", "NOT insured"}, {"age > 30", "age <= 30"})
_RESTRICTIONS = ("ward = 'A'", "ward <> 'C'", "ward IN ('A', 'B')")
_HAVINGS = (
    "count(*) > 2",
    "count(*) = 2",
    "count(age) <= 1",
    "NOT (sum(age) <= 60)",
    "sum(age) > 60",
    "sum(age) < 60 AND count(age) >= 2",
    "avg(age) > 40",
    "avg(age) <= 40 AND count(age) >= 1",
    "count(*) FILTER (WHERE insured) >= 2",
    "sum(cost) FILTER (WHERE age > 30) > 20 OR count(*) > 3",
    "count(age) < 2 OR avg(age) < 40",
    "count(*) > NULL OR count(cost) > 1",
    "count(*) > 2 AND count(*) < NULL",
    "(count(*) > 2 AND NOT (sum(age) <= 60)) IS NOT FALSE AND count(age) >= 1",
    "(avg(age) > 40) IS NOT TRUE",
    "NOT ((sum(age) > 60 OR count(*) > 3) IS TRUE)",
    "(count(*) > 2) IS FALSE OR sum(cost) > 20 IS TRUE",
)


DISEASES = PublicTable(
    name="diseases",
    columns=(Column("name", SqlType.TEXT, "text"), Column("kind", SqlType.TEXT, "text")),
    rows=(("flu", "viral"), ("asthma", None)),
    digest="2" * 64,
)
PLACES = PublicTable(
    name="places",
    columns=(Column("code", SqlType.TEXT, "text"), Column("storey", SqlType.INTEGER, "integer")),
    rows=(("A", 1), ("B", None), ("D", 2)),
    digest="3" * 64,
)
HOSPITAL = replace(retail(), public_tables=(*retail().public_tables, DISEASES, PLACES))
_OWN_ROWS = ("", "", "")
# how public tables are joined, what WHERE says of them, and which wards that leaves
_JOINS = (
    *(_OWN_ROWS,) * 6,
    ("JOIN diseases x ON x.name = disease", "", ""),
    ("JOIN diseases y ON disease = y.name", "y.kind = 'viral'", ""),
    ("LEFT JOIN diseases x ON x.name = disease", "x.kind IS NULL", ""),
    ("LEFT JOIN diseases x ON x.name = disease", "x.kind = 'viral'", ""),
    ("JOIN places p ON p.code = ward", "", "ward IN ('A', 'B')"),
    ("JOIN places q ON q.code = ward", "q.storey = 1", "ward = 'A'"),
    ("LEFT JOIN places p ON p.code = ward", "p.storey IS NULL", "ward IN ('B', 'C')"),
)


@dataclass(frozen=True)
class Statement:
    """A statement as asked, and the same over `wards LEFT JOIN rows`, which is the truth."""

    asked: str
    true: str


def _may_hold(conditions: list[str]) -> bool:
    return set(conditions) not in _CONTRADICTIONS


@st.composite
def _leaves(draw: st.DrawFn) -> Statement:
    where = draw(st.lists(st.sampled_from(_WHERES), max_size=2, unique=True).filter(_may_hold))
    key = draw(st.sampled_from(("", "", "", *_RESTRICTIONS)))
    having = draw(st.sampled_from(_HAVINGS))
    alias = draw(st.sampled_from(("", " v", " AS w")))
    join, of_public, wards = draw(st.sampled_from(_JOINS))
    both = [f"({part})" for part in (*where, key, of_public) if part]
    clause = f" WHERE {' AND '.join(both)}" if both else ""
    conditions = [f"({part})" for part in (*where, of_public) if part]
    rows = f"SELECT t.*, 1 AS present FROM rows_of_wards t {join}"
    rows += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    restrictions = [part.replace("ward", "d.ward") for part in (key, wards) if part]
    on_keys = f" WHERE {' AND '.join(restrictions)}" if restrictions else ""
    return Statement(
        asked=f"SELECT ward FROM visits{alias} {join}{clause} GROUP BY ward HAVING {having}",
        true=f"SELECT d.ward FROM wards d LEFT JOIN ({rows}) r ON r.ward = d.ward{on_keys} GROUP BY d.ward "
        f"HAVING {having.replace('count(*)', 'count(present)')}",
    )


@st.composite
def _operations(draw: st.DrawFn, below: st.SearchStrategy[Statement]) -> Statement:
    left, right = draw(below), draw(below)
    word = draw(st.sampled_from(("UNION", "INTERSECT", "EXCEPT", "UNION DISTINCT", "UNION ALL", "EXCEPT ALL")))
    form = draw(st.sampled_from(("{l} {w} {r}", "({l}) {w} ({r})", "{l} {w} ({r})", "(({l})) {w} {r}")))
    return Statement(*(form.format(l=a, w=word, r=b) for a, b in ((left.asked, right.asked), (left.true, right.true))))


STATEMENTS = st.recursive(_leaves(), _operations, max_leaves=4)
VISITS = st.lists(
    st.fixed_dictionaries(
        {
            "ward": st.sampled_from((*WARDS, "D", None)),
            "age": st.sampled_from((None, 0, 20, 31, 50, 110)),
            "cost": st.sampled_from((None, 0, 5, 10.5, 100)),
            "insured": st.sampled_from((None, True, False)),
            "disease": st.sampled_from((None, "flu", "cold")),
        }
    ),
    max_size=14,
)


@pytest.fixture(scope="module")
def truth(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA set_operations")
        connection.execute("SET search_path TO set_operations")
        connection.execute("CREATE TABLE wards (ward text)")
        connection.execute("INSERT INTO wards VALUES ('A'), ('B'), ('C')")
        connection.execute(
            "CREATE TABLE rows_of_wards (ward text, age integer, cost numeric, insured boolean, disease text)"
        )
        connection.execute("CREATE TABLE diseases (name text, kind text)")
        connection.execute("INSERT INTO diseases VALUES ('flu', 'viral'), ('asthma', NULL)")
        connection.execute("CREATE TABLE places (code text, storey integer)")
        connection.execute("INSERT INTO places VALUES ('A', 1), ('B', NULL), ('D', 2)")
        yield connection
        connection.execute("DROP SCHEMA set_operations CASCADE")


def _questions(statement: Asking) -> list[Question]:
    catalog = HOSPITAL
    wanted = read_accuracy({"keyhole.tolerance": "0"}, catalog.defaults)
    return [bind_question(q, catalog, accuracy=wanted, parameters={}, today=TODAY) for q in statement.questions]


def _answer(question: Question, rows: list[dict[str, Any]]) -> list[str]:
    values = true_aggregates(question, rows)
    passed = evaluate_formula(
        question.formula, lambda cut: cut.evaluate(values[cut.functional]), keys=question.keys.size
    )
    return [str(ward) for (ward,) in question.keys.list_keys(passed)]


@given(statement=STATEMENTS, rows=VISITS)
@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_rows_are_postgresql_s(
    truth: psycopg.Connection[Any], statement: Statement, rows: list[dict[str, Any]]
) -> None:
    """NULLs, empty groups, nesting, precedence, restricted keys: without noise, the answer is PostgreSQL's own."""
    taken = asking(statement.asked, HOSPITAL)
    try:
        questions = _questions(taken)
    except KeyholeError as refused:
        if refused.code != "KH220":
            raise
        reject()  # no row can be on both sides
    with truth.cursor() as cursor, psycopg.RawCursor(truth) as raw:
        cursor.execute("TRUNCATE rows_of_wards")
        cursor.executemany(
            "INSERT INTO rows_of_wards VALUES (%(ward)s, %(age)s, %(cost)s, %(insured)s, %(disease)s)", rows
        )
        expected = sorted(cursor.execute(statement.true.encode()).fetchall())
        outer = write_outer_sql(taken, first_parameter=1)
        arrays = [_answer(question, rows) for question in questions]
        assert sorted(raw.execute(outer.sql.encode(), arrays).fetchall()) == expected


def _one(sql: str) -> str:
    (question,) = _questions(asking(sql))
    return question_text(question)


_FLU = "SELECT ward FROM visits WHERE disease = 'flu' GROUP BY ward HAVING count(*) > 40"
_COLD = "SELECT ward FROM visits WHERE disease = 'cold' GROUP BY ward HAVING count(*) > 60"
_OLD = "SELECT ward FROM visits WHERE age > 65 GROUP BY ward HAVING count(*) > 20"


@pytest.mark.parametrize(
    ("sql", "formula"),
    [
        (f"{_FLU} INTERSECT {_COLD}", "(f0 > 40 ~0 and f1 > 60 ~0)"),
        (f"{_FLU} UNION {_COLD}", "(f0 > 40 ~0 or f1 > 60 ~0)"),
        (f"{_FLU} EXCEPT {_COLD}", "(f0 > 40 ~0 and f1 <= 60 ~0)"),
        (f"{_FLU} UNION {_COLD} INTERSECT {_OLD}", "(f0 > 40 ~0 or (f1 > 60 ~0 and f2 > 20 ~0))"),
        (f"({_FLU} UNION {_COLD}) INTERSECT {_OLD}", "((f0 > 40 ~0 or f1 > 60 ~0) and f2 > 20 ~0)"),
        (f"{_FLU} EXCEPT ({_COLD} EXCEPT {_OLD})", "(f0 > 40 ~0 and (f1 <= 60 ~0 or f2 > 20 ~0))"),
        (f"{_FLU} EXCEPT {_COLD} EXCEPT {_OLD}", "(f0 > 40 ~0 and f1 <= 60 ~0 and f2 <= 20 ~0)"),
    ],
)
def test_one_formula(sql: str, formula: str) -> None:
    assert formula in _one(sql)


def test_what_the_sides_share_stays_in_where() -> None:
    text = _one(f"{_FLU.replace('GROUP', 'AND age > 65 GROUP')} UNION {_OLD.replace('visits', 'visits AS v')}")
    assert 'where "age" > 65 (f0 > 40 ~0 or f1 > 20 ~0)' in text
    assert "count(*) FILTER (WHERE disease = 'flu')" in text


def test_rows_that_no_side_reads_are_left_out() -> None:
    assert "where \"disease\" IN ('cold', 'flu')" in _one(f"{_FLU} INTERSECT {_COLD}")


@in_turn(
    ("sql", "questions", "keys"),
    [
        (f"{_FLU} UNION ALL {_COLD}", 2, [3, 3]),
        (f"{_FLU} EXCEPT ALL {_COLD}", 2, [3, 3]),
        (f"({_FLU} INTERSECT {_COLD}) UNION ALL {_OLD}", 2, [3, 3]),
        (f"({_FLU} ORDER BY 1 LIMIT 1) UNION {_COLD}", 2, [3, 3]),
        (f"({_FLU} INTERSECT {_COLD} LIMIT 1) UNION {_OLD}", 2, [3, 3]),
        (f"{_FLU} UNION {_COLD} ORDER BY 1 LIMIT 1", 1, [3]),
        (f"{_FLU} INTERSECT {_COLD} UNION SELECT 'Z'", 1, [3]),
        (f"{_FLU.replace('GROUP', 'AND ward = $1 GROUP')} UNION {_COLD}", 2, None),
        (f"{_FLU.replace('GROUP', chr(65) + 'ND ward = ' + repr('A') + ' GROUP')} INTERSECT {_COLD}", 1, [1]),
        (f"{_FLU.replace('GROUP', 'AND ward <> ' + repr('A') + ' GROUP')} EXCEPT {_COLD}", 1, [2]),
        (f"{_FLU} EXCEPT {_COLD.replace('GROUP', 'AND ward <> ' + repr('A') + ' GROUP')}", 2, [3, 2]),
        (f"SELECT 'x', {_FLU[7:]} UNION SELECT 'y', {_COLD[7:]}", 2, [3, 3]),
        (f"WITH t AS (SELECT 1) {_FLU} INTERSECT {_COLD}", 1, [3]),
        (f"(WITH t AS (SELECT 1) {_FLU} INTERSECT {_COLD}) UNION {_OLD}", 2, [3, 3]),
        (f"SELECT 1 WHERE 'A' IN ({_FLU} INTERSECT {_COLD}) AND EXISTS ({_OLD})", 2, [3, 3]),
        ("SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 9 INTERSECT "
         "SELECT v.ward, v.day FROM visits v GROUP BY v.day, v.ward HAVING sum(age) > 99", 1, [30]),
        ("SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 9 INTERSECT "
         "SELECT ward, arrived::date FROM visits v GROUP BY 2, 1 HAVING sum(age) > 99", 2, [30, 30]),
        ("SELECT ward FROM visits GROUP BY ward, day HAVING count(*) > 9 INTERSECT "
         "SELECT ward FROM visits v GROUP BY ward, day HAVING sum(age) > 99", 2, [30, 30]),
        (f"{_FLU.replace('WHERE', 'JOIN diseases x ON x.name = disease WHERE')} UNION {_COLD}", 1, [3]),
        (f"{_FLU.replace('WHERE', 'JOIN diseases x ON x.name = disease WHERE')} UNION "
         f"{_COLD.replace('WHERE', 'LEFT JOIN diseases y ON y.name = disease WHERE y.kind IS NULL AND')}", 1, [3]),
        (f"{_FLU.replace('WHERE', 'JOIN diseases x ON x.name = disease WHERE x.kind = $1 AND')} UNION "
         f"{_COLD.replace('WHERE', 'JOIN places x ON x.code = ward WHERE')}", 2, None),
        (f"{_FLU.replace('WHERE', 'JOIN places x ON x.code = ward WHERE')} INTERSECT {_COLD}", 1, [2]),
        (f"{_FLU.replace('WHERE', 'JOIN places x ON x.code = ward WHERE')} UNION {_COLD}", 2, [2, 3]),
        (f"{_FLU.replace('WHERE', 'JOIN places x ON x.code = ward WHERE')} EXCEPT {_COLD}", 1, [2]),
        ("SELECT x.kind FROM visits JOIN diseases x ON x.name = disease GROUP BY x.kind HAVING count(*) > 9 UNION "
         "SELECT y.kind FROM visits JOIN diseases y ON y.name = disease GROUP BY y.kind HAVING sum(age) > 9", 1, [1]),
        ("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 9 UNION "
         "SELECT country FROM sales GROUP BY country HAVING count(*) > 9", 2, [3, 4]),
    ],
)  # fmt: skip
def test_what_is_one_question(sql: str, questions: int, keys: list[int] | None) -> None:
    statement = asking(sql, HOSPITAL)
    assert len(statement.questions) == questions
    if keys is not None:
        assert [question.keys.size for question in _questions(statement)] == keys


def test_columns_have_the_names_of_the_first_side() -> None:
    statement = asking(f"{_FLU.replace('SELECT ward', 'SELECT ward AS place')} INTERSECT {_COLD} ORDER BY place")
    assert write_outer_sql(statement, first_parameter=1).sql == (
        'SELECT ward AS place FROM (SELECT u.k1::text AS "ward" FROM unnest($1::text[]) AS u(k1)) AS "visits"'
        " ORDER BY place"
    )


@pytest.mark.parametrize(("second", "pointed"), [("HAVING max(age) > 3", "max(age)"), ("HAVING colour > 3", "colour")])
def test_positions_are_those_of_the_side(second: str, pointed: str) -> None:
    sql = f"SELECT 1 FROM ({_FLU} UNION SELECT ward FROM visits WHERE age > 3 GROUP BY ward {second} + sum(gift)) t"
    with pytest.raises(KeyholeError) as error:
        _questions(asking(sql))
    assert error.value.position is not None
    assert sql[error.value.position - 1 :].startswith((pointed, "sum(gift)", "gift"))


def _cost(sql: str) -> float:
    """The worst case of all the questions of a statement, charged one by one."""
    catalog = retail()
    wanted = read_accuracy({}, catalog.defaults)
    questions = [bind_question(q, catalog, accuracy=wanted, parameters={}, today=TODAY) for q in asking(sql).questions]
    return sum(plan_question(question, dialect=DUCKDB).worst_case_epsilon for question in questions)


@pytest.mark.parametrize("word", ["INTERSECT", "UNION", "EXCEPT"])
def test_disjoint_sides_cost_their_maximum_and_not_their_sum(word: str) -> None:
    """The joined question keeps its rates for the whole, where two questions kept them for each: 2 percent of the
    larger side's price per side, against all of the other's."""
    apart, together = _cost(_FLU) + _cost(_COLD), _cost(f"{_FLU} {word} {_COLD}")
    assert max(_cost(_FLU), _cost(_COLD)) <= together < 0.7 * apart


def test_a_side_that_says_the_same_is_free() -> None:
    assert _cost(f"{_FLU} INTERSECT {_FLU.replace('visits', 'visits v')}") == _cost(_FLU)
    assert _cost(f"{_FLU} EXCEPT {_FLU}") == 0
    (empty,) = _questions(asking(f"{_FLU} EXCEPT {_FLU}"))
    assert len(list(list_literals(empty.formula))) == 2


_SALES_DATA = Table(
    name="sales_data",
    relation="sales_data",
    columns=(
        Column("product_id", SqlType.INTEGER, "integer", domain=tuple(range(50))),
        Column("location", SqlType.TEXT, "text"),
        Column("profit", SqlType.INTEGER, "integer", bounds=(Decimal(0), Decimal(100)), grid=Decimal(1)),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="sales_data",
)
_PRODUCTS = "( SELECT product_id FROM SALES_DATA\nWhere location = '{0}'\nGROUP BY product_id HAVING count(*) > {1})"


@pytest.mark.parametrize(
    ("form", "places"),
    [
        ("{0}\nINTERSECT\n{1}", ("USA", "Canada")),
        ("{0}\nUNION\n{1}", ("USA", "Canada")),
        ("{0}\nUNION\n({1}\nINTERSECT\n{2})", ("USA", "Canada", "Mexico")),
        ("({0} UNION {1}) INTERSECT ({0} UNION {2})", ("USA", "Canada", "Mexico")),
    ],
)
def test_the_thesis_s_own_examples_cost_one_side_s_rows(form: str, places: tuple[str, ...]) -> None:
    """MIDE 6.2 and figure 6.2: conjunction, disjunction, and Q1 or (Q2 and Q3) in both its query trees."""
    catalog = replace(retail(), tables=(_SALES_DATA,), public_tables=(), stored_questions=())
    sides = [_PRODUCTS.format(place, 100) for place in places]
    wanted = read_accuracy({}, catalog.defaults)

    def cost(sql: str) -> float:
        (question,) = asking(sql, catalog).questions
        return plan_question(
            bind_question(question, catalog, accuracy=wanted, parameters={}, today=TODAY), dialect=DUCKDB
        ).worst_case_epsilon

    alone = cost(sides[0])
    assert cost(form.format(*sides)) < 1.5 * alone < len(places) * alone
