"""Whole numbers against quotients of whole numbers, and distances from 0, as comparisons of sums: true of the same
counts as in SQL, which truncates a quotient."""

from datetime import date
from fractions import Fraction
from itertools import product

import pytest

from planner.aggregates.aggregate import GroupScope
from planner.aggregates.comparison import Comparison, Conjunction, Disjunction, Having
from planner.aggregates.having import read_having
from planner.errors import KeyholeError
from planner.question.condition import ALWAYS
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from planner.values.operators import COMPARISONS
from tests.planner.asked import select
from tests.worlds.retail import SALES

_GIFTS = "count(*) FILTER (WHERE gift)"


def _read(having: str) -> Having:
    tree = select(f"SELECT country FROM sales GROUP BY country HAVING {having}")
    given = ConstantContext(parameters={}, today=date(2026, 1, 1))
    within = GroupScope(Scope(table=SALES, alias="sales"), (SALES.get_column("country"),), given, frozenset())
    return read_having(tree.args["having"].this, within)


def _holds(formula: Having, *, gifts: int, rows: int) -> bool:
    match formula:
        case Conjunction(children):
            return all(_holds(one, gifts=gifts, rows=rows) for one in children)
        case Disjunction(children):
            return any(_holds(one, gifts=gifts, rows=rows) for one in children)
        case Comparison(summands=parts, operator=operator, right_value=at):
            total = sum(
                (part.coefficient * (rows if part.condition == ALWAYS else gifts) for part in parts), Fraction(0)
            )
            return COMPARISONS[operator](total, at)
        case _:
            raise AssertionError(formula)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "=", "<>"])
@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_a_whole_quotient_drops_its_remainder(operator: str, number: int) -> None:
    right = _read(f"{_GIFTS} {operator} count(*) / {number}")
    left = _read(f"count(*) / {number} {operator} {_GIFTS}")
    several = _read(f"2 * {_GIFTS} - 1 {operator} (count(*) + {_GIFTS}) / {number}")
    for gifts, more in product(range(9), range(14)):
        rows = gifts + more
        assert _holds(right, gifts=gifts, rows=rows) is COMPARISONS[operator](gifts, rows // number)
        assert _holds(left, gifts=gifts, rows=rows) is COMPARISONS[operator](rows // number, gifts)
        assert _holds(several, gifts=gifts, rows=rows) is COMPARISONS[operator](2 * gifts - 1, (rows + gifts) // number)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("at", ["0", "3", "(-2)", "5 - 1"])
@pytest.mark.parametrize("negation", ["", "NOT "])
def test_a_distance_is_two_comparisons(operator: str, at: str, negation: str) -> None:
    formula = _read(f"{negation}abs(2 * {_GIFTS} - count(*)) {operator} {at}")
    flipped = _read(f"{negation}{at} {operator} abs(2 * {_GIFTS} - count(*))")
    wanted = {"0": 0, "3": 3, "(-2)": -2, "5 - 1": 4}[at]
    for gifts, more in product(range(9), range(14)):
        distance = abs(gifts - more)
        held = COMPARISONS[operator](distance, wanted)
        assert _holds(formula, gifts=gifts, rows=gifts + more) is (held is not bool(negation))
        held = COMPARISONS[operator](wanted, distance)
        assert _holds(flipped, gifts=gifts, rows=gifts + more) is (held is not bool(negation))


@pytest.mark.parametrize(
    "having",
    [f"{_GIFTS} > (count(*) - 2 * {_GIFTS}) / 2", f"{_GIFTS} > count(*) / -2", f"{_GIFTS} > sum(quantity) / 2"],
)
def test_what_may_be_negative_is_refused(having: str) -> None:
    with pytest.raises(KeyholeError, match="drops the remainder"):
        _read(having)
