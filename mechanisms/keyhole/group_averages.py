"""Means of groups' means that are read off the noisy sums of several cells, and by how much they err.

Each group's noisy sum is divided by its noisy rows and confined to its range. The mean of these quotients weighs all
groups alike, while the mean of all rows weighs groups by their rows. So each group must have rows.

Guarantee: the mean is too high by a number of steps, or too low, at most as often as `bound_average_error` says.
Proof: docs/proofs/cell_means.md, "The mean of groups' means".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Booleans, Integers
from mechanisms.noise.noise_sum import WeightedNoise, bound_upper_tail
from mechanisms.protocol import CellNoise, MeanPair

_HIDDEN = (2, 3, 5, 12)  # noise may hide a group's rows over one of these: few if many groups are sharp
_MOST_TILTS = 40  # exponents that are tried; the bound holds for each of them
_ROUNDED_UP = 1.0 + 1e-9  # covers the rounding of floats


@dataclass(frozen=True, slots=True)
class AveragedGroups:
    """The sums and rows of the groups whose means are averaged for each key.

    The last axis of `sums` and `rows` is that of these groups. The other axes are those of the key space `shape`, of
    length 1 for keys that share the groups.
    """

    sums: Integers
    rows: Integers
    shape: tuple[int, ...]

    def compute_averages(self, pair: MeanPair) -> tuple[npt.NDArray[np.float64], Booleans]:
        """Return for each key the mean of the groups' confined means, and True if all of these groups have rows."""
        sums, rows = self.sums.astype(np.float64), self.rows.astype(np.float64)
        known = rows > 0
        means = np.clip(sums / np.where(known, rows, 1.0), -pair.largest_other_mean, pair.largest_other_mean)
        averages = np.broadcast_to(means.mean(axis=-1), self.shape).reshape(-1)
        return averages, np.broadcast_to(known.all(axis=-1), self.shape).reshape(-1)

    def average_exactly(self) -> list[Fraction | None]:
        """Return for each key the mean of the means of its groups with rows. Return None where there are none."""
        flat = (one.reshape(-1, one.shape[-1]).tolist() for one in (self.sums, self.rows))
        found = np.empty(math.prod(self.sums.shape[:-1]), dtype=object)
        for place, (sums, rows) in enumerate(zip(*flat, strict=True)):
            found[place] = _average_means(sums, rows)
        spread = np.broadcast_to(found.reshape(self.sums.shape[:-1]), self.shape)
        return list(spread.reshape(-1))


def _average_means(sums: Sequence[int], rows: Sequence[int]) -> Fraction | None:
    means = [Fraction(one, number) for one, number in zip(sums, rows, strict=True) if number > 0]
    return sum(means, Fraction(0)) / len(means) if means else None


def bound_average_error(pair: MeanPair, kind: Sequence[CellNoise], counted: int, error: int) -> float:
    """Return an upper bound of the chance that a multiple of a mean of groups' means is too high by some steps.

    It is that of being too low as well. Markov's inequality bounds the sum of the groups' errors, if each keeps a part
    of its rows. The least of several bounds is a bound.

    Parameters:
        kind: the noises of the groups' sums and rows.
        counted: the sum of the rows.
    """
    rows_rate = float(next(one.rate for one in kind if one.place == counted))
    rate = float(next(one.rate for one in kind if one.place != counted))
    hidden = {pair.other_rows // part for part in _HIDDEN}
    return min(_bound_beside_hidden(pair, error, rate, rows_rate, hidden=number) for number in hidden)


def _bound_beside_hidden(pair: MeanPair, error: int, rate: float, rows_rate: float, *, hidden: int) -> float:
    """Return the bound if noise hides at most so many rows of each group, with the chance that it hides more."""
    room = error * pair.step * pair.averaged_groups * (pair.other_rows - hidden) / abs(pair.other_factor)
    beyond = math.floor(room)
    if beyond <= 0:
        return 1.0
    lost = pair.averaged_groups * bound_upper_tail((WeightedNoise(1, 1, rows_rate),), hidden + 1)
    return min(1.0, lost + _bound_sum_of_errors(pair, beyond, rate, rows_rate))


def _bound_sum_of_errors(pair: MeanPair, beyond: int, rate: float, rows_rate: float) -> float:
    """Return an upper bound of the chance that the groups' noises of one sign add up to a number."""
    highest = min(rate, rows_rate / pair.largest_other_mean)
    least = 0.0
    for number in range(1, _MOST_TILTS):
        tilt = highest * number / _MOST_TILTS
        both = _log_moment(rate, tilt) + _log_moment(rows_rate, tilt * pair.largest_other_mean)
        each = float(np.logaddexp(0.0, both)) - math.log(2.0)
        least = min(least, pair.averaged_groups * each - tilt * beyond)
    return min(1.0, math.exp(least) * _ROUNDED_UP)


def _log_moment(rate: float, tilt: float) -> float:
    """Return the logarithm of the mean of exp(tilt |K|), for discrete Laplace noise K of a rate above the tilt."""
    grown = math.exp(tilt - rate)
    return math.log(math.tanh(0.5 * rate)) + math.log1p(grown) - math.log1p(-grown)
