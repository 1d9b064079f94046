"""The tokens that a derived key's expression is written with: calls, casts and parentheses around its column."""

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.question_parts import QuestionReading
from planner.parser.clauses import at_offset, closing, opening
from planner.parser.tree import offset

_CALLS = ("date_trunc", "extract", "date_part", "date")


def key_span(place: QuestionReading, node: exp.Expr) -> tuple[int, int]:
    """The first and last token of a derived expression."""
    column = node.find(exp.Column)
    assert column is not None
    first = last = at_offset(place.tokens, offset(column.this))
    while first > 1 and place.tokens[first - 1].is_symbol("."):
        first -= 2
    inner: exp.Expr | None = column
    while inner is not node:
        inner = inner.parent if inner is not None else None
        if isinstance(inner, exp.DataType | exp.Var | exp.Literal):
            continue
        first, last = _around(place, inner, first, last)
    return first, last


def _around(place: QuestionReading, node: exp.Expr | None, first: int, last: int) -> tuple[int, int]:
    """The tokens of an expression around those of the one inside it."""
    tokens = place.tokens
    if isinstance(node, exp.Cast) and last + 2 < len(tokens) and tokens[last + 1].is_symbol("::"):
        past = last + 3
        if past < len(tokens) and tokens[past].is_symbol("("):
            past = closing(tokens, past) + 1
        zoneless = past + 2 < len(tokens) and tokens[past].is_word("without")
        if tokens[last + 2].is_word("date", "timestamp"):
            return first, past + 2 if zoneless else past - 1
    around = opening(tokens, first)
    if around is not None and isinstance(node, exp.Paren) and around == first - 1:
        return around, closing(tokens, around)
    called = isinstance(node, exp.Cast) and around is not None and tokens[around - 1].is_word("cast")
    called = called or (node is not None and around is not None and tokens[around - 1].is_word(*_CALLS))
    if around is not None and around > 0 and called:
        return around - 1, closing(tokens, around)
    raise KeyholeError(
        "KH106",
        "this way of writing a derived key is not supported in a select list",
        hint="Select the derived column by its name.",
        position=tokens[first].start + 1,
    )
