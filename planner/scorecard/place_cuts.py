"""The places of a ranking that its statement reads: compared with constants, cut by LIMIT, or shown.

    SELECT country, rank() OVER (ORDER BY sum(amount) DESC) <= 5 AS top FROM sales GROUP BY country
    SELECT country FROM (SELECT country, row_number() OVER (...) AS place FROM ... GROUP BY country) q WHERE place <= 3

The first needs five places in order, and one place for all others. The second needs three, and no further row. A use
that is not understood reads all places, and may cut them anywhere.
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
    """The ranks that a statement reads: those up to `limit` (None: all), without the first `offset`.

    With `may_cut_anywhere` the statement also distinguishes ranks below the limit. With `keeps_every_row` it needs the
    groups beyond the limit as well, all at one rank.
    """

    limit: exp.Expr | None = None
    offset: exp.Expr | None = None
    may_cut_anywhere: bool = False
    keeps_every_row: bool = False


@dataclass(frozen=True, slots=True)
class _RankTest:
    """A use that separates places up to `last` from later ones and, with `first`, from the first few.

    `drops_rest`: no row beyond `last` is left.
    """

    last: exp.Expr
    first: exp.Expr | None = None
    drops_rest: bool = False


_Use: TypeAlias = _RankTest | bool
"""A use of a place: a test, or True if it is shown as it is, or False for any other use."""

ALL, ANYWHERE = PlaceCut(), PlaceCut(may_cut_anywhere=True)


def cut_by_order(select: exp.Select) -> PlaceCut:
    """Return the ranks that LIMIT and OFFSET keep, for a SELECT whose ORDER BY is its ranking."""
    limit, skipped = read_limit(select), select.args.get("offset")
    offset = None if skipped is None else skipped.expression
    if limit is not None and offset is not None:
        limit = exp.Add(this=exp.Paren(this=limit.copy()), expression=exp.Paren(this=offset.copy()))
    return PlaceCut(limit, offset)


def cut_by_uses(select: exp.Select, windows: Sequence[exp.Window], *, partitioned: bool) -> PlaceCut:
    """Return the ranks that a SELECT and the queries around it read from the SELECT's ranking windows."""
    uses = [use for window in windows for use in _list_window_uses(window, select, partitioned=partitioned)]
    if not uses or not all(isinstance(use, _RankTest) for use in uses):
        return ANYWHERE if any(use is not True for use in uses) else ALL
    parted = list(dict.fromkeys(use for use in uses if isinstance(use, _RankTest)))
    if len(parted) == 1:
        (only,) = parted
        return PlaceCut(only.last, only.first, keeps_every_row=not only.drops_rest)
    numbers = [_read_whole(one.last) for one in parted]
    last = max((number for number in numbers if number is not None), default=0)
    if None in numbers:
        return ANYWHERE
    return PlaceCut(_make_literal(last), may_cut_anywhere=True, keeps_every_row=True)


def _list_window_uses(window: exp.Window, select: exp.Select, *, partitioned: bool) -> Iterator[_Use]:
    if isinstance(window.this, exp.FirstValue):
        yield _RankTest(_make_literal(1))
        return
    shown = _include_parentheses(window)
    if isinstance(shown.parent, exp.Alias):
        shown = shown.parent
    if shown.parent is not select:
        yield _read_comparison(window) or False
        return
    called = read_name(shown.args["alias"]) if isinstance(shown, exp.Alias) else type(window.this).key
    yield from _list_uses_around(select, _DEFAULT.get(called, called), partitioned=partitioned, around=0)


_DEFAULT = {"rownumber": "row_number", "denserank": "dense_rank"}


def _list_uses_around(select: exp.Select, called: str, *, partitioned: bool, around: int) -> Iterator[_Use]:
    """Yield the uses of a SELECT's column, in its own ORDER BY and in the queries that read it."""
    ordered = _cut_by_name(select, called, alias="", partitioned=partitioned)
    if ordered is not None:
        yield ordered
        return
    reader = _find_reader(select)
    if reader is None or around >= _MOST_AROUND:
        yield select.parent is None
        return
    node, outer = reader
    yield from _list_uses_in(node, outer, called, partitioned=partitioned, around=around + 1)


def _find_reader(select: exp.Select) -> tuple[exp.Expr, exp.Select] | None:
    """Return the place where a SELECT is read, and the SELECT that reads it.

    None for the statement itself or several readers.
    """
    parent = select.parent
    nodes: list[exp.Expr] = [parent] if isinstance(parent, exp.Subquery) else []
    if isinstance(parent, exp.CTE) and not parent.args["alias"].args.get("columns"):
        nodes = list(list_references(parent))
    if len(nodes) != 1:
        return None
    source = nodes[0].parent
    outer = source.parent if isinstance(source, exp.From | exp.Join) else None
    return (nodes[0], outer) if isinstance(outer, exp.Select) else None


def _list_uses_in(node: exp.Expr, outer: exp.Select, called: str, *, partitioned: bool, around: int) -> Iterator[_Use]:
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
    kept = _find_place_test(outer, columns)
    if kept is not None:
        yield kept
        return
    alone = not any(outer.args.get(clause) for clause in ("joins", "group", "distinct", "laterals"))
    alone = alone and _keeps_every_row(outer)
    if alone and (ordered := _cut_by_name(outer, called, alias=qualifier, partitioned=partitioned)) is not None:
        yield ordered
        return
    if any(is_star(item) for item in outer.expressions):
        yield from _list_uses_around(outer, called, partitioned=partitioned, around=around)
    for column in columns:
        shown = _include_parentheses(column)
        item = shown.parent if isinstance(shown.parent, exp.Alias) else shown
        if item.parent is outer and item in outer.expressions:
            given = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else called
            yield from _list_uses_around(outer, given, partitioned=partitioned, around=around)
        elif isinstance(shown.parent, exp.Ordered) and shown.parent.parent is outer.args.get("order"):
            yield read_limit(outer) is None and outer.args.get("offset") is None
        else:
            yield _read_comparison(column) or False


def _keeps_every_row(select: exp.Select) -> bool:
    """Return True for a SELECT without WHERE, or with WHERE true."""
    where = select.args.get("where")
    parts = () if where is None else where.this.flatten() if isinstance(where.this, exp.And) else (where.this,)
    return all(isinstance(one := strip_parentheses(part), exp.Boolean) and one.this for part in parts)


def _find_place_test(select: exp.Select, columns: Sequence[exp.Column]) -> _RankTest | None:
    """Return the places that WHERE's conditions, joined by AND, keep. Return None if they do not limit them."""
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
    ends = [use for use in found if use.drops_rest]
    if len(found) == 1 and ends:
        return ends[0]
    if any(use.first is not None for use in found if not use.drops_rest):
        return None  # a place between others is left out
    lasts = [_read_whole(use.last) for use in ends]
    firsts = [_read_whole(use.first or _make_literal(0)) for use in ends] + [
        _read_whole(use.last) for use in found if not use.drops_rest
    ]
    if not ends or None in lasts or None in firsts:
        return None
    first, last = max(one or 0 for one in firsts), min(one or 0 for one in lasts)
    return _RankTest(_make_literal(last), _make_literal(first) if first else None, drops_rest=True)


def _read_comparison(place: exp.Expr, *, kept: bool = False) -> _RankTest | None:
    """Return the test that a comparison of a place with a constant makes, or None.

    Parameters:
        kept: True if rows for which the comparison is false are dropped, as in WHERE.
    """
    around = _include_parentheses(place)
    node = around.parent
    if isinstance(node, exp.Between) and node.this is around and not node.args.get("symmetric"):
        low, high = _subtract_one(node.args["low"]), _read_constant(node.args["high"])
        return None if low is None or high is None else _RankTest(high, _drop_zero(low), drops_rest=kept)
    if not isinstance(node, _COMPARED):
        return None
    kind: type[exp.Expr] = type(node)
    other = node.expression
    if other is around:
        kind, other = FLIPPED_KINDS.get(kind, kind), node.this
    own, before = _read_constant(other), _subtract_one(other)
    if own is None or before is None:
        return None
    if kind in (exp.LTE, exp.GT):
        return _RankTest(own, drops_rest=kept and kind is exp.LTE)
    if kind in (exp.LT, exp.GTE):
        return _RankTest(before, drops_rest=kept and kind is exp.LT)
    return _RankTest(own, _drop_zero(before), drops_rest=kept and kind is exp.EQ)


def _cut_by_name(select: exp.Select, called: str, *, alias: str, partitioned: bool) -> _RankTest | None:
    """Return the rows that LIMIT keeps of a SELECT ordered by a column with places, ascending."""
    order, limit = select.args.get("order"), read_limit(select)
    if order is None or limit is None or partitioned:
        return None
    first = order.expressions[0]
    column = strip_parentheses(first.this)
    is_place = isinstance(column, exp.Column) and read_name(column.this) == called
    if not is_place or first.args.get("desc") or read_name(column.args.get("table")) not in ("", alias):
        return None
    cut = cut_by_order(select)
    return None if cut.limit is None else _RankTest(cut.limit, cut.offset, drops_rest=True)


def _include_parentheses(node: exp.Expr) -> exp.Expr:
    """Return the outermost parentheses around an expression, or the expression itself if it has none."""
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return node


def _read_constant(node: exp.Expr) -> exp.Expr | None:
    """Return a whole number or a parameter, or None for anything else."""
    inner = strip_parentheses(node)
    return inner if _read_whole(inner) is not None or isinstance(inner, exp.Parameter) else None


def _subtract_one(node: exp.Expr) -> exp.Expr | None:
    constant = _read_constant(node)
    if constant is None:
        return None
    number = _read_whole(constant)
    return exp.Sub(this=constant.copy(), expression=_make_literal(1)) if number is None else _make_literal(number - 1)


def _drop_zero(node: exp.Expr) -> exp.Expr | None:
    number = _read_whole(node)
    return None if number is not None and number <= 0 else node


def _read_whole(node: exp.Expr) -> int | None:
    """Return the whole number of a literal, or None."""
    if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal():
        return int(str(node.this))
    return None


def _make_literal(number: int) -> exp.Expr:
    return exp.Literal.number(max(0, number))
