"""`totals` and `ranges` in a policy: what is read, and what is refused."""

from decimal import Decimal
from fractions import Fraction

import pytest

from planner.catalog.catalog import ExpressionRange, Total
from planner.errors import KeyholeError
from tests.in_turn import in_turn
from tests.worlds.policies import changed, compiled, parsed

ROWS = "rows_per_unit = 20"


def _with(told: str) -> str:
    return changed((ROWS, f"{ROWS}\ntotals = {told}"))


def test_totals_are_read_multiplied_out() -> None:
    (table,) = compiled(_with('{ "cost * (1 - age / 110)" = [0, 8000], "age + 2 * cost" = [0, 18200] }')).tables
    assert table.totals == (
        Total(((("age", "cost"), Fraction(-1, 110)), (("cost",), Fraction(1))), (Decimal(0), Decimal(8000))),
        Total(((("age",), Fraction(1)), (("cost",), Fraction(2))), (Decimal(0), Decimal(18200))),
    )


def test_only_a_table_with_totals_has_another_identity() -> None:
    digests = {compiled(text).digest for text in (_with("{}"), changed())}
    assert digests == {compiled().digest}
    assert compiled(_with('{ "age * cost" = [0, 8] }')).digest not in digests


@in_turn(
    ("told", "message"),
    [
        ('{ "cost" = [0, 5] }', "multiplies or adds no columns"),
        ('{ "2 * cost" = [0, 5] }', "multiplies or adds no columns"),
        ('{ "7" = [0, 5] }', "multiplies or adds no columns"),
        ('{ "cost - cost" = [0, 5] }', "multiplies or adds no columns"),
        ('{ "cost * weight" = [0, 5] }', 'reads "weight", which is no measure'),
        ('{ "cost * ward" = [0, 5] }', 'reads "ward", which is no measure'),
        ('{ "cost * age" = [1, 5] }', "is no range around 0"),
        ('{ "cost * age" = [0, 0] }', "is no range around 0"),
        ('{ "cost * age" = [0, 5], "2 * age * cost" = [0, 10] }', "times a constant"),
        ('{ "cost / age" = [0, 5] }', "is not a sum of products"),
        ('{ "cost * age * 1e999999999" = [0, 5] }', "is not a sum of products"),
        ('{ "cost * age * 0x1F" = [0, 5] }', "is no"),
        (f'{{ "cost * age{" + 1" * 3000}" = [0, 5] }}', "is nested too deeply"),
        (f'{{ "cost * age * {"(" * 3000}1{")" * 3000}" = [0, 5] }}', "is no"),
        ('{ "sqrt(cost) * age" = [0, 5] }', "is not a sum of products"),
        ('{ "cost * age FROM visits" = [0, 5] }', "is no expression"),
        ('{ "cost, age" = [0, 5] }', "is no expression"),
        ('{ "cost *" = [0, 5] }', "is no expression"),
        ('{ "" = [0, 5] }', "is no expression"),
        ('{ "cost * cost * cost * cost * cost" = [0, 5] }', "multiplies more than 4 columns"),
    ],
)
def test_what_is_no_total_is_refused(told: str, message: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        parsed(_with(told))
    assert refused.value.code == "KH004"
    assert message in refused.value.message


def test_totals_have_no_meaning_where_rows_are_chosen_or_are_units() -> None:
    told = 'totals = { "cost * age" = [0, 5] }'
    with pytest.raises(KeyholeError, match="KH004"):
        parsed(changed((ROWS, f'max_rows_per_group = {{ rows = 5, unique = "note" }}\n{told}')))
    unit = 'privacy_unit = "patient_id"\nmax_groups_per_unit = 3\nrows_per_unit = 20'
    with pytest.raises(KeyholeError, match="totals"):
        parsed(changed((unit, f'privacy_unit = "row"\n{told}')))


def _with_ranges(told: str) -> str:
    return changed((ROWS, f"{ROWS}\nranges = {told}"))


def test_ranges_are_kept_as_written_and_change_the_identity() -> None:
    (table,) = compiled(_with_ranges('{ "cost / age" = [0, 80] }')).tables
    assert table.ranges == (ExpressionRange("cost / age", (Decimal(0), Decimal(80))),)
    assert compiled(_with_ranges("{}")).digest == compiled().digest
    assert compiled(_with_ranges('{ "cost / age" = [0, 80] }')).digest != compiled().digest


@in_turn(
    ("told", "message"),
    [
        ('{ "cost" = [0, 5] }', "is a single column or a constant"),
        ('{ "7 + 1" = [0, 5] }', "is a single column or a constant"),
        ('{ "cost * weight" = [0, 5] }', 'reads "weight", which is no column'),
        ('{ "cost * age" = [5, 5] }', "is no range"),
        ('{ "cost, age" = [0, 5] }', "is no expression"),
        ('{ "cost +" = [0, 5] }', "is no expression"),
    ],
)
def test_what_is_no_range_of_an_expression_is_refused(told: str, message: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        parsed(_with_ranges(told))
    assert message in refused.value.message
