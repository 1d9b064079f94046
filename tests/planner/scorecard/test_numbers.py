"""Numbers beside the keys: what stands in their columns, of PostgreSQL's own types, and what follows from a formula."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from random import Random

import psycopg
import pytest
from sqlglot import exp

from planner.catalog.catalog import NUMBERS, Catalog
from planner.errors import KeyholeError
from planner.extract.outer_query import write_outer_sql
from planner.scope.embedded import RANK_COLUMN, EmbeddedQuestion
from planner.scope.name_resolution import Scope
from planner.scorecard.proven_bounds import prove_bound
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import asking, select
from tests.planner.spec import pairs
from tests.worlds.empty_retail import empty_retail
from tests.worlds.retail import retail

CORPUS = pairs("numbers.sql")


def _told(sql: str, catalog: Catalog) -> str:
    try:
        (question, *_) = [one for one in asking(sql, catalog).questions if one.numbers is not None]
    except KeyholeError as error:
        return error.code
    assert question.numbers is not None
    words = [f"{one.name}={one.words or one.kind}" for one in question.numbers.columns]
    words += ["ranked"] if question.ranked is not None else []
    words += [f"unsorted {', '.join(question.numbers.unsorted_columns)}"] if question.numbers.unsorted_columns else []
    return " ".join(words)


@in_turn(("statement", "outcome"), CORPUS)
def test_what_stands_in_the_columns(statement: str, outcome: str) -> None:
    mode, _, sql = statement.partition(" ")
    assert mode in NUMBERS
    assert _told(sql, retail().replace_numbers(mode)) == outcome


@pytest.fixture(scope="module")
def empty(postgres_url: str) -> Iterator[psycopg.Connection]:
    """The tables of the catalog without their rows."""
    with empty_retail(postgres_url, schema="empty_of_numbers") as connection:
        yield connection


TYPES = [
    "count(*)",
    "count(*)::int",
    "CAST(count(*) AS double precision)",
    "sum(quantity)",
    "sum(amount)",
    "sum(weight)",
    "avg(quantity)",
    "avg(weight)",
    "round(avg(amount), 2)",
    "round(sum(weight)::numeric, 1)",
    "sum(amount)::numeric(12, 2)",
    "min(invoice_date)",
    "max(month)",
    "max(stock_code)",
    "coalesce(sum(amount), 0)",
    "100.0 * count(*) FILTER (WHERE gift) / nullif(count(*), 0)",
    "bool_or(gift)",
    "array_agg(quantity)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY weight)",
    "stddev(amount)",
    "max(invoice_date) - min(invoice_date)",
    "upper(country) || count(*)",
    "(count(*))",
    "count(DISTINCT customer_id)",
]


@in_turn("mode", ["null", "threshold"])
@in_turn("number", TYPES)
def test_a_column_has_the_type_and_the_name_that_postgresql_gives_it(
    empty: psycopg.Connection, number: str, mode: str
) -> None:
    catalog = retail().replace_numbers(mode)
    having = f"HAVING count(*) > 500 AND {number} > 20.5" if number.startswith(("sum", "avg", "round")) else ""
    for sql in (
        f"SELECT country, {number} FROM sales GROUP BY country {having or 'HAVING count(*) > 500'}",
        f"SELECT {number} AS n, s.country FROM sales s GROUP BY 2 HAVING count(*) > 500 ORDER BY n",
        f"SELECT * FROM (SELECT country, {number} AS n FROM sales GROUP BY country HAVING count(*) > 500) q",
    ):
        statement = asking(sql, catalog)
        outer = write_outer_sql(statement, first_parameter=1)
        with psycopg.RawCursor(empty) as cursor:
            cursor.execute(sql.encode())
            as_typed = cursor.description
            cursor.execute(
                outer.sql.encode(), [["France" if one.declared == "text" else "true"] for one in outer.arrays]
            )
            described = cursor.description
            assert as_typed is not None
            assert described is not None
            assert [(one.name, one.type_code, one._fmod) for one in described] == [
                (one.name, one.type_code, one._fmod) for one in as_typed
            ]
            (row,) = cursor.fetchall()
            assert "France" in row
            assert mode == "threshold" or None in row or number == "bool_or(gift)"


@in_turn("statement", [sql for sql, told in CORPUS if not told.startswith("KH") and "$" not in sql])
def test_the_corpus_runs_on_postgresql(empty: psycopg.Connection, statement: str) -> None:
    mode, _, sql = statement.partition(" ")
    asked = asking(sql, retail().replace_numbers(mode))
    outer = write_outer_sql(asked, first_parameter=1)
    arrays = []
    for array in outer.arrays:
        embedded = asked.embedded[array.embedded]
        assert isinstance(embedded, EmbeddedQuestion)
        name, declared = embedded.columns[array.column]
        known = {"country": "France", RANK_COLUMN: "1", "month": "2011-01-01"}
        arrays.append([known.get(name, "true" if declared == "boolean" else "x")])
    with psycopg.RawCursor(empty) as cursor:
        cursor.execute(sql.replace("public.", "").encode())
        as_typed = cursor.description
        cursor.execute(outer.sql.encode(), arrays)
        assert as_typed is not None
        assert cursor.description is not None
        assert [(one.name, one.type_code) for one in cursor.description] == [
            (one.name, one.type_code) for one in as_typed
        ]


def _formula(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        what = random.choice(("count(*)", "sum(quantity)"))
        number = random.randint(0, 6)
        match random.randrange(4):
            case 0:
                return f"{what} BETWEEN {number} AND {number + random.randint(0, 2)}"
            case 1:
                return f"{number} {random.choice(('<', '<=', '>', '>='))} {what}"
            case 2:
                return f"{what} IN ({number}, {random.randint(0, 6)})"
        return f"{what} {random.choice(('<', '<=', '>', '>=', '=', '<>'))} {number}"
    left, right = _formula(random, depth - 1), _formula(random, depth - 1)
    return f"{random.choice(('', 'NOT '))}({left} {random.choice(('AND', 'OR'))} {right})"


def test_a_bound_is_one_of_every_value_that_passes_and_the_strictest_one() -> None:
    """Over all values of two whole numbers, by a formula's own truth table: 400 formulas, 130 at quick."""
    random, table = Random(33), retail().tables[0]
    scope, proved = Scope(table=table, alias="sales"), 0
    for _ in range(rounds(400, quick=130)):
        formula = _formula(random, random.randint(0, 3))
        having = select(f"SELECT country FROM sales GROUP BY country HAVING {formula}").args["having"]
        passing = [(n, s) for n, s in product(range(-2, 11), repeat=2) if _holds(having.this, n, s)]
        for place, name in enumerate(
            (random.choice(("count(*)", "count(*)::int", "count(*)::numeric")), "sum(quantity)")
        ):
            number = select(f"SELECT {name} FROM sales").expressions[0]
            bound = prove_bound(number, (having,), scope)
            values = [one[place] for one in passing]
            if bound is None:
                continue
            proved += 1
            assert all(v >= bound.number if bound.is_least else v <= bound.number for v in values)
            has_inequality = "<>" in formula or " = " in formula or " IN " in formula
            if values and not has_inequality:
                assert bound.number == (min(values) if bound.is_least else max(values))
    assert proved > rounds(50, quick=15)


def _holds(node: exp.Expr, n: int, s: int) -> bool:
    def value(one: exp.Expr) -> Fraction:
        if isinstance(one, exp.Count):
            return Fraction(n)
        return Fraction(s) if isinstance(one, exp.Sum) else Fraction(one.name)

    match node:
        case exp.Paren() | exp.Not():
            inner = _holds(node.this, n, s)
            return inner if isinstance(node, exp.Paren) else not inner
        case exp.And():
            return _holds(node.this, n, s) and _holds(node.expression, n, s)
        case exp.Or():
            return _holds(node.this, n, s) or _holds(node.expression, n, s)
        case exp.Between():
            return value(node.args["low"]) <= value(node.this) <= value(node.args["high"])
        case exp.In():
            return value(node.this) in [value(one) for one in node.expressions]
    left, right = value(node.this), value(node.expression)
    truths: dict[type[exp.Expr], bool] = {
        exp.GT: left > right,
        exp.GTE: left >= right,
        exp.LT: left < right,
        exp.LTE: left <= right,
        exp.EQ: left == right,
        exp.NEQ: left != right,
    }
    return truths[type(node)]
