"""Ways to publish how many people are in each room, and what a published number says of the true one.

| here | the thesis |
|---|---|
| Resalted | TTL: identities are hashed with a salt that lives so long, so that who stays longer is counted again |
| Pegasus' likelihood | kernel density of pairs of true and published counts of the days before |
| Laplace | Laplace |

Reference: PET evaluation (thesis), chapter 4 and appendix B.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np

from benchmarks.risk.building import Building, Floats, Integers
from mechanisms.noise.exact import ExactNoise
from mechanisms.protocol import FunctionalTest
from mechanisms.risk.channels import list_likelihoods_of_exact_count, list_likelihoods_of_key, list_likelihoods_of_noisy
from mechanisms.streams.pegasus import Pegasus
from proxy.play.resalted import count_resalted, tabulate_resalted
from tests.seeded_noise import SeededNoise

_RATE_DIGITS = 1 << 20
_BANDWIDTH = 0.1  # of Scott's, as published
_NARROWEST = 0.25  # bandwidth, in people: a room that is always empty
_UNSEEN = 1e-12  # of the greatest likelihood: what no day before has shown is unlikely and not impossible


class Technique(Protocol):
    """Publishes a number for each room and hour; and says how likely it is for each true count."""

    def publish(self, building: Building, *, seed: int) -> Floats:
        """One day's numbers, of shape (rooms, hours)."""

    def compute_likelihood(self, seen: float, *, room: int, most: int) -> Floats:
        """Of a published number, for true counts from 0 to the most."""


@dataclass(frozen=True, slots=True)
class TrueCounts:
    """The counts themselves."""

    def publish(self, building: Building, *, seed: int) -> Floats:  # noqa: ARG002
        return building.counts.astype(np.float64)

    def compute_likelihood(self, seen: float, *, room: int, most: int) -> Floats:  # noqa: ARG002
        return list_likelihoods_of_exact_count(int(seen), most=most)


@dataclass(frozen=True, slots=True)
class LaplaceCounts:
    """Every count with discrete Laplace noise: a presence loses epsilon."""

    epsilon: float

    def publish(self, building: Building, *, seed: int) -> Floats:
        counts = building.counts
        noise = SeededNoise(seed).draw_discrete_laplace(rate=_round(self.epsilon), size=counts.size)
        return np.asarray(counts + noise.reshape(counts.shape), dtype=np.float64)

    def compute_likelihood(self, seen: float, *, room: int, most: int) -> Floats:  # noqa: ARG002
        return list_likelihoods_of_noisy(seen, rate=self.epsilon, most=most)


@dataclass(frozen=True, slots=True, eq=False)
class PegasusCounts:
    """The monitors' PeGaSus over the hours of a day, one stream a room; known by its work on the days before."""

    epsilon: float
    building: Building
    _learned: dict[int, tuple[Floats, Floats, float]] = field(default_factory=dict)

    def publish(self, building: Building, *, seed: int) -> Floats:
        return self._run(building.counts, SeededNoise(seed))

    def compute_likelihood(self, seen: float, *, room: int, most: int) -> Floats:
        if not self._learned:
            self._learn()
        near_counts, published, width = self._learned[room]
        weights = np.exp(-0.5 * ((seen - published) / width) ** 2)
        total = near_counts.sum(axis=1)
        found = np.zeros(most + 1)
        reach = min(most + 1, len(total))
        found[:reach] = (near_counts[:reach] @ weights) / np.maximum(total[:reach], 1e-300)
        highest = float(found.max())
        return np.ones(most + 1) if highest <= 0.0 else np.maximum(found, _UNSEEN * highest)

    def _learn(self) -> None:
        known = self.building.known
        rooms, days, hours = known.shape
        published = self._run(known.reshape(rooms * days, hours), SeededNoise(0)).reshape(rooms, -1)
        for room in range(rooms):
            counts = known[room].ravel().astype(np.float64)
            scott = _BANDWIDTH * len(counts) ** (-1 / 6)
            widths = [max(scott * float(values.std()), _NARROWEST) for values in (counts, published[room])]
            places = np.arange(math.ceil(counts.max() + 5 * widths[0]) + 1)
            near = np.exp(-0.5 * ((places[:, np.newaxis] - counts) / widths[0]) ** 2)
            self._learned[room] = (near, published[room], widths[1])

    def _run(self, counts: Integers, noise: ExactNoise) -> Floats:
        pegasus = Pegasus(epsilon=_round(self.epsilon), sensitivity=1)
        states = tuple(pegasus.start() for _ in counts)
        found = []
        for hour in range(counts.shape[1]):
            tick = pegasus.advance(states, counts[:, hour], noise=noise)
            states = tick.states
            found.append([float(estimate) for estimate in tick.estimates])
        return np.array(found).T


@dataclass(frozen=True, slots=True)
class ResaltedCounts:
    """Devices by a hash that is salted anew after so many minutes; no noise, and no promise."""

    period: float

    def publish(self, building: Building, *, seed: int) -> Floats:
        counted = count_resalted(building.counts, period=self.period, generator=np.random.default_rng(seed))
        return counted.astype(np.float64)

    def compute_likelihood(self, seen: float, *, room: int, most: int) -> Floats:  # noqa: ARG002
        table = tabulate_resalted(self.period, 1 << max(6, math.ceil(math.log2(seen + 1))))
        found = np.zeros(most + 1)
        reach = min(most + 1, len(table))
        found[:reach] = table[:reach, int(seen)]
        return found


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys alone of `count(*) > cut`, by Keyhole's one-shot test: 1 where a room and hour was returned."""

    test: FunctionalTest
    cut: int

    def publish(self, building: Building, *, seed: int) -> Floats:
        chance = self._compute_chances(int(building.counts.max()))[building.counts]
        return np.asarray(np.random.default_rng(seed).random(chance.shape) < chance, dtype=np.float64)

    def compute_likelihood(self, seen: float, *, room: int, most: int) -> Floats:  # noqa: ARG002
        returned = self._compute_chances(most)
        return returned if seen else 1.0 - returned

    def _compute_chances(self, most: int) -> Floats:
        return _tabulate_returned(self.test, self.cut, 1 << math.ceil(math.log2(most + 2)))[: most + 1]


@lru_cache(maxsize=64)
def _tabulate_returned(test: FunctionalTest, cut: int, most: int) -> Floats:
    return list_likelihoods_of_key(test, cut=cut, most=most, is_returned=True)


def _round(epsilon: float) -> Fraction:
    return Fraction(max(1, round(epsilon * _RATE_DIGITS)), _RATE_DIGITS)
