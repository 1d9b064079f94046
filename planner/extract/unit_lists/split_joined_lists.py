"""A list of privacy units over a join of tables on their units, as the units that are on a list of each table.

patient IN (SELECT s.patient FROM stays s JOIN labs l ON l.patient = s.patient WHERE s.night AND l.high)
patient IN (SELECT s.patient FROM stays s WHERE (s.night) INTERSECT SELECT l.patient FROM labs l WHERE (l.high))

Guarantee: both list the same units. A unit has a row of the join if it has one of each table, where every condition
reads one of them alone. A table that rows find their unit in, and of which no more is asked, is left out.
"""

from collections.abc import Mapping
from itertools import permutations
from typing import TypeAlias

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.from_clause import ON_TABLE, find_private_table, split_conjuncts
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.parser.tree import contains_type, read_alias, read_name, strip_parentheses, write_node

_CLAUSES = frozenset(("expressions", "from_", "joins", "where", "distinct"))
_ON_JOIN = frozenset(("this", "on", "using", "kind"))
_MOST_TABLES = 4  # of one list: each becomes one of its own


_Tables: TypeAlias = Mapping[str, tuple[exp.Table, Table]]
"""The private tables of a join, by their aliases."""


def split_joined_lists(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that split a list over a join into lists of one table each.

    Return none without such a list.
    """
    if read.table.is_row_unit:
        return ()
    try:
        return next(filter(None, (_split(inner, read) for inner in read.select.find_all(exp.Select))), ())
    except KeyholeError:
        return ()


def _split(inner: exp.Select, read: PrivateRead) -> tuple[Edit, ...]:
    joins = inner.args.get("joins") or ()
    if not 0 < len(joins) < _MOST_TABLES or inner.args.get("from_") is None or not _is_list(inner):
        return ()
    tables = _find_tables(inner, read)
    if tables is None:
        return ()
    units = [_find_unit(strip_parentheses(one.unalias()), tables) for one in inner.expressions]
    shown = [unit[1] for unit in units if unit is not None]
    texts = _write_lists(inner, shown, tables) if len(shown) == len(units) else None
    place = find_clauses(inner.args["from_"].this, read.tokens)
    if texts is None or not matches_tree(place, inner, read.tokens):
        return ()
    start, end = read.tokens[place.select].start, read.tokens[place.end - 1].end
    return (Edit.from_text(start, end, " INTERSECT ".join(texts)),)


def _is_list(select: exp.Select) -> bool:
    """Return True if a SELECT is the list of IN or ANY and has only the clauses of `_CLAUSES`, without DISTINCT ON."""
    around = select.parent
    while isinstance(around, exp.Subquery | exp.Paren):
        around = around.parent
    distinct = select.args.get("distinct")
    plain = all(key in _CLAUSES for key, value in select.args.items() if value)
    return plain and isinstance(around, exp.In | exp.Any) and (distinct is None or distinct.args.get("on") is None)


def _find_tables(inner: exp.Select, read: PrivateRead) -> _Tables | None:
    """Return the private tables of a join. Return None if something else is joined, or not by an inner join."""
    found: dict[str, tuple[exp.Table, Table]] = {}
    for join in inner.args["joins"]:
        if any(value and key not in _ON_JOIN for key, value in join.args.items()):
            return None
        if str(join.kind or "").upper() not in ("", "INNER"):
            return None
    for source in (inner.args["from_"].this, *(join.this for join in inner.args["joins"])):
        table = find_private_table(source, read.catalog) if isinstance(source, exp.Table) else None
        if table is None or table.is_row_unit or read_alias(source) in found:
            return None
        if any(value and key not in ON_TABLE for key, value in source.args.items()):
            return None
        found[read_alias(source)] = (source, table)
    return found


def _find_owner(column: exp.Column, tables: _Tables) -> str | None:
    """Return the alias of the table whose column a name is."""
    called, qualifier = read_name(column.this), read_name(column.args.get("table"))
    owners = [
        alias
        for alias, (_, table) in tables.items()
        if any(one.name == called for one in table.columns) and qualifier in ("", alias)
    ]
    return owners[0] if len(owners) == 1 and column.args.get("db") is None else None


def _find_unit(node: exp.Expr, tables: _Tables) -> tuple[str, int] | None:
    """Return the alias of the table, and the place in its unit, of a column."""
    alias = _find_owner(node, tables) if isinstance(node, exp.Column) else None
    if alias is None or read_name(node.this) not in tables[alias][1].unit:
        return None
    return alias, tables[alias][1].unit.index(read_name(node.this))


def _write_lists(inner: exp.Select, shown: list[int], tables: _Tables) -> list[str] | None:
    """Return a list of units for each table. Return None if the join says more than that units are equal."""
    first, where = read_alias(inner.args["from_"].this), inner.args.get("where")
    joined = _read_using(inner, first, tables)
    if joined is None:
        return None
    parts = [part for join in inner.args["joins"] for part in split_conjuncts(join.args.get("on"))]
    parts += split_conjuncts(None if where is None else where.this)
    rows: dict[str, list[str]] = {alias: [] for alias in tables}
    keys: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for part in parts:
        ends = (part.this, part.expression) if isinstance(part, exp.EQ) else (part, part)
        one, other = (_find_unit(strip_parentheses(side), tables) for side in ends)
        if one is not None and other is not None and one[0] != other[0] and one[1] == other[1]:
            joined.append((one[0], other[0], one[1]))
            continue
        if _add_key(ends, tables, keys):
            continue
        owners = {_find_owner(column, tables) for column in part.find_all(exp.Column)}
        alias = next(iter(owners), None)
        if len(owners) != 1 or alias is None or contains_type(part, exp.Query) or contains_aggregate(part):
            return None
        rows[alias].append(f"({write_node(part)})")
    left_out = {other for (one, other), pairs in keys.items() if _is_path(tables[one][1], tables[other][1], pairs)}
    places = range(len(tables[first][1].unit))
    if set(shown) != set(places) or len(left_out) < len(keys) or any(map(rows.get, left_out)):
        return None
    joined += [(one, other, place) for one, other in keys for place in places]
    if not all(
        _list_joined_tables(first, [pair[:2] for pair in joined if pair[2] == place]) == set(tables) for place in places
    ):
        return None
    return [_write_list(shown, alias, *tables[alias], rows[alias]) for alias in tables if alias not in left_out]


def _read_using(inner: exp.Select, first: str, tables: _Tables) -> list[tuple[str, str, int]] | None:
    """Return the tables that USING joins, with the column's place in the unit. Return None for other columns."""
    joined: list[tuple[str, str, int]] = []
    for join in inner.args["joins"]:
        for one in join.args.get("using") or ():
            called = read_name(one if isinstance(one, exp.Identifier) else one.this)
            places = {table.unit.index(called) if called in table.unit else -1 for _, table in tables.values()}
            if len(places) > 1 or -1 in places:
                return None
            joined.append((first, read_alias(join.this), places.pop()))
    return joined


def _list_joined_tables(first: str, pairs: list[tuple[str, str]]) -> set[str]:
    """Return the tables that equalities join with the first one."""
    reached = {first}
    while grown := {one for pair in pairs if reached & set(pair) for one in pair} - reached:
        reached |= grown
    return reached


def _add_key(
    ends: tuple[exp.Expr, exp.Expr], tables: _Tables, keys: dict[tuple[str, str], set[tuple[str, str]]]
) -> bool:
    """Add two equated columns to the keys by which rows of a table lead to another. Return False for others."""
    sides = [strip_parentheses(end) for end in ends]
    columns = [side for side in sides if isinstance(side, exp.Column)]
    owners = [_find_owner(column, tables) for column in columns]
    if len(columns) < 2 or owners[0] == owners[1]:
        return False
    for (column, alias), (other, reached) in permutations(zip(columns, owners, strict=True)):
        path = None if alias is None or reached is None else tables[alias][1].path
        pair = (read_name(column.this), read_name(other.this))
        if (
            alias is not None
            and reached is not None
            and path is not None
            and pair in zip(path.from_columns, path.to_columns, strict=True)
        ):
            keys.setdefault((alias, reached), set()).add(pair)
            return True
    return False


def _is_path(table: Table, reached: Table, pairs: set[tuple[str, str]]) -> bool:
    """Return True if the pairs are the whole key that leads from rows of `table` to their unit in `reached`."""
    path = table.path
    return (
        path is not None
        and path.table.name == reached.name
        and pairs == set(zip(path.from_columns, path.to_columns, strict=True))
    )


def _write_list(shown: list[int], alias: str, node: exp.Table, table: Table, rows: list[str]) -> str:
    columns = ", ".join(
        write_node(exp.column(exp.to_identifier(table.unit[place]), exp.to_identifier(alias))) for place in shown
    )
    where = f" WHERE {' AND '.join(rows)}" if rows else ""
    return f"SELECT {columns} FROM {write_node(node)}{where}"
