"""Comparisons of a column with a constant, of rows member by member, BETWEEN and IS DISTINCT FROM."""

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses
from planner.predicates.computed.compare import compare_terms
from planner.predicates.row_scope import RowScope, combine_truths
from planner.predicates.terms.coalesce import without_nulls
from planner.predicates.terms.operand import operand
from planner.predicates.where_refusals import no_term
from planner.question.condition import NEVER, Condition, IsNull, Not
from planner.question.three_valued import UNKNOWN, Truth, always, known_unless_null
from planner.scope.name_resolution import find_column
from planner.values.comparisons import compare_constants
from planner.values.operators import FLIPPED_OPERATORS


def _sides(node: exp.Expr, operator: str, within: RowScope) -> tuple[exp.Expr, str, exp.Expr]:
    """Return the side with a column, operator and constant side, turned round if needed."""
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    if within.is_constant(left):
        return right, FLIPPED_OPERATORS[operator], left
    return left, operator, right


def sides_compared(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth:
    """Return `left operator right` of one value each."""
    if within.is_constant(left) and within.is_constant(right):
        return _constants(left, operator, right, within)
    itself = _itself(left, right, operator, within)
    if itself is not None:
        return itself
    if not within.is_constant(left) and not within.is_constant(right):
        both = compare_terms(left, operator, right, within)
        if both is not None:
            return both
    if within.is_constant(left):
        left, operator, right = right, FLIPPED_OPERATORS[operator], left
    found = operand(left, within)
    return found.compare(operator, within.constant(right), right)


def _itself(left: exp.Expr, right: exp.Expr, operator: str, within: RowScope) -> Truth | None:
    """Return a column compared with itself, as `x = coalesce($1, x)` is without a value.

    It is known wherever it is not NULL.
    """
    sides = [_first_of(side, within) for side in (left, right)]
    found = [find_column(side, within.scope) for side in sides]
    if found[0] is None or found[1] is None or found[0].name != found[1].name:
        return None
    if found[0].sql_type is SqlType.OTHER:
        return None
    exists = Not(IsNull(found[0].name))
    held = known_unless_null(found[0].name, true=exists, false=NEVER)
    return held if operator in ("=", "<=", ">=") else held.negate()


def _first_of(node: exp.Expr, within: RowScope) -> exp.Expr:
    """Return what COALESCE is where the constants before it are NULL and nothing stands behind it."""
    if not isinstance(node, exp.Coalesce):
        return node
    arguments = without_nulls(node, within)
    return arguments[0] if len(arguments) == 1 else node


def _constants(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth:
    value = compare_constants(within.constant(left), operator, within.constant(right), left)
    return UNKNOWN if value is None else always(value=value)


def distinct(node: exp.Expr, within: RowScope) -> Truth:
    """Return the truth of IS [NOT] DISTINCT FROM a constant, never unknown."""
    same = _same(node, within)
    return same if isinstance(node, exp.NullSafeEQ) else same.negate()


def _same(node: exp.Expr, within: RowScope) -> Truth:
    left, _, right = _sides(node, "=", within)
    value = within.constant(right)
    if within.is_constant(left):
        first = within.constant(left)
        return always(value=(first is None and value is None) or compare_constants(first, "=", value, node) is True)
    found = operand(left, within)
    if value is None and not found.plain:
        raise no_term(node)
    if value is None:
        null: Condition = IsNull(found.column.name)
        return Truth(null, Not(null), Not(null), null)
    equal = found.compare("=", value, right)
    return Truth(equal.true, equal.not_true, equal.not_true, equal.true)


def read_between(node: exp.Expr, within: RowScope) -> Truth:
    """Return the truth of BETWEEN [SYMMETRIC] of two constants."""
    value, low, high = strip_parentheses(node.this), node.args["low"], node.args["high"]

    def inside(least: exp.Expr, most: exp.Expr) -> Truth:
        sides = (
            sides_compared(value, ">=", strip_parentheses(least), within),
            sides_compared(value, "<=", strip_parentheses(most), within),
        )
        return combine_truths(sides, conjunction=True)

    if node.args.get("symmetric"):
        return combine_truths((inside(low, high), inside(high, low)), conjunction=False)
    return inside(low, high)


def rows_equal(left: exp.Tuple, right: exp.Tuple, within: RowScope) -> Truth:
    """Return the truth of two rows being equal, member by member."""
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
        (sides_compared(strip_parentheses(one), "=", strip_parentheses(other), within) for one, other in pairs),
        conjunction=True,
    )
