"""The predicates of a SELECT, each with its place in the text and its number.

Predicates of equal text share a number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.parser.clauses import Clauses
from planner.parser.lexer import Token
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import read_name, write_node
from planner.scope.embedded import Predicate
from planner.scorecard.find import find_predicates


@dataclass(frozen=True, slots=True)
class ShownPredicate:
    """A predicate in the select list or ORDER BY: its tokens from `first` up to `stop`, and its number."""

    node: exp.Expr
    first: int
    stop: int
    number: int


def find_shown_predicates(
    select: exp.Select, place: Clauses, text: str, tokens: tuple[Token, ...], *, hidden: frozenset[int] = frozenset()
) -> tuple[ShownPredicate, ...]:
    """Return the predicates in the select list, DISTINCT ON and ORDER BY. Raise KH106 for one that cannot be located.

    Parameters:
        hidden: the indices of select items to skip.
    """
    numbers: dict[str, int] = {}
    searched = [
        SearchedNode(node, first, past)
        for part, first, past in _list_parts(select, place, tokens, hidden)
        for node in find_predicates(part)
    ]
    return tuple(
        ShownPredicate(one.node, start, end, numbers.setdefault(write_node(one.node), len(numbers)))
        for one, (start, end) in zip(searched, find_spans(searched, text, tokens), strict=True)
    )


def _list_parts(
    select: exp.Select, place: Clauses, tokens: tuple[Token, ...], hidden: frozenset[int]
) -> Iterator[tuple[exp.Expr, int, int]]:
    """Yield the shown or sorted expressions that call aggregates, each with the range of its tokens."""
    for index, (item, (first, past)) in enumerate(zip(select.expressions, place.items, strict=False)):
        if index not in hidden and contains_aggregate(item):
            yield item, first, past
    distinct, order = select.args.get("distinct"), select.args.get("order")
    if distinct is not None and contains_aggregate(distinct):
        yield distinct, place.select, place.source
    if order is not None and contains_aggregate(order):
        yield order, place.end, len(tokens)


def list_predicates(shown: tuple[ShownPredicate, ...], text: str, tokens: tuple[Token, ...]) -> tuple[Predicate, ...]:
    """Return the predicates by number, each with the text and the name of its first occurrence."""
    found: dict[int, Predicate] = {}
    for one in shown:
        written, known = text[tokens[one.first].start : tokens[one.stop - 1].end], found.get(one.number)
        if known is None:
            found[one.number] = Predicate(text=written, name=_find_given_name(one.node), tree=one.node)
        elif not known.name:
            found[one.number] = replace(known, name=_find_given_name(one.node))
    return tuple(found[number] for number in sorted(found))


def _find_given_name(node: exp.Expr) -> str:
    """Return the alias of a predicate that is a whole item, else ""."""
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return read_name(node.parent.args["alias"]) if isinstance(node.parent, exp.Alias) else ""


def replace_with_constants(select: exp.Select, private: tuple[exp.Expr, ...]) -> exp.Select:
    """Return the SELECT with some expressions replaced by `true`. If there are none, return it unchanged."""
    if not private:
        return select
    masked = {id(node) for node in private}
    copied: exp.Select = select.copy()
    for node, twin in zip(list(select.walk()), list(copied.walk()), strict=True):
        if id(node) in masked:
            twin.replace(exp.true())
    return copied
