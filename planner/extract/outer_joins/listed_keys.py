"""Joins of listed public values with a key of a private table: `ON date_trunc('month', v.admitted_at) = c.month`."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time

from sqlglot import exp

from planner.catalog.catalog import Derivation, SqlType, Value
from planner.extract.outer_joins.public_lists import TIMES, Listed, PublicList, compute_list, is_column_of
from planner.extract.private_read import PrivateRead
from planner.groups.inhabited.column_roots import derive_value
from planner.parser.tree import read_alias, read_name, strip_parentheses
from planner.scope.name_resolution import Scope, find_column, read_derivation
from planner.values.constant import ConstantContext, Interval, NotConstant
from planner.values.datetimes import STEPS, move_to_midnight, truncate_to_unit
from planner.values.expressions import fold_constant

_FINER = {
    "week": ("day",),
    "month": ("day",),
    "quarter": ("day", "month"),
    "year": ("day", "month", "quarter"),
    "day": (),
}
_TELLING = {
    "year": ("day", "month", "quarter", "year"),
    "quarter": ("day", "month", "quarter"),
    "month": ("day", "month"),
    "day": ("day",),
    "dow": ("day",),
    "isodow": ("day",),
}
_KINDS = {SqlType.DATE: "date", SqlType.TIMESTAMP: "timestamp", SqlType.INTEGER: "integer", SqlType.TEXT: "text"}


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A public list and the expression of the private table that a join compares with it.

    `links` are the conditions that say so. `kind` is PostgreSQL's type of the expression, and `domain` its groups.
    """

    source: PublicList
    expression: exp.Expr
    kind: str
    links: tuple[exp.Expr, ...]
    domain: tuple[Listed, ...]

    @property
    def missing_values(self) -> tuple[Listed, ...]:
        """The values of the list that are no groups of the key."""
        known = set(self.domain)
        return tuple(one for one in self.source.values if one not in known)


def read_listed_key(
    source: PublicList, conditions: Sequence[exp.Expr], read: PrivateRead, is_own: Callable[[exp.Column], bool]
) -> ListedKey | None:
    """Return the key that conditions compare with a list.

    Return None if there is no such comparison, or if the compared expression is no key.

    Parameters:
        is_own: returns True for a column of the private table.
    """
    for condition in conditions:
        for here, there in _list_sides(condition):
            listed = source if source.kind else source.choose(_find_listed_column(here, source))
            found = None if listed is None or not _reads(there, is_own) else compute_list(here, listed)
            if (
                listed is None
                or found is None
                or not all(is_column_of(one, listed) for one in here.find_all(exp.Column))
            ):
                continue
            kind, domain = find_list_type(there, read), list_key_values(there, read)
            comparable = kind in TIMES if found.kind in TIMES else kind == found.kind
            if domain and comparable and found.values == listed.values:
                return _convert_to_list_type(ListedKey(listed, there, kind, (condition,), domain))
    return _read_periods(source, conditions, read, is_own) if source.kind in TIMES else None


def _convert_to_list_type(key: ListedKey) -> ListedKey:
    """Return a key of midnights as one of dates, if the list is one of dates."""
    days = all(isinstance(one, datetime) and one.time() == time.min for one in key.domain)
    if key.source.kind != "date" or key.kind == "date" or not days:
        return key
    cast = exp.Cast(this=key.expression.copy(), to=exp.DataType(this=exp.DType.DATE))
    return replace(key, expression=cast, kind="date")


def _find_listed_column(node: exp.Expr, source: PublicList) -> str:
    """Return the column of a public table that a side of a condition is."""
    node = strip_parentheses(node)
    if not isinstance(node, exp.Column) or read_name(node.args.get("table")) != source.alias:
        return ""
    return read_name(node.this)


def _list_sides(condition: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    node = strip_parentheses(condition)
    if isinstance(node, exp.EQ):
        yield node.this, node.expression
        yield node.expression, node.this


def _reads(node: exp.Expr, is_own: Callable[[exp.Column], bool]) -> bool:
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(map(is_own, columns)) and node.find(exp.Query, exp.AggFunc) is None


def _read_periods(
    source: PublicList, conditions: Sequence[exp.Expr], read: PrivateRead, is_own: Callable[[exp.Column], bool]
) -> ListedKey | None:
    """Return the key of `x >= c.month AND x < c.month + interval '1 month'`: the period in which x lies."""
    for first in conditions:
        low = _order(first, exp.GTE, exp.LTE)
        begun = None if low is None else compute_list(low[1], source)
        if low is None or begun is None or begun.values != source.values or not _reads(low[0], is_own):
            continue
        for second in conditions:
            high = _order(second, exp.LT, exp.GT)
            unit = "" if high is None or high[0] != low[0] else _find_unit(high[1], source)
            times = [one for one in source.values if isinstance(one, datetime)]
            if not unit or any(truncate_to_unit(one, unit) != one for one in times):
                continue
            inner = find_list_type(low[0], read)
            is_day = unit == "day" and inner == "date"
            node = low[0] if is_day else exp.TimestampTrunc(this=low[0].copy(), unit=exp.Var(this=unit.upper()))
            domain = list_key_values(node, read)
            if inner in TIMES and domain:
                return _convert_to_list_type(
                    ListedKey(source, node, find_list_type(node, read), (first, second), domain)
                )
    return None


def _order(condition: exp.Expr, plain: type[exp.Expr], turned: type[exp.Expr]) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the sides of a comparison as if it were of the plain kind. Return None for another."""
    node = strip_parentheses(condition)
    if isinstance(node, plain):
        return strip_parentheses(node.this), strip_parentheses(node.expression)
    if isinstance(node, turned):
        return strip_parentheses(node.expression), strip_parentheses(node.this)
    return None


def _find_unit(node: exp.Expr, source: PublicList) -> str:
    """Return the period that begins at a list's value and ends at an expression; empty for others."""
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE:
        node = strip_parentheses(node.this)
    if not isinstance(node, exp.Add) or compute_list(node.this, source) is None:
        return ""
    try:
        by = fold_constant(node.expression, ConstantContext({}, date.min))
    except NotConstant:
        return ""
    return next((unit for unit, length in STEPS.items() if isinstance(by, Interval) and by == length), "")


def find_list_type(node: exp.Expr, read: PrivateRead) -> str:
    """Return PostgreSQL's type of an expression over the private table; empty for a type that lists do not have."""
    node = strip_parentheses(node)
    match node:
        case exp.Column():
            found = next((one for one in read.table.columns if one.name == read_name(node.this)), None)
            return "" if found is None else _KINDS.get(found.sql_type, "")
        case exp.Cast() if not node.to.expressions:
            names = {exp.DType.DATE: "date", exp.DType.TIMESTAMP: "timestamp", exp.DType.INT: "integer"}
            inner = strip_parentheses(node.this)
            if isinstance(inner, exp.Extract):
                return "integer" if node.to.this == exp.DType.INT else ""
            return (
                names.get(node.to.this, "")
                if find_list_type(inner, read) in TIMES and node.to.this != exp.DType.INT
                else ""
            )
        case exp.Date():
            return "date"
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            inner_kind = find_list_type(node.this, read)
            return {"timestamp": "timestamp", "date": "timestamptz"}.get(inner_kind, "")
        case exp.Extract() if str(node.this).lower() in ("year", "quarter", "month", "day", "hour", "dow", "isodow"):
            return "integer" if find_list_type(node.expression, read) in TIMES else ""
        case _:
            return ""


def list_key_values(node: exp.Expr, read: PrivateRead) -> tuple[Listed, ...]:
    """Return the groups of an expression that is a declared key, or a period of one; none for others."""
    node = strip_parentheses(node)
    scope = Scope(read.table, read_alias(read.node))
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.INT and isinstance(node.this, exp.Extract):
        node = node.this
    column = find_column(node, scope)
    if column is not None and column.domain is not None:
        return _normalise(column.domain)
    derived = read_derivation(node, scope)
    if derived is None:
        return ()
    for one in read.table.columns:
        if one.domain is not None and _divides(one.name, one.derivation, derived):
            return _normalise(dict.fromkeys(derive_value(derived, value) for value in one.domain))
    return ()


def _divides(name: str, base: object, derived: Derivation) -> bool:
    """Return True if a key's value says which value another expression of the same times has."""
    unit = "day" if derived.function == "date" else derived.part
    if name == derived.column:
        return True
    if not isinstance(base, Derivation) or base.column != derived.column or base.function == "extract":
        return False
    own = "day" if base.function == "date" else base.part
    known = _TELLING.get(unit, ()) if derived.function == "extract" else (*_FINER.get(unit, ()), unit)
    return own in known


def _normalise(values: Sequence[Value | None] | dict[Value | None, None]) -> tuple[Listed, ...]:
    found: list[Listed] = []
    for value in values:
        if isinstance(value, date):
            found.append(move_to_midnight(value))
        elif isinstance(value, int | str) and not isinstance(value, bool):
            found.append(value)
    return tuple(found)
