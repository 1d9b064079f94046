"""Ranks by a share of a total, written as ranks by what is divided: all groups have one total.

    SELECT ward FROM visits GROUP BY ward ORDER BY 100.0 * count(*) / sum(count(*)) OVER () DESC LIMIT 5

    SELECT ward FROM visits GROUP BY ward ORDER BY 100.0 * count(*) DESC LIMIT 5

A total of counts, or of a column whose bounds are not negative, is positive or NULL, or 0 if there are no rows. So the
order is the same. A division of integers is left as it is, since it makes shares equal. The total is not read.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.cell_windows import reads_groups
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.push_down_thresholds import may_be_unit_query
from planner.extract.subqueries.same_groups import find_source
from planner.extract.subqueries.share_rows import is_same_table
from planner.parser.clauses import Clauses, find_clauses, find_item_end, matches_tree
from planner.parser.edits import Edit
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import (
    contains_type,
    find_position,
    is_number,
    read_limit,
    read_name,
    strip_parentheses,
    write_short,
)
from planner.scope.group_by import resolve_position
from planner.scorecard.find import shows_size
from planner.scorecard.shown_numbers import RANKS
from planner.values.group_statistics import find_read_argument

_ENDS_ORDER = ("limit", "offset", "fetch", "for", "union", "intersect", "except")
_ROUNDED = (exp.Round, exp.Cast, exp.TryCast)
_INTEGERS = (exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT)
_IN_SCALAR = frozenset(("expressions", "from_", "where"))


def rank_by_shares(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that rank by a size instead of by its share of a total. Return none without such a rank.

    Raises KH204 for a share whose order may differ from that of the size.
    """
    select, tokens = read.select, read.tokens
    if select.args.get("group") is None or may_be_unit_query(read):
        return ()
    first = select.args["from_"].this
    place = find_clauses(first if isinstance(first, exp.Table) else read.node, tokens)
    if not matches_tree(place, select, tokens):
        return ()
    try:
        found = tuple(_list_edits(place, read))
    except KeyholeError:
        return ()
    refused = next((one for one in found if one.detail), None)
    if refused is not None:
        raise _refuse_order(refused, read)
    return tuple(one.edit for one in found)


@dataclass(frozen=True, slots=True)
class _ReplacedShare:
    """A share with the edit that writes what is divided in its place. `detail` says why the order may be another."""

    node: exp.Div
    edit: Edit
    detail: str


def _refuse_order(found: _ReplacedShare, read: PrivateRead) -> KeyholeError:
    written = read.text[: found.edit.start] + found.edit.text + read.text[found.edit.end :]
    return KeyholeError(
        "KH204",
        f"{write_short(found.node)} may have another order than {write_short(found.node.this)}",
        detail=found.detail,
        hint=f"Instead you can ask: {written.strip().removesuffix(';')};",
        position=find_position(found.node),
    )


def _list_edits(place: Clauses, read: PrivateRead) -> Iterator[_ReplacedShare]:
    tokens = read.tokens
    for node, partition, first, past, named in _list_orders(place, read):
        share = _find_share(node, partition, read)
        if share is None:
            continue
        if named is None:
            ((start, end),) = find_spans([SearchedNode(share, first, past)], read.text, tokens)
            spelled = _spell(share.this, start, end, read)
        else:
            start, end = first, _skip_name(first, past, read)
            spelled = _spell(share.this, *named, read)
        edit = Edit.from_text(tokens[start].start, tokens[end - 1].end, spelled, tokens[start].start)
        yield _ReplacedShare(share, edit, _find_other_order(share, read))


def _spell(node: exp.Expr, first: int, past: int, read: PrivateRead) -> str:
    ((start, end),) = find_spans([SearchedNode(node, first, past)], read.text, read.tokens)
    spelled = read.text[read.tokens[start].start : read.tokens[end - 1].end]
    return spelled if isinstance(node, exp.AggFunc) else f"({spelled})"


def _list_orders(
    place: Clauses, read: PrivateRead
) -> Iterator[tuple[exp.Expr, frozenset[exp.Expr], int, int, tuple[int, int] | None]]:
    """Yield what the SELECT ranks by, with the partition of the rank, and the tokens among which it stands.

    With it are the tokens of the item of the select list that ORDER BY means by name or position, or None.
    """
    select, tokens = read.select, read.tokens
    for item, (first, past) in zip(select.expressions, place.items, strict=True):
        for window in item.find_all(exp.Window):
            order = window.args.get("order")
            if order is not None and isinstance(window.this, RANKS):
                yield (order.expressions[0].this, frozenset(window.args.get("partition_by") or ()), first, past, None)
    order = select.args.get("order")
    if order is None or read_limit(select) is None or select.args.get("distinct") is not None:
        return
    first = place.end + 2
    past = find_item_end(tokens, first, before=_ENDS_ORDER, stops_at_commas=True)
    node = order.expressions[0].this
    at = _find_named_item(node, select)
    if at is None:
        yield node, frozenset(), first, past, None
    else:
        yield select.expressions[at].unalias(), frozenset(), first, past, place.items[at]


def _find_named_item(node: exp.Expr, select: exp.Select) -> int | None:
    """Return the place in the select list that an item of ORDER BY means by name or position."""
    if isinstance(node, exp.Column):
        called = "" if node.args.get("table") else read_name(node.this)
        aliases = (item.args["alias"] if isinstance(item, exp.Alias) else None for item in select.expressions)
        found = [at for at, one in enumerate(aliases) if one is not None and read_name(one) == called]
        return found[0] if len(found) == 1 else None
    return resolve_position(node, select, clause="ORDER BY")


def _skip_name(first: int, past: int, read: PrivateRead) -> int:
    """Return the token behind a name or position in ORDER BY, before its direction."""
    while past > first + 1 and read.tokens[past - 1].is_word("asc", "desc", "nulls", "first", "last"):
        past -= 1
    return past


def _find_share(node: exp.Expr, partition: frozenset[exp.Expr], read: PrivateRead) -> exp.Div | None:
    """Return the quotient by a total in an expression that rises with it. Return None for others."""
    node = strip_parentheses(node)
    if isinstance(node, exp.Mul):
        left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
        scaled = left if _is_factor(right) else right if _is_factor(left) else None
        return None if scaled is None else _find_share(scaled, partition, read)
    if isinstance(node, _ROUNDED) and not contains_type(node.args.get("decimals") or exp.Null(), exp.Column):
        return _find_share(node.this, partition, read)
    if not isinstance(node, exp.Div) or not shows_size(node.this) or contains_type(node.this, exp.Window, exp.Query):
        return None
    return node if _find_size_of_total(node.expression, partition, read) is not None else None


def _find_other_order(share: exp.Div, read: PrivateRead) -> str:
    """Return why a share may have another order than what is divided. Return an empty text if it has the same."""
    total = _find_size_of_total(share.expression, None, read)
    if total is None or not _is_positive(total, read):
        return "A total that may be negative would turn the order round."
    return "A quotient of integers has no decimals, so groups would tie." if _are_integers(share, read) else ""


def _is_factor(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and not is_number(node, 0)


def _find_size_of_total(node: exp.Expr, partition: frozenset[exp.Expr] | None, read: PrivateRead) -> exp.Expr | None:
    """Return the count or sum of which a total of all groups adds up the values. Return None for anything else.

    Parameters:
        partition: of the rank, among whose groups there must be one total. None if that is known.
    """
    node = strip_parentheses(node)
    if isinstance(node, exp.Nullif):
        return _find_size_of_total(node.this, partition, read) if is_number(node.expression, 0) else None
    if isinstance(node, exp.Cast):
        return None if node.to.this in _INTEGERS else _find_size_of_total(node.this, partition, read)
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        inner, source = node.this, find_source(node.this)
        if not isinstance(source, exp.Table) or not is_same_table(source, read) or len(inner.expressions) != 1:
            return None
        plain = not any(value for key, value in inner.args.items() if key not in _IN_SCALAR)
        shown = strip_parentheses(inner.expressions[0].unalias())
        return shown if plain and _adds_up(shown) and _reads_own_table_only(inner, source) else None
    if not isinstance(node, exp.Window) or not reads_groups(node):
        return None
    if any(node.args.get(part) for part in ("order", "spec", "alias")):
        return None
    if partition is not None and not frozenset(node.args.get("partition_by") or ()) <= partition:
        return None
    called = strip_parentheses(node.this)
    size = find_read_argument(called) if isinstance(called, exp.Sum | exp.Avg) else None
    return size if size is not None and _adds_up(size) else None


def _adds_up(node: exp.Expr) -> bool:
    called = node.this if isinstance(node, exp.Filter) else node
    return isinstance(called, exp.Count | exp.Sum)


def _reads_own_table_only(inner: exp.Select, source: exp.Table) -> bool:
    """Return True if a subquery names columns of its own table alone, so that all groups have one total."""
    named = {read_name(column.args.get("table")) for column in inner.find_all(exp.Column)}
    return named <= {"", source.alias_or_name} and len(list(inner.find_all(exp.Query))) == 1


def _is_positive(node: exp.Expr, read: PrivateRead) -> bool:
    """Return True for a count, or a sum of a column that has no negative values."""
    called = node.this if isinstance(node, exp.Filter) else node
    if isinstance(called, exp.Count):
        return True
    column = strip_parentheses(called.this)
    if not isinstance(column, exp.Column):
        return False
    found = next((one for one in read.table.columns if one.name == read_name(column.this)), None)
    return found is not None and found.bounds is not None and found.bounds[0] >= 0


def _are_integers(node: exp.Div, read: PrivateRead) -> bool:
    """Return True if PostgreSQL may drop the remainder of a quotient. A window's sum of whole numbers has digits."""
    if contains_type(node.expression, exp.Window):
        return False
    read_outside = (one for side in (node.this, node.expression) for one in side.walk(prune=_is_counted))
    return not any(_has_digits(one, read) for one in read_outside)


def _is_counted(node: exp.Expr) -> bool:
    return isinstance(node, exp.AggFunc | exp.Filter | exp.Query | exp.Window)


def _has_digits(node: exp.Expr, read: PrivateRead) -> bool:
    """Return True for a number with digits behind its point: a literal, a cast, or a sum of such a column."""
    if isinstance(node, exp.Literal):
        return not node.is_string and not node.name.isdecimal()
    if isinstance(node, exp.Cast):
        return node.to.this not in _INTEGERS
    if not isinstance(node, exp.Sum):
        return False
    column = strip_parentheses(node.this)
    kinds = [one.sql_type.value for one in read.table.columns if one.name == read_name(column.args.get("this"))]
    return kinds in (["numeric"], ["double precision"])
