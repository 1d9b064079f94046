"""The guard that is added, or that a refusal shows: a count large enough to be tested for little, and what it guards.

A count's noise grows with the rows that one privacy unit counts for, and its tolerance with its threshold. That of a
mean grows with what one unit moves its sum, and its tolerance with the size of the groups for which it is meant, which
the count says. So the number is the least of 1, 2 or 5 times a power of ten at which both tolerances are worth `WORTH`
units: of a smaller one each costs near to all that a test without a tolerance costs. Where the mean's would have to be
`MOST_TIMES` as large as the count's, it stays small: groups so large are rare, and hiding the others helps nobody.
Proof: docs/proofs/group_sizes.md.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil

from planner.aggregates.comparison import Comparison, Slack
from planner.aggregates.row_expression import Values
from planner.catalog.catalog import ComputedName, Table
from planner.catalog.tolerance import Tolerances, quote_literal, with_amount
from planner.parser.lexer import readable
from planner.question.condition import ALWAYS, IsNull, columns
from planner.question.condition_text import write_condition
from planner.question.disjoint import disjoint
from planner.question.question import Accuracy

WORTH = 5
"""How many units' rows the tolerance of a shown guard is worth: at usual error rates it costs about 0.6 epsilon."""

MOST_TIMES = 20
"""How many times the number that the policy and the count ask for a mean may ask for. Less leaves means of a wide range
expensive, more hides all groups: at 100 a cost up to 5,000 against 20 would be one of groups of 20,000 rows."""

_SLACK = Fraction(1, 10)
"""Of its number, the tolerance of an added count or sum that `keyhole.tolerance` gives no percentage for."""
_MOST_SLACK = Fraction(1, 2)
"""Of its number, the tolerance of one at most: groups that pass it keep something to divide by."""

_FILTER = " FILTER (WHERE "
_AGGREGATE = re.compile(r"(?:avg|sum|min|max)\((.+\))", re.DOTALL)
"""One aggregate, as the left side of a comparison has it, with its FILTER behind the argument."""

_LEAST = 10  # the least number that a hint shows
_MOST = 10**9  # no group has so many values: beyond it a larger number would say nothing more


@dataclass(frozen=True, slots=True)
class Remedy:
    """The guard of a comparison: the number of values that a count must reach, and a statement to run before.

    `for_mean`: the mean asks for that number, its count for less. `of` is what `argument` and `suffix` write as it was
    typed, where the comparison is of one aggregate of an expression.
    """

    values: int = _LEAST
    setting: str = ""
    is_for_mean: bool = False
    typed_values: Values | None = None
    argument: str = ""
    suffix: str = ""

    def write_hint(self, values: Values, *, plain_column: str | None) -> str:
        """Return the text to add to the question; `alone` is a column that is counted without a filter."""
        counted = self.spell_count(values, plain_column=plain_column)
        return f"{f'First {self.setting}  ' if self.setting else ''}Add: AND {counted} >= {self.values}"

    def spell_count(self, values: Values, *, plain_column: str | None) -> str:
        """Return the count of the values as an analyst writes it."""
        if self.typed_values == values and not plain_column and _is_derived(values):
            return f"count({self.argument}){self.suffix}"
        column = plain_column or values.column
        counted = f"count({Remedy.spell_column(column)})" if column else "count(*)"
        if plain_column or values.condition == ALWAYS:
            return counted
        return f"{counted} FILTER (WHERE {write_condition(values.condition)})"

    def spell_rows(self, values: Values) -> str:
        """Return the condition of the rows that have one of the values as an analyst writes it, "" if all have."""
        if self.typed_values == values and _is_derived(values):
            among = self.suffix.removeprefix(_FILTER).removesuffix(")")
            return " AND ".join(filter(None, (among, f"{self.argument} IS NOT NULL")))
        known = [] if values.condition == ALWAYS else [write_condition(values.condition)]
        known += [] if values.column is None else [f"{self.spell_column(values.column)} IS NOT NULL"]
        return " AND ".join(known)

    @staticmethod
    def spell_column(column: str) -> str:
        """Return a column as a question names it; of a product the name is that already."""
        if isinstance(column, ComputedName):
            return column.column.comment or column
        return column if " * " in column else readable(column)


def find_remedy(
    comparison: Comparison,
    *,
    table: Table,
    accuracy: Accuracy,
    tolerances: Tolerances,
    mean_rows: Fraction = Fraction(0),
) -> Remedy:
    """Return the guard for a comparison that is NULL in groups without values.

    A comparison that hinges on one record costs more than any guard, until the tolerance names it.

    Parameters:
        mean_rows: of groups of how many rows the comparison's own tolerance is worth `WORTH` units; 0 if it does not
            depend on that.
    """
    rows = 1 if table.row_unit else table.row_cap.rows if table.row_cap is not None else table.rows_per_unit or 1
    amount = tolerances.amount(("count",))
    number = Fraction(_LEAST)
    if amount is not None:
        size = Fraction(amount.number)
        if amount.bounds:
            size = size / 100 * accuracy.min_rows
        number = WORTH * rows * 100 / size if amount.percent and size else size + 1
    counted = find_next_round(max(ceil(number), _LEAST))
    wanted = find_next_round(ceil(mean_rows / (1 - find_slack_share(tolerances))))
    values = wanted if counted < wanted <= MOST_TIMES * max(counted, accuracy.min_rows) else counted
    setting = ""
    if comparison.slack is Slack.RECORD:
        if not replace(tolerances, default=None).amount(comparison.names):
            text = with_amount(accuracy.tolerance, comparison.left, Decimal(WORTH * rows))
            setting = f"SET keyhole.tolerance = '{quote_literal(text)}';"
    elif (
        comparison.per_row is not None and accuracy.min_rows_set and values > accuracy.min_rows
    ):  # which stands, whatever the count says
        setting = f"SET keyhole.min_rows = {values};"
    of, argument, suffix = _read_argument(comparison)
    return Remedy(
        values=values, setting=setting, is_for_mean=values > counted, typed_values=of, argument=argument, suffix=suffix
    )


def _read_argument(comparison: Comparison) -> tuple[Values | None, str, str]:
    """Return the argument and FILTER of the one aggregate that is compared, and its values; None if it is another."""
    found = _AGGREGATE.fullmatch(comparison.left)
    if found is None or comparison.part_of or len(comparison.values) != 1:
        return None, "", ""
    argument, among, suffix = found[1].partition(f"){_FILTER}")
    if not among:
        argument, suffix = found[1][:-1], ""
    if any(one.count("(") != one.count(")") for one in (argument, suffix[:-1])):
        return None, "", ""
    return comparison.values[0], argument, among[1:] + suffix


def _is_derived(values: Values) -> bool:
    """Return True if the condition of the values says more than that columns have one."""
    read = [*columns(values.condition), *([] if values.column is None else [values.column])]
    return (values.column is None and values.condition != ALWAYS) or any(isinstance(one, ComputedName) for one in read)


def find_slack_share(tolerances: Tolerances, *, of: str = "count") -> Fraction:
    """Return which part of its number the tolerance of an added count or sum is."""
    amount = tolerances.amount((of,))
    share = Fraction(amount.number) / 100 if amount is not None and amount.percent and amount.number else _SLACK
    return min(share, _MOST_SLACK)


def find_next_round(number: int) -> int:
    """Return the next of 1, 2, 5, 10, 20, 50 and so on."""
    power = 1
    while power * 10 <= number:
        power *= 10
    return min(next(step * power for step in (1, 2, 5, 10) if step * power >= number), _MOST)


def find_only_column(values: Values) -> str | None:
    """Return the column that counts the values by itself. Their condition reads no other column and needs a value."""
    read = columns(values.condition)
    column = next(iter(read)) if values.column is None and len(read) == 1 else None
    return column if column is not None and disjoint(values.condition, IsNull(column)) else None
