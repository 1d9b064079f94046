"""Cuts of the number line at equal distances, for example those of roundings, stored without a list."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from planner.catalog.steps import Run
from planner.groups.doubles import Cut

_HALF = Fraction(1, 2)  # what is as far from two whole numbers


@dataclass(frozen=True, slots=True)
class EvenCuts:
    """A run of evenly spaced cuts: `count` of them from `first` on, at distances of `step`.

    `equal_is_below`: a number that equals a cut belongs to the part below the cut.
    """

    first: Fraction
    step: Fraction
    count: int
    equal_is_below: bool

    def __iter__(self) -> Iterator[Cut]:
        return ((self.first + self.step * place, self.equal_is_below) for place in range(self.count))

    def map_through_line(self, a: Fraction, b: Fraction) -> "EvenCuts":
        """Return the numbers x, in rising order, at which `a x + b` crosses these cuts. `a` is not 0."""
        if a > 0:
            return replace(self, first=(self.first - b) / a, step=self.step / a)
        last = self.first + self.step * (self.count - 1)
        return replace(self, first=(last - b) / a, step=self.step / -a, equal_is_below=not self.equal_is_below)

    def count_up_to(self, end: Cut) -> int:
        """Return how many of the cuts are at or below the cut `end`."""
        at, below = end
        exact = (at - self.first) / self.step
        steps = floor(exact)
        if steps == exact and (self.equal_is_below and not below):
            steps -= 1
        return max(0, min(self.count, steps + 1))

    def keep_between(self, low: Cut, high: Cut) -> "EvenCuts | None":
        """Return the cuts from `low` to `high`, both included. Return None if there are none."""
        past = self.count_up_to(high)
        before = self.count_up_to(low)
        if before and (self.first + self.step * (before - 1), self.equal_is_below) == low:
            before -= 1
        return None if past <= before else replace(self, first=self.first + self.step * before, count=past - before)

    def convert_to_units(self, unit: Fraction) -> Run | None:
        """Round each cut up to the next multiple of `unit`. Return these multiples, counted in units.

        Return None if they are not at equal distances.
        """
        first, step = self.first / unit, self.step / unit
        start, end = (
            floor(at) + 1 if self.equal_is_below else ceil(at) for at in (first, first + step * (self.count - 1))
        )
        if step <= 1:  # every number is the first that does not lie below some cut
            return Run(start, 1, end - start + 1)
        return Run(start, step.numerator, self.count) if step.denominator == 1 else None


def find_cuts_around(runs: Sequence[EvenCuts], low: Cut, high: Cut) -> tuple[Cut, Cut]:
    """Return the last cut that is not above `low`, and the first cut that is above `high`."""
    below = [(run, run.count_up_to(low)) for run in runs]
    above = [(run, run.count_up_to(high)) for run in runs]
    return (
        max((run.first + run.step * (count - 1), run.equal_is_below) for run, count in below if count),
        min((run.first + run.step * count, run.equal_is_below) for run, count in above if count < run.count),
    )


def join_runs(found: Sequence[Run]) -> tuple[Run, ...] | None:
    """Return the runs in rising order. Two of them are joined if one continues the other with the same step.

    Return None if they overlap.
    """
    runs: list[Run] = []
    for run in sorted(found, key=lambda one: one.first):
        before = runs[-1] if runs else None
        if before is not None and run.first <= before.last:
            return None
        if before is not None and _continues(before, run):
            runs[-1] = Run(before.first, run.first - before.last, before.count + run.count)
        else:
            runs.append(run)
    return tuple(runs)


def _continues(run: Run, after: Run) -> bool:
    """Return True if the second run continues where the first ends, with steps of the same size."""
    step = after.first - run.last
    return all(one.count == 1 or one.step == step for one in (run, after))


Side = Callable[[int, int], tuple[EvenCuts, ...]]
"""A function that returns the cuts of a rounding between a first and a last whole number."""


def list_floor_cuts(first: int, last: int) -> tuple[EvenCuts, ...]:
    """Return the cuts at which `floor(x)` changes, from `first` to `last`."""
    return () if first > last else (EvenCuts(Fraction(first), Fraction(1), last - first + 1, equal_is_below=False),)


def list_ceil_cuts(first: int, last: int) -> tuple[EvenCuts, ...]:
    """Return the cuts at which `ceil(x)` changes, from `first` to `last`."""
    return tuple(replace(run, equal_is_below=True) for run in list_floor_cuts(first, last))


def cut_toward_zero(first: int, last: int) -> tuple[EvenCuts, ...]:
    """Return the cuts at which `trunc(x)` changes, from `first` to `last`."""
    return (*list_ceil_cuts(first, min(last, -1)), *list_floor_cuts(max(first, 1), last))


def list_round_away_cuts(first: int, last: int) -> tuple[EvenCuts, ...]:
    """Return the cuts at which `round(x)` changes, from `first` to `last`, if halves round away from zero."""
    return tuple(
        replace(run, first=run.first + _HALF)
        for run in (*list_ceil_cuts(first, min(last, -1)), *list_floor_cuts(max(first, 0), last))
    )


def list_round_even_cuts(first: int, last: int) -> tuple[EvenCuts, ...]:
    """Return the cuts at which `round(x)` changes, from `first` to `last`, if halves round to the even number."""
    even, odd = first + first % 2, first + 1 - first % 2
    runs = ((even, True), (odd, False))  # the half above an even number is rounded down
    return tuple(
        EvenCuts(start + _HALF, Fraction(2), (last - start) // 2 + 1, equal_is_below=below)
        for start, below in runs
        if start <= last
    )
