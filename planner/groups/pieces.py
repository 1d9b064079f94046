"""The values of a part of an expression between two cuts, as lines or constants, and the limits on cuts and lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

Line = tuple[Fraction, Fraction]

MOST_CUTS = 1_000_000  # of a time, and equal steps of a number: as many keys as any question may have
MOST_STEPS = 2_000  # each is a place in the statement, and takes a tenth of a millisecond to find


class NotFinite(Exception):
    """The error for an expression that may have infinitely many values. Its text says why."""


class TooManyCuts(Exception):
    """The error for an expression with more values than a question may have groups.

    Its argument is the number of values. The argument is their number.
    """


@dataclass(frozen=True, slots=True)
class Pieces:
    """The values that an expression of a column x can have between two neighbouring cuts of x.

    `lines` are the functions `a x + b` that the expression may equal there. With `has_steps` it is constant there, at
    a value that is not listed. `is_whole`: PostgreSQL computes it with integers.
    """

    lines: frozenset[Line] = frozenset()
    has_steps: bool = False
    is_whole: bool = False

    @property
    def varies(self) -> bool:
        """True if the value may change with x between two cuts."""
        return any(a for a, _ in self.lines)

    @property
    def constant(self) -> Fraction | None:
        """The value if the expression is one known number for all x, else None."""
        (line, *others) = self.lines or ((Fraction(1), Fraction(0)),)
        return line[1] if not (self.has_steps or others or line[0]) else None


def pair_lines(left: Pieces, right: Pieces) -> Iterator[tuple[Line, Line]]:
    """Return each pair of a line of `left` and a line of `right`. Raise `TooManyCuts` if there are too many."""
    if (size := len(left.lines) * len(right.lines)) > MOST_STEPS:
        raise TooManyCuts(size)
    return product(left.lines, right.lines)


def limit_lines(pieces: frozenset[Line]) -> frozenset[Line]:
    """Return the lines unchanged.

    Raise `TooManyCuts` if there are too many: each level of an expression may double their number.
    """
    if len(pieces) > MOST_STEPS:
        raise TooManyCuts(len(pieces))
    return pieces
