"""VARIANCE and STDDEV compared with a constant, as HAVING writes them.

| SQL | divided by | NULL below |
|---|---|---|
| `var_pop(x)`, `stddev_pop(x)` | the number of values | 1 value |
| `variance(x)`, `var_samp(x)`, `stddev(x)`, `stddev_samp(x)` | one less | 2 values |

Constant factors, casts, and `sqrt` of a variance may be around them. Their replacements are in
`planner.functionals.variance_centres`. Proof: docs/proofs/variance.md.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import Call, GroupScope, contains_aggregate, read_call
from planner.aggregates.comparison import UNKNOWN, Conjunction, Disjunction, Having, SpreadComparison
from planner.aggregates.having_refusals import refuse_aggregate, refuse_variable_threshold, refuse_variance_argument
from planner.aggregates.row_expression import RequiredValues, RowExpression, read_row_expression
from planner.catalog.catalog import Column
from planner.parser.tree import find_position, strip_parentheses, write_node
from planner.scope.name_resolution import find_column
from planner.values.constant import NotConstant, Number, Untyped, read_number
from planner.values.expressions import fold_constant
from planner.values.operators import FLIPPED_OPERATORS


@dataclass(frozen=True, slots=True)
class _VarianceFunction:
    name: str
    alias: str
    is_sample: bool
    is_deviation: bool


_FUNCTIONS: dict[type[exp.Expr], _VarianceFunction] = {
    exp.Variance: _VarianceFunction("variance", "var_samp", is_sample=True, is_deviation=False),
    exp.VariancePop: _VarianceFunction("var_pop", "variance_pop", is_sample=False, is_deviation=False),
    exp.Stddev: _VarianceFunction("stddev", "stddev_samp", is_sample=True, is_deviation=True),
    exp.StddevSamp: _VarianceFunction("stddev_samp", "stddev", is_sample=True, is_deviation=True),
    exp.StddevPop: _VarianceFunction("stddev_pop", "stddev_pop", is_sample=False, is_deviation=True),
}
_CASTS = frozenset(("DECIMAL", "DOUBLE"))


@dataclass(frozen=True, slots=True)
class _ReadVariance:
    """`factor` times a variance, or a standard deviation if it `is_deviation`."""

    node: exp.Expr
    factor: Fraction
    is_deviation: bool


def is_variance(node: exp.Expr, within: GroupScope) -> bool:
    """Return True for a variance or standard deviation, also with factors and casts around it."""
    return _read_spread(node, within) is not None


def _find_function(node: exp.Expr) -> _VarianceFunction | None:
    node = strip_parentheses(node)
    inner = node.this if isinstance(node, exp.Filter) else node
    return _FUNCTIONS.get(type(inner))


def _read_spread(node: exp.Expr, within: GroupScope) -> _ReadVariance | None:
    node = strip_parentheses(node)
    function = _find_function(node)
    if function is not None:
        return _ReadVariance(node, Fraction(1), function.is_deviation)
    match node:
        case exp.Cast() if (
            isinstance(node.to.this, exp.DataType.Type) and node.to.this.value in _CASTS and not node.to.expressions
        ):
            return _read_spread(node.this, within)
        case exp.Neg():
            return _multiply(_read_spread(node.this, within), Fraction(-1))
        case exp.Mul():
            left = _read_factor(node.this, within)
            if left is not None:
                return _multiply(_read_spread(node.expression, within), left)
            return _multiply(_read_spread(node.this, within), _read_factor(node.expression, within))
        case exp.Div():
            divisor = _read_factor(node.expression, within)
            return _multiply(_read_spread(node.this, within), 1 / divisor if divisor else None)
        case exp.Sqrt():
            inner = _read_spread(node.this, within)
            return replace(inner, is_deviation=True) if inner and not inner.is_deviation and inner.factor == 1 else None
        case _:
            return None


def _multiply(one: _ReadVariance | None, factor: Fraction | None) -> _ReadVariance | None:
    return None if one is None or not factor else replace(one, factor=factor * one.factor)


def _read_factor(node: exp.Expr, within: GroupScope) -> Fraction | None:
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        return None
    if isinstance(value, Untyped):
        value = read_number(value.text, node)
    return value.value if isinstance(value, Number) else None


def compare_variance(node: exp.Expr, operator: str, threshold: exp.Expr, within: GroupScope) -> Having:
    """Return the comparison `node operator threshold` for a variance or deviation `node`.

    Raise KH204, KH208 and the refusals of its FILTER.
    """
    read = _read_spread(node, within)
    assert read is not None
    at = _read_threshold(threshold, within)
    if at is None:
        return UNKNOWN
    operator = operator if read.factor > 0 else FLIPPED_OPERATORS[operator]
    made = _make_comparison(read, operator, at / read.factor, within)
    if operator == "=":
        return Conjunction((replace(made, operator=">="), replace(made, operator="<=")))
    if operator == "<>":
        return Disjunction((replace(made, operator=">"), replace(made, operator="<")))
    return made


def _read_threshold(node: exp.Expr, within: GroupScope) -> Fraction | None:
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        value = False
    if isinstance(value, Untyped):
        value = read_number(value.text, node)
    if value is None:
        return None
    if isinstance(value, Number):
        return value.value
    other = contains_aggregate(node)
    raise refuse_variable_threshold(
        node,
        detail="A variance or standard deviation is compared with one constant for all groups."
        + (" Two of them, or one and another aggregate, cannot be tested as a sum." if other else ""),
        hint="Compare each with a number of its own: stddev_pop(x) > 10 AND avg(x) < 30."
        if other
        else "Compare it with a number or a parameter: stddev_pop(x) > 10.",
    )


def _make_comparison(read: _ReadVariance, operator: str, threshold: Fraction, within: GroupScope) -> SpreadComparison:
    call = read_call(read.node, within)
    function = _find_function(call.node)
    assert function is not None
    if isinstance(strip_parentheses(call.node.this), exp.Distinct):
        raise refuse_aggregate(call.node)
    found = read_row_expression(
        call.node.this, within.scope, within.constants, where=within.where, among=call.condition
    )
    column, scale, shift = _read_one_column(found, call)
    if found.required_values.column != column.name:
        raise refuse_variance_argument(call.node)
    values = found.required_values.restrict(call.condition)
    known = find_column(call.node.this, within.scope)
    argument = known.name if known else write_node(strip_parentheses(call.node.this))
    name, alias = function.name, function.alias
    left = f"{name}({argument}){call.suffix}"
    spelled = (f"{name}({argument})", f"{alias}({argument}){call.suffix}", f"{alias}({argument})", name, alias)
    names: tuple[str, ...] = (left, *spelled)
    if read.is_deviation and not function.is_deviation:
        left = f"sqrt({left})"
        names = (left, "stddev" if function.is_sample else "stddev_pop")
    return SpreadComparison(
        left_text=left,
        names=(*names, column.name),
        argument=argument,
        suffix=call.suffix,
        column=column,
        scale=scale,
        shift=shift,
        condition=values.condition,
        where=within.where,
        is_sample=function.is_sample,
        is_deviation=read.is_deviation,
        operator=operator,
        threshold=threshold,
        position=find_position(read.node),
    )


def _read_one_column(found: RowExpression, call: Call) -> tuple[Column, Fraction, Fraction]:
    """Return the expression as `scale * column + shift`."""
    scaled = [part for part in found.summands if part.power]
    if len(scaled) != 1 or scaled[0].column is None:
        raise refuse_variance_argument(call.node)
    (one,) = scaled
    assert one.column is not None
    others = [part for part in found.summands if not part.power]
    alike = all(part.column == one.column and part.condition == one.condition for part in others)
    if not alike or found.required_values != RequiredValues(one.column.name, one.condition):
        raise refuse_variance_argument(call.node)
    return one.column, one.coefficient, sum((part.coefficient for part in others), Fraction(0))
