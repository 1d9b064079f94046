"""Groups of a looked-up number: one for each value in the pinned table, and one for NULL.

    GROUP BY floor(w.avg_temp / 5)     for the temperatures of the days in `weather`

Guarantee: a row's looked-up number is one of the pinned values or NULL, so each row is in one of the groups. The groups
follow from pinned data alone.
"""

from decimal import Decimal

from planner.catalog.catalog import Column, Lookup, SqlType, Value, ValueGroups
from planner.groups.null_groups import keeps_null
from planner.question.condition import Condition
from planner.scope.key_classes import MOST_VALUES
from planner.scope.name_resolution import Scope

_LISTED = frozenset((SqlType.NUMERIC, SqlType.DOUBLE))  # looked-up values of other types are keys by themselves


def is_listed_number(column: Column) -> bool:
    """Return True if a column is a looked-up number that is not a key itself, and not always NULL.

    One that is always NULL makes no groups.
    """
    lookup = column.derivation
    if not isinstance(lookup, Lookup) or column.sql_type not in _LISTED:
        return False
    return any(value is not None for value in lookup.pairs.found)


def part_by_values(column: Column, scope: Scope, said: tuple[Condition, ...]) -> ValueGroups | None:
    """Return a group for each pinned value of a looked-up number.

    Return None for other columns, and for too many values.
    """
    lookup = column.derivation
    if not isinstance(lookup, Lookup) or not is_listed_number(column):
        return None
    values = lookup.pairs.remembered.get(("numbers", column.sql_type), lambda: _list_values(lookup, column.sql_type))
    if not 0 < len(values) <= MOST_VALUES:
        return None
    count, nullable = len(values), _may_be_null(column, lookup, scope) and keeps_null(column, scope, said)
    return ValueGroups(
        column=column.name,
        kind=column.sql_type,
        cut_points=values,
        groups=(None, *range(count)),
        null_group=count if nullable else None,
        shown_values=(*values, None) if nullable else values,
        is_exhaustive=True,
    )


def _may_be_null(column: Column, lookup: Lookup, scope: Scope) -> bool:
    """Return True if a row may find NULL, or may find no row under LEFT JOIN."""
    joined = (one for one in scope.public_tables if column.name in dict(one.columns).values())
    return None in lookup.pairs.found or any(one.is_outer for one in joined)


def _list_values(lookup: Lookup, kind: SqlType) -> tuple[Value, ...]:
    """Return the different numbers in rising order."""
    found: dict[Decimal, Value] = {}
    for value in lookup.pairs.found:
        if isinstance(value, int | Decimal):
            found.setdefault(Decimal(float(value)) if kind is SqlType.DOUBLE else Decimal(value), value)
    return tuple(found[exact] for exact in sorted(found))
