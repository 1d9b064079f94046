"""The range of a measure in rows that satisfy conditions on its column: `sum(x) FILTER (WHERE x < 10)` adds at most 10.

Guarantee: in every row that satisfies the conditions and has a value, the clipped and rounded value lies in the
returned range. Conditions test the raw value, which is then clipped and rounded. Both keep the order of values. So the
ends of what the conditions leave are clipped, and rounded outward. NaN satisfies `x > 10` as in PostgreSQL but is no
value. Infinities are clipped.

Proof: docs/proofs/joint_loss.md.
"""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, isfinite
from typing import TypeAlias

from planner.catalog.catalog import Column, Lookup, Product, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.question.condition import And, Compare, Condition, IsNull, Leaf, Not, Within
from planner.question.products import find_product_range, find_steps
from planner.values.operators import OPPOSITE_OPERATORS

_EXACT = 2**48  # steps up to which rounding in double precision is off by less than half a step
_Interval: TypeAlias = tuple[Fraction | None, Fraction | None]  # None: without an end
_EVERYTHING: _Interval = (None, None)


def narrow_range(name: str, steps: tuple[int, int], *, among: Iterable[Condition], table: Table) -> tuple[int, int]:
    """Return the range of a measure in rows that satisfy all of `among`, or its whole range if they do not restrict it.

    Parameters:
        steps: its range in all rows, in grid steps.
    """
    column = table.get_column(name)
    if isinstance(column.derivation, Product):
        return _narrow_product(column.derivation, steps, among=among, table=table)
    step = 1 if column.grid is None and column.sql_type is SqlType.INTEGER else column.grid
    found = _find_interval(And(tuple(among)), column)
    if found in (None, _EVERYTHING) or step is None or column.bounds is None:
        return steps
    if isinstance(column.derivation, Lookup) or max(map(abs, steps)) >= _EXACT:
        return steps
    low, high = (_read_number(bound, column) for bound in column.bounds)
    least, most = (None if end is None else min(max(end, low), high) for end in found or _EVERYTHING)
    return (
        steps[0] if least is None else max(steps[0], _round_to_steps(least, step=Fraction(step), column=column)[0]),
        steps[1] if most is None else min(steps[1], _round_to_steps(most, step=Fraction(step), column=column)[1]),
    )


def _narrow_product(
    product: Product, steps: tuple[int, int], *, among: Iterable[Condition], table: Table
) -> tuple[int, int]:
    """Return the range of a product whose factors lie where the conditions leave them."""
    factors = [table.get_column(name) for name in product.columns]
    known = [find_steps(factor) for factor in factors]
    conditions = tuple(among)
    if any(one is None for one in known):
        return steps
    ranges = [
        narrow_range(factor.name, (low, high), among=conditions, table=table)
        for factor, (_, low, high) in zip(factors, filter(None, known), strict=True)
    ]
    low, high = find_product_range(ranges, product.columns)
    return max(steps[0], min(low, steps[1])), min(steps[1], max(high, steps[0]))


def _round_to_steps(value: Fraction, *, step: Fraction, column: Column) -> tuple[int, int]:
    """Return the steps between which a value is rounded.

    For a double it is the exact step, by the engines' arithmetic.
    """
    if column.sql_type is SqlType.DOUBLE:
        nearest = floor(float(value) / float(step) + 0.5)
        return nearest, nearest
    return floor(value / step), ceil(value / step)


def _find_interval(condition: Condition, column: Column) -> _Interval | None:
    """Return the interval of values for which a condition is true, or None if there is no such value."""

    def find_literal_interval(literal: Leaf | Not) -> _Interval | None:
        match literal:
            case Compare(name, operator, value) if name == column.name:
                return _find_comparison_interval(operator, value, column)
            case Not(Compare(name, operator, value)) if name == column.name:
                return _find_comparison_interval(OPPOSITE_OPERATORS[operator], value, column)
            case Within(name, values) if name == column.name:
                return _unite([_find_comparison_interval("=", value, column) for value in values])
            case IsNull(name) if name == column.name:
                return None
            case _:
                return _EVERYTHING

    return condition.fold_literals(find_literal_interval, every=_intersect, some=_unite, wanted=True)


def _find_comparison_interval(operator: str, value: Value, column: Column) -> _Interval:
    edge = _read_number(value, column)
    whole = column.sql_type is SqlType.INTEGER
    match operator:
        case "=":
            return edge, edge
        case "<" | "<=":
            return None, (Fraction(ceil(edge) - 1) if whole and operator == "<" else edge)
        case ">" | ">=":
            return (Fraction(floor(edge) + 1) if whole and operator == ">" else edge), None
        case _:
            return _EVERYTHING


def _read_number(value: Value, column: Column) -> Fraction:
    """Return the number with which a row's value is compared."""
    if not isinstance(value, int | Decimal):
        raise KeyholeError("KH900", "a measure is compared with a value that is not a number")
    if column.sql_type is SqlType.DOUBLE and isfinite(float(value)):
        return Fraction(float(value))
    return Fraction(value)


def _intersect(found: Iterable[_Interval | None]) -> _Interval | None:
    low: Fraction | None = None
    high: Fraction | None = None
    for one in found:
        if one is None:
            return None
        low = one[0] if low is None else low if one[0] is None else max(low, one[0])
        high = one[1] if high is None else high if one[1] is None else min(high, one[1])
    return None if low is not None and high is not None and low > high else (low, high)


def _unite(found: Iterable[_Interval | None]) -> _Interval | None:
    some = [one for one in found if one is not None]
    if not some:
        return None
    lows, highs = [low for low, _ in some if low is not None], [high for _, high in some if high is not None]
    return (
        min(lows) if len(lows) == len(some) else None,
        max(highs) if len(highs) == len(some) else None,
    )
