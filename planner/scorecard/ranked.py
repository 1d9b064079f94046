"""The value by which a question ranks its keys: the first item of ORDER BY where that says how large a group is.

    SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 5

returns five keys in their order and shows no count. In the text around the question the item becomes the place of each
key; LIMIT stays where it is.
"""

from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.parser.clauses import Clauses, end_of
from planner.parser.lexer import Token
from planner.parser.tree import bare, contains
from planner.scorecard.find import find_predicates, shows_size

_CUTS = ("limit", "offset", "fetch", "for")
_JOINS = ("union", "intersect", "except")


@dataclass(frozen=True, slots=True)
class RankedItem:
    """The item and its direction, its tokens from `first` up to `past`, and behind which token ends what orders and
    cuts the answer."""

    node: exp.Expr
    descending: bool
    first: int
    past: int
    end: int


def ranked_item(select: exp.Select, place: Clauses, tokens: tuple[Token, ...]) -> RankedItem | None:
    """What a SELECT ranks its keys by; None where it is sorted by what it may show."""
    order = select.args.get("order")
    if order is None or place.end >= len(tokens) or not tokens[place.end].is_word("order"):
        return None
    ordered = order.expressions[0]
    if not isinstance(ordered, exp.Ordered) or not _is_size(ordered.this):
        return None
    first = place.end + 2
    return RankedItem(
        node=bare(ordered.this),
        descending=bool(ordered.args.get("desc")),
        first=first,
        past=end_of(tokens, first, before=(*_CUTS, *_JOINS), commas=True),
        end=end_of(tokens, first, before=_JOINS, commas=False),
    )


def _is_size(node: exp.Expr) -> bool:
    """Whether an expression says how large a group is, and reads neither the answer's rows nor thresholds."""
    return (
        contains_aggregate(node) and shows_size(node) and not contains(node, exp.Window) and not find_predicates(node)
    )
