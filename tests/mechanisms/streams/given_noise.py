"""Noise that a test chooses, draw by draw, and how each mechanism looks over some ticks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from mechanisms.certified import Probability
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise, Words
from mechanisms.streams.stream import State, StreamMechanism


@dataclass
class GivenNoise:
    """Hands out the values in order, zeros after the last, and remembers at which rate each was asked for."""

    values: Sequence[int] = ()
    rates: list[Fraction] = field(default_factory=list)

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        start = len(self.rates)
        self.rates += [rate] * size
        given = list(self.values[start : start + size])
        return np.array(given + [0] * (size - len(given)), dtype=np.int64)

    def draw_thinned_laplace(self, *, rate: Fraction, nonzero: Probability, size: int) -> Integers:
        raise AssertionError("streams draw each value once")

    def draw_geometric(self, *, rate: Fraction, size: int) -> Integers:
        raise AssertionError("streams draw two-sided noise")

    def draw_bernoulli(self, *, probability: Fraction, size: int) -> Booleans:
        raise AssertionError("streams toss no coins")

    def draw_bernoulli_by_digits(self, *, probability: Probability, size: int) -> Booleans:
        raise AssertionError("streams toss no coins")

    def draw_words(self, *, size: int) -> Words:
        raise AssertionError("streams compare no words")


def run_stream(mechanism: StreamMechanism[State], counts: Iterable[int], *, noise: Noise) -> list[Fraction]:
    """One stream's estimates."""
    states: tuple[State, ...] = (mechanism.start(),)
    found: list[Fraction] = []
    for count in counts:
        tick = mechanism.advance(states, np.array([count], dtype=np.int64), noise=noise)
        states = tick.states
        found += tick.estimates
    return found
