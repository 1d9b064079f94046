"""CASE inside a comparison, moved around it: `CASE WHEN a THEN x ELSE y END > z` becomes a CASE of comparisons."""

from math import prod

from sqlglot import exp

from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.parser.tree import strip_parentheses
from planner.predicates.computed.read import read_term
from planner.predicates.row_scope import RowScope
from planner.predicates.where_refusals import refuse_unlisted_expression
from planner.values.constant import Number

MOST_CHOICES = 100  # of one comparison: each is compiled as a comparison of its own

_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Like,
    exp.ILike, exp.Is,
)  # fmt: skip


def move_case_outside(node: exp.Expr, within: RowScope) -> exp.Case | None:
    """Return a comparison that contains a CASE as a CASE of comparisons. Return None if it contains none.

    The WHENs are unchanged, so the new CASE chooses the same branch. Results of several types are cast as PostgreSQL
    casts them before it computes with them. Raise KH205 for more than `MOST_CHOICES` results.
    """
    if not isinstance(node, _COMPARISONS):
        return None
    cases = [one for one in node.find_all(exp.Case) if not within.is_constant(one)]
    if not cases or node.find(exp.Query):
        return None
    if prod(len(one.args["ifs"]) + 1 for one in cases) > MOST_CHOICES:
        raise _refuse_many_choices(node)
    first = cases[0]
    default = first.args.get("default") or exp.null()
    values = _unify_types([*(arm.args["true"] for arm in first.args["ifs"]), default], within)
    ifs = [
        exp.If(this=_make_arm(first, arm).copy(), true=_replace_case(node, first, value))
        for arm, value in zip(first.args["ifs"], values, strict=False)
    ]
    return exp.Case(ifs=ifs, default=_replace_case(node, first, values[-1]))


def _make_arm(case: exp.Case, arm: exp.Expr) -> exp.Expr:
    return arm.this if case.this is None else exp.EQ(this=exp.paren(case.this), expression=exp.paren(arm.this))


def _replace_case(node: exp.Expr, case: exp.Case, value: exp.Expr) -> exp.Expr:
    """Return a comparison with a value in place of its CASE, which is the first in the walk."""
    made = node.copy()
    place = next(one for one in made.find_all(exp.Case) if one == case)
    place.replace(exp.paren(value.copy()))
    return made


def _unify_types(values: list[exp.Expr], within: RowScope) -> list[exp.Expr]:
    """Return what a CASE chooses from, integers as numerics where another is none, so that `/` divides them so."""
    whole = [_is_whole(strip_parentheses(one), within) for one in values]
    if not any(one is False for one in whole):
        return values
    return [
        _cast_to_numeric(strip_parentheses(one)) if found else one for one, found in zip(values, whole, strict=True)
    ]


def _is_whole(value: exp.Expr, within: RowScope) -> bool | None:
    """Return True for an integer, False for another number, None for an expression that may be no number."""
    if within.is_constant(value):
        found = within.fold_constant(value)
        return found.is_integral if isinstance(found, Number) else None
    if isinstance(value, exp.Case):
        return None
    term = read_term(value, within)
    return None if term is None else term.kind is TermKind.WHOLE


def _cast_to_numeric(value: exp.Expr) -> exp.Expr:
    if isinstance(value, exp.Literal):
        return exp.Literal.number(f"{value.this}.0")
    return exp.cast(value.copy(), exp.DType.DECIMAL)


def _refuse_many_choices(node: exp.Expr) -> KeyholeError:
    return refuse_unlisted_expression(
        node,
        "this comparison has too many ways through its CASE",
        detail=f"Each is written out as a comparison of its own, in at most {MOST_CHOICES} ways.",
        hint="Compare with fewer CASE expressions.",
    )
