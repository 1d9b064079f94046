"""The possible numbers of an exact expression of several columns, from their ranges: an interval and a lattice.

    sibsp + parch + 1     for 0..8 and 0..6: 1, 2, ..., 15
    10 * a + 10 * b - 5   for 0..2 and 0..3: -5, 5, ..., 45

Guarantee: if each column that is not NULL lies in its range, a value of the expression that is not NULL lies between
`low` and `high`. Whatever the columns are, it is `offset` plus a multiple of `step`.

All numbers are steps of the term, as in `RowTerm`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, floor, gcd

from planner.catalog.row_terms import RowTerm

Ends = tuple[Fraction | None, Fraction | None]


@dataclass(frozen=True, slots=True)
class NumberSpan:
    """Whole numbers from `low` to `high`, each `offset` plus a multiple of `step`.

    With a step of 0 there is one number.
    """

    low: int
    high: int
    step: int = 1
    offset: int = 0


def find_span(term: RowTerm, ends: Callable[[str], Ends], *, required: Callable[[str], bool]) -> NumberSpan | None:
    """Return the possible numbers of a term, or None if a range is open or a function is unknown.

    Parameters:
        ends: returns the range of a column.
        required: returns True if a column is never NULL.
    """
    match term.function:
        case "column":
            low, high = ends(str(term.value))
            if low is None or high is None or low > high:
                return None
            return NumberSpan(floor(low * 10**term.scale), ceil(high * 10**term.scale))
        case "constant" if isinstance(term.value, int):
            return NumberSpan(term.value, term.value, 0, term.value)
        case "length":
            return NumberSpan(0, term.limit)
        case _:
            parts = [find_span(one, ends, required=required) for one in term.arguments]
            known = [one for one in parts if one is not None]
            if not known or len(known) < len(parts):
                return None
            sure = [is_never_null(one, required) for one in term.arguments]
            return _combine_spans(term.function, known, sure)


def is_never_null(term: RowTerm, required: Callable[[str], bool]) -> bool:
    """Return True if a term has a value on every row."""
    match term.function:
        case "column":
            return required(str(term.value))
        case "constant":
            return True
        case "nullif" | "quotient" | "remainder" | "floor of" | "ceil of" | "trunc of" | "round of":
            return False
        case "coalesce" | "greatest" | "least":
            return any(is_never_null(one, required) for one in term.arguments)
        case _:
            return all(is_never_null(one, required) for one in term.arguments)


def _combine_spans(function: str, parts: Sequence[NumberSpan], never_null: Sequence[bool]) -> NumberSpan | None:
    one, other = parts[0], parts[-1]
    match function:
        case "+":
            step = gcd(one.step, other.step)
            return NumberSpan(one.low + other.low, one.high + other.high, step, one.offset + other.offset)
        case "*":
            ends = [a * b for a, b in product((one.low, one.high), (other.low, other.high))]
            step = gcd(one.step * other.step, one.step * other.offset, other.step * one.offset)
            return NumberSpan(min(ends), max(ends), step, one.offset * other.offset)
        case "negate":
            return NumberSpan(-one.high, -one.low, one.step, -one.offset)
        case "abs":
            least = 0 if one.low <= 0 <= one.high else min(abs(one.low), abs(one.high))
            return NumberSpan(least, max(abs(one.low), abs(one.high)), gcd(one.step, 2 * one.offset), one.offset)
        case "same":
            return one
        case "nullif":
            return one
        case "coalesce" | "greatest" | "least":
            return _choose(function, parts, never_null)
        case "quotient":
            return _divide(one, other)
        case "floor of" | "ceil of" | "trunc of" | "round of":
            return _divide_to_steps(one, other)
        case "remainder":
            most = min(max(abs(one.low), abs(one.high)), max(max(abs(other.low), abs(other.high)) - 1, 0))
            step = gcd(one.step, other.step, other.offset)
            return NumberSpan(0 if one.low >= 0 else -most, 0 if one.high <= 0 else most, step, one.offset)
        case "floor" | "ceil" | "trunc" | "round" if other.step == 0 and other.offset > 0:
            return NumberSpan(floor(Fraction(one.low, other.offset)), ceil(Fraction(one.high, other.offset)))
        case _:
            return None


def _choose(function: str, parts: Sequence[NumberSpan], never_null: Sequence[bool]) -> NumberSpan:
    """Return the span of `least`, `greatest` or `coalesce`. Numbers that are NULL are left out of the choice."""
    low, high = min(one.low for one in parts), max(one.high for one in parts)
    present = [one for one, known in zip(parts, never_null, strict=True) if known]
    if function == "least":
        high = min([high, *(one.high for one in present)])
    if function == "greatest":
        low = max([low, *(one.low for one in present)])
    first = parts[0]
    step = gcd(*(one.step for one in parts), *(one.offset - first.offset for one in parts))
    return NumberSpan(low, high, step, first.offset)


def _divide_to_steps(one: NumberSpan, other: NumberSpan) -> NumberSpan | None:
    """Return the span of quotients rounded down or up, for divisors other than 0."""
    above = other.offset % other.step if other.step else other.offset
    near = (above or other.step, above - other.step)  # the numbers around 0
    divisors = {by for by in (other.low, *near, other.high) if by and other.low <= by <= other.high}
    if not divisors:
        return None
    exact = [Fraction(a, b) for a, b in product((one.low, one.high), divisors)]
    return NumberSpan(floor(min(exact)), ceil(max(exact)))


def _divide(one: NumberSpan, other: NumberSpan) -> NumberSpan | None:
    """Return the span of quotients without their remainders, for divisors other than 0."""
    divisors = {by for by in (other.low, -1, 1, other.high) if by and other.low <= by <= other.high}
    if not divisors:
        return None
    found = [_truncate_quotient(a, b) for a, b in product((one.low, one.high), divisors)]
    return NumberSpan(min(found), max(found))


def _truncate_quotient(a: int, b: int) -> int:
    whole = abs(a) // abs(b)
    return whole if (a < 0) == (b < 0) else -whole
