"""Keys that a source keeps unique, as statements may count on them.

Guarantee: values of a key that differ in the source differ to questions as well, so that of one value of it there is
one row at most. Tables are left out whose rows are several relations', as a constraint of one of them says nothing of
the others.

References: docs/decisions/0040-named-steps.md.
"""

from collections.abc import Mapping
from dataclasses import replace

from planner.catalog.catalog import Catalog, SqlType, Table
from planner.catalog.relation_names import RelationIdentity

_COMPARED_ALIKE = frozenset({SqlType.INTEGER, SqlType.TEXT, SqlType.DATE, SqlType.UUID})
"""Types of which two stored values that differ are read as two: no time zone and no rounding is between them."""


def know_keys(catalog: Catalog, identities: Mapping[str, RelationIdentity]) -> Catalog:
    """Return the catalog whose private tables know their keys, wherever they are reached.

    Parameters:
        identities: by a table's name, what it is in the source.
    """
    return replace(catalog, tables=tuple(_know(table, identities) for table in catalog.tables))


def forget_keys(table: Table) -> Table:
    """Return the table without keys, for statements of which nobody asks whether the keys are still kept."""
    return _know(table, {})


def _know(table: Table, identities: Mapping[str, RelationIdentity]) -> Table:
    path = None if table.path is None else replace(table.path, table=_know(table.path.table, identities))
    return replace(table, path=path, keys=_list_keys(table, identities.get(table.name)))


def _list_keys(table: Table, identity: RelationIdentity | None) -> frozenset[frozenset[str]]:
    if identity is None or not identity.holds_keys or identity.is_view or len(identity.bases) != 1:
        return frozenset()
    usable = {
        column.name
        for column in table.columns
        if column.derivation is None and column.stored is not None and column.sql_type in _COMPARED_ALIKE
    }
    found = (*(frozenset({name}) for name in identity.unique), *identity.keys)
    return frozenset(key for key in found if key and key <= usable)
