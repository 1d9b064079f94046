"""Conditions on whole privacy units: the units that have rows in a table as a subquery asks for, or that have none.

    SELECT ward FROM visits WHERE patient_id IN (SELECT patient_id FROM visits WHERE ward = 'icu')
    GROUP BY ward HAVING count(DISTINCT patient_id) >= 50

Whether a unit is on such a list follows from its own rows alone, so that nobody's rows decide about another's. The list
is a subquery behind IN, = ANY or EXISTS, their negation, or one value in a comparison. It reads one table with the same
units, equates all columns of the unit, and may group by them. Rows whose unit is NULL belong to nobody: they put nobody
on a list, and no list has them.

Proof: docs/proofs/unit_lists.md.
"""

from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.bind_refusals import (
    refuse_clause_in_list,
    refuse_foreign_list,
    refuse_list_grouping,
    refuse_list_of_rows,
    refuse_list_without_unit,
    refuse_nested_list,
    refuse_row_condition_in_list,
)
from planner.bind.from_clause import IN_GROUPED_QUERY, ON_TABLE, find_private_table, split_conjuncts
from planner.bind.unit_join import have_same_units
from planner.bind.unit_lists.find_lists import AskedList, asks_of_units, find_lists, list_read_tables, list_sources
from planner.bind.unit_lists.flatten_list import flatten_list
from planner.bind.unit_lists.key_pairs import read_key_pairs
from planner.catalog.catalog import Catalog, SqlType, Table
from planner.parser.tree import read_alias, read_name, strip_parentheses
from planner.scope.embedded import UnitListQuery
from planner.scope.group_by import list_grouped_columns
from planner.scope.name_resolution import Scope, find_column
from planner.values.operators import FLIPPED_OPERATORS, OPERATORS

_COMPARED = frozenset(("<>", "<", "<=", ">", ">="))
_ORDERED = frozenset((SqlType.INTEGER, SqlType.DATE))  # whose least and greatest value every engine finds alike


def read_lists(select: exp.Select, scope: Scope, catalog: Catalog) -> tuple[tuple[UnitListQuery, ...], ...]:
    """Return the lists of units in a question's WHERE as clauses.

    A row counts if its unit is on a list of every clause.

    Raise KH107, KH201, KH202.
    """
    where = select.args.get("where")
    found: list[tuple[UnitListQuery, ...]] = []
    for part in split_conjuncts(None if where is None else where.this):
        clauses = find_lists(part) or ()
        asked = [(one, _find_listed_table(one.query, catalog)) for clause in clauses for one in clause]
        if not all(table is not None and asks_of_units(one, [scope.table, table]) for one, table in asked):
            continue
        tables = {id(one.query): table for one, table in asked if table is not None}
        found += [tuple(_read_list(one, tables[id(one.query)], scope) for one in clause) for clause in clauses]
    return tuple(found)


def _find_listed_table(inner: exp.Select, catalog: Catalog) -> Table | None:
    """Return the private table that a subquery reads first."""
    source = next(list_read_tables(inner), None)
    return None if source is None else find_private_table(source, catalog)


@dataclass(frozen=True, slots=True)
class _Conditions:
    """The WHERE of a list: the columns that it equates or compares with the question's, and the conditions on rows."""

    column_pairs: tuple[tuple[exp.Expr, exp.Expr], ...]
    rows: tuple[exp.Expr, ...]
    compared_columns: tuple[str, str, str] | None


def _read_list(asked: AskedList, table: Table, scope: Scope) -> UnitListQuery:
    outer, inner = scope.table, flatten_list(asked.query)
    if outer.is_row_unit or table.is_row_unit:
        raise refuse_list_of_rows(outer if outer.is_row_unit else table, inner)
    if not have_same_units((outer, table)):
        raise refuse_foreign_list(outer, table, inner)
    own = Scope(table=table, alias=read_alias(_check_form(asked, inner)))
    said = _read_conditions(inner, scope, own)
    members: list[tuple[exp.Expr, exp.Expr]] = []
    if asked.members:
        shown = [strip_parentheses(one.this if isinstance(one, exp.Alias) else one) for one in inner.expressions]
        if len(shown) != len(asked.members):
            raise refuse_list_without_unit(outer, table, inner)
        members += zip(asked.members, shown, strict=True)
    pairs = [*members, *said.column_pairs]
    places = [_find_unit_place(pair, scope, own) for pair in pairs]
    apart = [pair for pair, place in zip(pairs, places, strict=True) if place is None]
    by = read_key_pairs(apart, scope, own) if apart else ()
    if by is None or (not by and set(places) != set(range(len(outer.unit)))):
        wrong = (pair[0] for pair, place in zip(pairs, places, strict=True) if place is None)
        raise refuse_list_without_unit(outer, table, next(wrong, inner))
    correlated = {table.unit[place] for place in places[len(members) :] if place is not None}
    groups = _read_groups(asked, inner, own, {*table.unit} if by else correlated)
    if groups is not None and said.compared_columns is not None:
        raise refuse_row_condition_in_list(next(inner.args["where"].find_all(exp.Column)), table)
    return UnitListQuery(
        table=table,
        alias=own.alias,
        rows=said.rows,
        is_negated=asked.is_absent,
        groups=() if groups is None else tuple(dict.fromkeys([*(inside for _, inside in by), *groups])),
        totals=None if groups is None else _read_totals(asked, inner),
        counts_empty_units=groups is not None and inner.args.get("group") is None,
        key_columns=by,
        comparison=said.compared_columns,
        tree=asked.query,
    )


def _read_conditions(inner: exp.Select, scope: Scope, own: Scope) -> _Conditions:
    where = inner.args.get("where")
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    rows: list[exp.Expr] = []
    compared: tuple[str, str, str] | None = None
    for part in split_conjuncts(None if where is None else where.this):
        if isinstance(part, exp.EQ) and (pair := _split_comparison(part, own)) is not None:
            pairs.append(pair)
        elif compared is None and (found := _read_outer_comparison(part, scope, own)) is not None:
            compared = found
        elif (query := part.find(exp.Query)) is not None:
            raise refuse_nested_list(query)
        elif (outside := _find_outer_column(part, scope, own)) is not None:
            raise refuse_row_condition_in_list(outside, own.table)
        else:
            rows.append(part)
    return _Conditions(tuple(pairs), tuple(rows), compared)


def _read_outer_comparison(part: exp.Expr, scope: Scope, own: Scope) -> tuple[str, str, str] | None:
    """Return how a column of the list's rows is compared with one of the question's row, if the condition is that."""
    operator = OPERATORS.get(type(part))
    pair = None if operator not in _COMPARED else _split_comparison(part, own)
    if operator is None or pair is None:
        return None
    outer, inner = find_column(pair[0], scope), find_column(pair[1], own)
    if outer is None or inner is None or outer.sql_type is not inner.sql_type or outer.sql_type not in _ORDERED:
        return None
    if outer.derivation is not None or inner.derivation is not None:
        return None
    # the list's column stands first
    return (
        (operator if _is_own_column(strip_parentheses(part.this), own) else FLIPPED_OPERATORS[operator]),
        outer.name,
        inner.name,
    )


def _find_outer_column(part: exp.Expr, scope: Scope, own: Scope) -> exp.Column | None:
    """Return a column of the question's row that a condition on a list's rows reads."""
    named = (column for column in part.find_all(exp.Column) if column.args.get("table") is not None)
    return next((one for one in named if not own.qualifies(one) and scope.qualifies(one)), None)


def _check_form(asked: AskedList, inner: exp.Select) -> exp.Table:
    """Return the table that a list reads. Raise KH107 for a subquery that is not a list of rows of one table."""
    source, *others = tuple(list_sources(inner)) or (None,)
    if source is None:
        raise refuse_clause_in_list("a subquery in from", inner)
    if others:
        raise refuse_clause_in_list("join", inner)
    for node, known in ((inner, IN_GROUPED_QUERY), (source, ON_TABLE)):
        if (extra := next((key for key, value in node.args.items() if value and key not in known), None)) is not None:
            raise refuse_clause_in_list(extra.strip("_"), inner)
    distinct, group, having = (inner.args.get(clause) for clause in ("distinct", "group", "having"))
    if distinct is not None and (distinct.args.get("on") is not None or asked.is_value):
        raise refuse_clause_in_list("distinct on" if distinct.args.get("on") is not None else "distinct", inner)
    if group is not None and (
        asked.is_value or any(value for key, value in group.args.items() if key != "expressions")
    ):
        raise refuse_clause_in_list("group", group)
    if asked.is_value and having is not None:
        raise refuse_clause_in_list("having", having)
    if having is not None and (query := having.find(exp.Query)) is not None:
        raise refuse_nested_list(query)
    shown = () if asked.is_value or (having is not None and not asked.members) else inner.expressions
    if (added := next((one for one in shown if contains_aggregate(one)), None)) is not None:
        raise refuse_clause_in_list("an aggregate", added)
    return source


def _read_groups(asked: AskedList, inner: exp.Select, own: Scope, correlated: set[str]) -> tuple[str, ...] | None:
    """Return the columns by which a list groups the rows of one unit. Return None if it asks of rows.

    Without GROUP BY, all rows of the unit are one group. Raises KH107 if a group could have rows of several units.
    """
    group, having = inner.args.get("group"), inner.args.get("having")
    if not asked.is_value and having is None:
        return None
    grouped = () if group is None else list_grouped_columns(inner, own)
    if group is None and asked.members:
        raise refuse_list_grouping(own.table, having or inner)
    if any(unit not in {column.name for column in grouped} | correlated for unit in own.table.unit):
        raise refuse_list_grouping(own.table, group or having or inner)
    return tuple(dict.fromkeys(column.name for column in grouped if column.name not in own.table.unit))


def _read_totals(asked: AskedList, inner: exp.Select) -> exp.Expr:
    """Return the condition of a list on the totals of a group: its HAVING, or a comparison with its value."""
    if not asked.is_value:
        having: exp.Expr = inner.args["having"].this
        return having
    item = inner.expressions[0]
    value = item.this if isinstance(item, exp.Alias) else item

    def write_in(node: exp.Expr) -> exp.Expr:
        return exp.Paren(this=value.copy()) if isinstance(node, exp.Subquery) else node

    written = asked.condition.copy().transform(write_in, copy=False)
    return exp.Not(this=exp.Paren(this=written)) if asked.is_negated else written


def _find_unit_place(pair: tuple[exp.Expr, exp.Expr], scope: Scope, own: Scope) -> int | None:
    """Return the place in the unit of two equated columns. Return None if their places differ."""
    outer, inner = find_column(pair[0], scope), find_column(pair[1], own)
    if outer is None or inner is None or outer.name not in scope.table.unit or inner.name not in own.table.unit:
        return None
    place = scope.table.unit.index(outer.name)
    return place if own.table.unit.index(inner.name) == place else None


def _split_comparison(equality: exp.Expr, own: Scope) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the column of the question and that of the subquery that a comparison is between, if it is."""
    left, right = strip_parentheses(equality.this), strip_parentheses(equality.expression)
    if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
        return None
    inside = [_is_own_column(one, own) for one in (left, right)]
    if all(inside) or not any(inside):
        return None
    return (right, left) if inside[0] else (left, right)


def _is_own_column(column: exp.Expr, own: Scope) -> bool:
    """Return True if a name inside the subquery is that of a column of its own."""
    assert isinstance(column, exp.Column), "what is compared are columns"
    if column.args.get("table") is None:
        return own.has_column(read_name(column.this))
    return own.qualifies(column)
