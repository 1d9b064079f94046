"""Ways of finding a bound that all but few units keep: Keyhole's, the published one, and what others do.

Each is `epsilon`-private under adding or removing one unit, and gives the bounds of so many independent runs. Those
that are only here draw with numpy's floating-point noise: they are compared and never shipped.

| here | where it is from |
|---|---|
| doubling scan | Chen's thesis, algorithm 10 |
| fine scan | the same comparisons over quarter octaves |
| Keyhole | mechanisms/publishing/private_bounds.py |
| exponential mechanism | Smith 2011, on the same quarter octaves |
| noisy histogram | counts of the intervals between them, added up |
| powers of two | Google's ApproxBounds: the highest bin that noise alone would not fill |
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from benchmarks.bounds.statistics import Statistic
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.published.doubling_bounds import find_first_covering_candidate, list_doubling_candidates
from mechanisms.publishing.private_bounds import find_first_passing_candidate, list_candidates

Finder = Callable[[Statistic, float, Fraction, int, Noise, np.random.Generator], Integers]
"""Of a statistic, a target share, epsilon, so many runs, exact noise and other randomness: the bounds found."""

_SURELY = 1 - 1e-9  # that no empty bin passes for a full one, as ApproxBounds has it


def _make_grid(statistic: Statistic) -> Integers:
    return np.array(list_candidates(statistic.greatest), dtype=np.int64)


def find_by_keyhole(
    statistic: Statistic, target: float, epsilon: Fraction, runs: int, noise: Noise, _: np.random.Generator
) -> Integers:
    """One-sided noise, for counts are monotone."""
    grid = _make_grid(statistic)
    beyond = np.broadcast_to(statistic.units - statistic.count_within(grid), (runs, len(grid)))
    allowed = round((1 - target) * statistic.units)
    return grid[find_first_passing_candidate(beyond, target=allowed, rate=epsilon / 2, noise=noise)]


def _scan_published(
    grid: Integers, statistic: Statistic, target: float, epsilon: Fraction, runs: int, noise: Noise
) -> Integers:
    within = np.broadcast_to(statistic.count_within(grid), (runs, len(grid)))
    wanted = round(target * statistic.units)
    return grid[find_first_covering_candidate(within, wanted=wanted, epsilon=epsilon, noise=noise)]


def find_by_doubling(
    statistic: Statistic, target: float, epsilon: Fraction, runs: int, noise: Noise, _: np.random.Generator
) -> Integers:
    """As published."""
    grid = np.array(list_doubling_candidates(1, greatest=statistic.greatest), dtype=np.int64)
    return _scan_published(grid, statistic, target, epsilon, runs, noise)


def find_by_fine_scan(
    statistic: Statistic, target: float, epsilon: Fraction, runs: int, noise: Noise, _: np.random.Generator
) -> Integers:
    """As published, on finer candidates."""
    return _scan_published(_make_grid(statistic), statistic, target, epsilon, runs, noise)


def find_by_exponential(
    statistic: Statistic, target: float, epsilon: Fraction, runs: int, _: Noise, chosen: np.random.Generator
) -> Integers:
    """Candidates by how near their ranks are to the target's; adding a unit moves that by the target at most."""
    grid = _make_grid(statistic)
    scores = -np.abs(statistic.count_within(grid) - target * statistic.units)
    logs = float(epsilon) * scores / (2 * max(target, 1 - target))
    keys = logs + chosen.gumbel(size=(runs, len(grid)))
    return np.asarray(grid[keys.argmax(axis=1)])


def find_by_histogram(
    statistic: Statistic, target: float, epsilon: Fraction, runs: int, _: Noise, chosen: np.random.Generator
) -> Integers:
    """Where the noisy counts, added up from below, reach the target's part of all of them."""
    grid = _make_grid(statistic)
    counts = np.diff(statistic.count_within(grid), prepend=0)
    noisy = counts + chosen.laplace(0, 1 / float(epsilon), (runs, len(grid)))
    reached = np.cumsum(noisy, axis=1)
    passing = reached >= target * reached[:, -1:]
    passing[:, -1] = True
    return np.asarray(grid[passing.argmax(axis=1)])


def find_by_powers_of_two(
    statistic: Statistic,
    target: float,  # noqa: ARG001
    epsilon: Fraction,
    runs: int,
    _: Noise,
    chosen: np.random.Generator,
) -> Integers:
    """The upper end of the highest bin that noise would not fill alone; it knows no target."""
    grid = np.array(list_doubling_candidates(1, greatest=statistic.greatest), dtype=np.int64)
    counts = np.diff(statistic.count_within(grid), prepend=0)
    noisy = counts + chosen.laplace(0, 1 / float(epsilon), (runs, len(grid)))
    least = -math.log(2 - 2 * _SURELY ** (1 / max(1, len(grid) - 1))) / float(epsilon)
    passing = noisy >= least
    highest = len(grid) - 1 - passing[:, ::-1].argmax(axis=1)
    return grid[np.where(passing.any(axis=1), highest, 0)]


METHODS: dict[str, Finder] = {
    "doubling scan, as published": find_by_doubling,
    "fine scan, as published": find_by_fine_scan,
    "Keyhole": find_by_keyhole,
    "exponential mechanism": find_by_exponential,
    "noisy histogram": find_by_histogram,
    "powers of two": find_by_powers_of_two,
}
