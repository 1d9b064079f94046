"""A building whose rooms are counted by the hour, and who wants to know where somebody is.

People are made up (`benchmarks/experiments/occupancy.py`): weekdays of thirteen weeks, the last of which is attacked
and the others are what everybody knows. An attacker sees some kinds of rooms himself and counts those exactly.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.experiments.occupancy import ROOMS, draw_occupancy, name_kinds
from proxy.play.heat_map import COLOURS, colour_counts

ATTACKERS = {
    "external": (),
    "student": ("lecture hall", "class room"),
    "administrator": ("lecture hall", "class room", "laboratory"),
}
"""The kinds of rooms that each sees: none; where lectures are; where cameras are."""

DAYS = 91
_WORKING_DAYS = 5

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Building:
    """`known` has shape (rooms, days before, hours), `counts` (rooms, hours) is the day that is attacked."""

    known: Integers
    counts: Integers
    kinds: tuple[str, ...]

    def list_closed_rooms(self, attacker: str) -> Integers:
        """The rooms that he does not see."""
        return np.flatnonzero([kind not in ATTACKERS[attacker] for kind in self.kinds])

    def estimate_prior(self, rooms: Integers) -> Floats:
        """Where somebody in one of these rooms is, by the hour: of shape (rooms, hours)."""
        before = self.known[rooms].sum(axis=1)
        return np.asarray(before / before.sum(axis=0))

    def measure_utility(self, seen: Floats) -> float:
        """How near the ten colours of a heat map of the seen counts are to the true ones: 1 where they are the same.

        Eight colours share the usual, two standard deviations around the mean of that room and hour; the first and the
        last are of what lies outside.
        """
        mean, spread = self.known.mean(axis=1), self.known.std(axis=1)
        colours = [colour_counts(counts, mean=mean, spread=spread) for counts in (seen, self.counts)]
        return 1.0 - float(np.abs(colours[0] - colours[1]).mean()) / (COLOURS - 1)


def draw_building(*, seed: int, rooms: int = ROOMS, days: int = DAYS) -> Building:
    """The working days of a building."""
    visits = draw_occupancy(seed=seed, rooms=rooms, days=days).visits[0]
    working = visits[:, [day for day in range(days) if day % 7 < _WORKING_DAYS]]
    return Building(working[:, :-1], working[:, -1], tuple(name_kinds(rooms=rooms)))
