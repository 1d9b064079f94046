"""Rankings on noise that a test chooses, and how likely that noise is: for exact answers' laws on tiny worlds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from mechanisms.formula import Integers
from mechanisms.noise.discrete_laplace import compute_mass
from mechanisms.ranking.calibration import RankingCalibration
from mechanisms.ranking.run import rank_by_levels
from mechanisms.threshold.boundary_crossing import compute_unchanged_chance

Path = tuple[int, ...]
"""One key's noises, coarse to fine."""


@dataclass(frozen=True)
class Answer:
    """The keys in their order, and how many levels of each were revealed."""

    ranked: tuple[int, ...]
    reached: tuple[int, ...]


def answer(
    calibration: RankingCalibration,
    values: Sequence[int],
    paths: Sequence[Path],
    taking_part: Sequence[int] | None = None,
) -> Answer:
    """The answer where each key's noises are those of its path. A level that has not been asked for is not read."""
    noisy = np.array(values)[:, np.newaxis] + np.array(paths)
    reached = np.zeros(len(values), dtype=np.int64)

    def reveal(level: int, where: Integers) -> Integers:
        assert np.all(reached[where] == level), "levels are asked for one after the other, each key once"
        reached[where] = level + 1
        return np.asarray(noisy[where, level])

    members = np.arange(len(values)) if taking_part is None else np.array(taking_part, dtype=np.int64)
    ranked = rank_by_levels(calibration, members, reveal)
    return Answer(tuple(ranked.tolist()), tuple(reached.tolist()))


def paths_by_chance(rates: Sequence[float], *, least: float) -> dict[Path, float]:
    """Every path of one key that is not less likely, with its probability."""
    reach = math.ceil(-math.log(least) / rates[0])
    found: dict[Path, float] = {(value,): compute_mass(rates[-1], value) for value in range(-reach, reach + 1)}
    for coarse, fine in zip(rates[-2::-1], rates[:0:-1], strict=True):
        same = compute_unchanged_chance(coarse=coarse, fine=fine)
        found = {
            (value, *path): chance * ((1.0 - same) * compute_mass(coarse, value - path[0]) + same * (value == path[0]))
            for path, chance in found.items()
            for value in range(-reach, reach + 1)
        }
        found = {path: chance for path, chance in found.items() if chance >= least}
    return {path: chance for path, chance in found.items() if chance >= least}


def worlds(paths: dict[Path, float], *, keys: int, least: float) -> Iterator[tuple[tuple[Path, ...], float]]:
    """All keys' paths at once that are not less likely, with their probability."""
    for chosen in product(paths.items(), repeat=keys):
        chance = math.prod(one for _, one in chosen)
        if chance >= least:
            yield tuple(path for path, _ in chosen), chance
