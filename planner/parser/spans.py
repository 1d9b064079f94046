"""Where an expression stands in the text: found from the places that the parser keeps, and proved by reading again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.clauses import at_offset
from planner.parser.lexer import Token
from planner.parser.lexer import tokens as lex
from planner.parser.tree import nodes, parse, position

_MOST_AROUND = 12  # tokens at each end whose place the parser does not keep: parentheses, NOT, NULL, END, a type's name
_OPENING, _CLOSING = ("(", "["), (")", "]")


@dataclass(frozen=True, slots=True)
class Searched:
    """An expression, and the tokens among which it stands: from `first` up to `past`."""

    node: exp.Expr
    first: int
    past: int


def spans(searched: Sequence[Searched], text: str, tokens: tuple[Token, ...]) -> tuple[tuple[int, int], ...]:
    """Return the tokens of each expression, from the first up to the one after the last.

    Guarantee: what stands there, read by itself, is the expression.

    Raises:
        KeyholeError: KH106 where no such place is found.
    """
    nearest = tuple(next(_candidates(one, tokens), None) for one in searched)
    written = [_write(place, text, tokens) for place in nearest if place is not None]
    # nearly always all are where their known places say, and reading them as one list takes a fraction of the time
    if len(written) > 1 and _read(", ".join(written)) == [one.node for one in searched]:
        return tuple(place for place in nearest if place is not None)
    return tuple(_span(one, text, tokens) for one in searched)


def _span(searched: Searched, text: str, tokens: tuple[Token, ...]) -> tuple[int, int]:
    for place in _candidates(searched, tokens):
        if _read(_write(place, text, tokens)) == [searched.node]:
            return place
    raise KeyholeError(
        "KH106",
        "a predicate in this statement cannot be located",
        hint="Write it more simply, in parentheses.",
        position=position(searched.node),
    )


def _candidates(searched: Searched, tokens: tuple[Token, ...]) -> Iterator[tuple[int, int]]:
    """Yield the places where the expression may stand, the likeliest first."""
    known = [at for part in nodes(searched.node) if (at := part.meta_get("start")) is not None]
    if not known:
        return
    low, high = at_offset(tokens, min(known)), at_offset(tokens, max(known)) + 1
    for start, end in _around(max(low, searched.first), min(high, searched.past), searched.first, searched.past):
        of_window = tokens[end - 1].is_word("over") and end < len(tokens) and tokens[end].is_symbol("(")
        if not of_window and _is_balanced(tokens[start:end]):  # the parser takes OVER alone for an empty window
            yield start, end


def _write(place: tuple[int, int], text: str, tokens: tuple[Token, ...]) -> str:
    return text[tokens[place[0]].start : tokens[place[1] - 1].end]


def _around(low: int, high: int, first: int, past: int) -> Iterator[tuple[int, int]]:
    """Yield the spans around one, the shortest first."""
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
    """Return the expressions of a text, as a select list; None for any other text."""
    sql = f"SELECT {written}"
    try:
        read = parse(sql, lex(sql)).tree
    except KeyholeError:
        return None
    return read.expressions if isinstance(read, exp.Select) else None
