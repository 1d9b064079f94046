"""The number of a question's groups in which one privacy unit can be."""

from math import prod

from planner.question.question import Question


def count_unit_groups(question: Question) -> int:
    """Return the most keys of this question that one privacy unit can be in.

    That is G. If fewer, it is the number of combinations of the keys that the unit does not determine, derived and
    looked-up ones included.
    """
    table, keys = question.table, question.keys
    if table.is_row_unit:
        return 1
    open_ = (values for column, values in zip(keys.columns, keys.values, strict=True) if not table.determines(column))
    return max(1, min(table.groups_per_unit, prod(map(len, open_))))
