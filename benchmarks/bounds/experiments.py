"""How near to its target each way of finding a bound comes, and whether `keyhole bounds` keeps what it promises."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from benchmarks.bounds.methods import METHODS
from benchmarks.bounds.statistics import Statistic, read_statistics
from mechanisms.protocol import Noise, Unachievable
from mechanisms.publishing.private_bounds import BETA, calibrate_scan, find_first_passing_candidate, list_candidates

EPSILONS = (Fraction(1, 50), Fraction(1, 10), Fraction(1, 2))
TARGETS = (0.95, 0.99)
CUT = Fraction(1, 20)
CONTRACT_EPSILONS = (Fraction(1, 10), Fraction(1, 5), Fraction(1, 2))


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """One way at one epsilon: how far the covered share is from the target in the mean, and the median bound."""

    statistic: str
    target: float
    epsilon: Fraction
    method: str
    error: float
    bound: int
    quantile: int


@dataclass(frozen=True, slots=True)
class ContractRow:
    """What `--cut 5%` promises at one epsilon, and in how many runs of how many it was kept; None: it is refused."""

    statistic: str
    epsilon: Fraction
    bound: int | None
    beyond: float
    kept: int
    runs: int


def compare_methods(*, runs: int, seed: int, noise: Noise) -> Iterator[CoverageRow]:
    """Every way on every statistic."""
    chosen = np.random.default_rng(seed)
    for statistic in read_statistics():
        for target in TARGETS:
            for epsilon in EPSILONS:
                for name, find in METHODS.items():
                    bounds = find(statistic, target, epsilon, runs, noise, chosen)
                    covered = statistic.count_within(bounds) / statistic.units
                    error = float(np.abs(covered - target).mean())
                    median = int(np.median(bounds))
                    yield CoverageRow(
                        statistic.name, target, epsilon, name, error, median, statistic.find_quantile(target)
                    )


def hold_contract(*, runs: int, noise: Noise) -> Iterator[ContractRow]:
    """At most 5 % of the units are cut, 97.5 % sure."""
    for statistic in read_statistics():
        for epsilon in CONTRACT_EPSILONS:
            yield _hold(statistic, epsilon, runs=runs, noise=noise)


def _hold(statistic: Statistic, epsilon: Fraction, *, runs: int, noise: Noise) -> ContractRow:
    candidates = list_candidates(statistic.greatest)
    try:
        scan = calibrate_scan(candidates, epsilon=epsilon, units=statistic.units, cut=CUT, beta=BETA)
    except Unachievable:
        return ContractRow(statistic.name, epsilon, None, 0.0, 0, runs)
    grid = np.array(candidates, dtype=np.int64)
    beyond = statistic.units - statistic.count_within(grid)
    found = find_first_passing_candidate(
        np.broadcast_to(beyond, (runs, len(grid))), target=scan.target, rate=epsilon / 2, noise=noise
    )
    kept = int(np.count_nonzero(beyond[found] <= scan.most_beyond))
    share = float(np.median(beyond[found])) / statistic.units
    return ContractRow(statistic.name, epsilon, int(np.median(grid[found])), share, kept, runs)
