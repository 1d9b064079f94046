"""A text as the words of the parser's tokenizer, with PostgreSQL's rule for dollar signs.

In `IN ($1,$2)` there are two parameters and no quote, because the tag of a dollar quote is an identifier without a
dollar sign. Our lexer knows dollar quotes. They are read as plain strings here, and every other `$` outside a name
begins a parameter.
"""

import re
from itertools import pairwise
from typing import ClassVar

from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import Token as Word
from sqlglot.tokenizer_core import TokenType

from planner.parser.lexer import Token


class PostgresWithoutDollarQuotes(Postgres):
    """sqlglot's PostgreSQL dialect, changed so that a dollar sign always begins a parameter."""

    class Tokenizer(Postgres.Tokenizer):
        """The tokenizer of the dialect."""

        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {**Postgres.Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}


_NOT_A_LINE = re.compile(r"[^\r\n]")
_DIALECT = PostgresWithoutDollarQuotes()


_UNIT = re.compile(r"\s*(-?[0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]+)\s*")  # as the parser looks for units
_CLOCK = re.compile(r"([+-]?)(\d{1,6}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?")


def read_words(text: str, tokens: tuple[Token, ...]) -> list[Word]:
    """Return the parser's words of a text that has these tokens, with their positions.

    Raise SqlglotError for a text that sqlglot cannot tokenise.
    """
    words = _read_words(text, tokens)
    for before, word in pairwise(words):
        if before.token_type == TokenType.INTERVAL and word.token_type == TokenType.STRING:
            word.text = _spell_units(word.text)
    return words


def _spell_units(text: str) -> str:
    """Return an interval with its time of day spelled in units, because the parser drops `06:00` of `3 days 06:00`."""
    if len(_UNIT.findall(text)) != 1 or _UNIT.fullmatch(text):
        return text
    return f"{_CLOCK.sub(_spell_clock, text)} 0 seconds"


def _spell_clock(clock: re.Match[str]) -> str:
    sign, hours, minutes, seconds = clock.groups()
    return f"{sign}{hours} hours {sign}{minutes} minutes {sign}{seconds or 0} seconds"


def _read_words(text: str, tokens: tuple[Token, ...]) -> list[Word]:
    quoted = {token.start: token for token in tokens if token.kind == "string" and text[token.start] == "$"}
    if not quoted:
        return _DIALECT.tokenize(text)
    parts: list[str] = []
    at = 0
    for token in quoted.values():
        # as long as what it stands for, and in as many lines
        inside = _NOT_A_LINE.sub("x", text[token.start + 1 : token.end - 1])
        parts += (text[at : token.start], f"'{inside}'")
        at = token.end
    words = _DIALECT.tokenize("".join((*parts, text[at:])))
    for word in words:
        if word.token_type == TokenType.STRING and word.start in quoted:
            word.text = quoted[word.start].value
    return words
