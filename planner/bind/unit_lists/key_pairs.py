"""Lists of rows of one key within a unit: which equalities of a subquery with the question name such a key.

    SELECT o_orderpriority FROM orders WHERE EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND ...)

The policy says that rows of `lineitem` find their unit in `orders` by this key. Rows with equal keys are of one unit
then, so that the list is of units and keys: the unit is equated as well, whatever the text says of it.

Proof: docs/proofs/unit_paths.md.
"""

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType, Table
from planner.scope.name_resolution import Scope, find_column

_Place = tuple[str, str]
"""A table, and a column of it."""
_KINDS = frozenset({SqlType.INTEGER, SqlType.DATE, SqlType.UUID})  # that every table carries whole, and compares alike


def list_key_columns(tables: Sequence[Table]) -> frozenset[str]:
    """Return the names of the columns by which rows of the tables find their unit, and of columns equal to these."""
    found: set[str] = set()
    for first in tables:
        for table in first.stored_tables:
            if table.path is not None:
                found |= {*table.path.from_columns, *table.path.to_columns}
    return frozenset(found)


def read_key_pairs(
    pairs: Sequence[tuple[exp.Expr, exp.Expr]], scope: Scope, own: Scope
) -> tuple[tuple[str, str], ...] | None:
    """Return the equated columns of a question's table and of a subquery's table, if they are one whole key.

    Return None for anything else. Raises KH201 for unknown names.

    Parameters:
        pairs: a column of the question, and one of the subquery, of each equality.
    """
    columns = [(find_column(one, scope), find_column(other, own)) for one, other in pairs]
    both = [(one, other) for one, other in columns if one is not None and other is not None]
    if not both or len(both) < len(columns) or not all(_have_equal_values(*pair) for pair in both):
        return None
    tables = {table.name: table for table in scope.table.stored_tables}
    for key in _list_keys(own.table, tables):
        met = {inner.name for outer, inner in both if key.get(inner.name) in set(_list_places(outer, scope, tables))}
        if met == set(key) and all(inner.name in met for _, inner in both):
            return tuple(sorted((outer.name, inner.name) for outer, inner in both))
    return None


def _have_equal_values(outer: Column, inner: Column) -> bool:
    stored = outer.derivation is None and inner.derivation is None
    return stored and outer.sql_type is inner.sql_type and outer.sql_type in _KINDS


def _list_keys(own: Table, tables: Mapping[str, Table]) -> Iterator[Mapping[str, _Place]]:
    """Yield the keys of the subquery's table: its columns, each with the column of the table that it leads to."""
    if own.path is not None:
        yield {
            by: (own.path.table.name, there)
            for by, there in zip(own.path.from_columns, own.path.to_columns, strict=True)
        }
    for table in tables.values():
        if table.path is not None and table.path.table.name == own.name:
            yield {there: (own.name, there) for there in table.path.to_columns}


def _list_places(column: Column, scope: Scope, tables: Mapping[str, Table]) -> Iterator[_Place]:
    """Yield the place where a column of the question is stored, and its equals along the path of that table."""
    stored = [(member.name, own) for member in scope.members for own, named in member.columns if named == column.name]
    for name, own in stored or [(scope.table.name, column.name)]:
        yield name, own
        path = tables[name].path if name in tables else None
        if path is not None and own in path.from_columns:
            yield path.table.name, path.to_columns[path.from_columns.index(own)]
