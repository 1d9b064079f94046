"""The stored column from which a question's column is computed, and the column's value if the stored one is known."""

from collections.abc import Callable
from datetime import date

from planner.catalog.catalog import Column, ComputedName, Derivation, Lookup, Table, Value
from planner.catalog.derived_columns import DATE_PARTS, is_derivable
from planner.question.condition import Condition, find_columns
from planner.values.datetimes import extract_part, move_to_midnight, truncate_to_unit

CYCLIC = frozenset(("quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute"))
"""Parts of a time that recur."""


def find_roots(column: Column, table: Table) -> frozenset[str]:
    """Return the stored columns of the table that determine a column's value.

    If there are none, return the column itself. Return the column itself if the table has none of them.
    """
    bases = column.bases
    known = {one.name: one for one in table.columns} if bases else {}
    found = [base.column if isinstance(base, ComputedName) else known.get(base) for base in bases]
    stored = [find_roots(one, table) for one in found if one is not None]
    return frozenset().union(*stored) if stored else frozenset((column.name,))


def reads_roots(condition: Condition, roots: frozenset[str], table: Table) -> bool:
    """Return True if a condition reads a column that one of the root columns determines."""
    return any(name in roots or roots & find_roots(table.get_column(name), table) for name in find_columns(condition))


def derive_value(derived: Derivation, value: Value | None) -> Value | None:
    """Compute a derived column's value from a date or timestamp. Return None for NULL."""
    if value is None:
        return None
    assert isinstance(value, date)
    moment = move_to_midnight(value)
    match derived.function:
        case "extract":
            return extract_part(derived.part, moment)
        case "date_trunc":
            found = truncate_to_unit(moment, derived.part)
            return found.date() if derived.part in DATE_PARTS else found
        case _:
            return moment.date()


def make_value_function(column: Column, root: str, table: Table) -> Callable[[Value | None], Value | None] | None:
    """Return the function that computes the column's value from the root's value.

    Return None if Keyhole cannot compute it.
    """
    if column.name == root:
        return lambda value: value
    match column.derivation:
        case Derivation() as derived:
            follows = derived.column == root or is_derivable(derived, table.get_column(root))
            return (lambda value: derive_value(derived, value)) if follows else None
        case Lookup(column=base, pairs=pairs):
            inner, found = make_value_function(table.get_column(base), root, table), pairs.value_map
            if inner is None:
                return None
            return lambda value: None if (by := inner(value)) is None else found.get(by)
        case _:
            return None
