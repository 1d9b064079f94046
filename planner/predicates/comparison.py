"""Comparisons of a column with a constant, of rows member by member, BETWEEN and IS DISTINCT FROM."""

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses
from planner.predicates.computed.compare import compare_terms
from planner.predicates.row_scope import RowScope, combine_truths
from planner.predicates.terms.coalesce import drop_nulls
from planner.predicates.terms.operand import read_operand
from planner.predicates.where_refusals import refuse_function
from planner.question.condition import NEVER, Condition, IsNull, Not
from planner.question.three_valued import UNKNOWN, Truth, make_constant, make_known_unless_null
from planner.scope.name_resolution import find_column
from planner.values.comparisons import compare_constants
from planner.values.operators import FLIPPED_OPERATORS


def _order_sides(node: exp.Expr, operator: str, within: RowScope) -> tuple[exp.Expr, str, exp.Expr]:
    """Return the side with a column, the operator and the constant side, swapped if needed."""
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    if within.is_constant(left):
        return right, FLIPPED_OPERATORS[operator], left
    return left, operator, right


def compare_sides(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth:
    """Return the `Truth` of `left operator right`, a comparison of two single values."""
    if within.is_constant(left) and within.is_constant(right):
        return _compare_constants(left, operator, right, within)
    itself = _compare_with_itself(left, right, operator, within)
    if itself is not None:
        return itself
    if not within.is_constant(left) and not within.is_constant(right):
        both = compare_terms(left, operator, right, within)
        if both is not None:
            return both
    if within.is_constant(left):
        left, operator, right = right, FLIPPED_OPERATORS[operator], left
    found = read_operand(left, within)
    return found.compare(operator, within.fold_constant(right), right)


def _compare_with_itself(left: exp.Expr, right: exp.Expr, operator: str, within: RowScope) -> Truth | None:
    """Return the `Truth` of a column compared with itself, as in `x = coalesce($1, x)` without a value.

    It is known wherever the column is not NULL.
    """
    sides = [_reduce_coalesce(side, within) for side in (left, right)]
    found = [find_column(side, within.scope) for side in sides]
    if found[0] is None or found[1] is None or found[0].name != found[1].name:
        return None
    if found[0].sql_type is SqlType.OTHER:
        return None
    exists = Not(IsNull(found[0].name))
    held = make_known_unless_null(found[0].name, true=exists, false=NEVER)
    return held if operator in ("=", "<=", ">=") else held.negate()


def _reduce_coalesce(node: exp.Expr, within: RowScope) -> exp.Expr:
    """Return the only argument of COALESCE that remains if the constants before it are NULL and nothing follows it."""
    if not isinstance(node, exp.Coalesce):
        return node
    arguments = drop_nulls(node, within)
    return arguments[0] if len(arguments) == 1 else node


def _compare_constants(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth:
    value = compare_constants(within.fold_constant(left), operator, within.fold_constant(right), left)
    return UNKNOWN if value is None else make_constant(value=value)


def read_distinct(node: exp.Expr, within: RowScope) -> Truth:
    """Return the `Truth` of IS [NOT] DISTINCT FROM a constant. It is never unknown."""
    same = _compare_distinct(node, within)
    return same if isinstance(node, exp.NullSafeEQ) else same.negate()


def _compare_distinct(node: exp.Expr, within: RowScope) -> Truth:
    left, _, right = _order_sides(node, "=", within)
    value = within.fold_constant(right)
    if within.is_constant(left):
        first = within.fold_constant(left)
        return make_constant(
            value=(first is None and value is None) or compare_constants(first, "=", value, node) is True
        )
    found = read_operand(left, within)
    if value is None and not found.is_plain:
        raise refuse_function(node)
    if value is None:
        null: Condition = IsNull(found.column.name)
        return Truth(null, Not(null), Not(null), null)
    equal = found.compare("=", value, right)
    return Truth(equal.true, equal.not_true, equal.not_true, equal.true)


def read_between(node: exp.Expr, within: RowScope) -> Truth:
    """Return the `Truth` of BETWEEN [SYMMETRIC] with two constants."""
    value, low, high = strip_parentheses(node.this), node.args["low"], node.args["high"]

    def compare_range(least: exp.Expr, most: exp.Expr) -> Truth:
        sides = (
            compare_sides(value, ">=", strip_parentheses(least), within),
            compare_sides(value, "<=", strip_parentheses(most), within),
        )
        return combine_truths(sides, is_conjunction=True)

    if node.args.get("symmetric"):
        return combine_truths((compare_range(low, high), compare_range(high, low)), is_conjunction=False)
    return compare_range(low, high)


def compare_rows(left: exp.Tuple, right: exp.Tuple, within: RowScope) -> Truth:
    """Return the `Truth` of the equality of two rows, member by member."""
    if len(left.expressions) != len(right.expressions):
        raise KeyholeError(
            "KH212",
            "these rows have different numbers of members",
            detail="Rows are compared member by member.",
            hint="Give both the same number of members: (a, b) IN ((1, 'x'), (2, 'y')).",
            position=find_position(left),
        )
    pairs = zip(left.expressions, right.expressions, strict=True)
    return combine_truths(
        (compare_sides(strip_parentheses(one), "=", strip_parentheses(other), within) for one, other in pairs),
        is_conjunction=True,
    )
