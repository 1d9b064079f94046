"""The interface of stream mechanisms: one state for each stream takes a tick's true count and releases an estimate.

Time comes in ticks, logical and public. At each tick every stream has one count, a whole number, and its estimate is
released before the next tick's count is known: nothing looks ahead. States are frozen values of whole numbers, which
`mechanisms/streams/state_integers.py` writes down and reads; they are as secret as the counts in them.

**Guarantee, for all of them.** Event level: two sequences of counts that differ at one tick of one stream, by
`sensitivity` at most, give any sequence of estimates with probabilities that differ by `exp(epsilon)` at most. Unit
level: a privacy unit that counts in at most `sensitivity_ticks` ticks of the horizon, in one stream at each, loses
`compute_unit_epsilon`; an event that moves from one stream to another changes both, and loses twice `epsilon`. None
of them bounds how far an estimate is from its count. Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, Protocol, TypeVar

import numpy as np

from mechanisms.formula import Integers
from mechanisms.protocol import Noise

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class Tick(Generic[State]):
    """The result of one tick of some streams: their new states, which are secret, and the released estimates."""

    states: tuple[State, ...]
    estimates: tuple[Fraction, ...]


class StreamMechanism(Protocol[State]):
    """The interface of a mechanism that releases one estimate for each stream and tick.

    `epsilon` and `sensitivity` are those of the module's guarantee.
    """

    @property
    def name(self) -> str:
        """The name in documents and tables."""

    @property
    def epsilon(self) -> Fraction:
        """The loss of one event over the whole stream, or over the horizon if the mechanism has one."""

    @property
    def sensitivity(self) -> int:
        """The largest change of one tick's count by one event."""

    def start(self) -> State:
        """Return the state of a stream before its first tick."""

    def advance(self, states: Sequence[State], counts: Integers, *, noise: Noise) -> Tick[State]:
        """Advance one tick of some streams, each by itself. `counts` has shape (streams,), integer units."""


@dataclass(frozen=True, slots=True)
class Stateless:
    """The state of a mechanism that keeps nothing between ticks."""


def compute_unit_epsilon(epsilon: Fraction, *, sensitivity_ticks: int) -> Fraction:
    """Return the loss of a privacy unit that counts in at most `sensitivity_ticks` ticks, in one stream at each.

    Guarantee: sequential composition, whichever ticks they are (docs/proofs/streams.md). A person present for eight
    hours of five-minute ticks:

    >>> compute_unit_epsilon(Fraction(1, 10), sensitivity_ticks=96)
    Fraction(48, 5)
    """
    if sensitivity_ticks < 0:
        raise ValueError("a unit counts in some number of ticks")
    return epsilon * sensitivity_ticks


def check_budget(*, epsilon: Fraction, sensitivity: int) -> None:
    """Raise ValueError unless `epsilon` and `sensitivity` are positive."""
    if epsilon <= 0 or sensitivity < 1:
        raise ValueError("a stream has an epsilon above zero and a sensitivity of one or more")


def check_counts(states: Sequence[object], counts: Integers) -> None:
    """Raise ValueError unless `counts` has one whole number per stream."""
    if counts.shape != (len(states),) or counts.dtype != np.int64:
        raise ValueError("a tick has one 64-bit count for each stream")
