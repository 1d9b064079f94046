"""WHERE and FILTER: sqlglot's tree to a `Condition`, by an allow-list of comparisons of columns with constants.

A condition is kept as four ordinary conditions, for the rows where it is true, false, not true and not false. NOT and
IS TRUE are therefore exact under SQL's three values, and the result needs no value "unknown".
"""

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import strip_parentheses
from planner.predicates.cases import move_case_outside
from planner.predicates.comparison import compare_rows, compare_sides, read_between, read_distinct
from planner.predicates.computed.compare import read_computed_term
from planner.predicates.infinite_times import find_written_base
from planner.predicates.membership import read_membership, read_quantified_comparison, read_quantifier
from planner.predicates.pattern import read_like, read_regular_expression
from planner.predicates.row_scope import RowScope, combine_truths
from planner.predicates.terms.operand import read_operand, read_term
from planner.predicates.where_refusals import refuse_expression, refuse_unlisted_expression
from planner.question.condition import (
    ALWAYS,
    NEVER,
    Condition,
    IsNull,
    Not,
    count_parts,
    find_columns,
    join_all,
    join_any,
)
from planner.question.three_valued import UNKNOWN, Truth, make_constant
from planner.scope.name_resolution import Scope, find_column
from planner.values import expressions as constant
from planner.values.constant import Constant, ConstantContext, Untyped, refuse_constant
from planner.values.operators import OPERATORS

MOST_PARTS = 5_000  # of what repeats its parts: CASE and IS UNKNOWN
MOST_REPEATED_PARTS = 200_000  # of a whole condition: no more than the longest question has characters


def read_row_condition(node: exp.Expr, scope: Scope, given: ConstantContext) -> Condition:
    """Return the condition that holds exactly on the rows where the expression is true.

    Guarantee: evaluating it can neither raise nor take more than linear time on any row. Raise KH205 for an expression
    off the allow-list, KH201 for unknown columns, KH212 for constants of a wrong type.
    """
    return read_row_truth(node, scope, given).true


def read_row_truth(node: exp.Expr, scope: Scope, given: ConstantContext) -> Truth:
    """Return the expression's four conditions. Raise as `read_row_condition` does."""
    return _read_truth(node, RowScope(scope, given))


def _read_truth(node: exp.Expr, within: RowScope) -> Truth:
    node = strip_parentheses(node)
    result = _read_positive(node, within)
    return result.negate() if node.args.get("negate") else result


def _read_positive(node: exp.Expr, within: RowScope) -> Truth:
    chosen = move_case_outside(node, within)
    match node if chosen is None else chosen:
        case exp.And() | exp.Or():
            parts = (_read_truth(part, within) for part in node.flatten())
            return _bound_length(
                combine_truths(parts, is_conjunction=isinstance(node, exp.And)), node, most=MOST_REPEATED_PARTS
            )
        case exp.Not():
            return _read_truth(node.this, within).negate()
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _read_comparison(node, OPERATORS[type(node)], within)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return read_distinct(node, within)
        case exp.Between():
            return read_between(node, within)
        case exp.In():
            return read_membership(node, within)
        case exp.Escape() if isinstance(inner := strip_parentheses(node.this), exp.Like | exp.ILike):
            found = read_like(inner, within, escape=node.expression)
            return found.negate() if inner.args.get("negate") else found
        case exp.Like() | exp.ILike() | exp.StartsWith():
            return read_like(node, within, escape=None)
        case exp.RegexpLike() | exp.RegexpILike() | exp.SimilarTo():
            return read_regular_expression(node, within)
        case exp.Is():
            return _read_is(node, within)
        case exp.Case() as case:
            return _read_case(case, within)
        case _:
            return _read_bare_truth(node, within)


def _read_case(node: exp.Case, within: RowScope) -> Truth:
    """Return the `Truth` of CASE of conditions. The first true WHEN decides; without ELSE the rest is unknown.

    Raise KH205 for a long CASE of long conditions.
    """
    size = 0
    arms: list[tuple[Condition, Truth]] = []
    passed: list[Condition] = []
    for arm in node.args["ifs"]:
        when = exp.EQ(this=node.this, expression=arm.this) if node.this is not None else arm.this
        chosen = _read_truth(when, within)
        arms.append((join_all((*passed, chosen.true)), _read_truth(arm.args["true"], within)))
        passed.append(chosen.not_true)
        size += sum(count_parts(one) for one in passed)
        if size > MOST_PARTS:
            raise _refuse_length(node)
    default = node.args.get("default")
    arms.append((join_all(passed), UNKNOWN if default is None else _read_truth(default, within)))
    return _bound_length(
        Truth(
            join_any(join_all((chosen, then.true)) for chosen, then in arms),
            join_any(join_all((chosen, then.false)) for chosen, then in arms),
            join_any(join_all((chosen, then.not_true)) for chosen, then in arms),
            join_any(join_all((chosen, then.not_false)) for chosen, then in arms),
        ),
        node,
        most=MOST_PARTS,
    )


def _bound_length(found: Truth, node: exp.Expr, *, most: int) -> Truth:
    """Return the `Truth` of an expression that repeats the truths of its parts. Raise KH205 if it became too long."""
    if max(map(count_parts, (found.true, found.false, found.not_true, found.not_false))) > most:
        raise _refuse_length(node)
    return found


def _refuse_length(node: exp.Expr) -> KeyholeError:
    return refuse_unlisted_expression(
        node,
        "this condition becomes too long when it is written out",
        detail=f"The values of WHEN are written as AND and OR, in at most {MOST_PARTS:,} parts.",
        hint="Nest fewer conditions in WHEN.",
    )


def _read_comparison(node: exp.Expr, operator: str, within: RowScope) -> Truth:
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    found = within.scope.read_membership(node) if operator == "=" else None
    if found is not None:  # for a row that finds no public row, the public column is NULL
        return Truth(found, NEVER, join_any((Not(found), *(IsNull(name) for name in find_columns(found)))), ALWAYS)
    if isinstance(right, exp.Any) or (isinstance(right, exp.Anonymous) and len(right.expressions) == 1):
        asked = read_quantifier(right)
        if asked is not None:
            every, array = asked
            return read_quantified_comparison(left, operator, array, within, is_for_all=every)
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and operator in ("=", "<>"):
        equal = compare_rows(left, right, within)
        return equal if operator == "=" else equal.negate()
    return compare_sides(left, operator, right, within)


def _read_is(node: exp.Expr, within: RowScope) -> Truth:
    wanted = strip_parentheses(node.expression)
    if isinstance(wanted, exp.Null):
        if within.is_constant(node.this):
            return make_constant(value=within.fold_constant(node.this) is None)
        found = None if isinstance(strip_parentheses(node.this), exp.Coalesce) else read_term(node.this, within)
        found = found or read_computed_term(node.this, within)
        column = find_column(node.this, within.scope) or (found.column if found is not None else None)
        if column is not None:
            base = find_written_base(column, strip_parentheses(node.this), within.scope)
            null: Condition = IsNull((base or column).name)
            return Truth(null, Not(null), Not(null), null)
        truth_ = _read_truth(node.this, within)
        unknown = join_all((truth_.not_true, truth_.not_false))
        known = join_any((truth_.true, truth_.false))
        return _bound_length(Truth(unknown, known, known, unknown), node, most=MOST_PARTS)
    if isinstance(wanted, exp.Boolean):
        inner = _read_truth(node.this, within)
        if wanted.this:
            return Truth(inner.true, inner.not_true, inner.not_true, inner.true)
        return Truth(inner.false, inner.not_false, inner.not_false, inner.false)
    raise refuse_expression(node)


def _read_bare_truth(node: exp.Expr, within: RowScope) -> Truth:
    """Return the `Truth` of a boolean column, term or constant."""
    if find_column(node, within.scope) is None and within.is_constant(node):
        value = within.fold_constant(node)
        if isinstance(value, Untyped):
            value = constant.read_truth(value.text, node)
        if value is not None and not isinstance(value, bool):
            raise refuse_constant(node, "a condition is a boolean", hint="Compare it with a constant, or write true.")
        return UNKNOWN if value is None else make_constant(value=value)
    found = read_operand(node, within)
    if found.column.sql_type is not SqlType.BOOLEAN:
        raise refuse_constant(
            node,
            f'column "{found.column.name}" is not a boolean',
            hint=f"Compare it with a constant, or ask {spell_name(found.column.name)} IS NOT NULL.",
        )
    held: Constant = True
    return found.compare("=", held, node)
