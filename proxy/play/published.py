"""The player's view of a place: its counts, as a mechanism for streams publishes them.

All mechanisms protect one presence at one tick. Counts of rooms are published, and a larger place has the sum of its
rooms' published values. `HS_PEGASUS` publishes each place by itself, at a quarter of the loss, since a presence is in
four of them. Each mechanism begins again at midnight, so that a day can be published by itself. Published values stay:
a place's noise is drawn once in a round.
"""

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.protocol import Noise
from mechanisms.streams.pegasus import Pegasus
from mechanisms.streams.perturber import add_noise
from mechanisms.streams.tick_laplace import TickLaplace
from proxy.play.floor_plan import Counts
from proxy.play.resalted import count_resalted
from proxy.play.world import PrivateDays

TTL_MINUTES = 2.0
"""How long a salt lives."""

Values = npt.NDArray[np.float32]


class Publishing(Enum):
    """A way of answering. Its value is the name in tables."""

    TRUE = "true"
    TICK_LAPLACE = "tick_laplace"
    PEGASUS = "pegasus"
    PEGASUS_SMOOTH = "pegasus_40"
    HS_PEGASUS = "hs_pegasus"
    ZEROS = "zeros"
    TTL = "ttl"
    KEYHOLE = "keyhole"

    @property
    def has_epsilon(self) -> bool:
        """Return True if the way has an epsilon."""
        return self not in (Publishing.TRUE, Publishing.ZEROS, Publishing.TTL)


SENTENCES = {
    Publishing.TRUE: "The counts themselves: nobody is protected.",
    Publishing.TICK_LAPLACE: "Each count with Laplace noise of its own.",
    Publishing.PEGASUS: "PeGaSus as published: noise, ticks alike grouped (theta 5), the median of each group so far.",
    Publishing.PEGASUS_SMOOTH: "PeGaSus with theta 40: long groups, smooth, and late where something changes.",
    Publishing.HS_PEGASUS: "PeGaSus on each room, region, floor and on the building, at a quarter of epsilon each.",
    Publishing.ZEROS: "Zeros, for nothing. What cannot beat it is of no use.",
    Publishing.TTL: "Devices by a hash with a salt that lives two minutes: no noise, and no promise at all.",
    Publishing.KEYHOLE: "Keyhole's answer: the keys of one threshold question, and no count.",
}
"""The meaning of each, in a sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class Publisher:
    """A publisher of one world's counts, by one way other than `KEYHOLE`.

    Parameters:
        epsilon: what one presence at one tick loses; None if the way has none.
        noise: the noise that protects, if the way has any.
        generator: draws how long people stay, which `TTL` depends on.
    """

    world: PrivateDays
    way: Publishing
    epsilon: Fraction | None
    noise: Noise
    generator: np.random.Generator
    _published_values: dict[tuple[int, int], Values] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a way that publishes no counts, and for an epsilon that is missing or superfluous."""
        if self.way is Publishing.KEYHOLE or (self.epsilon is None) is self.way.has_epsilon:
            raise ValueError("this way of publishing has no counts, or its epsilon is missing or not allowed")

    def publish(self, numbers: tuple[int, ...], day: int) -> dict[int, Values]:
        """Return the published values of some places on a day, one for each tick."""
        if self.way is Publishing.HS_PEGASUS:
            self._publish_missing(numbers, day)
            return {number: self._published_values[number, day] for number in numbers}
        plan = self.world.building.plan
        first_room = plan.rooms[0]
        inside = {
            number: range(first_room + plan.places[number].start, first_room + plan.places[number].stop)
            for number in numbers
        }
        self._publish_missing(tuple(sorted({room for rooms in inside.values() for room in rooms})), day)
        return {
            number: np.asarray(
                sum((self._published_values[room, day] for room in rooms), np.zeros(1, dtype=np.float32))
            )
            for number, rooms in inside.items()
        }

    def _read_true_counts(self, numbers: tuple[int, ...], day: int) -> Counts:
        return np.array([self.world.count_rooms(number, day).sum(axis=0) for number in numbers], dtype=np.int64)

    def _publish_missing(self, numbers: tuple[int, ...], day: int) -> None:
        """Publish those places that are not published yet, in one run."""
        missing = tuple(number for number in numbers if (number, day) not in self._published_values)
        if missing:
            for number, values in zip(missing, self._run_way(self._read_true_counts(missing, day)), strict=True):
                self._published_values[number, day] = values

    def _run_way(self, counts: Counts) -> Values:
        """Run the way on true counts, of shape (streams, ticks), and return the published values."""
        match self.way:
            case Publishing.TTL:
                return count_resalted(counts, period=TTL_MINUTES, generator=self.generator).astype(np.float32)
            case Publishing.HS_PEGASUS:
                levels = self.world.building.plan.hierarchy.levels
                pegasus = Pegasus(epsilon=_require_epsilon(self.epsilon) / levels, sensitivity=1)
                return _run_pegasus(pegasus, counts, self.noise)
            case _:
                return publish_streams(counts, self.way, self.epsilon, noise=self.noise)


def publish_streams(counts: Counts, way: Publishing, epsilon: Fraction | None, *, noise: Noise) -> Values:
    """Return the published values for counts of shape (streams, ticks), by a way that treats each stream alike.

    The way is any except `TTL`, `HS_PEGASUS` and `KEYHOLE`. Parameters are those of `Publisher`. One presence
    changes each stream by at most one at a tick.
    """
    match way:
        case Publishing.TRUE:
            return counts.astype(np.float32)
        case Publishing.ZEROS:
            return np.zeros(counts.shape, dtype=np.float32)
        case Publishing.TICK_LAPLACE:
            rate = TickLaplace(epsilon=_require_epsilon(epsilon), sensitivity=1).rate
            return add_noise(counts, rate=rate, noise=noise).astype(np.float32)
        case Publishing.PEGASUS | Publishing.PEGASUS_SMOOTH:
            theta = Fraction(40 if way is Publishing.PEGASUS_SMOOTH else 5)
            return _run_pegasus(
                Pegasus(epsilon=_require_epsilon(epsilon), sensitivity=1, theta_factor=theta), counts, noise
            )
        case _:
            raise ValueError(f"{way.value} does not publish each stream by itself")


def _require_epsilon(epsilon: Fraction | None) -> Fraction:
    assert epsilon is not None, "this way has one"
    return epsilon


def _run_pegasus(pegasus: Pegasus, counts: Counts, noise: Noise) -> Values:
    """Run PeGaSus on every stream from its start, tick by tick."""
    states = tuple(pegasus.start() for _ in counts)
    found = np.empty(counts.shape, dtype=np.float32)
    for at in range(counts.shape[1]):
        tick = pegasus.advance(states, np.ascontiguousarray(counts[:, at]), noise=noise)
        states = tick.states
        found[:, at] = [float(estimate) for estimate in tick.estimates]
    return found
