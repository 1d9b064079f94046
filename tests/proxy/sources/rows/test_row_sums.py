"""What each row adds by several terms, one row per key: the same integers as its terms give one by one."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import permutations, product

import numpy as np
import psycopg

from mechanisms.formula import TRUE
from planner.catalog.catalog import Column, SqlType, Table
from planner.catalog.key_space import KeySpace
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.row import RowSql
from planner.lower.sums.row_sum import write_terms
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Not, Or
from planner.question.products import add_products, make_product
from planner.question.question import Accuracy, Question, Term
from tests.effort import rounds
from tests.proxy.sources.oracle import added as one_by_one
from tests.proxy.sources.oracle import counts, true_aggregates
from tests.proxy.sources.worlds import Engines, columns, crowd, linear

_GRIDS: tuple[dict[str, str], ...] = (
    {},
    {"age_grid": "2.5", "amount_grid": "1", "cost_grid": "0.5", "long_grid": "0.25"},
    {"age_grid": "0.5", "amount_grid": "0.25", "cost_grid": "7", "long_grid": "0.0001"},
    {"amount_grid": "0.3", "cost_grid": "1", "long_grid": "1"},
)
_ORDERS = (("age", "amount", "cost"), ("cost", "age", "amount"), ("amount", "cost", "age"))


def _there(*names: str) -> Condition:
    return Not(Or(tuple(IsNull(name) for name in names)))


def _table(grids: dict[str, str]) -> Table:
    table = Table(
        name="visits",
        relation="visits",
        columns=columns(**grids),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="s",
    )
    pairs = (("age", "amount"), ("age", "cost"), ("amount", "cost"), ("age", "amount", "cost"), ("big", "big"))
    return add_products(table, [make_product([table.get_column(name) for name in names]) for names in pairs])


def _charge(first: str, second: str, third: str, *, where: Condition) -> list[Term]:
    """`first * (100 - second) * (3 + third)`, each term over rows that have all three."""
    pair, other = " * ".join(sorted((first, second))), " * ".join(sorted((first, third)))
    every = " * ".join(sorted((first, second, third)))
    there = And((where, Not(IsNull(every))))
    return [
        Term(300, first, there, 1),
        Term(-3, pair, there, 1),
        Term(100, other, there, 1),
        Term(-1, every, And((where, _there(first, second))), 1),
    ]


def _sums() -> list[Sequence[Term]]:
    young = Compare("age", "<", 50)
    return [
        *(_charge(*names, where=where) for names in _ORDERS for where in (ALWAYS, young)),
        [Term(3, "age", _there("cost"), 1), Term(5, "cost", _there("age"), 1), Term(-7, "long", ALWAYS, 1)],
        [Term(1, "big * big", ALWAYS, 1), Term(-9, "big", young, 1), Term(4, None, ALWAYS, 0)],
        [Term(2, "cost", _there("age"), 0), Term(3, "age", _there("cost"), 1), Term(1, "age", _there("cost"), 0)],
        [Term(2, "cost", ALWAYS, 1), Term(-2, "cost", ALWAYS, 1), Term(1, "amount", _there("cost"), 1)],
        [Term(1, "person", _there("long"), 0), Term(8, "long", ALWAYS, 1), Term(6, "amount", Not(IsNull("long")), 1)],
        [Term(10**9, "big", Not(IsNull("age * cost")), 1), Term(1, "age * cost", ALWAYS, 1)],
    ]


def _question(table: Table, *, keys: int) -> Question:
    """Every sum of each row by itself: its level is its number."""
    domain = tuple(range(keys))
    key = replace(table.get_column("level"), domain=domain)
    table = replace(table, columns=tuple(key if c.name == "level" else c for c in table.columns))
    return Question(
        table=table,
        keys=KeySpace(columns=(key,), values=(domain,)),
        where=ALWAYS,
        functionals=tuple(linear(table, terms) for terms in _sums()),
        atoms=(),
        formula=TRUE,
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


def test_a_row_adds_what_its_terms_add_one_by_one(engines: Engines) -> None:
    """Over odd values beyond their bounds, halves, NULL, NaN and infinities, for several grids."""
    rows = [{**row, "level": i} for i, row in enumerate(crowd(seed=11, size=rounds(1_500, quick=120)))]
    relation = engines.load(rows)
    for grids in _GRIDS:
        question = _question(_table(grids), keys=len(rows))
        expected = true_aggregates(question, rows)
        for answer in engines.answers(question, relation):
            np.testing.assert_array_equal(answer, expected)


def test_a_numeric_nan_adds_to_the_terms_that_do_without_it(postgres_url: str) -> None:
    """PostgreSQL has one, whatever a numeric's precision."""
    names, kind = ("age", "amount", "cost"), "numeric(9,2)"
    bounds = (Decimal(-3), Decimal(5))
    typed = {
        name: Column(name, SqlType.NUMERIC, kind, bounds=bounds, grid=Decimal(grid))
        for name, grid in zip(names, ("0.01", "1", "0.5"), strict=True)
    }
    table = _table({})
    table = replace(table, columns=tuple(typed.get(column.name, column) for column in table.columns))
    question = _question(table, keys=1)
    values = (None, float("nan"), *map(Decimal, ("2.5", "-2.5", "-0.5", "-3", "7", "-9")))
    rows = [dict(zip(names, three, strict=True)) for three in product(values, repeat=3)]
    given = ", ".join(f"({', '.join(f'CAST({_spell(row[name])} AS {kind})' for name in names)})" for row in rows)
    for terms in [_charge(*order, where=ALWAYS) for order in permutations(names)]:
        added = write_terms(RowSql(table=table, dialect=POSTGRES), terms, where=ALWAYS)
        with psycopg.connect(postgres_url) as connection:
            text = f"SELECT COALESCE({added}, 0) FROM (VALUES {given}) AS given({', '.join(names)})"
            found = [int(one) for (one,) in connection.execute(text.encode())]
        assert found == [
            sum(one_by_one(question, term, row) for term in terms if counts(question, term, row)) for row in rows
        ]


def _spell(value: Decimal | float | None) -> str:
    return "NULL" if value is None else f"'{value}'"
