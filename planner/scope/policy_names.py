"""Tables that a statement calls by the source's names, and their names in the policy.

SELECT archive.claims.region FROM archive.claims
SELECT claims.region FROM old_claims AS claims
"""

from collections.abc import Iterator

from sqlglot import exp

from planner.catalog.catalog import Catalog
from planner.catalog.source_names import SourceName, find_source_name
from planner.parser.clauses import find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token, spell_name
from planner.parser.tree import ParsedQuery, find_offset, locate_name, read_name

_CATALOG = "pg_"  # names of PostgreSQL's own relations, which come before all that are in other schemas


def use_policy_names(query: ParsedQuery, catalog: Catalog) -> tuple[Edit, ...]:
    """Return the edits that replace the source's names of tables by the policy's, with the old name as an alias.

    Guarantee: a name that is the policy's own, or a WITH query's, keeps its meaning. A name without a schema is looked
    up in `public` first, then in the other schemas in their order. A session's search_path changes nothing.
    """
    if not catalog.source_names:
        return ()
    found = list(_find_tables(query, catalog))
    if not found:
        return ()
    bare = {known for node, known in found if not node.alias}
    tables = (_rename(node, known, query.tokens) for node, known in found)
    return (*tables, *_unqualify(query, catalog, bare))


def _find_tables(query: ParsedQuery, catalog: Catalog) -> Iterator[tuple[exp.Table, SourceName]]:
    own = catalog.names
    hidden = {called for called, _ in query.list_ctes()}
    for node, database, schema, called in query.tables:
        if database not in ("", catalog.database):
            continue
        if schema == "" and (called in own or called in hidden or called.startswith(_CATALOG)):
            continue
        known = find_source_name(catalog.source_names, schema, called)
        if known is not None:
            yield node, known


def _rename(node: exp.Table, known: SourceName, tokens: tuple[Token, ...]) -> Edit:
    first = find_token(tokens, locate_name(node))
    last = find_token(tokens, find_offset(node.this))
    keeps = node.alias or known.table == known.name or (first > 0 and tokens[first - 1].is_word("table"))
    alias = "" if keeps else f" AS {spell_name(known.name)}"
    return Edit.from_text(tokens[first].start, tokens[last].end, spell_name(known.table) + alias)


def _unqualify(query: ParsedQuery, catalog: Catalog, bare: set[SourceName]) -> Iterator[Edit]:
    """Yield the edits that remove schemas before columns of tables without an alias."""
    for column in query.tree.find_all(exp.Column):
        schema, table, database = (column.args.get(part) for part in ("db", "table", "catalog"))
        if schema is None or table is None or read_name(database) not in ("", catalog.database):
            continue
        if find_source_name(bare, read_name(schema), read_name(table)) is not None:
            start = find_offset(database or schema)
            yield Edit.from_text(query.tokens[find_token(query.tokens, start)].start, find_offset(table), "")
