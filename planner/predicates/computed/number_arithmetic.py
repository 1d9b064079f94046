"""Arithmetic of terms: exact numbers as whole numbers of a decimal step, and doubles within a safe range.

Guarantee: each exact term is at most `limit` steps of 10^-scale, and `limit` has at most 38 digits, so that every
engine computes it exactly. Each double is 0 or between 10^-limit and 10^limit by size, so that no engine's arithmetic
overflows or underflows, and all give the same bits.

References: docs/decisions/0037-row-expressions.md.
"""

from dataclasses import replace
from fractions import Fraction

from planner.catalog.row_terms import RowTerm, TermKind

LARGEST = 10**38  # what the longest decimals of DuckDB and Spark hold
_DIVISIBLE = 2**63  # whole numbers that all engines divide as bigints
_LARGEST_EXPONENT = 290  # of a double: below the largest, and above the least that keeps all its bits
STORED_EXPONENT = 60  # of a stored double: a product of four is within range
_SUM_EXPONENT = 17  # how much smaller than its operands a difference of doubles may be, unless it is 0
_EXACT_DOUBLE = 2**53  # up to here doubles hold whole numbers, and dividing by a power of ten rounds correctly

DOUBLE_DIGITS = 10**15  # PostgreSQL keeps fifteen digits when it casts a double to numeric
_MOST_PLACES = 12  # behind the point of a double that is rounded

_NEAREST = 9_200_000_000_000_000_000  # doubles up to this one fit into a bigint when rounded

EXACT = frozenset((TermKind.WHOLE, TermKind.EXACT))
NUMBERS = frozenset((*EXACT, TermKind.FLOATING))


class TooWideError(Exception):
    """The error for an expression that may have more digits than every engine can compute with."""


class NoTermError(Exception):
    """The error for an expression that cannot be written as a `RowTerm`."""


def make_exact_term(function: str, kind: TermKind, *arguments: RowTerm, scale: int, limit: int) -> RowTerm:
    """Return the term of a function whose result is a whole number of steps. Raise `TooWideError` for large results."""
    if limit >= LARGEST or scale > 30:
        raise TooWideError
    return RowTerm(function, kind, arguments, scale=scale, limit=limit)


def make_constant(value: Fraction, *, is_integral: bool) -> RowTerm:
    """Make the term of a constant. Raise `NoTermError` for a number whose decimal digits never end."""
    scale = 0
    while (value * 10**scale).denominator != 1:
        scale += 1
        if scale > 30:
            raise NoTermError
    steps = int(value * 10**scale)
    if abs(steps) >= LARGEST:
        raise TooWideError
    return RowTerm(
        "constant",
        TermKind.WHOLE if is_integral else TermKind.EXACT,
        value=steps,
        scale=scale,
        limit=max(abs(steps), 1),
    )


def rescale(term: RowTerm, scale: int) -> RowTerm:
    """Return the term for the same exact number, counted in finer steps of 10^-scale."""
    if scale == term.scale:
        return term
    factor = 10 ** (scale - term.scale)
    if term.function == "constant":
        assert isinstance(term.value, int)
        return RowTerm("constant", term.kind, value=term.value * factor, scale=scale, limit=term.limit * factor)
    times = RowTerm("constant", TermKind.WHOLE, value=factor, limit=factor)
    return make_exact_term("*", term.kind, term, times, scale=scale, limit=term.limit * factor)


def unify(terms: list[RowTerm]) -> list[RowTerm]:
    """Return the terms converted to one kind and scale.

    If one is a double, all become doubles, as in PostgreSQL.
    """
    if any(one.kind is TermKind.FLOATING for one in terms):
        return [to_double(one) for one in terms]
    scale = max(one.scale for one in terms)
    kinds = {one.kind for one in terms}
    if len(kinds) > 1 and not kinds <= EXACT:
        raise NoTermError
    return [rescale(one, scale) for one in terms]


def find_joint_kind(*terms: RowTerm) -> TermKind:
    """Return the kind of the sum of exact numbers, or of a choice among them: numeric if one of them is."""
    return TermKind.EXACT if any(one.kind is TermKind.EXACT for one in terms) else terms[0].kind


def to_double(term: RowTerm) -> RowTerm:
    """Return the term for a number cast to double. Raise `TooWideError` if engines could round it differently."""
    if term.kind is TermKind.FLOATING:
        return term
    if term.kind not in EXACT:
        raise NoTermError
    if term.function == "constant":
        assert isinstance(term.value, int)
        value = float(Fraction(term.value, 10**term.scale))
        if value and not 1e-30 < abs(value) < 1e30:
            raise TooWideError
        return RowTerm("constant", TermKind.FLOATING, value=value, limit=30)
    if term.function == "number" and term.scale:
        return RowTerm("number", TermKind.FLOATING, term.arguments, limit=STORED_EXPONENT)
    if term.limit > (_DIVISIBLE if term.scale == 0 else _EXACT_DOUBLE) or term.scale > 22:
        raise TooWideError
    return RowTerm("double", TermKind.FLOATING, (term,), limit=max(len(str(term.limit)), term.scale) + 1)


def _make_double(function: str, *arguments: RowTerm, limit: int) -> RowTerm:
    if limit > _LARGEST_EXPONENT:
        raise TooWideError
    return RowTerm(function, TermKind.FLOATING, arguments, limit=limit)


def add(left: RowTerm, right: RowTerm, *, kind: TermKind | None = None) -> RowTerm:
    """Return the term for `left + right`."""
    left, right = unify([left, right]) if kind is None else [left, right]
    if left.kind is TermKind.FLOATING:
        return _make_double("+", left, right, limit=max(left.limit, right.limit) + _SUM_EXPONENT)
    made = find_joint_kind(left, right) if kind is None else kind
    return make_exact_term("+", made, left, right, scale=left.scale, limit=left.limit + right.limit)


def negate(term: RowTerm) -> RowTerm:
    """Return the term for `-term`."""
    if term.function == "constant":
        assert not isinstance(term.value, str)
        return RowTerm("constant", term.kind, value=-term.value, scale=term.scale, limit=term.limit)
    return RowTerm("negate", term.kind, (term,), scale=term.scale, limit=term.limit)


def multiply(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the term for `left * right`."""
    if TermKind.FLOATING in (left.kind, right.kind):
        left, right = to_double(left), to_double(right)
        return _make_double("*", left, right, limit=left.limit + right.limit)
    one = RowTerm("constant", TermKind.WHOLE, value=1, limit=1)
    if one in (left, right):
        return right if left == one else left
    limit, scale = left.limit * right.limit, left.scale + right.scale
    if left.function == right.function == "constant":
        assert isinstance(left.value, int)
        assert isinstance(right.value, int)
        if limit >= LARGEST:
            raise TooWideError
        value = left.value * right.value
        return RowTerm("constant", find_joint_kind(left, right), value=value, scale=scale, limit=limit)
    return make_exact_term("*", find_joint_kind(left, right), left, right, scale=scale, limit=limit)


def divide_doubles(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the term for `left / right` of doubles, NULL if the divisor is 0."""
    left, right = to_double(left), to_double(right)
    return _make_double("/", left, right, limit=left.limit + right.limit)


def divide_whole(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the term for `left / right` of integers, without remainder; NULL if the divisor is 0."""
    if max(left.limit, right.limit) >= _DIVISIBLE:
        raise TooWideError
    return make_exact_term("quotient", TermKind.WHOLE, left, right, scale=0, limit=left.limit)


def take_remainder(left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the term for `left % right`, which has the sign of `left`; NULL if the divisor is 0."""
    left, right = unify([left, right])
    if left.kind is TermKind.FLOATING:
        raise TooWideError
    limit = min(left.limit, right.limit)
    return make_exact_term("remainder", find_joint_kind(left, right), left, right, scale=left.scale, limit=limit)


def drop_sign(term: RowTerm) -> RowTerm:
    """Return the term for `abs(term)`."""
    return RowTerm("abs", term.kind, (term,), scale=term.scale, limit=term.limit)


def round_steps(function: str, term: RowTerm, places: int) -> RowTerm:
    """Return `floor`, `ceil`, `trunc` or `round` of an exact number to decimal places; `floor` and `ceil` of doubles.

    PostgreSQL rounds the half of a numeric away from 0. It rounds a double's half to even, which other engines do not.
    """
    if term.kind is TermKind.FLOATING:
        if function not in ("floor", "ceil") or places:
            raise NoTermError
        return _make_double(function, term, limit=term.limit + 1)
    if places >= term.scale:
        return RowTerm("same", term.kind, (term,), scale=term.scale, limit=term.limit)
    return divide_steps(function, term, Fraction(1, 10 ** (term.scale - places)), places)


def round_double(function: str, term: RowTerm, places: int) -> RowTerm:
    """Return `round` or `trunc` of a double that is cast to numeric, for which PostgreSQL keeps fifteen digits.

    It is NULL if it has more than fifteen digits. A double that lies between two numbers of fifteen digits may be
    rounded differently from PostgreSQL, if these digits end exactly at a half. Raise `NoTermError` for other places
    than the engines share.
    """
    if term.kind is not TermKind.FLOATING or function not in ("round", "trunc") or not 0 <= places <= _MOST_PLACES:
        raise NoTermError
    return make_exact_term(f"{function} double", TermKind.EXACT, term, scale=places, limit=DOUBLE_DIGITS)


def divide_steps(function: str, term: RowTerm, factor: Fraction, places: int) -> RowTerm:
    """Return an exact number rounded to whole steps of 10^-places.

    Its steps are those of `term` times a positive `factor`.
    """
    if factor.numerator != 1:
        times = RowTerm("constant", TermKind.WHOLE, value=factor.numerator, limit=factor.numerator)
        limit = term.limit * factor.numerator
        term = make_exact_term("*", term.kind, term, times, scale=term.scale, limit=limit)
    step = factor.denominator
    if 4 * term.limit + 4 * step >= _DIVISIBLE:
        raise TooWideError
    by = RowTerm("constant", TermKind.WHOLE, value=step, limit=step)
    found = make_exact_term(function, term.kind, term, by, scale=max(places, 0), limit=term.limit // step + 1)
    if places >= 0:
        return found
    times = RowTerm("constant", TermKind.WHOLE, value=10**-places, limit=10**-places)
    return make_exact_term("*", TermKind.EXACT, found, times, scale=0, limit=found.limit * 10**-places)


def scale_by_ten(term: RowTerm, digits: int) -> RowTerm:
    """Return an exact number's count of steps, times 10^digits, as a term for a whole number."""
    if not digits:
        return term
    times = RowTerm("constant", TermKind.WHOLE, value=10**digits, limit=10**digits)
    return make_exact_term("*", term.kind, term, times, scale=term.scale, limit=term.limit * 10**digits)


def divide_to_steps(function: str, over: RowTerm, under: RowTerm, places: int) -> RowTerm:
    """Return the term for a quotient of whole numbers, rounded to steps of 10^-places; NULL if the divisor is 0."""
    if 2 * over.limit + 2 * under.limit >= _DIVISIBLE:
        raise TooWideError
    found = make_exact_term(f"{function} of", TermKind.EXACT, over, under, scale=max(places, 0), limit=over.limit + 1)
    return found if places >= 0 else replace(scale_by_ten(found, -places), scale=0)


def round_to_integer(term: RowTerm) -> RowTerm:
    """Return the term for a number cast to an integer. Numerics round halves away from 0, doubles to the even integer.

    Beyond the integers of the type, where PostgreSQL fails, it is the number itself, and NULL beyond bigint.
    """
    if term.kind is TermKind.FLOATING:
        return make_exact_term("nearest", TermKind.WHOLE, term, scale=0, limit=_NEAREST)
    rounded = round_steps("round", term, 0)
    return RowTerm("same", TermKind.WHOLE, (rounded,), limit=rounded.limit)


def count_steps(term: RowTerm, step: int, *, kind: TermKind, scale: int = 0) -> RowTerm:
    """Return the number of whole steps in a term, rounded down, such as the number of days in a moment."""
    if 4 * term.limit + 4 * step >= _DIVISIBLE:
        raise TooWideError
    by = RowTerm("constant", TermKind.WHOLE, value=step, limit=step)
    return make_exact_term("floor", kind, term, by, scale=scale, limit=term.limit // step + 1)
