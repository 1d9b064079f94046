"""Statements that keep a query for later, and run it: DECLARE, PREPARE and EXECUTE."""

from dataclasses import replace

from planner.catalog.catalog import Catalog
from planner.errors import refuse_unsupported
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.statements.allow_list import check_own_names
from planner.statements.kinds import Executing, PassThrough, Preparing, Statement
from planner.statements.query import query_statement


def _after(found: tuple[Token, ...], word: str) -> int | None:
    """Return the index of the token after the first `word` outside parentheses."""
    depth = 0
    for index, token in enumerate(found):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_word(word) and index + 1 < len(found):
            return index + 1
    return None


def _read_held_query(
    word: str, what: str, text: str, found: tuple[Token, ...], catalog: Catalog
) -> PassThrough | Asking:
    """Read the query after `word` in DECLARE and PREPARE."""
    check_own_names(found[1:2])
    start = _after(found, word)
    if start is None:
        raise refuse_unsupported(f"{found[0].value.upper()} of this form is not allowed", position=found[0].start + 1)
    rest = found[start:]
    if not (rest[0].is_symbol("(") or rest[0].is_word("select", "with", "values", "table")):
        raise refuse_unsupported(f"{what} of {rest[0].value.upper()[:40]} is not allowed", position=rest[0].start + 1)
    result = query_statement(text, rest, catalog)
    return PassThrough(found[0].value) if isinstance(result, PassThrough) else result


def declare_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read a cursor over a question. The question is answered when the cursor is declared, and FETCH reads the answer.

    A cursor of the same kind over nothing, declared and closed first, shows whether there may be one here: a name that
    is taken and a missing transaction are found before anything else happens. Declared over no keys, and closed, the
    cursor itself shows the rest.
    """
    result = _read_held_query("for", "a cursor", text, found, catalog)
    if not isinstance(result, Asking):
        return result
    close = f"CLOSE {text[found[1].start : found[1].end]}"
    query = _after(found, "for")
    assert query is not None
    declared = f"{text[found[0].start : found[query].start]}SELECT 1"
    return replace(result, beforehand=(declared, close), rehearsal=(close,))


def prepare_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read PREPARE of a query: Keyhole's answer to it is kept. Raise as `classify` does."""
    result = _read_held_query("as", "PREPARE", text, found, catalog)
    if isinstance(result, PassThrough):
        return result
    start = _after(found, "as")
    assert start is not None
    return Preparing(text=text[found[start].start : found[-1].end], name=found[1].value)


def execute_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    """Read EXECUTE; any other statement is left to the shadow to refuse. Raise KH404."""
    check_own_names(found[1:2])
    if len(found) < 2 or not found[1].names:
        return PassThrough("execute")
    given, count, depth = found[2:], 0, 0
    if given:
        if not given[0].is_symbol("(") or not given[-1].is_symbol(")") or len(given) < 3:
            return PassThrough("execute")
        count = 1
        for index, token in enumerate(given):
            depth += token.is_symbol("(") + token.is_symbol("[") - token.is_symbol(")") - token.is_symbol("]")
            count += depth == 1 and token.is_symbol(",")
            if depth == 0 and index + 1 < len(given):
                return PassThrough("execute")
    at = found[1].end
    return Executing(name=found[1].value, given=text[at : found[-1].end], given_at=at, count=count)
