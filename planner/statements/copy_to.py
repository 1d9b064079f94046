"""COPY of a query to the client: COPY (query) TO STDOUT, with PostgreSQL's options. All other forms are refused."""

from planner.catalog.catalog import Catalog
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.statements.kinds import CopiedQuery, CopyStatement, PassThrough, Statement
from planner.statements.query import read_query
from planner.statements.statement_refusals import refuse_server_copy, refuse_statement_copy, refuse_table_copy


def read_copy(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read COPY of a query. The answer is that of the query. Raise KH102 for other COPY, and as `classify` does."""
    close = _find_closing(found)
    if close is None:
        raise refuse_table_copy(found)
    query = found[2:close]
    if not query or not (query[0].is_symbol("(") or query[0].is_word("select", "with", "values", "table")):
        raise refuse_statement_copy(found[2])
    behind = found[close + 1 :]
    if len(behind) < 2 or not behind[0].is_word("to") or not behind[1].is_word("stdout"):
        raise refuse_server_copy(behind[1] if len(behind) > 1 else found[-1])
    # blanks replace the text before it, so that positions in the query are positions in the statement
    alone = " " * query[0].start + text[query[0].start : query[-1].end]
    result = read_query(alone, query, catalog)
    if isinstance(result, PassThrough):
        return PassThrough("copy")
    spelled = result.shadow_text if isinstance(result, Asking) else ""
    return CopyStatement(
        CopiedQuery(query=alone, suffix=text[query[-1].end :], suffix_at=query[-1].end, shadow_text=spelled)
    )


def _find_closing(found: tuple[Token, ...]) -> int | None:
    """Return the index of the parenthesis that closes the query of a COPY."""
    depth = 0
    for index, token in enumerate(found[1:], start=1):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0:
            return index if index > 1 else None
    return None
