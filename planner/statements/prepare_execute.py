"""Statements that store a query and run it later: DECLARE, PREPARE and EXECUTE."""

from dataclasses import replace

from planner.catalog.catalog import Catalog
from planner.errors import refuse_unsupported
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.statements.allow_list import check_own_names
from planner.statements.kinds import ExecuteStatement, PassThrough, PrepareStatement, Statement
from planner.statements.query import read_query


def _find_after(found: tuple[Token, ...], word: str) -> int | None:
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
    start = _find_after(found, word)
    if start is None:
        raise refuse_unsupported(f"{found[0].value.upper()} of this form is not allowed", position=found[0].start + 1)
    rest = found[start:]
    if not (rest[0].is_symbol("(") or rest[0].is_word("select", "with", "values", "table")):
        raise refuse_unsupported(f"{what} of {rest[0].value.upper()[:40]} is not allowed", position=rest[0].start + 1)
    result = read_query(text, rest, catalog)
    return PassThrough(found[0].value) if isinstance(result, PassThrough) else result


def read_declare(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read DECLARE of a cursor over a question.

    The question is answered when the cursor is declared; FETCH reads the answer.

    First a cursor of the same kind over no rows is declared and closed. It shows whether a cursor may be declared here:
    a name that is taken and a missing transaction are found before anything else happens. The cursor itself, declared
    over no keys and closed, shows the other errors.
    """
    result = _read_held_query("for", "a cursor", text, found, catalog)
    if not isinstance(result, Asking):
        return result
    close = f"CLOSE {text[found[1].start : found[1].end]}"
    query = _find_after(found, "for")
    assert query is not None
    declared = f"{text[found[0].start : found[query].start]}SELECT 1"
    return replace(result, first_statements=(declared, close), rehearsal=(close,))


def read_prepare(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read PREPARE of a query. Keyhole's part of it is stored. Raise as `classify` does."""
    result = _read_held_query("as", "PREPARE", text, found, catalog)
    if isinstance(result, PassThrough):
        return result
    start = _find_after(found, "as")
    assert start is not None
    return PrepareStatement(text=text[found[start].start : found[-1].end], name=found[1].value)


def read_execute(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    """Parse EXECUTE. Leave a malformed EXECUTE to the shadow, which refuses it. Raise KH404."""
    check_own_names(found[1:2])
    if len(found) < 2 or not found[1].is_name:
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
    return ExecuteStatement(name=found[1].value, arguments=text[at : found[-1].end], arguments_at=at, count=count)
