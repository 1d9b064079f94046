"""Subqueries that a question reads alone, and that give the rows of one private table with values of their units.

    SELECT product FROM (SELECT product, row_number() OVER (PARTITION BY person ORDER BY ordered_at) AS n FROM sales) q
    WHERE n = 1 GROUP BY product HAVING count(*) > 50

The question is one over that table: a window over the privacy unit is a further column of each row, DISTINCT ON the
unit leaves each unit's first row, and GROUP BY the unit its first row with what all of them come to. Rows that are
equal in the order of a window follow each other as all exposed columns do, so that no chance decides which is first.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.from_clause import ON_TABLE, split_conjuncts
from planner.bind.unit_values.find_sources import find_value_name, list_columns
from planner.bind.unit_values.read_values import OF_EACH_ROW, ValueColumns, add_columns, read_order
from planner.bind.unit_values.unit_value_refusals import (
    refuse_clause_in_values,
    refuse_unknown_value,
    refuse_values_of_rows,
)
from planner.catalog.catalog import Lookup, MergedKeys, SqlType, Table, ValueGroups
from planner.errors import KeyholeError
from planner.parser.clauses import Clauses, find_clauses, find_closing
from planner.parser.lexer import Token
from planner.parser.subquery_readers import Reader, list_readers
from planner.parser.tree import contains_type, is_star, read_alias, read_name, strip_parentheses, write_node
from planner.scope.embedded import UnitValuesQuery
from planner.scope.group_by import list_grouped_columns
from planner.scope.name_resolution import Scope, UnitTable, find_column

_WITH_WINDOWS = frozenset(("expressions", "from_", "where"))
_GROUPED = frozenset(("expressions", "from_", "where", "group", "having"))
_DISTINCT = frozenset(("expressions", "from_", "where", "distinct", "order"))
_TIMES = frozenset({SqlType.DATE, SqlType.TIMESTAMP})


@dataclass(frozen=True, slots=True)
class RowsQuestion:
    """A question over a subquery of units' values: its SELECT, its clauses, the scope of its names, and the values.

    `with_query_tokens` is the token range of the WITH query that it reads: the first, and the one past the last.
    """

    select: exp.Select
    clauses: Clauses
    scope: Scope
    query: UnitValuesQuery
    with_query_tokens: tuple[int, int] | None


def read_row_values(
    select: exp.Select, node: exp.Table, table: Table, tokens: tuple[Token, ...]
) -> tuple[RowsQuestion, ...]:
    """Return the questions that read `select`, a subquery of rows of a private table with values of their units.

    Return none if `select` is not such a subquery. Raises KH107, KH201.
    """
    known = _find_form(select, table, node)
    if known is None:
        return ()
    place = find_clauses(node, tokens)
    found = list_readers(select, place.select, tokens)
    if not found or not all(reader.is_only_source and _is_question(reader.select) for reader in found):
        return ()
    if known is _GROUPED and not any(reads_totals(one.select, select, table, node) for one in found):
        return ()
    if table.is_row_unit:
        raise refuse_values_of_rows(table, node)
    for one, parts in ((select, known), (node, ON_TABLE)):
        if (extra := next((key for key, value in one.args.items() if value and key not in parts), None)) is not None:
            raise refuse_clause_in_values(extra.strip("_"), select)
    emptied = None
    if isinstance(select.parent, exp.CTE):
        emptied = (place.select, find_closing(tokens, place.select - 1))
    return tuple(_read_question(reader, select, node, table, emptied) for reader in found)


def _find_form(select: exp.Select, table: Table, node: exp.Table) -> frozenset[str] | None:
    """Return the clauses that the subquery may have.

    Its form is one of three: windows, DISTINCT ON, or groups of one unit each.
    """
    if not isinstance(select.parent, exp.Subquery | exp.CTE) or select.args.get("joins"):
        return None
    distinct = select.args.get("distinct")
    if distinct is not None:
        return _DISTINCT if distinct.args.get("on") is not None and select.args.get("group") is None else None
    if select.args.get("group") is None:
        return _WITH_WINDOWS if any(_find_window(item) is not None for item in select.expressions) else None
    return _GROUPED if _is_by_unit(select, table, node) else None


def _is_by_unit(select: exp.Select, table: Table, node: exp.Table) -> bool:
    """Return True if a subquery groups by the privacy unit and nothing else."""
    try:
        groups = list_grouped_columns(select, Scope(table=table, alias=read_alias(node)))
    except KeyholeError:
        return False
    return bool(table.unit) and {one.name for one in groups} == set(table.unit)


def _find_window(item: exp.Expr) -> exp.Window | None:
    node = strip_parentheses(item.this if isinstance(item, exp.Alias) else item)
    return node if isinstance(node, exp.Window) and node.args.get("partition_by") else None


def _is_question(select: exp.Select) -> bool:
    return select.args.get("group") is not None or select.args.get("having") is not None


def reads_totals(outer: exp.Select, select: exp.Select, table: Table, node: exp.Table) -> bool:
    """Return True if a question over one row per unit groups by totals, or reads totals that are dates.

    Any other question over one row per unit belongs to `planner/bind/unit_totals.py`.
    """
    if not _is_by_unit(select, table, node):
        return False
    own = Scope(table=table, alias=read_alias(node))
    totals = {find_value_name(item): item for item in select.expressions if contains_aggregate(item)}
    read = {read_name(column.this) for column in list_columns(outer)}
    for called, item in totals.items():
        for inner in item.find_all(exp.Min, exp.Max) if called in read else ():
            column = find_column(inner.this, own) if isinstance(inner.this, exp.Column) else None
            if column is not None and column.sql_type in _TIMES:
                return True
    group = outer.args.get("group")
    shown = {find_value_name(item): item.this if isinstance(item, exp.Alias) else item for item in outer.expressions}
    for item in () if group is None else group.expressions:
        chosen = item
        if isinstance(item, exp.Literal) and not item.is_string:
            index = int(str(item.this)) - 1 if str(item.this).isdigit() else -1
            chosen = outer.expressions[index] if 0 <= index < len(outer.expressions) else item
        elif isinstance(item, exp.Column) and read_name(item.this) not in totals:
            chosen = shown.get(read_name(item.this), item)
        if any(read_name(column.this) in totals for column in chosen.find_all(exp.Column)):
            return True
    return False


def _read_question(
    reader: Reader, select: exp.Select, node: exp.Table, table: Table, emptied: tuple[int, int] | None
) -> RowsQuestion:
    where, having = select.args.get("where"), select.args.get("having")
    for part in (where, *select.expressions):
        if part is not None and contains_type(part, exp.Query):
            raise refuse_clause_in_values("a subquery", part)
    own = Scope(table=table, alias=read_alias(node))
    values = ValueColumns(table, table, own, "" if where is None else write_node(where.this), {})
    read = frozenset(read_name(column.this) for column in list_columns(reader.select))
    columns: dict[str, str] = {}
    for item in select.expressions:
        columns |= dict(_read_item(item, own, values, read))
    alias = reader.alias or "rows"
    asked = None if having is None else values.replace_by_columns(having.this)
    present = values.add_presence() if any(one.kind not in OF_EACH_ROW for one in values.asked) else None
    query = UnitValuesQuery(
        table=table,
        alias=own.alias,
        rows=tuple(split_conjuncts(None if where is None else where.this)),
        values=(),
        presence_value=present,
        having=asked,
        keeps_rows=True,
        rank_value=_add_first_place(select, values, own),
        tree=select,
    )
    member = UnitTable(alias, "", tuple(columns.items()), frozenset())
    scope = Scope(table=add_columns(table, values.columns), alias=alias, members=(member,))
    query = replace(query, values=tuple(values.asked))
    return RowsQuestion(reader.select, reader.clauses, scope, query, emptied)


def _add_first_place(select: exp.Select, values: ValueColumns, own: Scope) -> str | None:
    """Return the column of each row's place, if a subquery has one row of a unit only."""
    if select.args.get("group") is not None:
        return values.add_row_number(())
    distinct = select.args.get("distinct")
    if distinct is None:
        return None
    on = distinct.args["on"]
    units = [find_column(one, own) for one in (on.expressions if isinstance(on, exp.Tuple) else [on])]
    if None in units or {one.name for one in units if one is not None} != set(own.table.unit):
        raise refuse_clause_in_values("distinct on other columns than those of the privacy unit", on)
    order = select.args.get("order")
    by = () if order is None else read_order(order.expressions, own)
    return values.add_row_number(tuple(one for one in by if one.column not in own.table.unit))


def _read_item(item: exp.Expr, own: Scope, values: ValueColumns, read: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that an item of the subquery's list gives, each with its column of the question's table."""
    node = strip_parentheses(item.this if isinstance(item, exp.Alias) else item)
    if is_star(node):
        yield from _list_all_columns(own.table)
        return
    called = find_value_name(item) or _name_window(node)
    found = find_column(node, own)
    if found is not None and (called or isinstance(item, exp.Column)):
        yield called or found.name, found.name
    elif called and called not in read:
        return  # nobody reads it
    elif called and isinstance(node, exp.Window):
        yield called, values.add_window(node)
    elif called and contains_aggregate(node):
        yield called, values.add(node)
    else:
        raise refuse_unknown_value(node, own.table)


def _name_window(node: exp.Expr) -> str:
    """Return the name that PostgreSQL gives a window without an alias."""
    match node.this if isinstance(node, exp.Window) else None:
        case exp.RowNumber():
            return "row_number"
        case exp.Rank():
            return "rank"
        case exp.FirstValue():
            return "first_value"
        case exp.Lag():
            return "lag"
        case exp.Lead():
            return "lead"
        case exp.Expr() as called:
            return find_value_name(called)
        case _:
            return ""


def _list_all_columns(table: Table) -> Iterable[tuple[str, str]]:
    made = Lookup | MergedKeys | ValueGroups
    return ((one.name, one.name) for one in table.columns if not isinstance(one.derivation, made))
