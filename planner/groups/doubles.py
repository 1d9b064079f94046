"""Double-precision arithmetic, and the place at which it crosses a step: the exact place or one near it."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from sqlglot import exp

Cut = tuple[Fraction, bool]
"""A place on the number line, and True if the number there lies below the cut."""

ARITHMETIC: dict[type[exp.Expr], Callable[[float, float], float]] = {
    exp.Add: float.__add__,
    exp.Sub: float.__sub__,
    exp.Mul: float.__mul__,
    exp.Div: float.__truediv__,
}


_NEAR = (1e-9, 1e-5, 1e-1)  # how far off a crossing may be: the more, the larger the numbers that were added on the way


def keep_number(x: float) -> float:
    """Return `x` unchanged. This function computes an expression that is the column itself."""
    return x


def return_constant(constant: float, _: float) -> float:
    """Return `constant` for every value of the column. This function computes a constant expression.

    The column's value is ignored.
    """
    return constant


def compute_absolute(inner: Callable[[float], float], x: float) -> float:
    """Return `abs(inner(x))`."""
    return abs(inner(x))


def find_bucket_share(inner: Callable[[float], float], low: float, high: float, count: int, x: float) -> float:
    """Return how many bucket widths `inner(x)` lies above `low`, in doubles, as width_bucket computes it."""
    return count * ((inner(x) - low) / (high - low))


def combine(
    operation: Callable[[float, float], float],
    left: Callable[[float], float],
    right: Callable[[float], float],
    x: float,
) -> float:
    """Return `operation(left(x), right(x))`."""
    return operation(left(x), right(x))


def find_crossing(cut: Cut, step: Cut, computed: Callable[[float], float], *, rises: bool) -> Cut:
    """Return the least double near an exact cut at which the value, computed in doubles, has passed a step."""
    at, below = step

    def is_past(x: float) -> bool:
        found = computed(x)
        return (found > at if below else found >= at) is rises

    middle = float(cut[0])
    for share in _NEAR:
        near = share * max(abs(middle), 1.0)
        low, high = middle - near, middle + near
        if is_past(high) and not is_past(low):
            break
    else:
        return cut
    while (between := (low + high) / 2) not in (low, high):
        low, high = (low, between) if is_past(between) else (between, high)
    return Fraction(high), False


def find_crossing_unit(unit: Fraction, cut: Cut, step: Cut, computed: Callable[[float], float], *, rises: bool) -> Cut:
    """Return the least multiple of `unit` near the exact cut at which the value in doubles has passed a step."""
    at, below = step

    def is_past(units: int) -> bool:
        found = computed(float(unit * units))
        return (found > at if below else found >= at) is rises

    high = ceil(cut[0] / unit) + 2
    near = range(high - 4, high + 1)  # rounding moves no number of so few digits farther
    return unit * next((units for units in near if is_past(units)), high), False
