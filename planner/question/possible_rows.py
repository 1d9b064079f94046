"""A test if a condition can hold on a row with the policy's values: within bounds, among key values.

A row in the data may have other values, and a question about such rows is answered. A charged release is not worth its
price if its condition is a typing mistake, such as `y = 2` for a column that is declared from 0 to 1.

Guarantee: public. If it returns False, no row within the declared bounds and domains satisfies the condition. If
unsure, it returns True.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from planner.catalog.catalog import Column, SqlType, Table, Value
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Or, Within, find_columns, join_all
from planner.question.disjoint import are_disjoint

_MOST_VALUES = 100_000  # of a key column that are looked through; where there are more, one may fit


def may_hold(condition: Condition, table: Table, *, keys: Mapping[str, Sequence[Value]] | None = None) -> bool:
    """Return True if some row may satisfy a condition, with values as declared, or any value if none are declared.

    Parameters:
        keys: by key column, the values to which rows are restricted, if they are fewer than the declared ones.
    """
    restricted = keys or {}
    names = sorted(find_columns(condition) | set(restricted))
    declared = join_all(_write_declared_condition(table.get_column(name), restricted.get(name)) for name in names)
    return not are_disjoint(condition, declared)


def _write_declared_condition(column: Column, restricted: Sequence[Value] | None) -> Condition:
    """Return the condition on a column that rows within the declared values satisfy."""
    values = column.domain if restricted is None else restricted
    if values is not None and len(values) <= _MOST_VALUES:
        listed = Within(column.name, tuple(sorted(values)))
        return listed if restricted is not None else Or((IsNull(column.name), listed))
    if column.bounds is None or column.sql_type not in (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE):
        return ALWAYS
    low, high = (_convert_bound(bound, column) for bound in column.bounds)
    within = And((Compare(column.name, ">=", low), Compare(column.name, "<=", high)))
    return Or((IsNull(column.name), within))


def _convert_bound(bound: Decimal, column: Column) -> int | Decimal:
    return int(bound) if column.sql_type is SqlType.INTEGER else bound
