"""Where an expression stands in the text: found from the places that the parser keeps, and proved by reading again."""

from collections.abc import Iterator

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.clauses import at_offset
from planner.parser.lexer import Token
from planner.parser.lexer import tokens as lex
from planner.parser.tree import nodes, parse, position

_MOST_AROUND = 12  # tokens at each end whose place the parser does not keep: parentheses, NOT, NULL, END, a type's name
_OPENING, _CLOSING = ("(", "["), (")", "]")


def span(node: exp.Expr, first: int, past: int, text: str, tokens: tuple[Token, ...]) -> tuple[int, int]:
    """The tokens of an expression, from the first up to the one after the last.

    Guarantee: what stands there, read by itself, is the expression.

    Parameters:
        first, past: between which tokens it stands.

    Raises:
        KeyholeError: KH106 where no such place is found.
    """
    known = [at for part in nodes(node) if (at := part.meta_get("start")) is not None]
    if known:
        low, high = at_offset(tokens, min(known)), at_offset(tokens, max(known)) + 1
        for start, end in _around(max(low, first), min(high, past), first, past):
            if _is_balanced(tokens[start:end]) and _read(text[tokens[start].start : tokens[end - 1].end]) == node:
                return start, end
    raise KeyholeError(
        "KH106",
        "a predicate in this statement cannot be located",
        hint="Write it more simply, in parentheses.",
        position=position(node),
    )


def _around(low: int, high: int, first: int, past: int) -> Iterator[tuple[int, int]]:
    """The spans around one, the shortest first."""
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


def _read(written: str) -> exp.Expr | None:
    """The one expression that a text is; None for any other text."""
    sql = f"SELECT {written}"
    try:
        read = parse(sql, lex(sql)).tree
    except KeyholeError:
        return None
    return read.expressions[0] if isinstance(read, exp.Select) and len(read.expressions) == 1 else None
