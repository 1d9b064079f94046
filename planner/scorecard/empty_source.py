"""The FROM of a question with no row in its private tables, from which PostgreSQL finds the type of any number.

FROM sales s JOIN regions r ON r.name = s.country FROM (SELECT NULL::text AS country WHERE false) s JOIN regions r ON
r.name = s.country
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import exp

from planner.catalog.catalog import BandColumn, Catalog, Table
from planner.parser.clauses import Clauses, find_closing, find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token, quote_identifier
from planner.parser.tree import find_offset, locate_name, read_name


def write_empty_source(
    select: exp.Select, place: Clauses, text: str, tokens: tuple[Token, ...], catalog: Catalog
) -> str:
    """Return a question's FROM clause with each private table replaced by a subquery without rows.

    The subqueries have the columns that the statement names.
    """
    past = min((index for _, index in place.marks), default=place.end)
    parts = [select.args["from_"], *(select.args.get("joins") or ())]
    return _write_with_empty_tables(parts, place.source, past, text, tokens, catalog, select)


def _write_with_empty_tables(
    parts: Sequence[exp.Expr],
    first: int,
    past: int,
    text: str,
    tokens: tuple[Token, ...],
    catalog: Catalog,
    select: exp.Select,
) -> str:
    tables = [node for part in parts for node in part.find_all(exp.Table)]
    edits = [one for node in tables if (one := _empty_table(node, text, tokens, catalog, select)) is not None]
    edits += [one for part in parts for node in part.find_all(exp.Column) for one in _drop_schema(node)]
    at, written = tokens[first].start, []
    for edit in sorted(edits):
        written += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*written, text[at : tokens[past - 1].end]))


def _drop_schema(node: exp.Column) -> Iterator[Edit]:
    """Yield the edit that qualifies a column by its table alone, which may be a subquery there."""
    if (schema := node.args.get("catalog") or node.args.get("db")) is not None:
        yield Edit.from_text(find_offset(schema), find_offset(node.args["table"]), "")


def _empty_table(
    node: exp.Table, text: str, tokens: tuple[Token, ...], catalog: Catalog, select: exp.Select
) -> Edit | None:
    """Return the edit that makes a private table, or a WITH query that reads one, a relation without rows."""
    first = find_token(tokens, locate_name(node))
    last = find_token(tokens, find_offset(node.this))
    alias = node.args.get("alias")
    called = read_name(node.this)
    named = "" if alias is not None and alias.this is not None else f" AS {quote_identifier(called)}"
    table = catalog.find_table(called) if read_name(node.args.get("db")) in ("", "public") else None
    if table is not None:
        return Edit.from_text(
            tokens[first].start, tokens[last].end, write_without_rows(table, _list_mentioned_names(tokens)) + named
        )
    if node.args.get("db") is not None:
        return None
    for cte in select.root().find_all(exp.CTE):
        inside = cte.this
        if read_name(cte.args["alias"].this) != called or not isinstance(inside, exp.Select):
            continue
        read = [one for one in inside.find_all(exp.Table) if catalog.find_table(read_name(one.this)) is not None]
        if not read or cte.args["alias"].args.get("columns"):
            continue
        opening = find_token(tokens, find_offset(cte.args["alias"].this))
        while not tokens[opening].is_symbol("("):
            opening += 1
        closing = find_closing(tokens, opening)
        written = _write_with_empty_tables([inside], opening, closing + 1, text, tokens, catalog, select)
        return Edit.from_text(tokens[first].start, tokens[last].end, written + named)
    return None


def _list_mentioned_names(tokens: tuple[Token, ...]) -> frozenset[str] | None:
    """Return the names in a statement, or None if a star may mean others, too."""
    for before, token in pairwise(tokens):
        if token.is_symbol("*") and (before.is_symbol(".") or before.is_symbol(",") or before.is_word("select")):
            return None
    return frozenset(token.value for token in tokens if token.is_name)


def write_without_rows(table: Table, mentioned: frozenset[str] | None = None) -> str:
    """Return a private table as a subquery without rows that has its columns, or those that are `mentioned`."""
    declared = [(column.name, column.declared) for column in table.columns]
    declared += [(shown.name, BandColumn.DECLARED) for shown in table.band_columns]
    kept = [one for one in declared if mentioned is None or one[0] in mentioned]
    columns = ", ".join(f"NULL::{type_} AS {quote_identifier(called)}" for called, type_ in kept or declared[:1])
    return f"(SELECT {columns} WHERE false)"
