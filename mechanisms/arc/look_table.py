"""The tables of arc looks: for each step, how many of the 2**64 random words accept a value, and how many reject it.

These integers define the mechanism. Its error rates and its loss are read off them.

A value's place in the table is its block: `floor((z - 1) / block)`, where `z` is the literal's distance, `S - c` for
`S > c` and `c + 1 - S` for `S <= c`. The literal holds from place 0 on, and its relaxation is false up to place
`-steps`. One privacy unit moves a place by at most `moves`.

Proof: docs/proofs/arc.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.arc.acceptance_law import AcceptanceLaw, compute_laplace_slope, find_speed
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import LookTable, Unachievable, Words

WORDS = 1 << 64  # all random words
MIXED_WORDS = 1 << 14
"""The words that every outcome has at least, a part of 2**-50, so that no outcome is impossible."""

MOST_STEPS = 1 << 11
"""The most steps of a tolerance. The rest of a wider one is not used, as thousands of such questions fit.

A table has some sixteen entries a step, half a megabyte at most."""

_MOST_ENTRIES = 1 << 20  # of one table; its length grows without bound as both rates approach a half
_SAFETY = 1.0 - 1e-12  # of each share; covers what floating point loses
_PARTS = 64  # of the sensitivity that one step is at least
_BIGINT = 2**63  # the end of values
_ENDS = 2.0**-66  # the probability at which a table ends: the integers do not change further out


@dataclass(frozen=True, slots=True)
class BlockGrid:
    """The steps of a table: units a step, steps of the tolerance, and the most steps that one unit moves a value.

    If it `is_whole`, any change by one unit moves a value by a whole step, or its part is 1 in every exposure.
    """

    block: int
    steps: int
    moves: int
    is_whole: bool

    @staticmethod
    def from_contract(*, sensitivity: int, tolerance: int, in_full: bool) -> "BlockGrid":
        """Return the grid for a sensitivity and a tolerance.

        With `in_full` a step is the whole sensitivity. That is cheaper, but any change then moves a value by a whole
        step. Otherwise a step is at least a 64th of the sensitivity.

        >>> [BlockGrid.from_contract(sensitivity=most, tolerance=200, in_full=False).moves for most in (1, 64, 65, 129)]
        [1, 64, 33, 43]
        >>> BlockGrid.from_contract(sensitivity=20, tolerance=100, in_full=True)
        BlockGrid(block=20, steps=6, moves=1, is_whole=True)
        """
        finest = max(-(-sensitivity // _PARTS), -(-(tolerance + 1) // MOST_STEPS))
        block = sensitivity if in_full else min(sensitivity, finest)
        steps = min(-(-(tolerance + 1) // block), MOST_STEPS)
        return BlockGrid(block=block, steps=steps, moves=-(-sensitivity // block), is_whole=in_full)

    def bound_moves(self, changed: Fraction) -> Fraction:
        """Return a bound on the moves by a whole number of units of which at most `changed` on average are changed.

        A change of `d > 0` units moves a place by at most `(d + block - 1) / block`.
        """
        return (changed + self.block - 1) / self.block


@dataclass(frozen=True, slots=True)
class LookShares:
    """A part of the speed of the last look, and the rates that a look may use."""

    part: float
    fnr: float
    fpr: float


@lru_cache(maxsize=64)
def make_last_look(*, grid: BlockGrid, fnr: float, fpr: float, slope: float) -> LookTable:
    """Return the table of a look that accepts or rejects every value.

    Guarantee: it rejects place 0 with probability at most `fnr`, and accepts place `-steps` with at most `fpr`. It
    accepts no place less often than a lower one.

    Parameters:
        fnr, fpr: in (0, 1), of sum below one.
        slope: the largest change of a logarithm a step, of a multiple of the slope of Laplace noise above one.

    Raises:
        Unachievable: no such table.
    """
    law, center = _find_law(grid=grid, fnr=fnr, fpr=fpr, slope=slope)
    first, count = _find_extent(law, [center])
    accepted = _tabulate(law, center=center, first=first, count=count, outcomes=2)
    table = LookTable(first=first, accepted=accepted, rejected=_negate(accepted), block=grid.block, moves=grid.moves)
    _check_rates(table, grid=grid, fnr=fnr, fpr=fpr)
    return table


def make_early_look(*, grid: BlockGrid, last: AcceptanceLaw, look: LookShares) -> LookTable:
    """Return the table of a look that accepts, rejects, or leaves a value undecided, at a part of the last speed.

    Guarantee: that of `make_last_look`, and every outcome has at least 2**-50 at every place.

    Parameters:
        last: the law of the last look.

    Raises:
        Unachievable: at these rates the look would leave nothing undecided.
    """
    law = last.stretch(look.part)
    accepting = -grid.steps - law.find_position(_leave_room(look.fpr, outcomes=3))
    rejecting = law.find_position(_leave_room(look.fnr, outcomes=3))
    if accepting < rejecting:
        raise Unachievable("an early look leaves nothing undecided at rates as large as these")
    first, count = _find_extent(law, [accepting, rejecting])
    accepted = _tabulate(law, center=accepting, first=first, count=count, outcomes=3)
    mirrored = _tabulate(law, center=-rejecting, first=1 - first - count, count=count, outcomes=3)
    table = LookTable(
        first=first,
        accepted=accepted,
        rejected=np.ascontiguousarray(mirrored[::-1]),
        block=grid.block,
        moves=grid.moves,
    )
    _check_rates(table, grid=grid, fnr=look.fnr, fpr=look.fpr)
    return table


@lru_cache(maxsize=256)
def make_looks(
    *, grid: BlockGrid, fnr: float, fpr: float, slope: float, early: tuple[float, ...], early_share: float
) -> tuple[LookTable, ...]:
    """Return the tables of early looks and of the last look, which together keep both rates.

    Parameters:
        early: the parts of the last speed, growing.
        early_share: the part of both rates that all early looks have together, in equal parts.

    Raises:
        Unachievable: as `make_last_look` and `make_early_look`.
    """
    left = 1.0 - early_share if early else 1.0
    law, _ = _find_law(grid=grid, fnr=left * fnr, fpr=left * fpr, slope=slope)
    tables = [
        make_early_look(
            grid=grid,
            last=law,
            look=LookShares(part=part, fnr=early_share * fnr / len(early), fpr=early_share * fpr / len(early)),
        )
        for part in early
    ]
    return (*tables, make_last_look(grid=grid, fnr=left * fnr, fpr=left * fpr, slope=slope))


def choose_slope(*, grid: BlockGrid, fnr: float, fpr: float, multiple: float) -> float:
    """Return a multiple of the slope a step that a test on Laplace noise would have."""
    return multiple * compute_laplace_slope(fnr=fnr, fpr=fpr) / grid.steps


def find_distances(table: LookTable, values: Integers, *, cut: int, above: bool) -> Integers:
    """Return the distances of a literal's values. Beyond the table's reach they are its reach, so none overflows."""
    low, high = max(cut - table.reach, -_BIGINT), min(cut + table.reach, _BIGINT - 1)
    near: Integers = np.clip(values, low, high)
    return near - cut if above else cut - near + 1


def find_entries(table: LookTable, distances: Integers) -> Integers:
    """Return for each distance its index in the arrays of the table. Beyond the ends it is that of the end."""
    places = (distances - 1) // table.block
    return np.clip(places - table.first, 0, table.accepted.size - 1)


def decide_by_words(table: LookTable, distances: Integers, words: Words) -> tuple[Booleans, Booleans]:
    """Return which values are accepted and which are rejected, one random word each.

    Guarantee: exactly the table's probabilities if the words are uniform and independent. No value is both.
    """
    entries = find_entries(table, distances)
    # the last `rejected` words reject: none of them accepts, as both together are at most all
    return words < table.accepted[entries], words >= _negate(table.rejected)[entries]


def _find_law(*, grid: BlockGrid, fnr: float, fpr: float, slope: float) -> tuple[AcceptanceLaw, float]:
    """Return the law of a last look, and the place of its center."""
    missed, wrong = _leave_room(fnr, outcomes=2), _leave_room(fpr, outcomes=2)
    speed = find_speed(fnr=missed, fpr=wrong, slope=slope * grid.steps).speed
    law = AcceptanceLaw(speed=speed / grid.steps, slope=slope)
    return law, law.find_position(missed)


def _leave_room(rate: float, *, outcomes: int) -> float:
    """Return the rate that a law may have before it is mixed with the uniform law."""
    part = MIXED_WORDS / WORDS
    found = (rate * _SAFETY - part) / (1.0 - outcomes * part)
    if found <= part:
        raise Unachievable("error rates this small are below the resolution of arc looks")
    return found


def _find_extent(law: AcceptanceLaw, centers: Sequence[float]) -> tuple[int, int]:
    """Return the first place of a table, and its number of places, so that nothing changes beyond."""
    reach = -law.find_position(_ENDS)
    first = math.floor(min(centers) - reach)
    count = math.ceil(max(centers) + reach) - first + 1
    if count > _MOST_ENTRIES:
        raise Unachievable("error rates this large need too long a table of arc looks")
    return first, count


def _tabulate(law: AcceptanceLaw, *, center: float, first: int, count: int, outcomes: int) -> Words:
    scale = WORDS - outcomes * MIXED_WORDS
    found = law.tabulate(first - Fraction(center), count, scale=scale)
    result: Words = np.array(found, dtype=np.uint64) + np.uint64(MIXED_WORDS)
    assert np.all(result[:-1] <= result[1:])
    return result


def _negate(words: Words) -> Words:
    """Return 2**64 minus each number. None of them is zero."""
    result: Words = np.uint64(0) - words
    return result


def _check_rates(table: LookTable, *, grid: BlockGrid, fnr: float, fpr: float) -> None:
    farthest = 1 - grid.steps * grid.block
    if table.compute_rejection(1) > Fraction(fnr) or table.compute_acceptance(farthest) > Fraction(fpr):
        raise Unachievable("no arc look has error rates like these")
