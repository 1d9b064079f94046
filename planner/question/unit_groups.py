"""The number of a question's groups in which one privacy unit can be."""

from collections.abc import Sequence
from math import prod

from planner.catalog.catalog import Table
from planner.question.question import Question

MOST_SPLIT = 12
"""The most groups over which a unit is divided. All numbers of up to 12 groups divide 27,720."""


def count_unit_groups(question: Question) -> int:
    """Return G: the most keys of this question that one privacy unit can be in.

    It is the declared bound, or the number of combinations of the keys that the unit does not determine, if that is
    smaller. Derived and looked-up keys count as keys too.
    """
    table, keys = question.table, question.keys
    if table.is_row_unit:
        return 1
    open_ = (values for column, values in zip(keys.columns, keys.values, strict=True) if not table.determines(column))
    return max(1, min(table.groups_per_unit, prod(map(len, open_))))


def count_split_groups(table: Table, keys: Sequence[str]) -> int:
    """Return the most groups of all values of these keys that one privacy unit can be in."""
    columns = [table.get_column(name) for name in keys]
    sizes = [
        table.groups_per_unit if one.domain is None else len(one.domain) for one in columns if not table.determines(one)
    ]
    return max(1, min(table.groups_per_unit, prod(sizes)))
