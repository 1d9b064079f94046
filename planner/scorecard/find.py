"""The predicates of a scorecard: the largest formulas of thresholds in the select list and ORDER BY.

    SELECT country, CASE WHEN sum(amount) > 20000 THEN 'high' ELSE 'low' END FROM sales GROUP BY country

has one, `sum(amount) > 20000`. The text around a predicate is the analyst's own, and reads it as a column.
"""

from collections.abc import Iterator

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES
from planner.aggregates.cell_windows import reads_groups, reads_other_groups
from planner.aggregates.order_statistics import is_truth
from planner.parser.tree import contains_type, strip_parentheses

_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ, exp.Between, exp.In)
_CONNECTIVES = (exp.And, exp.Or)
# An operand with one of these is the analyst's own text, in which smaller predicates may occur.
_OPEN = (*_COMPARISONS, *_CONNECTIVES, exp.Not, exp.Is, exp.Case, exp.If, exp.Window, exp.Query)


def find_predicates(part: exp.Expr) -> tuple[exp.Expr, ...]:
    """Return the predicates in one item of a select list or ORDER BY, from left to right, also those of equal text."""
    return tuple(_find(part))


def shows_size(part: exp.Expr) -> bool:
    """Return True if an item reveals the size of a group: it calls an aggregate outside of predicates."""
    if not contains_type(part, *AGGREGATES) or _is_predicate(part):
        return False
    if not isinstance(part, exp.Window) and isinstance(part, AGGREGATES) and not find_predicates(part):
        return True
    return any(map(shows_size, _list_parts(part)))


def _list_parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of an expression.

    For a window these include its function's arguments, because the function itself reads the answer's rows.
    """
    for child in node.iter_expressions():
        if isinstance(node, exp.Window) and child is node.this:
            called = child.this if isinstance(child, exp.Filter) else child
            yield from called.iter_expressions()
            if called is not child:
                yield child.expression
        else:
            yield child


def _find(node: exp.Expr) -> Iterator[exp.Expr]:
    if not contains_type(node, *AGGREGATES):
        return
    if _is_predicate(node):
        yield strip_parentheses(node)
        return
    for child in _list_parts(node):
        yield from _find(child)


def _is_predicate(node: exp.Expr) -> bool:
    """Return True if the expression is a formula of thresholds of aggregates, and nothing else."""
    inner = strip_parentheses(node)
    if isinstance(inner, _CONNECTIVES):
        return all(_is_predicate(child) for child in inner.flatten())
    if isinstance(inner, exp.Not):
        return _is_predicate(inner.this)
    if isinstance(inner, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ) and reads_other_groups(inner):
        # PostgreSQL reads IS around a predicate, which is NULL if a neighbour is missing
        about_null = isinstance(inner, exp.Is) and isinstance(strip_parentheses(inner.expression), exp.Null)
        return about_null and reads_groups(inner.this)
    if isinstance(inner, exp.Is | exp.EQ | exp.NEQ) and isinstance(strip_parentheses(inner.expression), exp.Boolean):
        return _is_predicate(inner.this)
    if isinstance(inner, exp.Is):
        about_null = isinstance(strip_parentheses(inner.expression), exp.Null) and contains_type(
            inner.this, *AGGREGATES
        )
        return about_null and _is_compared(inner.this)
    if is_truth(inner):
        return not any(contains_type(part, *AGGREGATES) for part in _strip_filter(inner).iter_expressions())
    return (
        isinstance(inner, _COMPARISONS)
        and contains_type(inner, *AGGREGATES)
        and all(map(_is_compared, _list_operands(inner)))
    )


def _strip_filter(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Filter) else node


def _list_operands(comparison: exp.Expr) -> Iterator[exp.Expr]:
    for value in comparison.args.values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, exp.Expr):
                yield one


def _is_compared(operand: exp.Expr) -> bool:
    """Return True if an operand has the form of arithmetic over aggregates and constants."""
    waiting = [operand]
    while waiting:
        node = waiting.pop()
        if reads_groups(node) and not any(map(find_predicates, _list_parts(node))):
            continue
        if isinstance(node, _OPEN):
            return False
        if not isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup):
            waiting.extend(node.iter_expressions())
    return True
