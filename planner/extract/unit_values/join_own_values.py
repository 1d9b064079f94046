"""A value of a unit's own rows that a scalar subquery computes for each row, as a value that is joined.

SELECT zone FROM rides r WHERE fare > (SELECT avg(fare) FROM rides x WHERE x.rider = r.rider) GROUP BY zone ...
SELECT zone FROM rides r LEFT JOIN (SELECT x.rider AS "rider of own_rides", avg(fare) AS "avg(fare)" FROM rides x
GROUP BY x.rider) AS own_rides ON own_rides."rider of own_rides" = r.rider WHERE fare > (own_rides."avg(fare)") ...

Guarantee: PostgreSQL gives the same rows for both. The subquery equates all columns of its table's unit, and reads
nothing else of the row, so that the join has one row for each unit. Without rows there, counts are 0 and all else NULL.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES, contains_aggregate
from planner.bind.from_clause import split_conjuncts
from planner.bind.unit_lists.find_lists import find_lists
from planner.bind.unit_values.find_sources import find_value_name
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.unit_values.value_names import name_subqueries, name_values, write_values
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import quote_identifier, spell_name
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, read_alias, read_name, strip_parentheses, write_node

_MOST_VALUES = 8  # in one question: each is joined once
_CLAUSES = frozenset(("expressions", "from_", "where"))
_ON_SOURCE = frozenset(("this", "alias"))


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A scalar subquery: its table, its unit's columns with the question's that they equal, and other conditions."""

    node: exp.Subquery
    source: exp.Table
    value: exp.Expr
    column_pairs: tuple[tuple[exp.Column, exp.Column], ...]
    row_conditions: tuple[exp.Expr, ...]


def join_own_values(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that join subqueries with values of units in the place of scalar subqueries.

    Return none without such subqueries.
    """
    select = read.select
    if select.args["from_"].this is not read.node or read.table.is_row_unit or not _is_read_in_from(select):
        return ()
    if not all(join.args.get("on") or join.args.get("using") for join in select.args.get("joins") or ()):
        return ()  # what stands behind a comma is not seen by ON
    try:
        found = [made for node in _list_scalars(select) if (made := _read_scalar(node, read)) is not None]
        place = find_clauses(read.node, read.tokens)
        if not found or len(found) > _MOST_VALUES or not matches_tree(place, select, read.tokens):
            return ()
        searched = [SearchedNode(one.node, place.select, place.end) for one in found]
        places = find_spans(searched, read.text, read.tokens)
        end = read.tokens[min((index for _, index in place.marks), default=place.end) - 1].end
        return tuple(_join(found, places, end, read))
    except KeyholeError:
        return ()


def _is_read_in_from(select: exp.Select) -> bool:
    """Return True for a statement and for a subquery in FROM or WITH. A list of units may not join."""
    around = select.parent
    while isinstance(around, exp.Subquery | exp.Paren) and not isinstance(around.parent, exp.From | exp.Join):
        around = around.parent
    return around is None or isinstance(around, exp.Subquery | exp.CTE)


def _list_scalars(select: exp.Select) -> Iterator[exp.Subquery]:
    """List the subqueries that are one value beside columns of a row: conditions of lists alone stay lists."""
    where = select.args.get("where")
    alone = [part for part in split_conjuncts(None if where is None else where.this) if find_lists(part) is not None]
    hidden = {id(node) for part in alone for node in part.walk()}
    for node in select.find_all(exp.Subquery):
        inner = node.this
        if id(node) in hidden or not isinstance(inner, exp.Select) or node.parent_select is not select:
            continue
        if isinstance(node.parent, exp.From | exp.Join | exp.In | exp.Any | exp.All | exp.Exists | exp.CTE):
            continue
        if node.find_ancestor(exp.Having) is not None and not any(map(node.find_ancestor, AGGREGATES)):
            continue
        yield node


def _read_scalar(node: exp.Subquery, read: PrivateRead) -> _Scalar | None:
    """Return the parts of a scalar subquery that computes a value from a unit's own rows.

    Return None for other subqueries.
    """
    inner, from_ = node.this, node.this.args.get("from_")
    source = None if from_ is None else from_.this
    if _has_more(inner, _CLAUSES) or _has_more(node, frozenset(("this",))) or len(inner.expressions) != 1:
        return None
    if not isinstance(source, exp.Table) or _has_more(source, _ON_SOURCE):
        return None
    table = next((one for one in read.catalog.tables if one.name == read_name(source.this)), None)
    value = inner.expressions[0].unalias()
    if (
        table is None
        or table.is_row_unit
        or not contains_aggregate(value)
        or contains_type(value, exp.Query, exp.Window)
    ):
        return None
    own, where = read_alias(source), inner.args.get("where")
    pairs: list[tuple[exp.Column, exp.Column]] = []
    rows: list[exp.Expr] = []
    for part in split_conjuncts(None if where is None else where.this):
        pair = _read_pair(part, own, table)
        if pair is not None:
            pairs.append(pair)
        elif contains_type(part, exp.Query) or not all(
            _is_own_column(one, own, table) for one in part.find_all(exp.Column)
        ):
            return None
        else:
            rows.append(part)
    if sorted(read_name(one.this) for one, _ in pairs) != sorted(table.unit):
        return None
    read_there = all(_is_own_column(one, own, table) for one in value.find_all(exp.Column))
    return _Scalar(node, source, value, tuple(pairs), tuple(rows)) if read_there else None


def _has_more(node: exp.Expr, known: frozenset[str]) -> bool:
    return any(value for key, value in node.args.items() if key not in known)


def _is_own_column(column: exp.Column, alias: str, table: Table) -> bool:
    """Return True if a name in the subquery means a column of its own table."""
    if column.args.get("table") is not None:
        return read_name(column.args["table"]) == alias and column.args.get("db") is None
    return any(one.name == read_name(column.this) for one in table.columns)


def _read_pair(part: exp.Expr, alias: str, table: Table) -> tuple[exp.Column, exp.Column] | None:
    """Return the subquery's column and the question's that a condition equates."""
    sides = [strip_parentheses(part.this), strip_parentheses(part.expression)] if isinstance(part, exp.EQ) else []
    columns = [side for side in sides if isinstance(side, exp.Column)]
    inside = [one for one in columns if _is_own_column(one, alias, table)]
    outside = [one for one in columns if one not in inside]
    return (inside[0], outside[0]) if len(inside) == len(outside) == 1 else None


def _join(found: list[_Scalar], places: tuple[tuple[int, int], ...], end: int, read: PrivateRead) -> Iterator[Edit]:
    tokens = read.tokens
    aliases = name_subqueries([read_name(one.source.this) for one in found], read)
    joined = []
    for one, alias, (first, past) in zip(found, aliases, places, strict=True):
        asked, values = write_values(one.value, alias, read, counts_nothing=True)
        label = find_value_name(one.node.this.expressions[0]) if one.node.parent is read.select else ""
        shown_as = f" AS {spell_name(label)}" if label else ""  # what PostgreSQL calls it
        yield Edit.from_text(tokens[first].start, tokens[past - 1].end, f"({asked}){shown_as}")
        units = [write_node(own) for own, _ in one.column_pairs]
        called = name_values([f"{read_name(own.this)} of {alias}" for own, _ in one.column_pairs], read)
        shown = [f"{own} AS {quote_identifier(unit)}" for own, unit in zip(units, called, strict=True)]
        rows = (
            f" WHERE {' AND '.join(f'({write_node(row)})' for row in one.row_conditions)}" if one.row_conditions else ""
        )
        listed, source = ", ".join((*shown, *values)), write_node(one.source)
        query = f"SELECT {listed} FROM {source}{rows} GROUP BY {', '.join(units)}"
        equated = zip(called, (write_node(outer) for _, outer in one.column_pairs), strict=True)
        met = " AND ".join(f"{spell_name(alias)}.{quote_identifier(unit)} = {outer}" for unit, outer in equated)
        joined.append(f" LEFT JOIN ({query}) AS {spell_name(alias)} ON {met}")
    room = EditBudget(read.text)
    room.reserve(sum(map(len, joined)))
    yield Edit.from_text(end, end, "".join(joined))
