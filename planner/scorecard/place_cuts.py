"""How far down a ranking its statement reads: which places it compares with constants, cuts by LIMIT, or shows.

    SELECT country, rank() OVER (ORDER BY sum(amount) DESC) <= 5 AS top FROM sales GROUP BY country
    SELECT country FROM (SELECT country, row_number() OVER (...) AS place FROM ... GROUP BY country) q WHERE place <= 3

The first needs five places in order, and one behind them for all others. The second needs three, and no row beyond. A
use that is not understood reads all places, and may cut them anywhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from planner.parser.subquery_readers import list_references
from planner.parser.tree import is_star, read_limit, read_name, strip_parentheses
from planner.values.operators import FLIPPED_KINDS

_MOST_AROUND = 8  # queries around one another through which a place is followed
_COMPARED = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ)


@dataclass(frozen=True, slots=True)
class PlaceCut:
    """The places that a statement needs apart: those up to `limit` (None: all), without the first `offset`.

    With `any_cut` it parts them at further places. With `every_row` it needs the groups beyond, too, at one place.
    """

    limit: exp.Expr | None = None
    offset: exp.Expr | None = None
    any_cut: bool = False
    every_row: bool = False


@dataclass(frozen=True, slots=True)
class _Parted:
    """A use that tells places up to `last` from those behind, and, where it is there, those up to `first` from them.

    `dropped` if no row beyond `last` is left.
    """

    last: exp.Expr
    first: exp.Expr | None = None
    dropped: bool = False


_Use: TypeAlias = _Parted | bool
"""A use of a place: parted, or shown as it is (True), or used in another way (False)."""

ALL, ANYWHERE = PlaceCut(), PlaceCut(any_cut=True)


def cut_by_order(select: exp.Select) -> PlaceCut:
    """Return the rows that LIMIT and OFFSET leave of a SELECT that is ordered by its ranking."""
    limit, skipped = read_limit(select), select.args.get("offset")
    offset = None if skipped is None else skipped.expression
    if limit is not None and offset is not None:
        limit = exp.Add(this=exp.Paren(this=limit.copy()), expression=exp.Paren(this=offset.copy()))
    return PlaceCut(limit, offset)


def cut_by_uses(select: exp.Select, windows: Sequence[exp.Window], *, partitioned: bool) -> PlaceCut:
    """Return the places of a SELECT's windows that it and the queries around it read."""
    uses = [use for window in windows for use in _uses_of_window(window, select, partitioned=partitioned)]
    if not uses or not all(isinstance(use, _Parted) for use in uses):
        return ANYWHERE if any(use is not True for use in uses) else ALL
    parted = list(dict.fromkeys(use for use in uses if isinstance(use, _Parted)))
    if len(parted) == 1:
        (only,) = parted
        return PlaceCut(only.last, only.first, every_row=not only.dropped)
    numbers = [_whole(one.last) for one in parted]
    last = max((number for number in numbers if number is not None), default=0)
    if None in numbers:
        return ANYWHERE
    return PlaceCut(_literal(last), any_cut=True, every_row=True)


def _uses_of_window(window: exp.Window, select: exp.Select, *, partitioned: bool) -> Iterator[_Use]:
    if isinstance(window.this, exp.FirstValue):
        yield _Parted(_literal(1))
        return
    shown = _with_parentheses(window)
    if isinstance(shown.parent, exp.Alias):
        shown = shown.parent
    if shown.parent is not select:
        yield _read_comparison(window) or False
        return
    called = read_name(shown.args["alias"]) if isinstance(shown, exp.Alias) else type(window.this).key
    yield from _uses_around(select, _DEFAULT.get(called, called), partitioned=partitioned, around=0)


_DEFAULT = {"rownumber": "row_number", "denserank": "dense_rank"}


def _uses_around(select: exp.Select, called: str, *, partitioned: bool, around: int) -> Iterator[_Use]:
    """Yield the uses of a column of a SELECT, in its own ORDER BY and in what reads it."""
    ordered = _cut_by_name(select, called, alias="", partitioned=partitioned)
    if ordered is not None:
        yield ordered
        return
    reader = _find_reader(select)
    if reader is None or around >= _MOST_AROUND:
        yield select.parent is None
        return
    node, outer = reader
    yield from _uses_in(node, outer, called, partitioned=partitioned, around=around + 1)


def _find_reader(select: exp.Select) -> tuple[exp.Expr, exp.Select] | None:
    """Return where a SELECT is read, and the SELECT that reads it; None for the statement, and if several do."""
    parent = select.parent
    nodes: list[exp.Expr] = [parent] if isinstance(parent, exp.Subquery) else []
    if isinstance(parent, exp.CTE) and not parent.args["alias"].args.get("columns"):
        nodes = list(list_references(parent))
    if len(nodes) != 1:
        return None
    source = nodes[0].parent
    outer = source.parent if isinstance(source, exp.From | exp.Join) else None
    return (nodes[0], outer) if isinstance(outer, exp.Select) else None


def _uses_in(node: exp.Expr, outer: exp.Select, called: str, *, partitioned: bool, around: int) -> Iterator[_Use]:
    """Yield the uses of a column in the SELECT that reads it."""
    alias = node.args.get("alias")
    qualifier = (
        read_name(alias.this) if alias is not None else read_name(node.this) if isinstance(node, exp.Table) else ""
    )
    hidden = {id(one) for one in node.walk()}
    if (with_ := outer.args.get("with_")) is not None:
        hidden |= {id(one) for one in with_.walk()}
    columns = [
        column
        for column in outer.find_all(exp.Column)
        if id(column) not in hidden
        and read_name(column.this) == called
        and read_name(column.args.get("table")) in ("", qualifier)
    ]
    kept = _kept_by_where(outer, columns)
    if kept is not None:
        yield kept
        return
    alone = not any(outer.args.get(clause) for clause in ("joins", "where", "group", "distinct", "laterals"))
    if alone and (ordered := _cut_by_name(outer, called, alias=qualifier, partitioned=partitioned)) is not None:
        yield ordered
        return
    if any(is_star(item) for item in outer.expressions):
        yield from _uses_around(outer, called, partitioned=partitioned, around=around)
    for column in columns:
        shown = _with_parentheses(column)
        item = shown.parent if isinstance(shown.parent, exp.Alias) else shown
        if item.parent is outer and item in outer.expressions:
            given = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else called
            yield from _uses_around(outer, given, partitioned=partitioned, around=around)
        elif isinstance(shown.parent, exp.Ordered) and shown.parent.parent is outer.args.get("order"):
            yield True
        else:
            yield _read_comparison(column) or False


def _kept_by_where(select: exp.Select, columns: Sequence[exp.Column]) -> _Parted | None:
    """Return the places that WHERE's conditions, joined by AND, leave; None if they leave any number."""
    where = select.args.get("where")
    if where is None:
        return None
    conjuncts = [
        strip_parentheses(one) for one in (where.this.flatten() if isinstance(where.this, exp.And) else (where.this,))
    ]
    known = {id(column) for column in columns}
    found = [
        use
        for one in conjuncts
        for operand in (one.this, one.args.get("expression"))
        if isinstance(operand, exp.Expr) and id(strip_parentheses(operand)) in known
        if (use := _read_comparison(strip_parentheses(operand), kept=True)) is not None
    ]
    ends = [use for use in found if use.dropped]
    if len(found) == 1 and ends:
        return ends[0]
    if any(use.first is not None for use in found if not use.dropped):
        return None  # a place between others is left out
    lasts = [_whole(use.last) for use in ends]
    firsts = [_whole(use.first or _literal(0)) for use in ends] + [_whole(use.last) for use in found if not use.dropped]
    if not ends or None in lasts or None in firsts:
        return None
    first, last = max(one or 0 for one in firsts), min(one or 0 for one in lasts)
    return _Parted(_literal(last), _literal(first) if first else None, dropped=True)


def _read_comparison(place: exp.Expr, *, kept: bool = False) -> _Parted | None:
    """Return the parting that a comparison of a place with a constant makes.

    Parameters:
        kept: rows for which it does not hold are dropped: `dropped` says whether those behind are.
    """
    around = _with_parentheses(place)
    node = around.parent
    if isinstance(node, exp.Between) and node.this is around and not node.args.get("symmetric"):
        low, high = _less_one(node.args["low"]), _constant(node.args["high"])
        return None if low is None or high is None else _Parted(high, _unless_zero(low), dropped=kept)
    if not isinstance(node, _COMPARED):
        return None
    kind: type[exp.Expr] = type(node)
    other = node.expression
    if other is around:
        kind, other = FLIPPED_KINDS.get(kind, kind), node.this
    own, before = _constant(other), _less_one(other)
    if own is None or before is None:
        return None
    if kind in (exp.LTE, exp.GT):
        return _Parted(own, dropped=kept and kind is exp.LTE)
    if kind in (exp.LT, exp.GTE):
        return _Parted(before, dropped=kept and kind is exp.LT)
    return _Parted(own, _unless_zero(before), dropped=kept and kind is exp.EQ)


def _cut_by_name(select: exp.Select, called: str, *, alias: str, partitioned: bool) -> _Parted | None:
    """Return the rows that LIMIT leaves of a SELECT ordered by a column with places, the first of them first."""
    order, limit = select.args.get("order"), read_limit(select)
    if order is None or limit is None or partitioned:
        return None
    first = order.expressions[0]
    column = strip_parentheses(first.this)
    is_place = isinstance(column, exp.Column) and read_name(column.this) == called
    if not is_place or first.args.get("desc") or read_name(column.args.get("table")) not in ("", alias):
        return None
    cut = cut_by_order(select)
    return None if cut.limit is None else _Parted(cut.limit, cut.offset, dropped=True)


def _with_parentheses(node: exp.Expr) -> exp.Expr:
    """Return the expression with the parentheses around it."""
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return node


def _constant(node: exp.Expr) -> exp.Expr | None:
    """Return a whole number or a parameter; None for anything else."""
    inner = strip_parentheses(node)
    return inner if _whole(inner) is not None or isinstance(inner, exp.Parameter) else None


def _less_one(node: exp.Expr) -> exp.Expr | None:
    constant = _constant(node)
    if constant is None:
        return None
    number = _whole(constant)
    return exp.Sub(this=constant.copy(), expression=_literal(1)) if number is None else _literal(number - 1)


def _unless_zero(node: exp.Expr) -> exp.Expr | None:
    number = _whole(node)
    return None if number is not None and number <= 0 else node


def _whole(node: exp.Expr) -> int | None:
    """Return the whole number that a literal is."""
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        return int(str(node.this))
    return None


def _literal(number: int) -> exp.Expr:
    return exp.Literal.number(max(0, number))
