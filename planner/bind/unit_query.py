"""Questions over a subquery that adds up each privacy unit's rows: recognised in a statement, and checked for form.

    SELECT ward FROM (SELECT ward, patient_id, count(*) AS n FROM visits GROUP BY ward, patient_id) v
    WHERE n > 3 GROUP BY ward HAVING count(*) > 100

The subquery groups by the question's keys and the privacy unit's columns, so that it gives one row per unit and key. It
stands in the question's FROM, or in a WITH query that such questions alone read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.bind_refusals import (
    refuse_aggregate_of_groups,
    refuse_further_groups,
    refuse_groups_without_unit,
    refuse_join_of_totals,
    refuse_rows_as_units,
    refuse_shown_units,
    refuse_unit_query,
)
from planner.bind.from_clause import ON_TABLE, split_conjuncts
from planner.bind.shown_expressions import find_shown_aggregate
from planner.catalog.catalog import Column, RowCap, SqlType, Table
from planner.errors import KeyholeError
from planner.parser.clauses import Clauses, check_matches_tree, find_clauses, find_clauses_from, find_token
from planner.parser.lexer import Token, spell_name
from planner.parser.subquery_readers import list_references
from planner.parser.tree import (
    find_offset,
    find_position,
    read_alias,
    read_name,
    strip_parentheses,
    write_node,
    write_short,
)
from planner.scope.embedded import UnitQuery
from planner.scope.group_by import list_grouped_columns
from planner.scope.name_resolution import Scope, find_column
from planner.scorecard.ranked import shows_sizes_beside_ranks

_IN_SUBQUERY = frozenset(("expressions", "from_", "where", "group", "having"))
NOTHING = "SELECT NULL"
MOST_READERS = 64  # questions over one subquery: each takes a copy of it, and the statement grows with all of them


@dataclass(frozen=True, slots=True)
class UnitQuestion:
    """A question that reads a subquery per unit: its SELECT and clauses, and the scope of its names.

    `with_text` is the WITH clause that the question needs if it is planned without its statement.
    """

    select: exp.Select
    clauses: Clauses
    scope: Scope
    query: UnitQuery
    is_shared: bool
    with_text: str


def read_unit_queries(
    select: exp.Select, node: exp.Table, table: Table, text: str, tokens: tuple[Token, ...]
) -> tuple[UnitQuestion, ...]:
    """Return the questions that read a SELECT from a private table as a subquery per unit.

    Return none if the SELECT is not such a subquery. Raises KH110 for a subquery that adds up rows, but not per unit
    and key. Raises KH106, KH107, KH201, KH202, KH215.
    """
    around = select.parent
    if not isinstance(around, exp.Subquery | exp.CTE) or select.args.get("group") is None:
        return ()
    found = list(list_references(around)) if isinstance(around, exp.CTE) else [around]
    questions = [_find_question(one) for one in found]
    if not any(question is not None and _is_unit_query(select, question, node, table) for question in questions):
        return ()
    if len(found) > MOST_READERS:
        raise refuse_unit_query(f"more than {MOST_READERS} questions read one subquery per privacy unit", select, table)
    query = _read_query(select, node, table, text, tokens)
    return tuple(
        _read_reader(one, question, select, query, tokens) for one, question in zip(found, questions, strict=True)
    )


def _find_question(read: exp.Expr) -> exp.Select | None:
    """Return the SELECT whose FROM or JOIN reads a subquery or WITH query."""
    source = read.parent
    if isinstance(source, exp.Join):
        return source.parent if isinstance(source.parent, exp.Select) else None
    return source.parent if isinstance(source, exp.From) and isinstance(source.parent, exp.Select) else None


def _is_unit_query(select: exp.Select, question: exp.Select, node: exp.Table, table: Table) -> bool:
    """Return True if a SELECT with a GROUP BY adds up rows for a question around it, and is no question itself."""
    asks = question.args.get("having") is not None
    if question.args.get("group") is None and not asks:
        return False
    try:
        groups = list_grouped_columns(select, Scope(table=table, alias=read_alias(node)))
    except KeyholeError:
        groups = ()
    by_unit = any(column.name in table.unit for column in groups)
    if find_shown_aggregate(select) is not None:
        if not shows_sizes_beside_ranks(select) and not set(table.unit) <= {column.name for column in groups}:
            return False  # a question that shows predicates, for the query around to read
        return asks or by_unit
    return any(column.domain is None for column in groups) and by_unit


def _is_read_as_a_whole(select: exp.Select) -> bool:
    """Return True if a HAVING without GROUP BY compares all rows of a subquery or WITH query together."""
    around = select.parent
    read = list_references(around) if isinstance(around, exp.CTE) else (around,)
    readers = [one.find_ancestor(exp.Select) for one in read if one is not None]
    return any(
        one is not None and one.args.get("having") is not None and one.args.get("group") is None for one in readers
    )


def _read_query(select: exp.Select, node: exp.Table, table: Table, text: str, tokens: tuple[Token, ...]) -> UnitQuery:
    if table.is_row_unit:
        raise (refuse_aggregate_of_groups if _is_read_as_a_whole(select) else refuse_rows_as_units)(select, table)
    for key, value in select.args.items():
        if value and key in ("joins", "laterals"):
            message = "a subquery per privacy unit reads one table, without joins"
            raise refuse_unit_query(message, node, table, instead=_suggest_separate_count(select, node, table))
        if value and key not in _IN_SUBQUERY:
            raise refuse_unit_query(
                f"{key.strip('_').upper()} in a subquery per privacy unit is not supported", select, table
            )
        for part in value if isinstance(value, list) else [value]:
            if key != "from_" and isinstance(part, exp.Expr) and (inner := part.find(exp.Query)) is not None:
                raise refuse_unit_query("a subquery per privacy unit cannot contain another subquery", inner, table)
    if any(value for key, value in node.args.items() if key not in ON_TABLE) or _renames_columns(node):
        raise refuse_unit_query("FROM of a subquery per privacy unit has more than a table and its alias", node, table)
    scope = Scope(table=table, alias=read_alias(node))
    groups = list_grouped_columns(select, scope)
    if not any(column.name in table.unit for column in groups):
        if _is_read_as_a_whole(select):
            raise refuse_aggregate_of_groups(select, table)
        raise refuse_groups_without_unit(select.args["group"], table)
    place = find_clauses(node, tokens)
    check_matches_tree(place, select, tokens)
    start = tokens[place.select].start
    return UnitQuery(
        text=text[start : tokens[place.end - 1].end],
        offset=start,
        table=table,
        alias=scope.alias,
        groups=groups,
        column_names=tuple(_list_columns(select, scope, groups)),
        tree=select,
    )


def _suggest_separate_count(select: exp.Select, node: exp.Table, table: Table) -> str | None:
    """Return the question that counts a joined table's rows per unit in a subquery of its own.

    Return None unless three things hold. The SELECT counts rows of one LEFT JOIN by the unit. Its table has one row for
    each unit. The question around it groups by that number only.
    """
    around = select.parent
    question = _find_question(around) if isinstance(around, exp.Subquery) else None
    joins, counts = select.args.get("joins") or [], list(select.find_all(exp.Count))
    one_row = table.rows_per_unit == 1 or (table.row_cap is not None and table.row_cap.rows == 1)
    others = [part for part in (select, question) if part is not None and part.args.get("where") is not None]
    if around is None or question is None or question.args.get("having") is None or not one_row or others:
        return None
    if len(joins) != 1 or joins[0].side != "LEFT" or len(counts) != 1 or len(select.expressions) != 2:
        return None
    own, joined, group = read_alias(node), joins[0].this, select.args["group"].expressions
    items = [strip_parentheses(one.this if isinstance(one, exp.Alias) else one) for one in select.expressions]
    units = [one for one in (*items, *map(strip_parentheses, group)) if _names_unit(one, table, own)]
    keys, said = _split_join_condition(joins[0].args.get("on"), table, own)
    if not isinstance(joined, exp.Table) or len(group) != 1 or len(units) != 2 or counts[0] not in items:
        return None
    own_names = {column.name for column in table.columns}
    read = [column for part in (*said, counts[0]) for column in part.find_all(exp.Column)]
    if len(keys) != 1 or not read or any(read_name(column.this) in own_names for column in read):
        return None
    alias, at = around.args.get("alias"), items.index(counts[0])
    listed = alias.args.get("columns") or [] if alias is not None else []
    item = select.expressions[at]
    counted = (
        read_name(listed[at]) if listed else read_name(item.args["alias"]) if isinstance(item, exp.Alias) else "count"
    )
    by = [strip_parentheses(one) for one in question.args["group"].expressions] if question.args.get("group") else []
    if alias is None or len(by) != 1 or not isinstance(by[0], exp.Column) or read_name(by[0].this) != counted:
        return None
    called, key = spell_name(read_name(alias.this)), write_node(keys[0])
    number = f"coalesce({called}.{spell_name(counted)}, 0)"
    rest = [one for one in question.expressions if strip_parentheses(one) != by[0]]
    if any(
        read_name(column.this) == counted
        for one in (*rest, question.args["having"])
        for column in one.find_all(exp.Column)
    ):
        return None
    shown = [write_node(one) if one in rest else f"{number} AS {spell_name(counted)}" for one in question.expressions]
    where = f" WHERE {' AND '.join(map(write_node, said))}" if said else ""
    inner = (
        f"SELECT {key}, {write_node(counts[0])} AS {spell_name(counted)} FROM {write_node(joined)}{where} GROUP BY "
        f"{key}"
    )
    on = f"{spell_name(own)}.{spell_name(table.unit[0])} = {called}.{spell_name(read_name(keys[0].this))}"
    having = write_node(question.args["having"].this)
    return (
        f"SELECT {', '.join(shown)} FROM {write_node(node)} LEFT JOIN ({inner}) AS {called} ON {on} "
        f"GROUP BY {number} HAVING {having}"
    )


def _split_join_condition(on: exp.Expr | None, table: Table, own: str) -> tuple[list[exp.Column], list[exp.Expr]]:
    """Return the columns that a join's condition compares with the unit, and its other conditions."""
    keys: list[exp.Column] = []
    said: list[exp.Expr] = []
    for one in split_conjuncts(on):
        sides = [strip_parentheses(one.this), strip_parentheses(one.expression)] if isinstance(one, exp.EQ) else []
        others = [side for side in sides if isinstance(side, exp.Column) and not _names_unit(side, table, own)]
        if len(sides) == 2 and len(others) == 1:
            keys += others
        else:
            said.append(one)
    return keys, said


def _names_unit(node: exp.Expr, table: Table, own: str) -> bool:
    """Return True if a column of the table is the whole privacy unit."""
    known = isinstance(node, exp.Column) and read_name(node.args.get("table")) in ("", own)
    return known and table.unit == (read_name(node.this),)


def _renames_columns(node: exp.Expr) -> bool:
    alias = node.args.get("alias")
    return alias is not None and bool(alias.args.get("columns"))


def _list_columns(select: exp.Select, scope: Scope, groups: tuple[Column, ...]) -> Iterator[tuple[str, str]]:
    """Return the subquery's result as a table, for the question that reads it.

    One privacy unit has at most one row in each group.
    """
    taken = {column.name for column in groups} | set(scope.table.unit)
    for item in select.expressions:
        node = strip_parentheses(item.this if isinstance(item, exp.Alias) else item)
        called = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else _find_default_name(node)
        if contains_aggregate(node):
            column = called if called not in taken else f"{called} (total)"
        else:
            found = find_column(node, scope) if not isinstance(node, exp.Star) else None
            if found is None or found not in groups:
                raise refuse_unit_query(
                    f"{write_short(node)} is not a column that the subquery groups by, nor a total",
                    item,
                    scope.table,
                )
            column = found.name
        if not called:
            raise refuse_unit_query(f"{write_short(node)} has no name", item, scope.table)
        yield called, column


def _find_default_name(node: exp.Expr) -> str:
    """Return the name that PostgreSQL gives a column without an alias. Return an empty text if it is not certain."""
    if isinstance(node, exp.Filter):
        node = node.this
    match node:
        case exp.Column():
            return read_name(node.this)
        case exp.Count():
            return "count"
        case exp.Sum():
            return "sum"
        case exp.Min():
            return "min"
        case exp.Max():
            return "max"
        case exp.Avg():
            return "avg"
        case _:
            return ""


def list_totals(select: exp.Select, query: UnitQuery) -> Iterator[tuple[str, str, exp.Expr]]:
    """Yield the name, column and expression of every total in the subquery's select list."""
    for item, (called, column) in zip(select.expressions, query.column_names, strict=True):
        node = strip_parentheses(item.this if isinstance(item, exp.Alias) else item)
        if contains_aggregate(node):
            yield called, column, node


def make_unit_table(query: UnitQuery, totals: tuple[Column, ...]) -> Table:
    """Return the subquery as a table that the question around it reads.

    One privacy unit has at most one row in each group.
    """
    table = query.table
    shown = {column for _, column in query.column_names}
    groups = tuple(column for column in query.groups if column.name in shown)
    units = tuple(table.get_column(name_) for name_ in table.unit if name_ not in {column.name for column in groups})
    return replace(
        table,
        columns=(*groups, *units, *totals),
        rows_per_unit=None,
        row_cap=RowCap(rows=1, unique=table.unit[0]),
    )


def _read_reader(
    read: exp.Expr,
    question: exp.Select | None,
    select: exp.Select,
    query: UnitQuery,
    tokens: tuple[Token, ...],
) -> UnitQuestion:
    table = query.table
    shared = isinstance(read, exp.Table)
    if question is None or (question.args.get("group") is None and question.args.get("having") is None):
        raise refuse_shown_units(table, read, at=find_position(select))
    if question.args.get("joins") or question.args.get("laterals") or isinstance(read.parent, exp.Join):
        raise refuse_join_of_totals(read, instead=_write_without_joins(read, question, query))
    known = ("this", "alias")
    if any(value for key, value in read.args.items() if key not in known) or _renames_columns(read):
        raise refuse_unit_query("the subquery per privacy unit has more than an alias behind it", read, table)
    if shared:
        around, before = select.parent, ""
        assert isinstance(around, exp.CTE)
        _check_shared_query(around, table)
        assert isinstance(read, exp.Table)
        place = find_clauses(read, tokens)
        called = read_name(around.args["alias"].this)
        before = f"WITH {spell_name(called)} AS ({query.text})"
    else:
        before = ""
        inner = find_token(tokens, query.offset)
        if inner < 2 or not tokens[inner - 1].is_symbol("(") or not tokens[inner - 2].is_word("from"):
            raise refuse_unit_query("FROM of the question has more than its subquery per privacy unit", read, table)
        place = find_clauses_from(inner - 2, tokens)
    check_matches_tree(place, question, tokens)
    shape = tuple(Column(column, SqlType.OTHER, "bigint") for _, column, _ in list_totals(select, query))
    scope = Scope(
        table=make_unit_table(query, shape), alias=read_alias(read) or "per_unit", subquery_columns=query.column_names
    )
    return UnitQuestion(select=question, clauses=place, scope=scope, query=query, is_shared=shared, with_text=before)


def _write_without_joins(read: exp.Expr, question: exp.Select, query: UnitQuery) -> str | None:
    """Return the question by its subquery's groups only. Return None if it has none, or reads a joined table."""
    groups = {column.name for column in query.groups} - set(query.table.unit)
    keys = [spell_name(called) for called, column in query.column_names if column in groups]
    having, where = question.args.get("having"), question.args.get("where")
    called = read_alias(read) or "per_unit"
    listed = {one for one, _ in query.column_names}
    said = [clause for clause in (where, having) if clause is not None]
    for column in (column for clause in said for column in clause.find_all(exp.Column)):
        qualifier = read_name(column.args.get("table"))
        if qualifier not in ("", called) or (not qualifier and read_name(column.this) not in listed):
            return None
    if not keys or having is None or any(clause.find(exp.Query) for clause in said):
        return None
    filtered = "" if where is None else f" WHERE {write_node(where.this)}"
    shown = ", ".join(keys)
    source = f"({query.text}) AS {spell_name(called)}"
    return f"SELECT {shown} FROM {source}{filtered} GROUP BY {shown} HAVING {write_node(having.this)}"


def _check_shared_query(cte: exp.CTE, table: Table) -> None:
    called = read_name(cte.args["alias"].this)
    with_ = cte.parent
    assert with_ is not None
    if with_.args.get("recursive"):
        raise refuse_unit_query("WITH RECURSIVE over a subquery per privacy unit is not supported", cte, table)
    if _renames_columns(cte):
        raise refuse_unit_query(
            "a WITH query per privacy unit cannot have a list of columns behind its name", cte, table
        )
    same = [one for one in cte.root().find_all(exp.CTE) if read_name(one.args["alias"].this) == called]
    if len(same) > 1:
        raise refuse_unit_query(f'two WITH queries are called "{called}"', cte, table)
    find_offset(cte.args["alias"].this)


def check_groups(query: UnitQuery, keys: tuple[Column, ...], group: exp.Expr) -> None:
    """Raise KH110 for a question whose groups could have several rows of one unit."""
    named = {key.name for key in keys}
    more = [column.name for column in query.groups if column.name not in named and column.name not in query.table.unit]
    if more:
        raise refuse_further_groups(group, query.table, more=more)
