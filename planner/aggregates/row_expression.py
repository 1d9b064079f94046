"""The summand of an aggregate: an expression of a row as a sum of columns and constants, each under its condition.

`CASE WHEN c THEN x ELSE 2 END` is x where c is true and 2 where it is not; `COALESCE(x, 0)` is x where it has a value,
0 elsewhere. Every allowed row expression is therefore a sum of parts, and any sum over rows stays linear.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.computed_measure import (
    Clips,
    ComputedMeasure,
    MeasureReading,
    bound_column,
    is_unbounded,
    read_computed_measure,
    read_whole_measure,
)
from planner.aggregates.having_refusals import refuse_type
from planner.catalog.catalog import Column, Product, SqlType
from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.predicates.condition import read_row_truth
from planner.predicates.row_scope import RowScope
from planner.question.condition import ALWAYS, NEVER, Condition, IsNull, Leaf, Not, join_all, join_any
from planner.question.products import MOST_FACTORS, make_product
from planner.scope.name_resolution import Scope, find_column
from planner.values.constant import ConstantContext, NotConstant, Number, Untyped, read_number
from planner.values.expressions import fold_constant

MOST_ARMS = 500  # branches of a CASE; each repeats the conditions before it, so time grows with the square
MOST_PARTS = 16  # of one aggregate, since CASE within CASE multiplies them; each one is a term that the SQL adds up


class Arithmetic(IntEnum):
    """The arithmetic that PostgreSQL uses: integers divide without remainder, doubles round halves to even."""

    INTEGER = 0
    EXACT = 1
    FLOATING = 2


@dataclass(frozen=True, slots=True)
class SumPart:
    """The number that each row adds to a sum: `coefficient * column ** power`, in the user's unit.

    It is 0 if the row fails `condition`, or if the column is NULL.
    """

    coefficient: Fraction
    column: Column | None
    condition: Condition
    power: int

    def restrict(self, condition: Condition) -> "SumPart":
        """Return the part restricted to the rows that also satisfy the condition."""
        return replace(self, condition=join_all((condition, self.condition)))

    def multiply(self, factor: Fraction) -> "SumPart":
        """Return the part with its coefficient multiplied by a number."""
        return self if factor == 1 else SumPart(factor * self.coefficient, self.column, self.condition, self.power)


@dataclass(frozen=True, slots=True)
class RequiredValues:
    """The rows that an aggregate needs to have a value.

    The aggregate is NULL in a group with fewer than `least_rows` rows that satisfy `condition` and have a value of
    `column`.
    """

    column: str | None
    condition: Condition
    least_rows: int = 1

    @property
    def rows(self) -> Condition:
        """The required rows as one condition. NaN counts as a value."""
        return self.condition if self.column is None else join_all((self.condition, Not(IsNull(self.column))))

    def restrict(self, condition: Condition) -> "RequiredValues":
        """Return the required values among the rows that satisfy the condition."""
        return replace(self, condition=join_all((condition, self.condition)))


@dataclass(frozen=True, slots=True)
class RowExpression:
    """A number computed from each row.

    `summands` are the parts whose sum is the number. It is NULL in rows without `required_values`. `arithmetic` is
    PostgreSQL's arithmetic for it.
    """

    summands: tuple[SumPart, ...]
    required_values: RequiredValues
    arithmetic: Arithmetic

    def restrict(self, condition: Condition) -> "RowExpression":
        """Return the expression where the condition is true, NULL elsewhere."""
        parts = tuple(part.restrict(condition) for part in self.summands)
        return replace(self, summands=parts, required_values=self.required_values.restrict(condition))

    def multiply(self, factor: Fraction) -> "RowExpression":
        """Return the expression times a constant."""
        if not factor:
            return replace(
                self, summands=(), required_values=RequiredValues(None, _name_factors(self).required_values.rows)
            )
        return replace(
            self, summands=tuple(replace(part, coefficient=factor * part.coefficient) for part in self.summands)
        )

    @property
    def null_rows(self) -> Condition | None:
        """The condition of the rows where the expression is NULL.

        None if no condition on one column describes them.
        """
        return _negate_values(self.required_values)


def _negate_values(values: RequiredValues) -> Condition | None:
    if values.column is not None and values.condition == ALWAYS:
        return IsNull(values.column)
    if values.column is None and values.condition in (ALWAYS, NEVER):
        return NEVER if values.condition == ALWAYS else ALWAYS
    return None


def read_row_expression(
    node: exp.Expr,
    scope: Scope,
    given: ConstantContext,
    *,
    where: Condition = ALWAYS,
    among: Condition = ALWAYS,
    is_counted: bool = False,
    clips: Clips | None = None,
) -> RowExpression:
    """Read the expression as a sum of parts of each row. The rows satisfy `among`, besides the question's `where`.

    If it `is_counted` only, its values need no bounds. With `clips` a value without a range gets its clip, or is a
    column without bounds. Raise KH203 for such a value without `clips`, KH204 for an expression off the allow-list,
    KH2xx for its conditions.
    """
    made = _read_node(node, MeasureReading(RowScope(scope, given), where, among, is_counted=is_counted, clips=clips))
    _check_parts(len(made.summands), node)
    # a count multiplies nothing, and its rows are those with values in columns of its table
    return made if made.required_values.column in _list_products(made) else _name_factors(made)


def _check_parts(parts: int, node: exp.Expr) -> None:
    """Raise KH204 for too many parts.

    Sums are checked before they are added, and products before they are multiplied out, because a product has as many
    parts as its factors' numbers multiplied.
    """
    if parts > MOST_PARTS:
        raise _refuse(node, "has too many cases")


def _refuse(node: exp.Expr, why: str = "is not supported") -> KeyholeError:
    return KeyholeError(
        "KH204",
        f"an aggregate of {write_short(node)} {why}",
        detail="An aggregate adds up columns, their products and times constants, CASE, COALESCE, sums and differences "
        "of these.",
        hint=_suggest_subtraction(node) or "Ask the owner to expose the expression as a column of a view, with bounds.",
        position=find_position(node),
    )


def _suggest_subtraction(node: exp.Expr) -> str | None:
    """Return a hint for `age(a, b)`, whose months have different lengths. Return None for other expressions."""
    ages = (one for one in node.find_all(exp.Anonymous) if str(one.this).lower() == "age" and one.expressions)
    age = next(ages, None)
    if age is None:
        return None
    times = [write_node(one) for one in age.expressions]
    apart = " - ".join(times if len(times) > 1 else ["current_date", *times])
    return f"Subtract the times: {apart}, which has days where age has months."


def _read_node(node: exp.Expr, reading: MeasureReading) -> RowExpression:
    node = strip_parentheses(node)
    constant = _read_constant(node, reading.within.constants)
    if constant is not None:
        return constant
    column = find_column(node, reading.within.scope)
    if column is not None:
        made = bound_column(column, node, reading)
        return _make_column_part(column, node) if made is None else _read_computed_measure(made)
    computed = read_computed_measure(node, reading)
    if computed is not None:
        return _read_computed_measure(computed)
    match node:
        case exp.Case():
            return _read_case(node, reading)
        case exp.If():
            otherwise = node.args.get("false")
            return _read_arms([(node.this, node.args["true"])], otherwise, reading)
        case exp.Coalesce():
            return _read_coalesce([node.this, *node.expressions], reading)
        case exp.Neg():
            return _read_node(node.this, reading).multiply(Fraction(-1))
        case exp.Add() | exp.Sub():
            return _read_sum(node, reading)
        case exp.Mul() | exp.Div():
            return _read_scaled_expression(node, reading)
        case exp.Cast():
            return _read_cast(node, reading)
        case _:
            raise _refuse(node)


def _read_constant(node: exp.Expr, given: ConstantContext) -> RowExpression | None:
    try:
        value = fold_constant(node, given)
    except NotConstant:
        return None
    if value is None:
        return RowExpression((), RequiredValues(None, NEVER), Arithmetic.INTEGER)
    if isinstance(value, Untyped):
        value = read_number(value.text, node)
    if not isinstance(value, Number):
        raise _refuse(node)
    parts = (SumPart(value.value, None, ALWAYS, 0),) if value.value else ()
    return RowExpression(
        parts, RequiredValues(None, ALWAYS), Arithmetic.INTEGER if value.is_integral else Arithmetic.EXACT
    )


def _make_column_part(column: Column, node: exp.Expr) -> RowExpression:
    if column.sql_type is SqlType.OTHER:
        raise refuse_type(column, node)
    kinds = {SqlType.INTEGER: Arithmetic.INTEGER, SqlType.DOUBLE: Arithmetic.FLOATING}
    arithmetic = kinds.get(column.sql_type, Arithmetic.EXACT)
    return RowExpression((SumPart(Fraction(1), column, ALWAYS, 1),), RequiredValues(column.name, ALWAYS), arithmetic)


def _read_computed_measure(made: ComputedMeasure) -> RowExpression:
    kinds = {TermKind.WHOLE: Arithmetic.INTEGER, TermKind.FLOATING: Arithmetic.FLOATING}
    parts = (SumPart(made.step, made.column, ALWAYS, 1),)
    return RowExpression(parts, RequiredValues(made.column.name, ALWAYS), kinds.get(made.kind, Arithmetic.EXACT))


def _read_as_one_column(node: exp.Expr, parts: Sequence[SumPart], reading: MeasureReading) -> RowExpression | None:
    """Return the whole expression as one column, if one of its parts has no range by itself.

    Return None if it is no term.
    """
    if not any(is_unbounded(part.column) for part in parts):
        return None
    made = read_whole_measure(node, reading)
    return None if made is None else _read_computed_measure(made)


def _read_case(node: exp.Case, reading: MeasureReading) -> RowExpression:
    arms = [(arm.this, arm.args["true"]) for arm in node.args["ifs"]]
    if node.this is not None:
        arms = [(exp.EQ(this=node.this.copy(), expression=tested.copy()), value) for tested, value in arms]
    if len(arms) > MOST_ARMS:
        raise _refuse(node, "has too many cases")
    return _read_arms(arms, node.args.get("default"), reading)


def _read_arms(
    arms: Sequence[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr | None, reading: MeasureReading
) -> RowExpression:
    passed: list[Condition] = []
    found: list[RowExpression] = []
    conditions: list[Condition] = []
    for condition, value in arms:
        truth = read_row_truth(condition, reading.within.scope, reading.within.constants)
        found.append(_read_node(value, replace(reading, counted_rows=join_all((reading.counted_rows, truth.true)))))
        conditions.append(join_all((*passed, truth.true)))
        passed.append(truth.not_true)
    if otherwise is not None:
        found.append(_read_node(otherwise, reading))
        conditions.append(join_all(passed))
    made = _join_alternatives([one.restrict(condition) for one, condition in zip(found, conditions, strict=True)])
    alike = otherwise is not None and len({one.required_values for one in found}) == 1
    return replace(made, required_values=found[0].required_values) if alike else made


def _join_alternatives(found: Sequence[RowExpression]) -> RowExpression:
    """Return the union of expressions, at most one of which is not NULL on any row."""
    kept = [one for one in found if one.required_values.condition != NEVER]
    if len(kept) == 1:
        return kept[0]
    return RowExpression(
        summands=tuple(part for one in kept for part in one.summands),
        required_values=RequiredValues(None, join_any(one.required_values.rows for one in kept)),
        arithmetic=max((one.arithmetic for one in kept), default=Arithmetic.INTEGER),
    )


def _read_coalesce(nodes: Sequence[exp.Expr], reading: MeasureReading) -> RowExpression:
    found: list[RowExpression] = []
    missing: Condition = ALWAYS
    for node in nodes:
        one = _read_node(node, reading)
        found.append(one.restrict(missing) if missing != ALWAYS else one)
        null = one.null_rows
        if null is None:
            raise _refuse(node, "inside COALESCE is not supported")
        missing = join_all((missing, null))
        if missing == NEVER:
            break
    return _join_alternatives(found)


def _read_sum(node: exp.Add | exp.Sub, reading: MeasureReading) -> RowExpression:
    left, right = _read_node(node.this, reading), _read_node(node.expression, reading)
    whole = _read_as_one_column(node, left.summands + right.summands, reading)
    if whole is not None:
        return whole
    _check_parts(len(left.summands) + len(right.summands), node)
    right = right if isinstance(node, exp.Add) else right.multiply(Fraction(-1))
    if _is_constant(right):
        values = left.required_values
    else:
        values = (
            right.required_values
            if _is_constant(left)
            else RequiredValues(None, join_all((left.required_values.rows, right.required_values.rows)))
        )
    return RowExpression(
        summands=tuple(_require_value(part, right) for part in left.summands)
        + tuple(_require_value(part, left) for part in right.summands),
        required_values=values,
        arithmetic=max(left.arithmetic, right.arithmetic),
    )


def _require_value(part: SumPart, other: RowExpression) -> SumPart:
    """Return the part on rows where the other operand has a value too.

    A constant beside a column counts that column's values.
    """
    column = next((found.column for found in other.summands if found.column is not None), None)
    if part.column is None and column is not None and other.required_values.column == column.name:
        return replace(part, column=column, condition=join_all((other.required_values.condition, part.condition)))
    return part.restrict(other.required_values.rows)


def _read_scaled_expression(node: exp.Mul | exp.Div, reading: MeasureReading) -> RowExpression:
    if isinstance(node, exp.Div) and contains_type(node.expression, exp.Column):
        quotient = read_whole_measure(node, reading)
        if quotient is None:
            raise _refuse(node, "divides by a column")
        return _read_computed_measure(quotient)
    left, right = _read_node(node.this, reading), _read_node(node.expression, reading)
    if isinstance(node, exp.Mul) and not _is_constant(right):
        left, right = right, left
    if isinstance(node, exp.Mul) and not _is_constant(right):
        return _read_as_one_column(node, left.summands + right.summands, reading) or _multiply_parts(
            node, left, right, reading
        )
    factor = sum((part.coefficient for part in right.summands), Fraction(0))
    arithmetic = max(left.arithmetic, right.arithmetic)
    if isinstance(node, exp.Div):
        if arithmetic is Arithmetic.INTEGER or not factor:
            raise _refuse(node, "divides integers without remainder" if factor else "divides by zero")
        factor = 1 / factor
    return replace(left.multiply(factor), arithmetic=arithmetic)


def _multiply_parts(node: exp.Mul, left: RowExpression, right: RowExpression, reading: MeasureReading) -> RowExpression:
    """Return the products of each part of one expression with each part of the other, where both have a value."""
    _check_parts(len(left.summands) * len(right.summands), node)
    needed = {*_list_required_columns(left), *_list_required_columns(right)}
    left, right = _name_factors(left), _name_factors(right)
    parts = []
    for one in left.summands:
        for other in right.summands:
            read = [part.column for part in (one, other) if part.column is not None and part.power]
            column = _make_product(node, read, reading) if len(read) == 2 else next(iter(read), None)
            condition = join_all(
                (one.condition, other.condition, left.required_values.condition, right.required_values.condition)
            )
            parts.append(SumPart(one.coefficient * other.coefficient, column, condition, 1 if read else 0))
    columns = (part.column for part in parts if part.column is not None)
    both = next((column for column in columns if needed <= _list_factors(column)), None)
    values = RequiredValues(None, join_all((left.required_values.rows, right.required_values.rows)))
    if both is not None:
        values = RequiredValues(both.name, join_all((left.required_values.condition, right.required_values.condition)))
    present = values.rows if both is None else Not(IsNull(both.name))
    return RowExpression(
        summands=tuple(part if both is not None and part.column == both else part.restrict(present) for part in parts),
        required_values=values,
        arithmetic=max(left.arithmetic, right.arithmetic),
    )


def _make_product(node: exp.Mul, read: Sequence[Column], reading: MeasureReading) -> Column:
    made = make_product(read)
    assert isinstance(made.derivation, Product)
    if reading.within.scope.subquery_columns is not None:
        raise _refuse(node, "multiplies totals of units")
    if len(made.derivation.columns) > MOST_FACTORS:
        raise _refuse(node, f"multiplies more than {MOST_FACTORS} columns")
    if any(
        column.name == made.name and column.derivation != made.derivation
        for column in reading.within.scope.table.columns
    ):
        raise _refuse(node, "is called like a column")
    return made


def _name_factors(found: RowExpression) -> RowExpression:
    """Return the expression with the factors in place of each product in its conditions.

    A product that is multiplied further is no column of the question's table.
    """
    products = _list_products(found)

    def name_factors(leaf: Leaf) -> Condition:
        if isinstance(leaf, IsNull) and leaf.column in products:
            return join_any(IsNull(factor) for factor in products[leaf.column])
        return leaf

    if not products:
        return found
    values = found.required_values.rows if found.required_values.column in products else found.required_values.condition
    values = values.map_leaves(name_factors)
    return replace(
        found,
        summands=tuple(replace(part, condition=part.condition.map_leaves(name_factors)) for part in found.summands),
        required_values=RequiredValues(None, values)
        if found.required_values.column in products
        else replace(found.required_values, condition=values),
    )


def _list_products(found: RowExpression) -> dict[str, tuple[str, ...]]:
    columns = [part.column for part in found.summands if part.column is not None]
    return {column.name: column.derivation.columns for column in columns if isinstance(column.derivation, Product)}


def _list_required_columns(found: RowExpression) -> tuple[str | None, ...]:
    """Return the columns in which each row needs a value, as far as `values` requires columns."""
    column = found.required_values.column
    return (None,) if column is None else _list_products(found).get(column, (column,))


def _list_factors(column: Column) -> frozenset[str | None]:
    """Return the columns in which each row needs a value so that this column has one."""
    named = column.derivation.columns if isinstance(column.derivation, Product) else ()
    return frozenset((column.name, *named))


def _is_constant(found: RowExpression) -> bool:
    return found.required_values == RequiredValues(None, ALWAYS) and all(part.column is None for part in found.summands)


_EXACT = frozenset(("DECIMAL",))
_FLOATING = frozenset(("DOUBLE",))
_INTEGERS = frozenset(("INT", "BIGINT"))


def _read_cast(node: exp.Cast, reading: MeasureReading) -> RowExpression:
    kind = node.to.this.value if isinstance(node.to.this, exp.DataType.Type) and not node.to.expressions else ""
    column = find_column(node.this, reading.within.scope)
    if (
        kind in _INTEGERS
        and (column is None or column.sql_type is SqlType.BOOLEAN)
        and _is_boolean(strip_parentheses(node.this))
    ):
        truth = read_row_truth(node.this, reading.within.scope, reading.within.constants)
        known = RequiredValues(None, join_any((truth.true, truth.false)))
        return RowExpression((SumPart(Fraction(1), None, truth.true, 0),), known, Arithmetic.INTEGER)
    inner = _read_node(node.this, reading)
    if kind in _EXACT:
        return replace(inner, arithmetic=Arithmetic.EXACT)
    if kind in _FLOATING:
        return replace(inner, arithmetic=Arithmetic.FLOATING)
    if kind in _INTEGERS and inner.arithmetic is Arithmetic.INTEGER:
        return inner
    raise _refuse(node)


def _is_boolean(node: exp.Expr) -> bool:
    return isinstance(
        node,
        exp.Column | exp.Boolean | exp.Not | exp.And | exp.Or | exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE
        | exp.Between | exp.In | exp.Like | exp.Is,
    )  # fmt: skip
