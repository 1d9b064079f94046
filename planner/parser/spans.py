"""The place of an expression in the text, found from the parser's positions and proved by parsing it again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.clauses import find_token
from planner.parser.lexer import Token
from planner.parser.lexer import read_tokens as lex
from planner.parser.tree import find_position, list_nodes, parse

_MOST_AROUND = 12  # tokens at each end whose place the parser does not keep: parentheses, NOT, NULL, END, a type's name
_OPENING, _CLOSING = ("(", "["), (")", "]")


@dataclass(frozen=True, slots=True)
class SearchedNode:
    """An expression, and the range of tokens in which it lies: from `first` to `stop` (exclusive)."""

    node: exp.Expr
    first: int
    stop: int


def find_spans(searched: Sequence[SearchedNode], text: str, tokens: tuple[Token, ...]) -> tuple[tuple[int, int], ...]:
    """Return the token span of each expression: its first token, and the one after its last.

    Guarantee: the text of the span, parsed by itself, is the expression.

    Raises:
        KeyholeError: KH106 if no such span is found.
    """
    nearest = tuple(next(_list_candidates(one, tokens), None) for one in searched)
    written = [_write(place, text, tokens) for place in nearest if place is not None]
    # nearly always all are where their known places say, and reading them as one list takes a fraction of the time
    if len(written) > 1 and _read(", ".join(written)) == [one.node for one in searched]:
        return tuple(place for place in nearest if place is not None)
    return tuple(_find_span(one, text, tokens) for one in searched)


def _find_span(searched: SearchedNode, text: str, tokens: tuple[Token, ...]) -> tuple[int, int]:
    for place in _list_candidates(searched, tokens):
        if _read(_write(place, text, tokens)) == [searched.node]:
            return place
    raise KeyholeError(
        "KH106",
        "a predicate in this statement cannot be located",
        hint="Write it more simply, in parentheses.",
        position=find_position(searched.node),
    )


def _list_candidates(searched: SearchedNode, tokens: tuple[Token, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans that may be the expression, the likeliest first."""
    known = [at for part in list_nodes(searched.node) if (at := part.meta_get("start")) is not None]
    if not known:
        return
    low, high = find_token(tokens, min(known)), find_token(tokens, max(known)) + 1
    for start, end in _list_enclosing_spans(
        max(low, searched.first), min(high, searched.stop), searched.first, searched.stop
    ):
        of_window = tokens[end - 1].is_word("over") and end < len(tokens) and tokens[end].is_symbol("(")
        if not of_window and _is_balanced(tokens[start:end]):  # the parser takes OVER alone for an empty window
            yield start, end


def _write(place: tuple[int, int], text: str, tokens: tuple[Token, ...]) -> str:
    return text[tokens[place[0]].start : tokens[place[1] - 1].end]


def _list_enclosing_spans(low: int, high: int, first: int, past: int) -> Iterator[tuple[int, int]]:
    """Yield the spans around a span, the shortest first."""
    for more in range(2 * _MOST_AROUND + 1):
        for before in range(more + 1):
            start, end = low - before, high + more - before
            if start >= first and end <= past:
                yield start, end


def _is_balanced(tokens: tuple[Token, ...]) -> bool:
    depth = 0
    for token in tokens:
        if token.kind == "symbol" and token.value in _OPENING:
            depth += 1
        elif token.kind == "symbol" and token.value in _CLOSING:
            depth -= 1
            if depth < 0:
                return False
    return depth == 0


def _read(written: str) -> list[exp.Expr] | None:
    """Return the expressions of a text that is a select list. Return None for any other text."""
    sql = f"SELECT {written}"
    try:
        read = parse(sql, lex(sql)).tree
    except KeyholeError:
        return None
    return read.expressions if isinstance(read, exp.Select) else None
