"""The range of an exact term, from the declared bounds of the columns that it reads, by interval arithmetic.

A range of a part that follows from a condition on the rows narrows that part. A measure is clipped to its range, so
that no guarantee depends on values beyond the bounds of their columns.

References: docs/decisions/0037-row-expressions.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf, trunc
from typing import TypeAlias

from planner.catalog.catalog import Table
from planner.catalog.row_terms import ROUNDED_DOUBLES, Ends, RowTerm
from planner.predicates.computed.number_arithmetic import EXACT, NUMBERS

Known: TypeAlias = Callable[[RowTerm], Ends]
"""The knowledge of a term beside the bounds of the columns that it reads."""
MOST_PARTS = 366  # values of a part of a time, but for its year


@dataclass(frozen=True, slots=True)
class Clip:
    """The range to which values of an expression are clipped if no range of it is declared, in steps."""

    low: Fraction
    high: Fraction

    def fit(self, ends: Ends) -> Ends:
        """Return the range to which values are clipped, given their known `ends` (None: unknown).

        If both ends are known, they stay. If neither is, the clip's ends are used. If one is known, the other comes
        from the clip, but is at least half of the clip's width away from the known one.
        """
        reach = (self.high - self.low) / 2
        low, high = ends
        if low is not None and high is None:
            return max(low, self.low), max(self.high, low + reach)
        if high is not None and low is None:
            return min(self.low, high - reach), min(high, self.high)
        return (self.low, self.high) if low is None else ends

    def unite(self, other: "Clip") -> "Clip":
        """Return the smallest clip that contains both."""
        return Clip(min(self.low, other.low), max(self.high, other.high))


def return_unknown_ends(_: RowTerm) -> Ends:
    """Return (None, None) for any term: nothing is known of its range besides its columns' bounds."""
    return None, None


def know_years(term: RowTerm) -> Ends:
    """Return the first and the last supported year if the term is a year. Otherwise return (None, None).

    Else return (None, None).
    """
    return (Fraction(0), Fraction(term.limit)) if term.function == "part" else (None, None)


def find_step_range(term: RowTerm, table: Table, *, known: Known = know_years) -> tuple[int, int] | None:
    """Return the least and the greatest value of a term in its steps. Return None if it may be arbitrarily large."""
    if term.kind not in EXACT:
        return None
    low, high = find_ends(term, table, known=known)
    return None if low is None or high is None else (floor(low), ceil(high))


def find_ends(term: RowTerm, table: Table, *, known: Known = return_unknown_ends) -> Ends:
    """Return the least and the greatest value of a term in its steps, each None if unknown. A double has steps of 1."""
    return _compute_ends(term, table, known)


def _compute_ends(term: RowTerm, table: Table, known: Known) -> Ends:
    low, high = _follow(term, table, known)
    least, most = known(term)
    return (
        low if least is None else least if low is None else max(low, least),
        high if most is None else most if high is None else min(high, most),
    )


def _follow(term: RowTerm, table: Table, known: Known) -> Ends:
    match term.function:
        case "column":
            return _find_column_ends(term, table)
        case "constant":
            assert isinstance(term.value, int | float)
            return Fraction(term.value), Fraction(term.value)
        case "part":  # a year has no end that says anything
            return Fraction(0), Fraction(term.limit) if term.limit <= MOST_PARTS else None
        case "moved" | "number":
            return None, None
        case "length":
            return Fraction(0), Fraction(term.limit)
        case "rest":
            return Fraction(0), Fraction(term.limit - 1)
        case "+" if (step := _find_step(term)) is not None:
            return Fraction(0), Fraction(step - 1)
        case _ if not term.arguments:
            return None, None
        case _:
            return _apply_function(term, [_compute_ends(one, table, known) for one in term.arguments])


def _find_step(term: RowTerm) -> int | None:
    """Return `step` if the sum is `x - step * floor(x / step)`, such as a moment less the beginning of its day.

    This sum is from 0 to `step - 1`. Return None for any other.
    """
    value, less = term.arguments
    begun = less.arguments[0] if less.function == "negate" else less
    if begun is less or begun.function != "*" or begun.arguments[0].function != "floor":
        return None
    (of, by), step = begun.arguments[0].arguments, begun.arguments[1].value
    return step if of == value and isinstance(step, int) and by.value == step else None


def _apply_function(term: RowTerm, parts: list[Ends]) -> Ends:
    """Return the ends of a function of terms with these ends."""
    (a, b), (c, d) = parts[0], parts[-1]
    match term.function:
        case "+":
            return _add_if_known(a, c), _add_if_known(b, d)
        case "negate":
            return None if b is None else -b, None if a is None else -a
        case "abs":
            return _drop_sign(a, b)
        case "*":
            return _multiply(parts)
        case "/" | "quotient":
            return _divide(term.function, parts)
        case "double":
            size = 10 ** term.arguments[0].scale
            return None if a is None else a / size, None if b is None else b / size
        case "least" | "greatest" | "coalesce":
            return _choose(term, parts)
        case "nullif":
            return a, b
        case "floor" | "ceil" | "trunc" | "round" | "round double" | "trunc double":
            return _round_ends(term, parts)
        case "same":
            limit = Fraction(term.limit) if term.kind in EXACT and term.limit < term.arguments[0].limit else None
            return (-limit if a is None and limit else a), (limit if b is None and limit else b)
        case "remainder" if c is not None and c == d:
            return (Fraction(0) if a is not None and a >= 0 else 1 - abs(c)), abs(c) - 1
        case _:
            return None, None


def _round_ends(term: RowTerm, parts: list[Ends]) -> Ends:
    """Return the ends of a value that is rounded to whole steps.

    A double has one argument, and is rounded to whole numbers.
    """
    a, b = parts[0]
    by = parts[1][0] if len(parts) > 1 else Fraction(1, 10**term.scale if term.function in ROUNDED_DOUBLES else 1)
    if not by:
        return None, None
    return None if a is None else Fraction(floor(a / by)), None if b is None else Fraction(
        _step_up(term.function, b / by)
    )


def _drop_sign(a: Fraction | None, b: Fraction | None) -> Ends:
    if a is not None and a >= 0:
        return a, b
    if b is not None and b <= 0:
        return -b, None if a is None else -a
    return Fraction(0), None if a is None or b is None else max(abs(a), abs(b))


def _step_up(function: str, value: Fraction) -> int:
    """Return the greatest value that `function` gives for values up to this one."""
    return floor(value) if function == "floor" else ceil(value)


def _find_column_ends(term: RowTerm, table: Table) -> Ends:
    column = table.get_column(str(term.value))
    if column.bounds is None or term.kind not in NUMBERS:
        return None, None
    if term.kind not in EXACT:
        return Fraction(column.bounds[0]), Fraction(column.bounds[1])
    low, high = (Fraction(one) * 10**term.scale for one in column.bounds)
    return Fraction(floor(low)), Fraction(ceil(high))


def _add_if_known(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one + other


def _multiply(parts: list[Ends]) -> Ends:
    """Return the ends of a product, which are among the products of its factors' ends.

    A missing end is infinite, and 0 times that is 0.
    """
    (a, b), (c, d) = ((-inf if low is None else low, inf if high is None else high) for low, high in parts)
    corners = [x * y if x and y else Fraction(0) for x in (a, b) for y in (c, d)]
    return _keep_finite(min(corners)), _keep_finite(max(corners))


def _keep_finite(value: Fraction | float) -> Fraction | None:
    return None if isinstance(value, float) else value


def _divide(function: str, parts: list[Ends]) -> Ends:
    """Return the ends of a quotient, which is NULL if the divisor is 0.

    A quotient of integers is at most as large as these.
    """
    (a, b), (c, d) = parts
    if (c is not None and c > 0) or (d is not None and d < 0):
        # the inverse falls on either side of 0, and comes near 0 where the divisor has no end
        inverse = (Fraction(0) if d is None else 1 / d), (Fraction(0) if c is None else 1 / c)
        low, high = _multiply([(a, b), inverse])
    else:
        largest = None if a is None or b is None or function == "/" else max(abs(a), abs(b))
        low, high = (None if largest is None else -largest), largest
        if a is not None and a >= 0 and c is not None and c >= 0:
            low = Fraction(0)
    if function == "/":
        return low, high
    return None if low is None else Fraction(trunc(low)), None if high is None else Fraction(trunc(high))


def _choose(term: RowTerm, parts: list[Ends]) -> Ends:
    """Return the ends of one of several values.

    A value that is NULL is left out, so `least` is at most only those values that are never NULL.
    """
    always = [ends for one, ends in zip(term.arguments, parts, strict=True) if _is_never_null(one)]
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    low = None if None in lows else min(low for low in lows if low is not None)
    high = None if None in highs else max(high for high in highs if high is not None)
    if term.function == "least":
        high = min((one for _, one in always if one is not None), default=high)
    if term.function == "greatest":
        low = max((one for one, _ in always if one is not None), default=low)
    return low, high


def _is_never_null(term: RowTerm) -> bool:
    return term.function == "constant" or (
        term.function in ("least", "greatest", "coalesce") and any(map(_is_never_null, term.arguments))
    )
