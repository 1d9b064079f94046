"""Standard deviations of rows that are read off the noisy sums of several cells, and by how much they err.

The sum of squares, the sum and the rows have noise. The square of a deviation is the squares less `sum * sum / rows`,
over the rows. A deviation is a root, which errs much where it is small. So a deviation below a public number counts as
that number.

Guarantee: the error exceeds a number of steps, in one direction, at most as often as `bound_deviation_error` says.
Proof: docs/proofs/row_deviations.md.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from mechanisms.noise.noise_sum import Noises, WeightedNoise, bound_continuous_tail, merge_equal_noises
from mechanisms.protocol import CellNoise, MeanPair, RowDeviation

Numbers = npt.NDArray[np.float64]
MOST_DEVIATION_STEPS = 1 << 24
"""Steps of a tolerance in the range of both sides: a root of floats then errs by far less than a step."""


def find_largest_deviation(pair: MeanPair) -> int:
    """Return an upper bound, in steps, on the deviation of the other rows of a key.

    It holds for keys with at least as many rows as the pair demands.
    """
    assert pair.deviation is not None
    divided = max(1, pair.other_rows - pair.deviation.is_sample)
    return math.ceil(math.sqrt(pair.largest_other_mean**2 * pair.other_rows / divided)) + 1


def bound_deviation_error(
    pair: MeanPair, kind: Sequence[CellNoise], counted: Sequence[int], *, error: int, mean_error: int
) -> float:
    """Return an upper bound on the probability that a deviation is too high, or too low, by more than `error`.

    Two probabilities are not included: that the mean of the rows errs by more than `mean_error`, and that no rows are
    left. Both errors are in steps of the pair.

    Parameters:
        kind: the noises of one kind of key in the other side.
        counted: the sums of both means' rows, and of the squares.
    """
    assert pair.deviation is not None
    one, far = pair.deviation, find_largest_deviation(pair)
    wide, off = error * pair.step, mean_error * pair.step
    room = (2 * one.least * wide + wide * wide) * (pair.other_rows - one.is_sample) - off * off * pair.other_rows
    beyond = math.floor(room / one.square)
    if beyond <= 0:
        return 1.0
    weights = {
        counted[2]: 1,
        counted[1]: math.ceil((far * far + off * off) / one.square),
    }
    summed = math.ceil(2 * pair.largest_other_mean / one.square)
    return bound_continuous_tail(_weigh(tuple(kind), tuple(sorted(weights.items())), summed), beyond)


@lru_cache(maxsize=1024)
def _weigh(kind: tuple[CellNoise, ...], weights: tuple[tuple[int, int], ...], summed: int) -> Noises:
    """Return the noises of weighted sums; those of the sum that `weights` leaves out count `summed` times."""
    known = dict(weights)
    return merge_equal_noises(
        [WeightedNoise(one.times * known.get(one.place, summed), one.count, float(one.rate)) for one in kind]
    )


def compute_deviations(pair: MeanPair, total: Numbers, rows: Numbers, squares: Numbers) -> Numbers:
    """Return `times` the deviation of each key's rows, from noisy sums.

    The value is arbitrary where too few rows are left.
    """
    assert pair.deviation is not None
    one = pair.deviation
    known = rows > one.is_sample
    counted = np.where(known, rows, 2.0)
    apart = float(one.square) * squares - total * total / counted
    found = np.sqrt(np.maximum(apart, 0.0) / (counted - one.is_sample))
    held: Numbers = float(one.times) * np.clip(found, float(one.least), float(find_largest_deviation(pair)))
    return held


def exceeds_deviation(difference: Fraction, one: RowDeviation, sums: tuple[int, int, int]) -> int:
    """Return the sign of `difference` minus `times` the deviation of rows with the given sums.

    `sums` are their sum, number and sum of squares. The result is exact, for owners and tests. There are at least two
    rows of a sample.

    >>> one = RowDeviation(Fraction(2), Fraction(1), Fraction(0), is_sample=False)
    >>> [exceeds_deviation(Fraction(3 + more), one, (4, 4, 13)) for more in (-1, 0, 1)]
    [-1, 0, 1]
    """
    total, rows, squares = sums
    apart = one.square * squares - Fraction(total * total, rows)
    square = one.times**2 * max(apart / (rows - one.is_sample), one.least**2)
    left, right = _square(difference), square if one.times > 0 else -square
    return (left > right) - (left < right)


def _square(number: Fraction) -> Fraction:
    """Return the square, with the number's sign."""
    return number * abs(number)
