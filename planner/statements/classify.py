"""The kinds of statements, by an allow-list: passed to the shadow, a setting, one with questions inside, or refused.

A statement that is passed by mistake still fails, because the shadow holds no private data and its role may not read
the tables.
"""

from collections.abc import Callable

from planner.catalog.catalog import Catalog
from planner.errors import refuse_unsupported
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token, read_tokens, split_statements
from planner.scope.embedded import EmbeddedQuestion, EmbeddedRelation
from planner.statements.allow_list import check_functions, check_own_names
from planner.statements.copy_to import read_copy
from planner.statements.explain import read_explain
from planner.statements.kinds import (
    CopiedQuery,
    CopyStatement,
    ExecuteStatement,
    ExplainStatement,
    KeyholeSetting,
    PassThrough,
    PrepareStatement,
    Statement,
)
from planner.statements.prepare_execute import read_declare, read_execute, read_prepare
from planner.statements.query import read_query
from planner.statements.set_reset import read_reset, read_set
from planner.statements.statement_refusals import refuse_nesting, refuse_prepared_transaction, refuse_several_statements


def classify(text: str, catalog: Catalog) -> Statement:
    """Return the kind of one statement.

    Raises KH100, KH101-KH108, KH2xx where keys cannot be resolved, KH402, KH403, with positions in `text`.
    """
    found = read_tokens(text)
    if found and found[-1].is_symbol(";"):
        found = found[:-1]
    for token in found:
        if token.is_symbol(";"):
            raise refuse_several_statements(token)
    if not found:
        return PassThrough("empty")
    try:
        return _classify(text, found, catalog)
    except RecursionError:
        raise refuse_nesting() from None


def _classify(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    first = found[0]
    if first.is_symbol("(") or first.is_word("select", "with", "values", "table"):
        return read_query(text, found, catalog)
    handler = _HANDLERS.get(first.value) if first.kind == "word" else None
    if handler is None:
        instead = _INSTEAD.get(first.value) if first.kind == "word" else None
        raise refuse_unsupported(f"{first.value.upper()[:40]} is not allowed", position=first.start + 1, hint=instead)
    check_functions(found)
    return handler(text, found, catalog)


def _pass_through(kind: str) -> Callable[[str, tuple[Token, ...], Catalog], Statement]:
    def handler(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
        return PassThrough(kind)

    return handler


def _pass_through_checked(kind: str) -> Callable[[str, tuple[Token, ...], Catalog], Statement]:
    def handler(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
        check_own_names(found[1:])
        return PassThrough(kind)

    return handler


def _classify_transaction(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    for token in found[1:]:
        if token.is_word("prepared"):
            raise refuse_prepared_transaction(found[0])
    return PassThrough("transaction")


def find_prepared_question(text: str, catalog: Catalog, *, in_sql: bool) -> str | None:
    """Return the text of a prepared statement for which Keyhole answers at least a part. Return None for all others.

    Statements are prepared by SQL's PREPARE (`in_sql`) or by the protocol. Raise KH1xx and KH2xx as `classify` does.
    """
    parts = split_statements(text)
    if len(parts) != 1:
        return None  # a text that prepares a question among other statements is never sent as a whole
    match classify(parts[0].text, catalog):
        case PrepareStatement(text=inner) if in_sql:
            return inner
        case Asking(rehearsal=()) if not in_sql:
            return parts[0].text
        case _:
            return None


_INSTEAD = {
    "lock": "Leave it out: nobody can change what is here.",
    "analyze": "Leave it out: the tables here are empty, and EXPLAIN tells what a question costs.",
    "vacuum": "Leave it out: there is nothing to clean.",
}
_HANDLERS: dict[str, Callable[[str, tuple[Token, ...], Catalog], Statement]] = {
    "show": _pass_through("show"),
    "set": read_set,
    "reset": read_reset,
    "begin": _classify_transaction,
    "start": _classify_transaction,
    "commit": _classify_transaction,
    "end": _classify_transaction,
    "rollback": _classify_transaction,
    "abort": _classify_transaction,
    "savepoint": _classify_transaction,
    "release": _classify_transaction,
    "declare": read_declare,
    "fetch": _pass_through_checked("fetch"),
    "move": _pass_through_checked("move"),
    "close": _pass_through_checked("close"),
    "prepare": read_prepare,
    "execute": read_execute,
    "deallocate": _pass_through_checked("deallocate"),
    "discard": _pass_through("discard"),
    "listen": _pass_through("listen"),  # harmless: nobody may notify
    "unlisten": _pass_through("unlisten"),
    "explain": read_explain,
    "copy": read_copy,
}


__all__ = [
    "Asking",
    "CopiedQuery",
    "CopyStatement",
    "EmbeddedQuestion",
    "EmbeddedRelation",
    "ExecuteStatement",
    "ExplainStatement",
    "KeyholeSetting",
    "PassThrough",
    "PrepareStatement",
    "Statement",
    "classify",
    "find_prepared_question",
]
