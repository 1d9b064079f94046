"""What a row adds by several terms, as one product: multiplied out it is the terms, and each clip is written once."""

import random
from collections import Counter
from decimal import Decimal

from planner.catalog.model import Column, SqlType, Table
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.row import RowSql
from planner.lower.sums.factors import Factored, Polynomial, factor
from planner.lower.sums.row_sum import add_terms
from planner.question.condition import ALWAYS, Condition, IsNull, Not, Or
from planner.question.model import Term
from planner.question.products import product_column


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    total = Counter[tuple[str, ...]]()
    for one, x in a.items():
        for other, y in b.items():
            total[tuple(sorted(one + other))] += x * y
    return {names: number for names, number in total.items() if number}


def _add_constant(polynomial: Polynomial, constant: int) -> Polynomial:
    return {**polynomial, (): constant} if constant else polynomial


def _multiply_out(product: Factored) -> Polynomial:
    found = _multiply({(): product.content}, product.rest)
    for one in product.linear:
        found = _multiply(found, _add_constant({(one.name,): one.slope}, one.constant))
    return found


def test_a_product_multiplied_out_is_the_polynomial() -> None:
    """Of drawn products of linear factors, some with a sum beside them; those without are found whole."""
    drawn = random.Random(1)
    for _ in range(300):
        names = drawn.sample(["a", "b", "c", "d"], drawn.randint(0, 4))
        made: Polynomial = {(): drawn.choice([1, -2, 100])}
        for name in names:
            constant = drawn.choice([0, 1, -1, 100, -7])
            made = _multiply(made, _add_constant({(name,): drawn.choice([1, -1, 2, -3])}, constant))
        found = factor(made)
        assert _multiply_out(found) == made
        assert found.rest == {(): 1}
        beside = _multiply_out(Factored(1, (), {("e",): 2, tuple(sorted(names)): 5, ("a", "a"): 1}))
        both = {name: made.get(name, 0) + beside.get(name, 0) for name in {*made, *beside}}
        both = {name: number for name, number in both.items() if number}
        assert _multiply_out(factor(both)) == both


def test_each_value_of_a_charge_is_clipped_once() -> None:
    """`price * (1 - discount) * (1 + tax)`, as it is bound: four terms, each under tests for NULL of its own."""
    price, discount, tax = (
        Column(name, SqlType.NUMERIC, "numeric(15,2)", bounds=(Decimal(0), Decimal(high)), grid=Decimal(grid))
        for name, high, grid in (("price", "105000", "1"), ("discount", "0.1", "0.01"), ("tax", "0.08", "0.01"))
    )
    several = [product_column(one) for one in ((discount, price), (price, tax), (discount, price, tax))]
    table = Table(
        name="t",
        relation="t",
        columns=(price, discount, tax, *several),
        unit=(),
        groups_per_unit=1,
        rows_per_unit=None,
        row_cap=None,
        refresh="static",
        seed="s",
    )
    both: Condition = Not(Or((IsNull("discount"), IsNull("price"))))
    all_there: Condition = Not(IsNull(several[2].name))
    terms = [
        Term(10_000, "price", all_there, 1),
        Term(-100, several[0].name, all_there, 1),
        Term(100, several[1].name, all_there, 1),
        Term(-1, several[2].name, both, 1),
    ]
    for dialect in (DUCKDB, POSTGRES):
        row = RowSql(table=table, dialect=dialect)
        written = add_terms(row, terms, where=ALWAYS)
        assert written.count(f"{row.column('price')} > ") == 1
        assert written.count(f"{row.column('discount')} > ") == 1
        assert written.count(f"{row.column('tax')} > ") == 1
        assert "NULL" not in written
