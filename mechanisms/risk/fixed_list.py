"""The exact loss of one unit's presence by a fixed list of questions. It is less than the sum.

Each question is at worst a randomised response. If the unit is there, its loss is `+e` with probability `e^e / (1 +
e^e)` and otherwise `-e`. If the unit is not there, the signs are exchanged. The losses are independent, and this module
computes the law of their sum. It holds only for lists that are fixed before any answer. An adaptive analyst may reach
the plain sum.

Reference: P. Kairouz, S. Oh, P. Viswanath, The composition theorem for differential privacy, ICML 2015. Proof:
docs/proofs/advantage.md.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

_GRID = 1e-9  # losses this near are taken as equal, the greater: a list of a thousand is overstated by 1e-6
_COARSE = 1e-4  # the grid of lists with too many different losses: forty of them are overstated by .004 at most
_MOST_SUMS = 1 << 20  # sums kept one by one; memory of some megabytes
_UNLIKELY = 1e-18  # of a sum's probability, when no list can have more than a million of them

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class TradeOff:
    """The trade-off of the best tests for presence: the possible total losses with their probabilities.

    Guarantee: no test on the answers of the list has a greater true-positive rate at the same false-positive rate.
    Proof: docs/proofs/advantage.md.

    `losses` fall. `present_probabilities` are their probabilities with the unit and `absent_probabilities` without it.
    Both sum to one.
    """

    losses: Floats = field(repr=False)
    present_probabilities: Floats = field(repr=False)
    absent_probabilities: Floats = field(repr=False)

    @property
    def greatest_loss(self) -> float:
        """The greatest total loss, which is the sum of the losses in the list."""
        return float(self.losses[0])

    @property
    def largest_advantage(self) -> float:
        """The largest TPR - FPR of any test."""
        return float(np.sum(np.maximum(self.present_probabilities - self.absent_probabilities, 0.0)))

    def find_true_positive_rate(self, *, false_positive_rate: float) -> float:
        """Return the greatest true-positive rate at this false-positive rate, by the lemma of Neyman and Pearson."""
        if not 0.0 <= false_positive_rate <= 1.0:
            raise ValueError("a probability is between 0 and 1")
        places = np.concatenate(([0.0], np.cumsum(self.absent_probabilities)))
        heights = np.concatenate(([0.0], np.cumsum(self.present_probabilities)))
        return min(1.0, float(np.interp(false_positive_rate, places, heights)))

    def bound_guess(self, *, candidates: int) -> float:
        """Return the bound of `mechanisms.risk.advantage.bound_guess` for this list alone.

        It is the true-positive rate at a false-positive rate of one in `candidates`.
        """
        if candidates < 2:
            raise ValueError("a guess is among two candidates or more")
        return self.find_true_positive_rate(false_positive_rate=1.0 / candidates)


def compose_fixed_losses(epsilons: Sequence[float]) -> TradeOff:
    """Return the trade-off of a list of losses, each that of a question fixed in advance.

    Guarantee: exact for randomised responses of these losses. The answer of every question with such a loss is a
    function of one. If many losses differ, they are rounded up first, so that the result is no less than the truth.
    Proof: docs/proofs/advantage.md.

    Parameters:
        epsilons: finite, >= 0, at least one; a question's loss of one unit's presence.

    Raises:
        ValueError: none, or a loss that is negative or infinite.

    Ten questions of .1 tell half as much as one of 1:

    >>> [round(compose_fixed_losses(one).largest_advantage, 4) for one in ([0.1] * 10, [1.0])]
    [0.1225, 0.4621]
    """
    if not epsilons or not all(0.0 <= epsilon < math.inf for epsilon in epsilons):
        raise ValueError("a list has one finite loss or more, none of them negative")
    step = _GRID
    counted = _count_losses_in_steps(epsilons, step)
    if math.prod(times + 1 for times in counted.values()) > _MOST_SUMS:
        step = max(_COARSE, 2 * sum(epsilons) / _MOST_SUMS)
        counted = _count_losses_in_steps(epsilons, step)
        return _compose_on_grid(counted, step)
    return _compose_losses_in_turn(counted, step)


def _count_losses_in_steps(epsilons: Sequence[float], step: float) -> Counter[int]:
    """Return the number of times each loss occurs, in whole steps.

    A loss that is a multiple of the step except for float rounding stays that multiple.
    """
    return Counter(math.ceil(epsilon / step - 1e-6) for epsilon in epsilons)


def _list_binomial(epsilon: float, times: int) -> tuple[Floats, Floats]:
    """Return the possible numbers of positive losses, 0 to `times` equal ones, and the logarithms of their chances."""
    up = -math.log1p(math.exp(-epsilon))
    down = -epsilon + up
    many = np.arange(times + 1)
    ways = [math.lgamma(times + 1) - math.lgamma(k + 1) - math.lgamma(times - k + 1) for k in range(times + 1)]
    return many.astype(float), np.array(ways) + many * up + (times - many) * down


def _compose_losses_in_turn(counted: Counter[int], step: float) -> TradeOff:
    sums, logs = np.zeros(1), np.zeros(1)
    for units, times in counted.items():
        many, own = _list_binomial(units * step, times)
        sums = (sums[:, np.newaxis] + (2 * many - times) * units).ravel()
        logs = (logs[:, np.newaxis] + own).ravel()
    losses, place = np.unique(sums, return_inverse=True)
    present = np.asarray(np.bincount(place, weights=np.exp(logs)), dtype=np.float64)
    return _make_trade_off(losses * step, present)


def _compose_on_grid(counted: Counter[int], step: float) -> TradeOff:
    """Return the trade-off computed on a grid of sums, every second step from minus the total to the total."""
    present = np.ones(1)
    for units, times in counted.items():
        up = 1.0 / (1.0 + math.exp(-units * step))
        for _ in range(times):
            longer = np.zeros(present.size + units)
            longer[units:] += up * present
            longer[: present.size] += (1.0 - up) * present
            present = longer
    greatest = sum(units * times for units, times in counted.items())
    losses = np.asarray(step * (2.0 * np.arange(present.size) - greatest), dtype=np.float64)
    likely = present > _UNLIKELY
    likely[-1] = True
    return _make_trade_off(losses[likely], present[likely])


def _make_trade_off(losses: Floats, present: Floats) -> TradeOff:
    present = present[::-1] / present.sum()
    falling = losses[::-1]
    absent = present * np.exp(-falling)
    return TradeOff(losses=falling, present_probabilities=present, absent_probabilities=absent / absent.sum())
