"""VARIANCE and STDDEV compared with a constant, as HAVING writes them.

| SQL | divided by | NULL below |
|---|---|---|
| `var_pop(x)`, `stddev_pop(x)` | the number of values | 1 value |
| `variance(x)`, `var_samp(x)`, `stddev(x)`, `stddev_samp(x)` | one less | 2 values |

Constant factors, casts, and `sqrt` of a variance may stand around them. Their replacements are in
`planner.functionals.variance_centres`. Proof: docs/proofs/variance.md.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import Call, GroupScope, contains_aggregate, read_call
from planner.aggregates.comparison import FAILS, Every, Having, Some, Spread
from planner.aggregates.having_refusals import no_constant_threshold, not_of_one_column, unsupported_aggregate
from planner.aggregates.row_expression import RowExpression, Values, row_expression
from planner.catalog.catalog import Column
from planner.parser.tree import find_position, strip_parentheses, write_node
from planner.scope.name_resolution import find_column
from planner.values.constant import NotConstant, Number, Untyped, read_number
from planner.values.expressions import fold_constant
from planner.values.operators import FLIPPED_OPERATORS


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    alias: str
    sample: bool
    root: bool


_FUNCTIONS: dict[type[exp.Expr], _Function] = {
    exp.Variance: _Function("variance", "var_samp", sample=True, root=False),
    exp.VariancePop: _Function("var_pop", "variance_pop", sample=False, root=False),
    exp.Stddev: _Function("stddev", "stddev_samp", sample=True, root=True),
    exp.StddevSamp: _Function("stddev_samp", "stddev", sample=True, root=True),
    exp.StddevPop: _Function("stddev_pop", "stddev_pop", sample=False, root=True),
}
_CASTS = frozenset(("DECIMAL", "DOUBLE"))


@dataclass(frozen=True, slots=True)
class _Read:
    """`factor` times a variance or, with `root`, a standard deviation."""

    node: exp.Expr
    factor: Fraction
    root: bool


def is_variance(node: exp.Expr, within: GroupScope) -> bool:
    """Return True if the expression is a variance or standard deviation, except for what may stand around it."""
    return _read_spread(node, within) is not None


def _function(node: exp.Expr) -> _Function | None:
    node = strip_parentheses(node)
    inner = node.this if isinstance(node, exp.Filter) else node
    return _FUNCTIONS.get(type(inner))


def _read_spread(node: exp.Expr, within: GroupScope) -> _Read | None:
    node = strip_parentheses(node)
    function = _function(node)
    if function is not None:
        return _Read(node, Fraction(1), function.root)
    match node:
        case exp.Cast() if (
            isinstance(node.to.this, exp.DataType.Type) and node.to.this.value in _CASTS and not node.to.expressions
        ):
            return _read_spread(node.this, within)
        case exp.Neg():
            return _times(_read_spread(node.this, within), Fraction(-1))
        case exp.Mul():
            left = _factor(node.this, within)
            if left is not None:
                return _times(_read_spread(node.expression, within), left)
            return _times(_read_spread(node.this, within), _factor(node.expression, within))
        case exp.Div():
            divisor = _factor(node.expression, within)
            return _times(_read_spread(node.this, within), 1 / divisor if divisor else None)
        case exp.Sqrt():
            inner = _read_spread(node.this, within)
            return replace(inner, root=True) if inner and not inner.root and inner.factor == 1 else None
        case _:
            return None


def _times(one: _Read | None, factor: Fraction | None) -> _Read | None:
    return None if one is None or not factor else replace(one, factor=factor * one.factor)


def _factor(node: exp.Expr, within: GroupScope) -> Fraction | None:
    try:
        value = fold_constant(node, within.given)
    except NotConstant:
        return None
    if isinstance(value, Untyped):
        value = read_number(value.text, node)
    return value.value if isinstance(value, Number) else None


def variance_comparison(node: exp.Expr, operator: str, threshold: exp.Expr, within: GroupScope) -> Having:
    """Return `node operator threshold` for a node that `is_variance`. Raise KH204, KH208 and what its FILTER raises."""
    read = _read_spread(node, within)
    assert read is not None
    at = _threshold(threshold, within)
    if at is None:
        return FAILS
    operator = operator if read.factor > 0 else FLIPPED_OPERATORS[operator]
    made = _spread(read, operator, at / read.factor, within)
    if operator == "=":
        return Every((replace(made, operator=">="), replace(made, operator="<=")))
    if operator == "<>":
        return Some((replace(made, operator=">"), replace(made, operator="<")))
    return made


def _threshold(node: exp.Expr, within: GroupScope) -> Fraction | None:
    try:
        value = fold_constant(node, within.given)
    except NotConstant:
        value = False
    if isinstance(value, Untyped):
        value = read_number(value.text, node)
    if value is None:
        return None
    if isinstance(value, Number):
        return value.value
    other = contains_aggregate(node)
    raise no_constant_threshold(
        node,
        detail="A variance or standard deviation is compared with one constant for all groups."
        + (" Two of them, or one and another aggregate, are no test of a sum." if other else ""),
        hint="Compare each with a number of its own: stddev_pop(x) > 10 AND avg(x) < 30."
        if other
        else "Compare it with a number or a parameter: stddev_pop(x) > 10.",
    )


def _spread(read: _Read, operator: str, threshold: Fraction, within: GroupScope) -> Spread:
    call = read_call(read.node, within)
    function = _function(call.node)
    assert function is not None
    if isinstance(strip_parentheses(call.node.this), exp.Distinct):
        raise unsupported_aggregate(call.node)
    found = row_expression(call.node.this, within.scope, within.given, where=within.where, among=call.condition)
    column, scale, shift = _of_one_column(found, call)
    if found.values.column != column.name:
        raise not_of_one_column(call.node)
    values = found.values.where(call.condition)
    known = find_column(call.node.this, within.scope)
    argument = known.name if known else write_node(strip_parentheses(call.node.this))
    name, alias = function.name, function.alias
    left = f"{name}({argument}){call.suffix}"
    spelled = (f"{name}({argument})", f"{alias}({argument}){call.suffix}", f"{alias}({argument})", name, alias)
    names: tuple[str, ...] = (left, *spelled)
    if read.root and not function.root:
        left = f"sqrt({left})"
        names = (left, "stddev" if function.sample else "stddev_pop")
    return Spread(
        left=left,
        names=(*names, column.name),
        argument=argument,
        suffix=call.suffix,
        column=column,
        scale=scale,
        shift=shift,
        condition=values.condition,
        where=within.where,
        sample=function.sample,
        root=read.root,
        operator=operator,
        threshold=threshold,
        position=find_position(read.node),
    )


def _of_one_column(found: RowExpression, call: Call) -> tuple[Column, Fraction, Fraction]:
    """Return the expression as `scale * column + shift`."""
    scaled = [part for part in found.parts if part.power]
    if len(scaled) != 1 or scaled[0].column is None:
        raise not_of_one_column(call.node)
    (one,) = scaled
    assert one.column is not None
    others = [part for part in found.parts if not part.power]
    alike = all(part.column == one.column and part.condition == one.condition for part in others)
    if not alike or found.values != Values(one.column.name, one.condition):
        raise not_of_one_column(call.node)
    return one.column, one.coefficient, sum((part.coefficient for part in others), Fraction(0))
