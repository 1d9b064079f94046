"""Lists of public values in FROM: calendars of generate_series, also in subqueries and WITH queries, and VALUES.

    `FROM generate_series(DATE '2025-01-01', DATE '2025-12-01', interval '1 month') AS c(month)`

    `FROM (SELECT generate_series(1, 12) AS month) AS c`

    `WITH days AS (SELECT d::date AS day FROM generate_series(...) AS d) ... FROM days`

Times with time zone are held as the session shows them: a step of months or days keeps the time of day.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.parser.tree import read_alias, read_name, strip_parentheses
from planner.scope.name_resolution import find_truncation_unit
from planner.values.constant import ConstantContext, Interval, NotConstant, Number, Untyped
from planner.values.datetimes import STEPS, move_to_midnight, read_interval, read_moment, shift_moment, truncate_to_unit
from planner.values.expressions import fold_constant

Listed: TypeAlias = int | str | datetime
MOST_VALUES = 10_000  # of a calendar, as of 27 years of days: each is computed
_MOST_INTEGER = 2**31  # beyond PostgreSQL's integer, whose series would be of bigint
_ZONE = re.compile(r"[+zZ]|:.*-")  # of a time in a text
_DEPTH = 4  # queries inside one another in which a calendar is looked for
_DAYS = (ConstantContext({}, date(2001, 2, 3)), ConstantContext({}, date(2014, 7, 9)))
_CASTS: Mapping[exp.DType, str] = {
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamptz",
}
TIMES = ("date", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True)
class PublicList:
    """A source of FROM with one column, whose values are all different. Times are datetimes.

    `kind` is PostgreSQL's type: integer, text, date, timestamp or timestamptz. For a public table `column` is empty
    until `choose` selects one.
    """

    alias: str
    column: str
    kind: str
    values: tuple[Listed, ...]
    columns: Mapping[str, tuple[Listed, ...]]

    def choose(self, column: str, *, is_distinct: bool = False) -> "PublicList | None":
        """Return a column of a public table as the list.

        Return None if a value repeats, or has a type that lists do not have.

        Parameters:
            is_distinct: True if the query drops repeated values (DISTINCT).
        """
        values = self.columns.get(column, ())
        values = tuple(dict.fromkeys(values)) if is_distinct else values
        kinds = {type(value) for value in values}
        if len(set(values)) < len(values) or kinds not in ({int}, {str}):
            return None
        return replace(self, column=column, values=values, kind="integer" if kinds == {int} else "text")


def read_public_list(node: exp.Expr, catalog: Catalog) -> PublicList | None:
    """Return a source of FROM as a list of public values, without reading private data. Return None for other sources.

    It reads no private data.
    """
    return _read_source(node, catalog, _DEPTH)


def is_written_list(node: exp.Expr) -> bool:
    """Return True if a source of FROM is VALUES or calls generate_series, by itself or in a query that it names."""
    if isinstance(node, exp.Values):
        return True
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        query = _find_cte(node)
        return query is not None and query.this.find(exp.GenerateSeries) is not None
    return node.find(exp.GenerateSeries) is not None


def _read_source(node: exp.Expr, catalog: Catalog, depth: int) -> PublicList | None:
    if depth == 0 or node.args.get("joins") or node.args.get("laterals"):
        return None
    alias = node.args.get("alias")
    called = read_name(alias.this) if alias is not None else ""
    names = [read_name(one) for one in alias.args.get("columns") or ()] if alias is not None else []
    found: PublicList | None = None
    match node:
        case exp.Table(this=exp.GenerateSeries() as call):
            if any(value for key, value in node.args.items() if key not in ("this", "alias")):
                return None
            found = _generate(call, called or "generate_series")
        case exp.Subquery(this=exp.Select() as select):
            found = _read_select(select, catalog, depth)
        case exp.Values():
            found = _read_values(node)
        case exp.Table() if node.args.get("db") is None and (cte := _find_cte(node)) is not None:
            if not isinstance(cte.this, exp.Select):
                return None
            own = [read_name(one) for one in cte.args["alias"].args.get("columns") or ()]
            found = _rename(_read_select(cte.this, catalog, depth), own)
            called = called or read_alias(node)
        case exp.Table():
            called = called or read_alias(node)
            found = _read_public_table(node, catalog) if not names and not _has_hidden_parts(node) else None
        case _:
            return None
    found = _rename(found, names)
    return None if found is None else replace(found, alias=called or found.column)


def _rename(found: PublicList | None, names: Sequence[str]) -> PublicList | None:
    if found is None or len(names) > 1:
        return None
    return replace(found, column=names[0]) if names else found


def _find_cte(node: exp.Table) -> exp.CTE | None:
    """Return the WITH query that a table names. Return None for others, and for two of one name."""
    name = read_name(node.this)
    every = [one for one in node.root().find_all(exp.CTE) if read_name(one.args["alias"].this) == name]
    if len(every) != 1 or node.args.get("db") is not None or node.find_ancestor(exp.CTE) is every[0]:
        return None
    with_ = every[0].parent
    return None if with_ is None or with_.args.get("recursive") else every[0]


def _has_hidden_parts(node: exp.Table) -> bool:
    return any(read_name(one.args["alias"].this) == read_name(node.this) for one in node.root().find_all(exp.CTE))


def _read_public_table(node: exp.Table, catalog: Catalog) -> PublicList | None:
    if any(value for key, value in node.args.items() if key not in ("this", "alias")):
        return None
    public = next((one for one in catalog.public_tables if one.name == read_name(node.this)), None)
    if public is None or len(public.rows) > MOST_VALUES:
        return None
    columns = {
        column.name: tuple(row[place] for row in public.rows)
        if all(isinstance(row[place], str | int) and not isinstance(row[place], bool) for row in public.rows)
        else ()
        for place, column in enumerate(public.columns)
    }
    return PublicList("", "", "", (), columns)  # type: ignore[arg-type] # all values are texts or integers


def _read_values(node: exp.Values) -> PublicList | None:
    rows = node.expressions
    values: list[Listed] = []
    for row in rows:
        one = row.expressions if isinstance(row, exp.Tuple) else [row]
        found = _fold(one[0]) if len(one) == 1 else None
        if isinstance(found, Untyped):
            values.append(found.text)
        elif isinstance(found, Number) and found.is_integral and abs(found.value) < _MOST_INTEGER:
            values.append(int(found.value))
        else:
            return None
    kinds = {type(one) for one in values}
    if len(kinds) != 1 or len(set(values)) < len(values):
        return None
    return PublicList("", "column1", "integer" if kinds == {int} else "text", tuple(values), {})


def _read_select(select: exp.Select, catalog: Catalog, depth: int) -> PublicList | None:
    """Return a SELECT of one column that computes a series, or a series of times as dates or starts of periods."""
    allowed = ("expressions", "from_", "order", "distinct")
    if len(select.expressions) != 1 or any(value for key, value in select.args.items() if key not in allowed):
        return None
    distinct, item = select.args.get("distinct"), select.expressions[0]
    if distinct is not None and distinct.args.get("on") is not None:
        return None
    shown = item.unalias()
    source = select.args.get("from_")
    if source is None:
        call = next(iter(shown.find_all(exp.GenerateSeries)), None)
        base = _generate(call, "") if call is not None else None
    else:
        base = _read_source(source.this, catalog, depth - 1)
    if base is not None and not base.kind:  # a column of a public table
        named = read_name(shown.this) if isinstance(shown, exp.Column) else ""
        base = base.choose(named, is_distinct=distinct is not None)
    found = None if base is None else compute_list(shown, base)
    if base is None or found is None:
        return None
    if distinct is not None:
        found = replace(found, values=tuple(dict.fromkeys(found.values)))
    name = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else _find_default_name(shown, base)
    return None if len(set(found.values)) < len(found.values) else replace(found, column=name)


def _find_default_name(shown: exp.Expr, base: PublicList) -> str:
    """Return the name that PostgreSQL gives a column."""
    node = strip_parentheses(shown)
    while isinstance(node, exp.Cast):
        node = strip_parentheses(node.this)
    match node:
        case exp.TimestampTrunc():
            return "date_trunc"
        case exp.GenerateSeries():
            return "generate_series"
        case _:
            return base.column


def compute_list(node: exp.Expr, base: PublicList) -> PublicList | None:
    """Return the values of an expression of a list's column: itself, a cast between times, or the start of a period.

    Return None for other expressions. The values may repeat.
    """
    node = strip_parentheses(node)
    match node:
        case exp.GenerateSeries():
            return base
        case exp.Column() if is_column_of(node, base):
            return base
        case exp.Cast() if node.to.this in _CASTS and not node.to.expressions:
            found = compute_list(node.this, base)
            if found is None or found.kind not in TIMES:
                return None
            kind = _CASTS[node.to.this]
            values = [move_to_midnight(one.date()) if kind == "date" else one for one in _list_times(found)]
            return replace(found, kind=kind, values=tuple(values))
        case exp.TimestampTrunc() if node.args.get("zone") is None and find_truncation_unit(node) in STEPS:
            found = compute_list(node.this, base)
            if found is None or found.kind not in TIMES:
                return None
            unit = find_truncation_unit(node)
            values = [truncate_to_unit(one, unit) for one in _list_times(found)]
            kind = "timestamp" if found.kind == "timestamp" else "timestamptz"
            return replace(found, kind=kind, values=tuple(values))
        case _:
            return None


def is_column_of(node: exp.Column, listed: PublicList) -> bool:
    """Return True if a column is the list's column. No other source may have a column of that name."""
    qualifier = read_name(node.args.get("table"))
    return read_name(node.this) == listed.column and qualifier in ("", listed.alias) and node.args.get("db") is None


def _list_times(found: PublicList) -> list[datetime]:
    return [one for one in found.values if isinstance(one, datetime)]


def _fold(node: exp.Expr | None) -> object:
    """Return the value of a constant. Return None if it is none, or depends on the day."""
    if node is None or node.find(exp.Column, exp.Query, exp.Parameter, exp.AggFunc) is not None:
        return None
    try:
        first, other = (fold_constant(node, given) for given in _DAYS)
    except (KeyholeError, NotConstant):
        return None
    return first if first == other else None


def _generate(call: exp.GenerateSeries, called: str) -> PublicList | None:
    """Return the values of generate_series. Return None if its ends are no constants, or it has very many or none."""
    start, end = _fold(call.args.get("start")), _fold(call.args.get("end"))
    written = call.args.get("step")
    step = _fold(written)
    if written is not None and step is None:
        return None
    if isinstance(start, Number) and isinstance(end, Number):
        values = _count(start, end, step)
        return PublicList(called, called, "integer", values, {}) if values else None
    if isinstance(step, Untyped):
        step = _read(read_interval, step, call)
    ends = [_read(read_moment, one, call) if isinstance(one, Untyped) else one for one in (start, end)]
    if not isinstance(step, Interval) or not all(isinstance(one, date) for one in ends):
        return None
    kinds = [_find_time_type(call.args[end_]) for end_ in ("start", "end")]
    kind = "timestamp" if "timestamp" in kinds and "timestamptz" not in kinds else "timestamptz"
    if "" in kinds or (kind == "timestamptz" and step.microseconds):
        return None  # where a step of hours ends depends on the session's TimeZone
    first, last = (move_to_midnight(one) for one in ends if isinstance(one, date))
    times = _walk(first, last, step)
    return PublicList(called, called, kind, times, {}) if times else None


def is_zoned_series(call: exp.GenerateSeries) -> bool:
    """Return True for a series of times whose values depend on the session's TimeZone."""
    kinds = [_find_time_type(call.args[end]) for end in ("start", "end") if call.args.get(end) is not None]
    return "timestamp" not in kinds and any(kind in ("date", "unknown", "timestamptz") for kind in kinds)


def _find_time_type(node: exp.Expr) -> str:
    """Return PostgreSQL's type of a constant time, or "unknown" for a text. Return an empty text for others.

    A cast to a time with time zone is one of the others: its value depends on the session.
    """
    node = strip_parentheses(node)
    match node:
        case exp.Literal() if node.is_string:
            has_zone = _ZONE.search(str(node.this)) is not None
            return "" if has_zone else "unknown"
        case exp.Cast() if node.to.this in (exp.DType.DATE, exp.DType.TIMESTAMP):
            return _CASTS[node.to.this] if _find_time_type(node.this) in ("unknown", *TIMES[:2]) else ""
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            inner = _find_time_type(node.this)
            return inner and ("timestamp" if inner == "timestamp" else "timestamptz")
        case exp.Add() | exp.Sub():
            inner, by = _find_time_type(node.this), _fold(node.expression)
            if isinstance(by, Number):
                return "date" if inner == "date" else ""
            return {"date": "timestamp"}.get(inner, inner) if isinstance(by, Interval) and inner != "unknown" else ""
        case _:
            return ""


def _read(read: Callable[[str, exp.Expr], object], value: Untyped, node: exp.Expr) -> object:
    try:
        return read(value.text, node)
    except KeyholeError:
        return None


def _count(start: Number, end: Number, step: object) -> tuple[int, ...]:
    numbers = (start, end, step if isinstance(step, Number) else Number(Fraction(1), is_integral=True))
    if not all(one.is_integral and abs(one.value) < _MOST_INTEGER for one in numbers):
        return ()
    first, last, by = (int(one.value) for one in numbers)
    counted = range(first, last + (1 if by > 0 else -1), by) if by else range(0)
    return tuple(counted) if len(counted) <= MOST_VALUES else ()


def _walk(at: datetime, end: datetime, step: Interval) -> tuple[datetime, ...]:
    """Return the times of a series, each a step after the one before it; none for a step that is not forward."""
    parts = (step.months, step.days, step.microseconds)
    found: list[datetime] = []
    if min(parts) < 0 or not any(parts):
        return ()
    while at <= end:
        found.append(at)
        if len(found) > MOST_VALUES or at > datetime.max - timedelta(days=400 * 366):
            return ()
        at = shift_moment(at, step, 1)
    return tuple(found)
