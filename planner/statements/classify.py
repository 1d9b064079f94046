"""The kinds of statements, by an allow-list: passed to the shadow, a setting, one with questions inside, or refused.

Whatever is let through by mistake still fails: the shadow holds no private data and its role may not read the tables.
"""

from collections.abc import Callable

from planner.catalog.catalog import Catalog
from planner.errors import refuse_unsupported
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token, split, tokens
from planner.scope.embedded import Embedded, EmbeddedVirtual
from planner.statements.allow_list import check_functions, check_own_names
from planner.statements.copy_to import copy_statement
from planner.statements.explain import explain_statement
from planner.statements.kinds import (
    Copied,
    Copying,
    Executing,
    Explaining,
    PassThrough,
    Preparing,
    SetKeyhole,
    Statement,
)
from planner.statements.prepare_execute import declare_statement, execute_statement, prepare_statement
from planner.statements.query import query_statement
from planner.statements.set_reset import reset_statement, set_statement
from planner.statements.statement_refusals import nested_too_deeply, prepares_transaction, several_statements


def classify(text: str, catalog: Catalog) -> Statement:
    """Return the kind of one statement.

    Raises KH100, KH101-KH108, KH2xx where keys cannot be resolved, KH402, KH403, with positions in `text`.
    """
    found = tokens(text)
    if found and found[-1].is_symbol(";"):
        found = found[:-1]
    for token in found:
        if token.is_symbol(";"):
            raise several_statements(token)
    if not found:
        return PassThrough("empty")
    try:
        return _classify(text, found, catalog)
    except RecursionError:
        raise nested_too_deeply() from None


def _classify(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    first = found[0]
    if first.is_symbol("(") or first.is_word("select", "with", "values", "table"):
        return query_statement(text, found, catalog)
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


def _pass_named(kind: str) -> Callable[[str, tuple[Token, ...], Catalog], Statement]:
    def handler(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
        check_own_names(found[1:])
        return PassThrough(kind)

    return handler


def _transaction(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    for token in found[1:]:
        if token.is_word("prepared"):
            raise prepares_transaction(found[0])
    return PassThrough("transaction")


def classify_prepared(text: str, catalog: Catalog, *, in_sql: bool) -> str | None:
    """Return Keyhole's answer to a prepared statement, by PREPARE or through the protocol; None if it does nothing.

    Raises KH1xx, KH2xx as `classify` does.
    """
    parts = split(text)
    if len(parts) != 1:
        return None  # a text that prepares a question among other statements is never sent as a whole
    match classify(parts[0].text, catalog):
        case Preparing(text=inner) if in_sql:
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
    "set": set_statement,
    "reset": reset_statement,
    "begin": _transaction,
    "start": _transaction,
    "commit": _transaction,
    "end": _transaction,
    "rollback": _transaction,
    "abort": _transaction,
    "savepoint": _transaction,
    "release": _transaction,
    "declare": declare_statement,
    "fetch": _pass_named("fetch"),
    "move": _pass_named("move"),
    "close": _pass_named("close"),
    "prepare": prepare_statement,
    "execute": execute_statement,
    "deallocate": _pass_named("deallocate"),
    "discard": _pass_through("discard"),
    "listen": _pass_through("listen"),  # harmless: nobody may notify
    "unlisten": _pass_through("unlisten"),
    "explain": explain_statement,
    "copy": copy_statement,
}


__all__ = [
    "Asking",
    "Copied",
    "Copying",
    "Embedded",
    "EmbeddedVirtual",
    "Executing",
    "Explaining",
    "PassThrough",
    "Preparing",
    "SetKeyhole",
    "Statement",
    "classify",
    "classify_prepared",
]
