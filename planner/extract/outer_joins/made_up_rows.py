"""Aggregates that read the row of NULLs which LEFT JOIN makes up for an empty group, and what they are without it."""

from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

from planner.extract.outer_joins.missing_rows import IsMissing, is_never_true, is_null
from planner.parser.tree import is_number, strip_parentheses

_TURNED: Mapping[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


def counts_rows(whole: exp.Expr) -> bool:
    """Return True for a count of `*` or of a constant. It also counts the made-up row."""
    node = whole.this if isinstance(whole, exp.Filter) else whole
    return isinstance(node, exp.Count) and isinstance(node.this, exp.Star | exp.Literal)


def can_count_column(whole: exp.Expr, select: exp.Select) -> bool:
    """Return True if count(*) may be replaced by the number of joined rows.

    These numbers are 1 and 0 for a group without rows, and the comparison around count(*) must have the same truth for
    both.
    """
    node: exp.Expr = whole
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    around = node.parent
    if isinstance(whole, exp.Filter) or around is None:
        return False
    if not isinstance(select.parent, exp.Subquery | exp.CTE):
        shown = around if isinstance(around, exp.Alias) else node
        if shown.parent is select and any(shown is item for item in select.expressions):
            return True
    if isinstance(around, exp.Between) and node is around.this:
        return _is_above(around.args["low"], least=1, is_strict=True)
    kind = type(around)
    if kind not in _TURNED:
        return False
    other = around.expression if node is around.this else around.this
    kind = kind if node is around.this else _TURNED[kind]
    return _is_above(other, least=1, is_strict=kind not in (exp.GT, exp.LTE))


def _is_above(node: exp.Expr, *, least: int, is_strict: bool) -> bool:
    node = strip_parentheses(node)
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    number = Fraction(str(node.this))
    return number > least if is_strict else number >= least


def is_zero_sum(whole: exp.Expr, is_missing: IsMissing) -> bool:
    """Return True for a sum to which the made-up row adds 0.

    It is then 0 for a group in which PostgreSQL has no rows.
    """
    return isinstance(whole, exp.Sum) and _is_zero(whole.this, is_missing)


def _is_zero(node: exp.Expr, is_missing: IsMissing) -> bool:
    node = strip_parentheses(node)
    match node:
        case exp.Literal():
            return is_number(node, 0)
        case exp.Coalesce():
            return is_null(node.this, is_missing) and len(node.expressions) == 1 and is_number(node.expressions[0], 0)
        case exp.Case() if node.this is None and node.args.get("default") is not None:
            never = all(is_never_true(one.this, is_missing) for one in node.args["ifs"])
            return never and is_number(node.args["default"], 0)
        case _:
            return False
