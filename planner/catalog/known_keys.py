"""Keys that a source keeps unique, on which statements may rely.

Guarantee: values of a key that differ in the source also differ for questions. At most one row therefore has a given
value. Tables whose rows come from several relations are left out, because a constraint of one relation says nothing
about the others.

References: docs/decisions/0040-named-steps.md.
"""

from collections.abc import Mapping
from dataclasses import replace

from planner.catalog.catalog import Catalog, SqlType, Table
from planner.catalog.relation_names import RelationIdentity

_EXACTLY_COMPARED = frozenset({SqlType.INTEGER, SqlType.TEXT, SqlType.DATE, SqlType.UUID})
"""Types without time zones and rounding: two different stored values are also read as different values."""


def add_source_keys(catalog: Catalog, identities: Mapping[str, RelationIdentity]) -> Catalog:
    """Return the catalog with the source's keys in each private table, also in tables reached by a path.

    Parameters:
        identities: the identity of each table in the source, by the table's name.
    """
    return replace(catalog, tables=tuple(_add_keys(table, identities) for table in catalog.tables))


def drop_source_keys(table: Table) -> Table:
    """Return the table without the source's unique keys. Statements over the result do not check these keys."""
    return _add_keys(table, {})


def _add_keys(table: Table, identities: Mapping[str, RelationIdentity]) -> Table:
    path = None if table.path is None else replace(table.path, table=_add_keys(table.path.table, identities))
    return replace(table, path=path, keys=_list_keys(table, identities.get(table.name)))


def _list_keys(table: Table, identity: RelationIdentity | None) -> frozenset[frozenset[str]]:
    if identity is None or not identity.can_check_keys or identity.is_view or len(identity.bases) != 1:
        return frozenset()
    usable = {
        column.name
        for column in table.columns
        if column.derivation is None and column.stored is not None and column.sql_type in _EXACTLY_COMPARED
    }
    found = (*(frozenset({name}) for name in identity.unique), *identity.keys)
    return frozenset(key for key in found if key and key <= usable)
