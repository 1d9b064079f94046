"""Steps of a logarithm, root or power, as thresholds of the number below it.

    floor(log(x))         width_bucket(x, ARRAY[10, 100, 1000])
    round(sqrt(x))        width_bucket(x, ARRAY[1, 3, 7, 13])

Engines compute such a curve in doubles and may differ in the last digit, so that a row near a step would be in one
group here and in another there. Its thresholds are computed exactly: each is the least value of the column's grid from
which on the step is reached.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor

from sqlglot import exp

from planner.extract.hints.answerable_questions import INSTEAD
from planner.groups.number_parts import find_column_unit
from planner.groups.ranges import find_number_range, list_fixed_conditions
from planner.parser.tree import strip_parentheses, write_node
from planner.scope.group_by import resolve_item
from planner.scope.name_resolution import Scope, find_column
from planner.values.decimals import convert_to_decimal

_MOST_THRESHOLDS = 40  # of a hint that people read
_HIGHEST_STEP = 1_000  # on which the least value is looked for
_DIGITS = 60  # of irrational thresholds: they are no grid's values, and none of 2^53 is so near to one
_HALF = Fraction(1, 2)  # from where on a number is rounded up
_MOST_DIVIDED = 100  # of a logarithm's factor: its parts are powers that are computed
_LONGEST_NUMBER = 15  # letters of a constant: as exact as a double
_CURVES = (exp.Log, exp.Ln, exp.Sqrt, exp.Pow, exp.Exp)


def ask_by_thresholds(select: exp.Select, scope: Scope) -> str | None:
    """Return a question by thresholds, for a statement that groups by the steps of a curve.

    Return None if it groups by no curve of a column with a grid.
    """
    group = select.args.get("group")
    for item in () if group is None else group.expressions:
        shown = resolve_item(strip_parentheses(item), select, scope)
        for steps in shown.find_all(exp.Floor, exp.Trunc, exp.Round):
            written = _write_steps(steps, select, scope)
            if written is not None:
                inside = {id(one) for one in steps.walk()}
                is_curved = any(id(one) not in inside for one in shown.find_all(*_CURVES))
                replaced = shown if is_curved else steps
                return f"{INSTEAD}{write_node(select).replace(write_node(replaced), written)};"
    return None


@dataclass(frozen=True, slots=True)
class _Curve:
    """A rising function of a number, times a factor above 0: `reaches(x, k)` says exactly whether it is at least k."""

    number: exp.Expr
    reaches: Callable[[Fraction, Fraction], bool]
    is_positive: bool = False


def _write_steps(steps: exp.Expr, select: exp.Select, scope: Scope) -> str | None:
    if steps.args.get("decimals") is not None or steps.args.get("to") is not None:
        return None
    curve = _read_curve(strip_parentheses(steps.this), Fraction(1))
    if curve is None:
        return None
    line = _read_line(curve.number, select, scope)
    if line is None:
        return None
    low, high, unit = line
    if low < 0 or (curve.is_positive and low == 0):
        low = unit if curve.is_positive else Fraction(0)
    if not 0 <= low < high:
        return None
    ahead = _HALF if isinstance(steps, exp.Round) else Fraction(0)
    first, thresholds = _find_step(curve, low, ahead), []
    step = first + 1
    while curve.reaches(high, step - ahead):
        thresholds.append(_find_threshold(curve, low, high, unit, step - ahead))
        step += 1
        if len(thresholds) > _MOST_THRESHOLDS:
            return None
    if not thresholds or len(set(thresholds)) < len(thresholds):
        return None
    listed = ", ".join(f"{convert_to_decimal(one):f}" for one in thresholds)
    bucket = f"width_bucket({write_node(curve.number)}, ARRAY[{listed}])"
    return bucket if first == 0 else f"({bucket} + {first})" if first > 0 else f"({bucket} - {-first})"


def _read_curve(node: exp.Expr, factor: Fraction) -> _Curve | None:
    """Return a curve with its factors and divisors."""
    match node:
        case exp.Mul(this=one, expression=other):
            inner, by = (one, other) if isinstance(other, exp.Literal) else (other, one)
            number = _read_number(by)
            return _read_curve(strip_parentheses(inner), factor * number) if number else None
        case exp.Div(this=inner, expression=by):
            number = _read_number(by)
            return _read_curve(strip_parentheses(inner), factor / number) if number else None
        case exp.Sqrt(this=inner):
            return _Curve(inner, lambda x, k: k <= 0 or factor * factor * x >= k * k)
        case exp.Pow(this=inner, expression=exp.Literal(is_string=False) as by) if by.name in ("2", "3"):
            return _Curve(inner, lambda x, k: factor * x ** int(by.name) >= k)
        case exp.Log(this=exp.Literal() as base, expression=exp.Expr() as inner):
            return _read_logarithm(inner, _read_number(base), factor)
        case exp.Log(this=inner, expression=None):
            return _read_logarithm(inner, Fraction(10), factor)
        case exp.Ln(this=inner):
            return _Curve(inner, lambda x, k: _exceeds(x, k / factor), is_positive=True)
        case _:
            return None


def _read_number(node: exp.Expr) -> Fraction | None:
    """Return a constant of a few digits, above or at 0."""
    is_plain = isinstance(node, exp.Literal) and not node.is_string and len(node.name) <= _LONGEST_NUMBER
    return Fraction(node.name) if is_plain and node.name.replace(".", "", 1).isdecimal() else None


def _read_logarithm(inner: exp.Expr, base: Fraction | None, factor: Fraction) -> _Curve | None:
    if base is None or base <= 1 or max(factor.numerator, factor.denominator) > _MOST_DIVIDED:
        return None

    def reaches(x: Fraction, k: Fraction) -> bool:
        power = k / factor  # log(x) >= p / q if x^q >= base^p
        return x**power.denominator >= base**power.numerator

    return _Curve(inner, reaches, is_positive=True)


def _exceeds(x: Fraction, power: Fraction) -> bool:
    """Return True if a rational number is at least e to a power: they are equal at 1 and 0 alone."""
    if power == 0:
        return x >= 1
    with localcontext(prec=_DIGITS):
        return Decimal(x.numerator) / x.denominator >= (Decimal(power.numerator) / power.denominator).exp()


def _read_line(inner: exp.Expr, select: exp.Select, scope: Scope) -> tuple[Fraction, Fraction, Fraction] | None:
    """Return the ends of a column with a grid, plus a constant, and the grid."""
    inner, shift = strip_parentheses(inner), Fraction(0)
    if isinstance(inner, exp.Add | exp.Sub):
        one, other = inner.this, inner.expression
        if isinstance(one, exp.Literal) and isinstance(inner, exp.Add):
            one, other = other, one
        number = _read_number(other)
        if number is None:
            return None
        inner, shift = strip_parentheses(one), -number if isinstance(inner, exp.Sub) else number
    column = find_column(inner, scope) if isinstance(inner, exp.Column) else None
    unit = None if column is None else find_column_unit(column)
    if column is None or unit is None or shift % unit:
        return None
    low, high = find_number_range(column, list_fixed_conditions(select, scope))
    return None if low is None or high is None else (low + shift, high + shift, unit)


def _find_step(curve: _Curve, low: Fraction, ahead: Fraction) -> int:
    """Return the step that the least value is on."""
    step = 0
    while not curve.reaches(low, step - ahead):
        step -= 1
        if step < -_MOST_THRESHOLDS:
            break
    while curve.reaches(low, step + 1 - ahead) and step < _HIGHEST_STEP:
        step += 1
    return step


def _find_threshold(curve: _Curve, low: Fraction, high: Fraction, unit: Fraction, at: Fraction) -> Fraction:
    """Return the least value of the grid at which the curve reaches a number, which it does at the greatest one."""
    first, last = floor(low / unit), floor(high / unit)
    while first < last:
        middle = (first + last) // 2
        if curve.reaches(middle * unit, at):
            last = middle
        else:
            first = middle + 1
    return first * unit
