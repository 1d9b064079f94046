"""Names of a unit's column that one table of FROM stores and another table finds in it.

PostgreSQL shall read the first.

    SELECT o_month FROM orders, lines WHERE o_key = l_order AND o_customer = c_key ...
    SELECT o_month FROM orders, lines WHERE o_key = l_order AND orders.o_customer = c_key ...

The source has the column in one table alone, so that nobody would qualify it there. The shadow has it in both.
"""

from collections.abc import Iterator

from sqlglot import exp

from planner.catalog.catalog import Catalog, Table
from planner.parser.clauses import find_token
from planner.parser.edits import Edit
from planner.parser.lexer import spell_name
from planner.parser.tree import ParsedQuery, find_offset, read_alias, read_name


def qualify_stored_units(query: ParsedQuery, catalog: Catalog) -> tuple[Edit, ...]:
    """Return the edits that qualify the names of stored unit columns by the table that stores them.

    Guarantee: a name that already means one column, or a column of the answer in ORDER BY, is unchanged.
    """
    if all(table.path is None for table in catalog.tables):
        return ()
    return tuple(edit for select in query.tree.find_all(exp.Select) for edit in _qualify(select, query, catalog))


def _qualify(select: exp.Select, query: ParsedQuery, catalog: Catalog) -> Iterator[Edit]:
    from_ = select.args.get("from_")
    nodes = [] if from_ is None else [from_.this, *(join.this for join in select.args.get("joins") or ())]
    read = [(node, table) for node in nodes if (table := _find_table(node, catalog)) is not None]
    units = {unit for _, table in read if table.path is not None for unit in table.unit}
    storing = {unit: [node for node, table in read if _has_stored_column(table, unit)] for unit in units}
    wanted = {unit: read_alias(found[0]) for unit, found in storing.items() if len(found) == 1}
    if not wanted:
        return
    shown = {read_name(item.args["alias"]) for item in select.expressions if isinstance(item, exp.Alias)}
    for column in select.find_all(exp.Column):
        called = read_name(column.this)
        if called not in wanted or column.args.get("table") is not None:
            continue
        if column.find_ancestor(exp.Select) is not select or (called in shown and _is_in_order_by(column)):
            continue
        at = query.tokens[find_token(query.tokens, find_offset(column.this))].start
        yield Edit.from_text(at, at, f"{spell_name(wanted[called])}.")


def _find_table(node: exp.Expr, catalog: Catalog) -> Table | None:
    if not isinstance(node, exp.Table) or read_name(node.args.get("db")) not in ("", "public"):
        return None
    return next((table for table in catalog.tables if table.name == read_name(node.this)), None)


def _has_stored_column(table: Table, unit: str) -> bool:
    """Return True if the table has a column of this name and it is not a unit's column from another table."""
    found = table.path is not None and unit in table.unit
    return not found and any(column.name == unit for column in table.columns)


def _is_in_order_by(column: exp.Column) -> bool:
    return isinstance(column.parent, exp.Ordered)
