"""The guard that is added or suggested: a count that is large enough to be cheap to test.

A count's noise grows with the rows of one privacy unit, its tolerance with its threshold. A mean's noise grows with one
unit's effect on its sum, its tolerance with the group size that the count demands. So the guard's number is the least
of 1, 2 or 5 times a power of ten at which both tolerances are worth `WORTH` units. With a smaller number each costs
nearly as much as a test without a tolerance. The number stays small if the mean would need one `MOST_TIMES` as large as
the count's: such large groups are rare, and hiding all others helps nobody.

Proof: docs/proofs/group_sizes.md.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

from planner.aggregates.comparison import Comparison, Slack
from planner.aggregates.row_expression import RequiredValues
from planner.catalog.catalog import ComputedName, Table
from planner.catalog.tolerance import Tolerances, quote_literal, set_amount
from planner.parser.lexer import spell_name
from planner.question.condition import ALWAYS, IsNull, find_columns
from planner.question.condition_text import write_condition
from planner.question.disjoint import are_disjoint
from planner.question.question import Accuracy

WORTH = 5
"""The tolerance of a suggested guard, in units' rows: at usual error rates such a guard costs about 0.6 epsilon."""

MOST_TIMES = 20
"""The largest group size that a mean may ask for, as a multiple of the count's and the policy's. A smaller multiple
leaves means of a wide range expensive. A larger one hides all groups: at 100, a mean of costs up to 5,000 against 20
would be asked of groups of 20,000 rows."""

_SLACK = Fraction(1, 10)
"""The tolerance of an added count or sum, as a part of its number, if `keyhole.tolerance` has no percentage for it."""
_MOST_SLACK = Fraction(1, 2)
"""The largest tolerance of an added count or sum, as a part of its number, so that groups keep a divisor."""

_FILTER = " FILTER (WHERE "
_AGGREGATE = re.compile(r"(?:avg|sum|min|max)\((.+\))", re.DOTALL)
"""One aggregate on the left side of a comparison, with its FILTER behind the argument."""

_LEAST = 10  # the least number that a hint shows
_MOST = 10**9  # no group has so many values: beyond it a larger number would say nothing more


@dataclass(frozen=True, slots=True)
class Remedy:
    """The guard of a comparison: the number of values that a count must reach, and the setting to change first.

    `is_for_mean`: the number is for the mean, and its count may demand fewer. If the comparison is of one aggregate of
    an expression, `argument` and `suffix` are the analyst's spelling of `typed_values`.
    """

    least_count: int = _LEAST
    setting: str = ""
    is_for_mean: bool = False
    typed_values: RequiredValues | None = None
    argument: str = ""
    suffix: str = ""

    def write_hint(self, values: RequiredValues, *, plain_column: str | None) -> str:
        """Return the text to add to the question. `plain_column` is a column that is counted without a filter."""
        counted = self.spell_count(values, plain_column=plain_column)
        return f"{f'First {self.setting}  ' if self.setting else ''}Add: AND {counted} >= {self.least_count}"

    def spell_count(self, values: RequiredValues, *, plain_column: str | None) -> str:
        """Return the count of the values as an analyst writes it."""
        if self.typed_values == values and not plain_column and _is_derived(values):
            return f"count({self.argument}){self.suffix}"
        column = plain_column or values.column
        counted = f"count({Remedy.spell_column(column)})" if column else "count(*)"
        if plain_column or values.condition == ALWAYS:
            return counted
        return f"{counted} FILTER (WHERE {write_condition(values.condition)})"

    def spell_rows(self, values: RequiredValues) -> str:
        """Return the condition for rows that have one of the values, as an analyst writes it.

        It is empty if all rows have one.
        """
        if self.typed_values == values and _is_derived(values):
            among = self.suffix.removeprefix(_FILTER).removesuffix(")")
            return " AND ".join(filter(None, (among, f"{self.argument} IS NOT NULL")))
        known = [] if values.condition == ALWAYS else [write_condition(values.condition)]
        known += [] if values.column is None else [f"{self.spell_column(values.column)} IS NOT NULL"]
        return " AND ".join(known)

    @staticmethod
    def spell_column(column: str) -> str:
        """Return a column as a question names it: a computed column by its text, a product by its factors."""
        if isinstance(column, ComputedName):
            return column.column.comment or column
        return column if " * " in column else spell_name(column)


def find_remedy(
    comparison: Comparison,
    *,
    table: Table,
    accuracy: Accuracy,
    tolerances: Tolerances,
    mean_rows: Fraction = Fraction(0),
) -> Remedy:
    """Return the guard for a comparison that is NULL in groups without values.

    If a comparison depends on one record, the guard first names its tolerance, which costs more than any guard.

    Parameters:
        mean_rows: the group size at which the comparison's own tolerance is worth `WORTH` units, or 0 if the tolerance
            does not depend on a group's size.
    """
    rows = 1 if table.is_row_unit else table.row_cap.rows if table.row_cap is not None else table.rows_per_unit or 1
    amount = tolerances.find_amount(("count",))
    number = Fraction(_LEAST)
    if amount is not None:
        size = Fraction(amount.number)
        if amount.refers_to_bounds:
            size = size / 100 * accuracy.min_rows
        number = WORTH * rows * 100 / size if amount.is_percent and size else size + 1
    counted = find_next_round(max(ceil(number), _LEAST))
    wanted = find_next_round(ceil(mean_rows / (1 - find_slack_share(tolerances))))
    values = wanted if counted < wanted <= MOST_TIMES * max(counted, accuracy.min_rows) else counted
    setting = ""
    if comparison.slack is Slack.RECORD:
        if not replace(tolerances, default_tolerance=None).find_amount(comparison.names):
            text = set_amount(accuracy.tolerance, comparison.left_text, Decimal(WORTH * rows))
            setting = f"SET keyhole.tolerance = '{quote_literal(text)}';"
    elif (
        comparison.per_row is not None and accuracy.is_min_rows_set and values > accuracy.min_rows
    ):  # which stands, whatever the count says
        setting = f"SET keyhole.min_rows = {values};"
    of, argument, suffix = _read_argument(comparison)
    return Remedy(
        least_count=values,
        setting=setting,
        is_for_mean=values > counted,
        typed_values=of,
        argument=argument,
        suffix=suffix,
    )


def _read_argument(comparison: Comparison) -> tuple[RequiredValues | None, str, str]:
    """Return the values, the argument and the FILTER of the one compared aggregate. Return None and "" for others."""
    found = _AGGREGATE.fullmatch(comparison.left_text)
    if found is None or comparison.whole_text or len(comparison.required_values) != 1:
        return None, "", ""
    argument, among, suffix = found[1].partition(f"){_FILTER}")
    if not among:
        argument, suffix = found[1][:-1], ""
    if any(one.count("(") != one.count(")") for one in (argument, suffix[:-1])):
        return None, "", ""
    return comparison.required_values[0], argument, among[1:] + suffix


def _is_derived(values: RequiredValues) -> bool:
    """Return True if the condition of the values says more than that columns are not NULL."""
    read = [*find_columns(values.condition), *([] if values.column is None else [values.column])]
    return (values.column is None and values.condition != ALWAYS) or any(isinstance(one, ComputedName) for one in read)


def find_slack_share(tolerances: Tolerances, *, of: str = "count") -> Fraction:
    """Return the tolerance of a guarding count or sum, as a fraction of its threshold."""
    amount = tolerances.find_amount((of,))
    share = Fraction(amount.number) / 100 if amount is not None and amount.is_percent and amount.number else _SLACK
    return min(share, _MOST_SLACK)


def find_next_round(number: int) -> int:
    """Return the least of the round numbers 1, 2, 5, 10, 20, 50 and so on that is at least `number`."""
    power = 1
    while power * 10 <= number:
        power *= 10
    return min(next(step * power for step in (1, 2, 5, 10) if step * power >= number), _MOST)


def find_only_column(values: RequiredValues) -> str | None:
    """Return the one column whose non-NULL values are counted, if the condition of the rows reads nothing else.

    Else None.
    """
    read = find_columns(values.condition)
    column = next(iter(read)) if values.column is None and len(read) == 1 else None
    return column if column is not None and are_disjoint(values.condition, IsNull(column)) else None
