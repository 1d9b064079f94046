"""COPY of a query to the client: COPY (query) TO STDOUT, with PostgreSQL's options. Nothing else of COPY is allowed."""

from planner.catalog.catalog import Catalog
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.statements.kinds import Copied, Copying, PassThrough, Statement
from planner.statements.query import query_statement
from planner.statements.statement_refusals import copies_elsewhere, copies_other, copies_table


def copy_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read COPY of a query, which is answered as the query alone would be. Raise KH102 and as `classify` does."""
    close = _closing_index(found)
    if close is None:
        raise copies_table(found)
    query = found[2:close]
    if not query or not (query[0].is_symbol("(") or query[0].is_word("select", "with", "values", "table")):
        raise copies_other(found[2])
    behind = found[close + 1 :]
    if len(behind) < 2 or not behind[0].is_word("to") or not behind[1].is_word("stdout"):
        raise copies_elsewhere(behind[1] if len(behind) > 1 else found[-1])
    # blanks in place of what stands before it, so that every position in the query is one in the statement
    alone = " " * query[0].start + text[query[0].start : query[-1].end]
    result = query_statement(alone, query, catalog)
    if isinstance(result, PassThrough):
        return PassThrough("copy")
    spelled = result.spelled if isinstance(result, Asking) else ""
    return Copying(Copied(query=alone, behind=text[query[-1].end :], behind_at=query[-1].end, spelled=spelled))


def _closing_index(found: tuple[Token, ...]) -> int | None:
    """Return the end of the parentheses behind COPY."""
    depth = 0
    for index, token in enumerate(found[1:], start=1):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0:
            return index if index > 1 else None
    return None
