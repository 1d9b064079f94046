"""A test of whether a query's result is the same for all contents of its tables, as in the probes of BI tools."""

from collections.abc import Iterable, Iterator
from datetime import date

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.parser.tree import contains_type, is_number, read_limit, strip_parentheses
from planner.scope.embedded import EmbeddedRelation
from planner.values.comparisons import fold_condition
from planner.values.constant import ConstantContext
from planner.values.expressions import uses_clock

_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_BEFORE_WHERE = frozenset(("with_", "from_", "joins", "laterals", "where"))
_REPLACEABLE = frozenset(("this", "db", "catalog", "alias", "joins", "laterals"))


def find_idle_tables(tree: exp.Expr) -> frozenset[int]:
    """Return the ids of the table nodes whose rows cannot affect any result.

    If that is uncertain, the table is left out.

    Guarantee: a table is listed only if a query around it has LIMIT 0, or a WHERE that no row meets. A query with such
    a WHERE counts only if its select list and the clauses after WHERE read no table. A WITH query belongs to the query
    whose WITH clause has it.
    """
    waiting, found = [(tree, False)], set()
    while waiting:
        node, inside = waiting.pop()
        inside = inside or (isinstance(node, exp.Query) and _is_constant(node))
        if inside and isinstance(node, exp.Table) and _is_plain(node):
            found.add(id(node))
        waiting.extend((child, inside) for child in node.iter_expressions())
    return frozenset(found)


def _is_idle(table: exp.Table, tree: exp.Expr) -> bool:
    """Return True if `find_idle_tables` would return the table. The search goes from the table upward."""
    node: exp.Expr | None = table
    while node is not None:
        if isinstance(node, exp.Query) and _is_constant(node):
            return _is_plain(table)
        node = None if node is tree else node.parent
    return False


def _is_plain(table: exp.Table) -> bool:
    """Return True if a subquery may stand in its place: neither ONLY nor a sample."""
    sampled = isinstance(table.parent, exp.TableSample)
    return not sampled and not any(value for key, value in table.args.items() if key not in _REPLACEABLE)


def is_constantly_empty(tree: exp.Expr, tables: Iterable[exp.Table], asking: Asking) -> bool:
    """Return True if no answer to the embedded questions can change the result. Return False if that is uncertain.

    Parameters:
        tables: the nodes of the relations that the questions read.
    """
    if not all(one.keys for one in asking.questions):
        return _has_limit_zero(tree)  # a table that is one group is a row even of nothing
    if all(_is_idle(table, tree) for table in tables):
        return True
    if any(isinstance(part, EmbeddedRelation) for part in asking.embedded):
        return False
    return all(one.set_operation is None and _is_never_true(one.tree.args.get("where")) for one in asking.questions)


def _is_constant(query: exp.Query) -> bool:
    """Return True if a query's result is the same whatever its tables hold. An aggregate over no rows is one row."""
    if _has_limit_zero(query):
        return True
    if not isinstance(query, exp.Select) or not _is_never_true(query.args.get("where")):
        return False
    return not any(part.find(exp.Query, exp.Table) for part in _list_clauses_after_where(query))


def _list_clauses_after_where(select: exp.Select) -> Iterator[exp.Expr]:
    for key, value in select.args.items():
        if key not in _BEFORE_WHERE:
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, exp.Expr):
                    yield part


def _has_limit_zero(tree: exp.Expr) -> bool:
    return is_number(read_limit(tree), 0)


def _is_never_true(where: exp.Expr | None) -> bool:
    """Return True if some conjunct of the clause is true for no row."""
    if where is None:
        return False
    waiting = [where.this]
    while waiting:
        node = strip_parentheses(waiting.pop())
        if isinstance(node, exp.And):
            waiting.extend((node.this, node.expression))
        elif not contains_type(node, exp.Column, exp.Query) and not uses_clock(node) and _is_untrue(node):
            return True
    return False


def _is_untrue(node: exp.Expr) -> bool:
    if isinstance(node, exp.Null):
        return True
    try:
        return fold_condition(node, _NOTHING_GIVEN) is False
    except KeyholeError:
        return False
