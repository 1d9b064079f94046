"""The relations of a statement that Keyhole answers for.

They are private tables, stored questions, monitors, and the relations under `keyhole.`.
"""

from typing import TypeAlias

from sqlglot import exp

from planner.bind.unit_lists.find_lists import find_listing_tables
from planner.bind.unit_values.find_sources import find_value_tables
from planner.catalog.catalog import Catalog, StoredQuestion, Table
from planner.catalog.monitor import Monitor
from planner.extract.virtual_relations import VIRTUAL_SCHEMA, VirtualRelation, find_virtual_relation
from planner.parser.tree import NamedTable, ParsedQuery, locate_name

Relation: TypeAlias = Table | StoredQuestion | Monitor | VirtualRelation


def list_relations(
    query: ParsedQuery, catalog: Catalog, *, idle: frozenset[int] = frozenset()
) -> list[tuple[exp.Table, Relation]]:
    """Return the relations that a query reads, each with its node, in the order of the text.

    Tables that are read by lists or values of privacy units are left out, since these are parts of questions. Raise
    KH106 for a name that the parser made up.

    Parameters:
        idle: the ids of tables whose rows are never read.
    """
    found = [(named.node, what) for named in query.tables if (what := _find_relation(named, catalog)) is not None]
    private = {id(node): what for node, what in found if isinstance(what, Table)}
    if len(private) > 1:
        parts = find_listing_tables(query.tree, private, idle=idle) | find_value_tables(query.tree, private, idle=idle)
        found = [pair for pair in found if id(pair[0]) not in parts]
    return sorted(found, key=lambda pair: locate_name(pair[0]))


def list_private_tables(query: ParsedQuery, catalog: Catalog) -> list[tuple[exp.Table, Table]]:
    """Return the private tables among the relations that `list_relations` finds."""
    return [(node, what) for node, what in list_relations(query, catalog) if isinstance(what, Table)]


def _find_relation(named: NamedTable, catalog: Catalog) -> Relation | None:
    _, database, schema, called = named
    if database not in ("", catalog.database):
        return None
    if schema == VIRTUAL_SCHEMA:
        return find_virtual_relation(called)
    if schema not in ("", "public"):
        return None
    stored = next((question for question in catalog.stored_questions if question.name == called), None)
    return catalog.find_table(called) or stored or catalog.find_monitor(called)
