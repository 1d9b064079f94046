"""The range of an exact term, from the declared bounds of the columns that it reads, by interval arithmetic.

A range that is known of a part of it, from a condition on the rows, narrows that part.

A measure is clipped to it, so that nothing rests on values that lie beyond the bounds of their columns.

References: docs/decisions/0037-row-expressions.md.
"""

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from planner.catalog.model import Table
from planner.catalog.row_terms import RowTerm
from planner.predicates.computed.numbers import EXACT

Ends: TypeAlias = tuple[Fraction | None, Fraction | None]
"""The least and the greatest value of a term, in its steps; None without an end."""
Known: TypeAlias = Callable[[RowTerm], Ends]
"""What is known of a term beside the bounds of the columns that it reads."""


def know_nothing(_: RowTerm) -> Ends:
    """Return no ends."""
    return None, None


def steps_between(term: RowTerm, table: Table, *, known: Known = know_nothing) -> tuple[int, int] | None:
    """Return the least and the greatest value of a term in its steps; None where it may be arbitrarily large."""
    if term.kind not in EXACT:
        return None
    low, high = _ends(term, table, known)
    return None if low is None or high is None else (floor(low), ceil(high))


def _ends(term: RowTerm, table: Table, known: Known) -> Ends:
    low, high = _follow(term, table, known)
    least, most = known(term)
    return (
        low if least is None else least if low is None else max(low, least),
        high if most is None else most if high is None else min(high, most),
    )


def _follow(term: RowTerm, table: Table, known: Known) -> Ends:
    match term.function:
        case "column":
            return _column_ends(term, table)
        case "constant":
            assert isinstance(term.value, int)
            return Fraction(term.value), Fraction(term.value)
        case "part" | "length":
            return Fraction(0), Fraction(term.limit)
        case "rest":
            return Fraction(0), Fraction(term.limit - 1)
        case _ if not term.arguments:
            return None, None
        case _:
            return _ends_of(term, [_ends(one, table, known) for one in term.arguments])


def _ends_of(term: RowTerm, parts: list[Ends]) -> Ends:
    """The ends of a function of terms with these ends."""
    (a, b), (c, d) = parts[0], parts[-1]
    match term.function:
        case "+":
            return _both(a, c), _both(b, d)
        case "negate":
            return None if b is None else -b, None if a is None else -a
        case "abs":
            return Fraction(0), None if a is None or b is None else max(abs(a), abs(b))
        case "*":
            return _product(parts)
        case "least" | "greatest" | "coalesce":
            return _choose(term.function, parts)
        case "nullif":
            return a, b
        case "floor" | "ceil" | "trunc" | "round" if c:
            return None if a is None else Fraction(floor(a / c)), None if b is None else Fraction(
                _step_up(term.function, b / c)
            )
        case "same":
            limit = Fraction(term.limit) if term.limit < term.arguments[0].limit else None
            return (-limit if a is None and limit else a), (limit if b is None and limit else b)
        case "remainder" if c is not None and c == d:
            return (Fraction(0) if a is not None and a >= 0 else 1 - abs(c)), abs(c) - 1
        case _:
            return None, None


def _step_up(function: str, value: Fraction) -> int:
    """A value that `function` gives at most, of values up to this one."""
    return floor(value) if function == "floor" else ceil(value)


def _column_ends(term: RowTerm, table: Table) -> Ends:
    column = table.column(str(term.value))
    if column.bounds is None or term.kind not in EXACT:
        return None, None
    low, high = (Fraction(one) * 10**term.scale for one in column.bounds)
    return Fraction(floor(low)), Fraction(ceil(high))


def _both(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one + other


def _product(parts: list[Ends]) -> Ends:
    ends = [end for one in parts for end in one]
    if None in ends:
        return None, None
    (a, b), (c, d) = parts
    corners = [x * y for x in (a, b) for y in (c, d) if x is not None and y is not None]
    return min(corners), max(corners)


def _choose(function: str, parts: list[Ends]) -> Ends:
    """`least` is at most the least of the greatest, where all have a value; one without a value is left out."""
    lows, highs = [one[0] for one in parts], [one[1] for one in parts]
    some_lows, some_highs = [one for one in lows if one is not None], [one for one in highs if one is not None]
    low = min(some_lows) if len(some_lows) == len(lows) else None
    high = max(some_highs) if len(some_highs) == len(highs) else None
    if function == "least" and some_highs:
        high = min(some_highs)
    if function == "greatest" and some_lows:
        low = max(some_lows)
    return low, high
