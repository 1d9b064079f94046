"""GROUP BY as statements leave it out, or say it several times in one.

A list of the public values of keys is a SELECT of keys without HAVING, under conditions on these keys alone.

    SELECT DISTINCT country FROM sales WHERE country LIKE 'F%'

Its answer is the pinned key domain, with rows or without: what BI tools fill their filters with. It reads no data.
"""

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.joined_tables import read_joins
from planner.bind.shown_expressions import check_shown_expressions, find_shown_aggregate
from planner.catalog.catalog import Column
from planner.errors import KeyholeError
from planner.extract.constant_result import find_idle_tables
from planner.extract.hints.answerable_questions import reads_keys_alone
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.scope.group_by import list_grouped_expressions, read_group_by
from planner.scope.grouping_sets import write_out_groupings
from planner.scope.name_resolution import Scope

_CLAUSES = frozenset(("with_", "expressions", "from_", "where", "order", "limit", "offset", "distinct", "joins"))


_GROUPED = _CLAUSES | {"group", "having"}


def write_out_grouping_sets(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that write ROLLUP, CUBE and GROUPING SETS as one SELECT per grouping, joined by UNION ALL."""
    select, group = read.select, read.select.args.get("group")
    several = group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
    if not several:
        return ()
    if any(value and key not in _GROUPED for key, value in select.args.items()) or not _asks_threshold(select):
        return ()
    if (distinct := select.args.get("distinct")) is not None and distinct.args.get("on") is not None:
        return ()
    try:
        scope = read_joins(select, read.node, read.table, read.catalog)
        first = select.args["from_"].this
        place = find_clauses(first if isinstance(first, exp.Table) else read.node, read.tokens)
        if not matches_tree(place, select, read.tokens):
            return ()
        return write_out_groupings(select, place, scope, text=read.text, tokens=read.tokens)
    except KeyholeError:
        return ()


def _asks_threshold(select: exp.Select) -> bool:
    """Return True if it asks something of its groups."""
    called = (found for item in select.expressions for found in item.find_all(exp.AggFunc, exp.WithinGroup))
    return select.args.get("having") is not None or any(not isinstance(one, exp.Grouping) for one in called)


def group_by_listed_keys(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that add GROUP BY to `SELECT [DISTINCT] a, b`, a list of keys.

    Then every question has GROUP BY.
    """
    select = read.select
    distinct = select.args.get("distinct")
    if any(value and key not in _CLAUSES for key, value in select.args.items()):
        return ()
    if id(read.node) in find_idle_tables(read.query.tree):
        return ()
    if not select.expressions or (distinct is not None and distinct.args.get("on") is not None):
        return ()
    grouped = select.copy()
    positions = [exp.Literal.number(number) for number in range(1, len(select.expressions) + 1)]
    grouped.set("group", exp.Group(expressions=positions))
    try:
        scope = read_joins(select, read.node, read.table, read.catalog)
        keys = read_group_by(grouped, scope)
        check_shown_expressions(grouped, scope, *list_grouped_expressions(grouped, scope))
        first = select.args["from_"].this
        place = find_clauses(first if isinstance(first, exp.Table) else read.node, read.tokens)
    except KeyholeError:
        return ()
    if not lists_domain(select, scope, keys) or not matches_tree(place, select, read.tokens):
        return ()
    numbers = ", ".join(str(position.this) for position in positions)
    at = read.tokens[place.end - 1].end
    return (Edit.from_text(at, at, f" GROUP BY {numbers}"),)


def lists_domain(select: exp.Select, scope: Scope, keys: tuple[Column, ...]) -> bool:
    """Return True if a SELECT without HAVING only lists the public values of its keys, as far as its text shows.

    It restricts no rows, and no query around it counts the listed values.
    """
    if scope.members or scope.subquery_columns is not None or find_shown_aggregate(select) is not None:
        return False
    return reads_keys_alone(select, scope, keys) and _is_shown(select)


def _is_shown(select: exp.Select) -> bool:
    """Return True if a SELECT is the statement, a side of its set operations, or the source of a plain SELECT."""
    node: exp.Expr = select
    while (around := node.parent) is not None:
        if isinstance(around, exp.Subquery) and isinstance(around.parent, exp.From):
            outer = around.parent.parent
            if not isinstance(outer, exp.Select) or outer.args.get("joins") or not outer.expressions:
                return False
            if contains_aggregate(outer):
                return False
            node = outer
        elif isinstance(around, exp.SetOperation | exp.Subquery):
            node = around
        else:
            return False
    return True
