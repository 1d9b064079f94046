"""The value by which a question ranks its keys, in ORDER BY or a window that orders them by size.

    SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 5
    SELECT ward, rank() OVER (ORDER BY count(*) DESC) <= 5 AS top FROM visits GROUP BY ward
    SELECT DISTINCT ON (month) month, ward FROM visits GROUP BY month, ward ORDER BY month, count(*) DESC

The first returns five keys in order and shows no count. In the text around the question each key's place replaces the
value: its place among all keys, or among those that share a window's PARTITION BY. PostgreSQL does the rest: it ranks,
cuts and compares places as it would counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.aggregates.cell_windows import reads_groups
from planner.errors import KeyholeError
from planner.parser.clauses import Clauses, find_item_end
from planner.parser.lexer import Token
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node
from planner.scorecard.find import find_predicates, shows_size
from planner.scorecard.place_cuts import ALL, ANYWHERE, PlaceCut, cut_by_order, cut_by_uses
from planner.scorecard.shown_numbers import RANKS, ShownNumber, find_named_number, is_cut_to_first

_CUTS = ("limit", "offset", "fetch", "for")
_JOINS = ("union", "intersect", "except")
_PARTS = (exp.Ntile, exp.PercentRank, exp.CumeDist)
_CUT = exp.Literal.number(1)  # of DISTINCT ON, which keeps the first row


@dataclass(frozen=True, slots=True)
class RankedItem:
    """The ranking of a question's keys by the value `node`, separately for each `partition`, and the ranks read.

    `spans` are the stretches of tokens that a key's rank replaces, each from its first token to the one after its last.
    `sizes` are the expressions in them. `end` is the token after the text that orders and cuts the answer.
    `private_parts` are the parts of the SELECT that read the ranking and reveal no size of a group.
    """

    node: exp.Expr
    descending: bool
    nulls_first: bool
    partition: tuple[exp.Expr, ...]
    cut: PlaceCut
    spans: tuple[tuple[int, int], ...]
    end: int
    windows: tuple[exp.Window, ...]
    private_parts: tuple[exp.Expr, ...]
    sizes: tuple[exp.Expr, ...]


@dataclass(frozen=True, slots=True)
class _Order:
    """One place in the SELECT that orders its keys by a size."""

    node: exp.Expr
    descending: bool
    nulls_first: bool
    partition: tuple[exp.Expr, ...]

    @property
    def meaning(self) -> tuple[str, bool, bool, frozenset[str]]:
        """The identity of a ranking. Only a value of other groups may be NULL."""
        nulls_first = self.nulls_first and contains_type(self.node, exp.Window)
        partition = frozenset(map(write_node, self.partition))
        return write_node(strip_parentheses(self.node)), self.descending, nulls_first, partition


def find_ranking(
    select: exp.Select, place: Clauses, text: str, tokens: tuple[Token, ...], numbers: tuple[ShownNumber, ...] = ()
) -> RankedItem | None:
    """Return the ranking of a SELECT's keys, or None if it is sorted only by expressions that it may show.

    A SELECT that shows `numbers` ranks by ORDER BY if it is cut to the first few. Otherwise its order is not answered.
    Raises KH106 if it ranks keys in several ways.
    """
    windows = list(_find_windows(select, place))
    ordered, end = _find_ranking_order(select, place, tokens, numbers), place.end
    orders = [_read_order(window) for window, _ in windows]
    places: list[tuple[int, int]] = []
    if ordered is not None:
        number, item, size = ordered
        partition = tuple(select.args["distinct"].args["on"].expressions) if number else ()
        orders.append(_Order(size, bool(item.args.get("desc")), bool(item.args.get("nulls_first")), partition))
        places.append(_find_item_tokens(number, place, tokens))
        end = find_item_end(tokens, places[0][0], before=_JOINS, stops_at_commas=False)
    if not orders:
        return None
    if len({one.meaning for one in orders}) > 1:
        raise _refuse_several_orders(orders)
    searched = [SearchedNode(order.node, *bounds) for order, (_, bounds) in zip(orders, windows, strict=False)]
    places += [(start, _skip_direction(past, tokens)) for start, past in find_spans(searched, text, tokens)]
    found, only = tuple(window for window, _ in windows), orders[-1]
    return RankedItem(
        node=strip_parentheses(only.node),
        descending=only.descending,
        nulls_first=only.nulls_first,
        partition=only.partition,
        cut=_read_cut(select, found, partition=only.partition, ordered=ordered is not None),
        spans=tuple(places),
        end=end,
        windows=found,
        private_parts=(*found, *(() if ordered is None else (strip_parentheses(only.node),))),
        sizes=(*(one.node for one in orders), *(() if ordered is None else (ordered[1].this,))),
    )


def _read_order(window: exp.Window) -> _Order:
    first = window.args["order"].expressions[0]
    partition = tuple(window.args.get("partition_by") or ())
    return _Order(first.this, bool(first.args.get("desc")), bool(first.args.get("nulls_first")), partition)


def shows_sizes_beside_ranks(select: exp.Select) -> bool:
    """Return True if a select list shows sizes of groups in expressions other than the windows that rank by them."""
    ranking = {id(window) for item in select.expressions for window in item.find_all(exp.Window) if _ranks(window)}
    if not ranking:
        return any(map(shows_size, select.expressions))
    copied: exp.Select = select.copy()
    for node, twin in zip(list(select.walk()), list(copied.walk()), strict=True):
        if id(node) in ranking:
            twin.replace(exp.true())
    return any(map(shows_size, copied.expressions))


def _find_windows(select: exp.Select, place: Clauses) -> Iterator[tuple[exp.Window, tuple[int, int]]]:
    """Yield the windows of the select list that rank by a size, each with the tokens of its item."""
    for item, bounds in zip(select.expressions, place.items, strict=False):
        yield from ((window, bounds) for window in item.find_all(exp.Window) if _ranks(window))


def _ranks(window: exp.Window) -> bool:
    """Return True if a window ranks groups by their size, and reads nothing else."""
    order = window.args.get("order")
    if order is None or window.args.get("spec") or window.args.get("alias") or not isinstance(window.this, RANKS):
        return False
    others = (*order.expressions[1:], *(window.args.get("partition_by") or ()), window.this)
    return _is_ranked_value(order.expressions[0].this) and not any(map(_reads_size, others))


def _reads_size(node: exp.Expr) -> bool:
    read = node.iter_expressions() if isinstance(node, RANKS) else (node,)
    return any(map(contains_aggregate, read))


def _find_ranking_order(
    select: exp.Select, place: Clauses, tokens: tuple[Token, ...], numbers: tuple[ShownNumber, ...]
) -> tuple[int, exp.Ordered, exp.Expr] | None:
    """Return the item of ORDER BY that ranks by an aggregate, with its index and the aggregate.

    It is the first item, or the first after the columns of DISTINCT ON.
    """
    order, distinct = select.args.get("order"), select.args.get("distinct")
    if order is None or place.end >= len(tokens) or not tokens[place.end].is_word("order"):
        return None
    on = None if distinct is None else distinct.args.get("on")
    number = 0 if on is None else len(on.expressions)
    if number >= len(order.expressions) or any(map(contains_aggregate, order.expressions[:number])):
        return None
    item = order.expressions[number]
    if not isinstance(item, exp.Ordered) or (numbers and on is None and not is_cut_to_first(select)):
        return None
    named = find_named_number(item.this, select, numbers)
    size = item.this if named is None else named.node
    return (number, item, size) if _is_ranked_value(size) else None


def _find_item_tokens(number: int, place: Clauses, tokens: tuple[Token, ...]) -> tuple[int, int]:
    """Return the tokens of an item of ORDER BY."""
    first = place.end + 2
    for _ in range(number):
        first = find_item_end(tokens, first, before=(*_CUTS, *_JOINS), stops_at_commas=True) + 1
    return first, find_item_end(tokens, first, before=(*_CUTS, *_JOINS), stops_at_commas=True)


def _skip_direction(at: int, tokens: tuple[Token, ...]) -> int:
    """Return the index of the token behind ASC or DESC, and NULLS FIRST or LAST."""
    if at < len(tokens) and tokens[at].is_word("asc", "desc"):
        at += 1
    return at + 2 if at + 1 < len(tokens) and tokens[at].is_word("nulls") else at


def _read_cut(
    select: exp.Select, windows: tuple[exp.Window, ...], *, partition: tuple[exp.Expr, ...], ordered: bool
) -> PlaceCut:
    """Return the places of the ranking that the statement reads."""
    if any(isinstance(window.this, _PARTS) for window in windows):
        return ANYWHERE
    if ordered and partition:
        return PlaceCut(limit=_CUT)
    if ordered:
        by_order = cut_by_order(select)
        return by_order if not windows or by_order.limit is not None else ALL
    return cut_by_uses(select, windows, partitioned=bool(partition))


def _refuse_several_orders(orders: list[_Order]) -> KeyholeError:
    first, other = (
        next(one for one in orders if one.meaning == meaning)
        for meaning in list(dict.fromkeys(one.meaning for one in orders))[:2]
    )
    return KeyholeError(
        "KH106",
        "a question ranks its groups in one way",
        detail=f"It is ranked by {_write(first)}, and by {_write(other)}: each would need noise of its own.",
        hint="Ask one question for each, and join their answers by the keys in a query around both.",
        position=find_position(other.node),
    )


def _write(order: _Order) -> str:
    written = f"{write_node(strip_parentheses(order.node))[:60]}{' DESC' if order.descending else ''}"
    among = ", ".join(map(write_node, order.partition))
    return f"{written} for each {among}" if among else written


def _is_ranked_value(node: exp.Expr) -> bool:
    """Return True for the size of a group, or an expression of sizes of this and other groups."""
    windows = list(node.find_all(exp.Window))
    return is_size(node) or (bool(windows) and all(map(reads_groups, windows)) and not find_predicates(node))


def is_size(node: exp.Expr) -> bool:
    """Return True if an expression reveals the size of a group, and reads neither the answer's rows nor thresholds."""
    return (
        contains_aggregate(node)
        and shows_size(node)
        and not contains_type(node, exp.Window)
        and not find_predicates(node)
    )
