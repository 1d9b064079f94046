"""What a row adds by several terms, as one product: multiplied out it is the terms, and each clip is written once."""

import itertools
import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal

from planner.catalog.catalog import Column, SqlType, Table
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.row import RowSql
from planner.lower.sums.factors import FactoredPolynomial, Polynomial, factor_polynomial
from planner.lower.sums.null_tests import drop_implied_tests
from planner.lower.sums.row_sum import find_terms_range, write_terms
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Not, Or
from planner.question.products import make_product
from planner.question.question import Functional, Measure, Term


def _multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    total = Counter[tuple[str, ...]]()
    for one, x in a.items():
        for other, y in b.items():
            total[tuple(sorted(one + other))] += x * y
    return {names: number for names, number in total.items() if number}


def _add_constant(polynomial: Polynomial, constant: int) -> Polynomial:
    return {**polynomial, (): constant} if constant else polynomial


def _multiply_out(product: FactoredPolynomial) -> Polynomial:
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
        found = factor_polynomial(made)
        assert _multiply_out(found) == made
        assert found.rest == {(): 1}
        beside = _multiply_out(FactoredPolynomial(1, (), {("e",): 2, tuple(sorted(names)): 5, ("a", "a"): 1}))
        both = {name: made.get(name, 0) + beside.get(name, 0) for name in {*made, *beside}}
        both = {name: number for name, number in both.items() if number}
        assert _multiply_out(factor_polynomial(both)) == both


def _charge() -> tuple[Table, list[Term]]:
    price, discount, tax = (
        Column(name, SqlType.NUMERIC, "numeric(15,2)", bounds=(Decimal(0), Decimal(high)), grid=Decimal(grid))
        for name, high, grid in (("price", "105000", "1"), ("discount", "0.1", "0.01"), ("tax", "0.08", "0.01"))
    )
    several = [make_product(one) for one in ((discount, price), (price, tax), (discount, price, tax))]
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
    return table, terms


def test_each_value_of_a_charge_is_clipped_once() -> None:
    """`price * (1 - discount) * (1 + tax)`, as it is bound: four terms, each under tests for NULL of its own."""
    table, terms = _charge()
    for dialect in (DUCKDB, POSTGRES):
        row = RowSql(table=table, dialect=dialect)
        written = write_terms(row, terms, where=ALWAYS)
        assert written.count(f"{row.write_column('price')} > ") == 1
        assert written.count(f"{row.write_column('discount')} > ") == 1
        assert written.count(f"{row.write_column('tax')} > ") == 1
        assert "NULL" not in written


def test_a_term_is_not_asked_what_its_own_value_says() -> None:
    """Tests for NULL of its factors are left out, those of other columns stay; none where a condition says more."""
    table, terms = _charge()
    every = Functional("f", Measure.TOTAL, tuple(terms), sensitivity=1, unit_range=None, unit_size=Decimal(1), rows=1)
    left = [term.condition for term in drop_implied_tests(every, table).terms]
    discount, tax = Not(IsNull("discount")), Not(IsNull("tax"))
    assert left == [And((discount, tax)), tax, discount, ALWAYS]
    counted = replace(every, measure=Measure.ROWS, terms=(Term(1, None, Not(IsNull("price")), 0),))
    assert drop_implied_tests(counted, table) == counted
    for other in (replace(every, off_each_unit=1), replace(every, measure=Measure.LEAST)):
        assert drop_implied_tests(other, table) == other


def test_a_charge_takes_nothing_away() -> None:
    """Term by term it could: the second is negative, and each has tests of its own."""
    table, terms = _charge()
    for dialect in (DUCKDB, POSTGRES):
        assert find_terms_range(RowSql(table=table, dialect=dialect), terms) == (0, 105_000 * 100 * 108)


def test_no_row_adds_more_or_less_than_the_range_of_its_terms() -> None:
    """Every row of drawn terms over two small columns, each of which may be NULL or NaN, and of a flag."""
    drawn = random.Random(2)
    a, b = (
        Column(name, SqlType.NUMERIC, "numeric(15,2)", bounds=(Decimal(low), Decimal(high)), grid=Decimal(1))
        for name, low, high in (("a", -2, 1), ("b", 1, 3))
    )
    flag, product = Column("flag", SqlType.BOOLEAN, "boolean"), make_product((a, b))
    charge, _ = _charge()
    row = RowSql(table=replace(charge, columns=(a, b, flag, product)), dialect=POSTGRES)
    conditions: list[Condition] = [ALWAYS, Compare("flag", "=", True), Not(IsNull(product.name)), Not(IsNull("a"))]
    for _ in range(200):
        read = [drawn.choice([None, "a", "b", product.name]) for _ in range(drawn.randint(1, 4))]
        terms = [
            Term(drawn.choice([1, -1, 5, -7]), name, drawn.choice(conditions), 0 if name is None else 1)
            for name in read
        ]
        low, high = find_terms_range(row, terms)
        assert low <= 0 <= high
        nan = "NaN"  # a value that no term can count, and that is not NULL
        for x, y, is_set in itertools.product((None, nan, -2, -1, 0, 1), (None, nan, 1, 2, 3), (True, False)):
            values: dict[str | None, int] = {None: 1}
            values |= {name: one for name, one in (("a", x), ("b", y)) if isinstance(one, int)}
            if isinstance(x, int) and isinstance(y, int):
                values[product.name] = x * y
            holds = {conditions[0]: True, conditions[1]: is_set, conditions[2]: None not in (x, y)}
            holds[conditions[3]] = x is not None
            counting = [term for term in terms if holds[term.condition] and term.column in values]
            added = sum(term.coefficient * values[term.column] for term in counting)
            assert low <= added <= high, (terms, x, y, is_set)
