"""The values of a part of an expression between two cuts, as lines or constant, and how many cuts and lines may be."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

Line = tuple[Fraction, Fraction]

MOST_CUTS = 1_000_000  # of a time, and equal steps of a number: as many keys as any question may have
MOST_STEPS = 2_000  # each is a place in the statement, and takes a tenth of a millisecond to find


class NotFinite(Exception):
    """An expression with values that are not known to be finitely many; the text says why."""


class TooManyCuts(Exception):
    """An expression with more values than a question may have groups; the argument is how many."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The values of a part of an expression between two cuts; `whole` if PostgreSQL computes it with integers."""

    lines: frozenset[Line] = frozenset()
    has_steps: bool = False
    is_whole: bool = False

    @property
    def varies(self) -> bool:
        """Return True if it is another number for each x."""
        return any(a for a, _ in self.lines)

    @property
    def constant(self) -> Fraction | None:
        """Its one value, whatever x is; None if it has none."""
        (line, *others) = self.lines or ((Fraction(1), Fraction(0)),)
        return line[1] if not (self.has_steps or others or line[0]) else None


def pair_lines(left: Pieces, right: Pieces) -> Iterator[tuple[Line, Line]]:
    """Pair each line of one with each of the other. Raise `TooManyCuts`."""
    if (size := len(left.lines) * len(right.lines)) > MOST_STEPS:
        raise TooManyCuts(size)
    return product(left.lines, right.lines)


def limit_lines(pieces: frozenset[Line]) -> frozenset[Line]:
    """Return the lines, which each level of an expression may double. Raise `TooManyCuts`."""
    if len(pieces) > MOST_STEPS:
        raise TooManyCuts(len(pieces))
    return pieces
