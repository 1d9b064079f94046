"""A monitor whose thresholds compare a window with earlier ones: which windows it reads, and what that costs.

A threshold watches `sum_j c_j A(t-j)` in window `t`, with whole numbers `c_j` and `A` the sum of each window. Earlier
windows have closed, so that only the window itself fills. A row is in one window, which the alarms of several read.

Guarantee: a functional's `sensitivity` is the most that one privacy unit changes it by in one group and window, summed
over all windows that read these rows. So the loss that a mechanism states for it covers all of them.

Proof: docs/proofs/standing.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Integers
from mechanisms.protocol import Exposure
from planner.functionals.per_key_offsets import LIMIT
from planner.question.question import Functional

Weights: TypeAlias = tuple[tuple[tuple[int, int], int], ...]
"""Pairs: a sum's index and how many windows earlier it is taken, and its weight."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The sums of a window and of earlier ones from which a monitor's functionals are computed.

    `earlier` has the distance of each read window from the own window, counted in windows: the largest first, and 0
    last. `weights[f]` has the weights of functional f. `axis` is the place of the windows among the question's keys.
    `exposures` are the parts of the functionals' sensitivities by which one privacy unit changes them in all windows
    that read its rows. `regimes` say how a unit changes the functionals from look to look of one window. `fills` is
    True for each functional that no row of its own window lowers. `rises` is True for each functional that never falls
    while the window fills. `constant` are the indices of functionals whose value does not change then.
    """

    sums: tuple[Functional, ...]
    weights: tuple[Weights, ...]
    earlier: tuple[int, ...]
    axis: int
    exposures: tuple[Exposure, ...]
    regimes: tuple[Regime, ...]
    fills: tuple[bool, ...]
    rises: tuple[bool, ...]
    constant: frozenset[int]

    @property
    def back(self) -> int:
        """The number of earlier windows that the watched window reads back to."""
        return self.earlier[0]

    @property
    def largest_sum(self) -> int:
        """The largest sum that is weighed unchanged. Larger sums count as this one."""
        return LIMIT // max(sum(abs(weight) for _, weight in one) for one in self.weights)

    def list_windows(self, window: int) -> tuple[int, ...]:
        """Return the places of the windows that are read for one window, among all windows that a monitor reads."""
        return tuple(window + self.back - earlier for earlier in self.earlier)

    def compute_functionals(self, values: Integers, *, shape: Sequence[int]) -> Integers:
        """Return the functionals of each key from the sums of each key and window.

        Sums are clipped so that no result overflows. One privacy unit still changes each by no more than before.

        Parameters:
            values: int64 of shape (sums, keys and windows), in row-major order.
            shape: the numbers of values of each key, windows included. The last window is the watched one.
        """
        most = self.largest_sum
        by_window = np.moveaxis(np.clip(values, -most, most).reshape(len(self.sums), *shape), self.axis + 1, 1)
        found = [
            sum(weight * by_window[place, self.earlier.index(earlier)].reshape(-1) for (place, earlier), weight in one)
            for one in self.weights
        ]
        return np.stack(found)
