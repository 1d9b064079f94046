"""A query, alone or inside a DECLARE, PREPARE or EXPLAIN: passed to the shadow, or with questions inside."""

from planner.catalog import Catalog
from planner.embedding import embed
from planner.lexer import Token
from planner.outer import Asking
from planner.session_statement import check_functions
from planner.statement_kinds import PassThrough


def query_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> PassThrough | Asking:
    """A query: passed to the shadow where no question is inside. Raises as `classify` does."""
    check_functions(found)
    return embed(text, found, catalog) or PassThrough("select")


def inner_statement(text: str, found: tuple[Token, ...], start: int) -> tuple[str, tuple[Token, ...]]:
    """The statement from a token on, in a text where every character keeps its position."""
    at = found[start].start
    return " " * at + text[at:], found[start:]
