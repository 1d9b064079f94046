"""Refusals of expressions of times without a public list of groups, with a suggestion that has one."""

from collections.abc import Iterator

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType
from planner.catalog.derived_columns import CLOCK_PARTS, PART_RANGES
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses, write_node, write_short
from planner.scope.key_classes import read_key_expression
from planner.scope.name_resolution import Scope, find_column, name_cast_type, read_derivation

_TIMES = frozenset({SqlType.DATE, SqlType.TIMESTAMP})


def check_times(item: exp.Expr, scope: Scope, *, only_several: bool = False) -> None:
    """Raise KH202 for an item of GROUP BY that reads times and for which no key was found.

    Parameters:
        only_several: check only items that read several times. For these, the range of a single time is not enough.
    """
    try:
        if read_key_expression(item, scope) is not None:
            return
        found = find_column(item, scope)
        read = list(_read_times(item, scope))
    except KeyholeError:
        return  # it is refused where keys are read
    if (found is not None and found.domain is not None) or len(read) <= only_several:
        return
    detail, instead = _explain(item, scope, read)
    raise KeyholeError(
        "KH202",
        f"{write_short(item)} is not a column with a public domain",
        detail=detail,
        hint=f"Instead you can ask: GROUP BY {instead}.",
        position=find_position(item),
    )


def _read_times(item: exp.Expr, scope: Scope) -> Iterator[tuple[str, Column]]:
    """Yield the times that an expression reads and that are no keys, once each, as they are written."""
    known: set[str] = set()
    for node in (one for one in item.dfs() if isinstance(one, exp.Column)):
        column = find_column(node, scope)
        if column is not None and column.domain is None and column.sql_type in _TIMES and column.name not in known:
            known.add(column.name)
            yield write_node(node), column


def _explain(item: exp.Expr, scope: Scope, read: list[tuple[str, Column]]) -> tuple[str, str]:
    """Return the reason for the missing list, and groups that have a list."""
    written, column = read[0]
    ages = (one for one in item.find_all(exp.Anonymous) if str(one.this).lower() == "age")
    if (age := next(ages, None)) is not None:
        return "Nothing public says how far the times lie apart.", f"{write_node(age)} > interval '1 year'"
    if len(read) > 1:
        apart = f"{read[0][0]} - {read[1][0]}"
        both_days = {one.sql_type for _, one in read[:2]} == {SqlType.DATE}
        length = "7" if both_days else "interval '7 days'"
        return (
            "Nothing public says how far the times lie apart.",
            f"CASE WHEN {apart} < {length} THEN 'a week' ELSE 'longer' END",
        )
    of_clock = column.sql_type is SqlType.TIMESTAMP
    part = f"extract({'hour' if of_clock else 'dow'} FROM {written})"
    if item.find(exp.AtTimeZone) is not None:
        return f"Keyhole keeps no rules of time zones: groups are of {column.name} as it is.", write_node(
            _strip_zones(item)
        )
    if any(isinstance(node, exp.Cast) and name_cast_type(node) == "TIME" for node in item.walk()):
        return "A time of the day has too many values.", part
    derived = read_derivation(strip_parentheses(item), scope)
    if derived is not None and derived.part in CLOCK_PARTS and not of_clock:
        return f"{column.name} is a date, which has no {derived.part}.", part
    if derived is not None and derived.function == "extract" and derived.part not in PART_RANGES:
        return f"Keyhole makes no groups of {derived.part}.", part
    return "Nothing public says which values it has.", part


def _strip_zones(item: exp.Expr) -> exp.Expr:
    """Return the expression without conversions of time zones."""

    def strip(node: exp.Expr) -> exp.Expr:
        while isinstance(node, exp.AtTimeZone):
            node = strip_parentheses(node.this)
        return node

    copied: exp.Expr = exp.Tuple(expressions=[item.copy()]).expressions[0]
    return copied.transform(strip, copy=False)
