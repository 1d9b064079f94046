"""Quotients of exact numbers, kept as numerator and divisor and compared by multiplying out, which is exact.

PostgreSQL rounds such a quotient to some sixteen digits. Compared with a constant nearer to it than that, it may be on
the other side there. A ratio whose divisor is 0 is NULL.
"""

from fractions import Fraction

from sqlglot import exp

from planner.catalog.row_terms import RowTerm, TermKind
from planner.predicates.computed import number_arithmetic
from planner.predicates.computed.number_arithmetic import NoTermError

_LONGEST = 2**63  # of a whole number that every engine makes the nearest double
_ONE = RowTerm("constant", TermKind.WHOLE, value=1, limit=1)


def split_ratio(term: RowTerm) -> tuple[RowTerm, RowTerm]:
    """Return the terms of numerator and divisor. For a term that is no quotient, these are the term and 1."""
    return (term.arguments[0], term.arguments[1]) if term.function == "ratio" else (term, _ONE)


def make_ratio(over: RowTerm, under: RowTerm) -> RowTerm:
    """Return the term for `over / under`, NULL if `under` is 0. Raise `NoTermError` if it is the constant 0."""
    if under.function == "constant":
        assert isinstance(under.value, int)
        if under.value == 0:
            raise NoTermError
        if under.value < 0:
            over, under = number_arithmetic.negate(over), number_arithmetic.negate(under)
    return RowTerm("ratio", TermKind.EXACT, (over, under))


def require_no_ratio(term: RowTerm) -> RowTerm:
    """Return the term unchanged. Raise `NoTermError` if the term is a quotient."""
    if term.function == "ratio":
        raise NoTermError
    return term


def round_steps(function: str, term: RowTerm, places: int) -> RowTerm:
    """Return `floor`, `ceil`, `trunc` or `round` of a number to decimal places.

    Raise `TooWideError` for too many digits.
    """
    if term.function != "ratio":
        return number_arithmetic.round_steps(function, term, places)
    over, under = split_ratio(term)
    if not isinstance(under.value, int) or under.function != "constant":
        finer = under.scale - over.scale + places  # by so many digits what is divided must be written out
        return number_arithmetic.divide_to_steps(
            function,
            number_arithmetic.scale_by_ten(over, max(finer, 0)),
            number_arithmetic.scale_by_ten(under, max(-finer, 0)),
            places,
        )
    factor = Fraction(10**under.scale, under.value * 10**over.scale) * Fraction(10) ** places
    return number_arithmetic.divide_steps(function, over, factor, places)


def to_double(term: RowTerm) -> RowTerm:
    """Return a number as a double.

    For a quotient it is the nearest double, although PostgreSQL rounds to digits first.
    """
    over, under = split_ratio(term)
    return (
        number_arithmetic.divide_doubles(over, under) if term.function == "ratio" else number_arithmetic.to_double(term)
    )


def convert_to_double(term: RowTerm) -> RowTerm:
    """Return a number as a double that all engines compute alike. A quotient by a column divides doubles.

    A number with decimals is its whole number of steps, cast to double and divided by a power of ten. The result is at
    most one step of a double away from the nearest double.
    """
    if term.function == "ratio":
        over, under = split_ratio(term)
        return number_arithmetic.divide_doubles(convert_to_double(over), convert_to_double(under))
    if term.kind is TermKind.FLOATING or not term.scale or term.limit >= _LONGEST:
        return number_arithmetic.to_double(term)
    return RowTerm("double", TermKind.FLOATING, (term,), limit=max(len(str(term.limit)), term.scale) + 1)


def negate(term: RowTerm) -> RowTerm:
    """Return the term for `-term`, which may be a quotient."""
    over, under = split_ratio(term)
    return (
        make_ratio(number_arithmetic.negate(over), under)
        if term.function == "ratio"
        else number_arithmetic.negate(term)
    )


def drop_sign(term: RowTerm) -> RowTerm:
    """Return the term for `abs(term)`, which may be a quotient."""
    over, under = split_ratio(term)
    if term.function == "ratio":
        return make_ratio(number_arithmetic.drop_sign(over), number_arithmetic.drop_sign(under))
    return number_arithmetic.drop_sign(term)


def compute_arithmetic(kind: type[exp.Expr], left: RowTerm, right: RowTerm) -> RowTerm:
    """Return the term for `+ - * / %` of two numbers, with PostgreSQL's result type."""
    if TermKind.FLOATING in (left.kind, right.kind):
        left, right = to_double(left), to_double(right)
    if kind is exp.Mod:
        return number_arithmetic.take_remainder(require_no_ratio(left), require_no_ratio(right))
    if kind is exp.Div:
        if TermKind.FLOATING in (left.kind, right.kind):
            return number_arithmetic.divide_doubles(left, right)
        if left.kind is right.kind is TermKind.WHOLE:
            return number_arithmetic.divide_whole(left, right)
    if kind is exp.Sub:
        right = negate(right)
    if kind is not exp.Div and "ratio" not in (left.function, right.function):
        return number_arithmetic.multiply(left, right) if kind is exp.Mul else number_arithmetic.add(left, right)
    (over, under), (other, below) = split_ratio(left), split_ratio(right)
    times = number_arithmetic.multiply
    match kind:
        case exp.Mul:
            return make_ratio(times(over, other), times(under, below))
        case exp.Div:
            return make_ratio(times(over, below), times(under, other))
        case _:
            return make_ratio(number_arithmetic.add(times(over, below), times(other, under)), times(under, below))
