"""Quotients of exact numbers, kept as numerator and divisor: they are compared by multiplying out, which is exact.

PostgreSQL rounds such a quotient to some sixteen digits; compared with a constant nearer to it than that, it may be
on the other side there. A ratio whose divisor is 0 is NULL.
"""

from fractions import Fraction

from sqlglot import exp

from planner.catalog.row_terms import RowTerm, TermKind
from planner.predicates.computed import numbers
from planner.predicates.computed.numbers import NoTermError

_LONGEST = 2**63  # of a whole number that every engine makes the nearest double
_ONE = RowTerm("constant", TermKind.WHOLE, value=1, limit=1)


def split(term: RowTerm) -> tuple[RowTerm, RowTerm]:
    """Return numerator and divisor; of a term that is no ratio, itself and 1."""
    return (term.arguments[0], term.arguments[1]) if term.function == "ratio" else (term, _ONE)


def make_ratio(over: RowTerm, under: RowTerm) -> RowTerm:
    """Return a quotient, NULL where the divisor is 0. Raise `NoTermError` for one by a constant 0."""
    if under.function == "constant":
        assert isinstance(under.value, int)
        if under.value == 0:
            raise NoTermError
        if under.value < 0:
            over, under = numbers.negate(over), numbers.negate(under)
    return RowTerm("ratio", TermKind.EXACT, (over, under))


def no_ratio(term: RowTerm) -> RowTerm:
    """Return a term that is no ratio. Raise `NoTermError` for one."""
    if term.function == "ratio":
        raise NoTermError
    return term


def round_steps(function: str, term: RowTerm, places: int) -> RowTerm:
    """Return `floor`, `ceil`, `trunc` or `round` of a number to decimal places. Raise `TooWideError`."""
    if term.function != "ratio":
        return numbers.round_steps(function, term, places)
    over, under = split(term)
    if not isinstance(under.value, int) or under.function != "constant":
        finer = under.scale - over.scale + places  # by so many digits what is divided must be written out
        return numbers.divide_by(
            function, numbers.times_ten(over, max(finer, 0)), numbers.times_ten(under, max(-finer, 0)), places
        )
    factor = Fraction(10**under.scale, under.value * 10**over.scale) * Fraction(10) ** places
    return numbers.divide_steps(function, over, factor, places)


def to_double(term: RowTerm) -> RowTerm:
    """Return a number as a double: of a quotient the nearest one, though PostgreSQL rounds its digits first."""
    over, under = split(term)
    return numbers.divide_doubles(over, under) if term.function == "ratio" else numbers.to_double(term)


def as_double(term: RowTerm) -> RowTerm:
    """Return a number as a double that all engines compute alike; a quotient by a column as one of doubles.

    A number with decimals is a whole number made a double, divided by a power of ten: within a step of the nearest one.
    """
    if term.function == "ratio":
        over, under = split(term)
        return numbers.divide_doubles(as_double(over), as_double(under))
    if term.kind is TermKind.FLOATING or not term.scale or term.limit >= _LONGEST:
        return numbers.to_double(term)
    return RowTerm("double", TermKind.FLOATING, (term,), limit=max(len(str(term.limit)), term.scale) + 1)


def negate(term: RowTerm) -> RowTerm:
    """Return the number with the other sign."""
    over, under = split(term)
    return make_ratio(numbers.negate(over), under) if term.function == "ratio" else numbers.negate(term)


def drop_sign(term: RowTerm) -> RowTerm:
    """Return the number without its sign."""
    over, under = split(term)
    if term.function == "ratio":
        return make_ratio(numbers.drop_sign(over), numbers.drop_sign(under))
    return numbers.drop_sign(term)


def arithmetic(kind: type[exp.Expr], left: RowTerm, right: RowTerm) -> RowTerm:
    """Return `+ - * / %` of two numbers, typed as PostgreSQL types it."""
    if TermKind.FLOATING in (left.kind, right.kind):
        left, right = to_double(left), to_double(right)
    if kind is exp.Mod:
        return numbers.remainder(no_ratio(left), no_ratio(right))
    if kind is exp.Div:
        if TermKind.FLOATING in (left.kind, right.kind):
            return numbers.divide_doubles(left, right)
        if left.kind is right.kind is TermKind.WHOLE:
            return numbers.divide_whole(left, right)
    if kind is exp.Sub:
        right = negate(right)
    if kind is not exp.Div and "ratio" not in (left.function, right.function):
        return numbers.multiply(left, right) if kind is exp.Mul else numbers.add(left, right)
    (over, under), (other, below) = split(left), split(right)
    times = numbers.multiply
    match kind:
        case exp.Mul:
            return make_ratio(times(over, other), times(under, below))
        case exp.Div:
            return make_ratio(times(over, below), times(under, other))
        case _:
            return make_ratio(numbers.add(times(over, below), times(other, under)), times(under, below))
