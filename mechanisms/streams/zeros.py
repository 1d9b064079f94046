"""Zeros: releases nothing but zeros, reads no count and loses nothing. What cannot beat it has not been of use.

Proof: docs/proofs/streams.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.streams.stream import Stateless, Tick, check_counts


@dataclass(frozen=True, slots=True)
class Zeros:
    """A zero for every tick; its scaled error is 1 on every stream of counts.

    Guarantee: no loss at all (docs/proofs/streams.md).
    """

    epsilon: Fraction = Fraction(0)
    sensitivity: int = 1
    name: str = "zeros"

    def start(self) -> Stateless:
        """Return the state: nothing is remembered."""
        return Stateless()

    def advance(self, states: Sequence[Stateless], counts: Integers, *, noise: Noise) -> Tick[Stateless]:
        """Advance one tick."""
        del noise
        check_counts(states, counts)
        return Tick(states=tuple(states), estimates=(Fraction(0),) * len(states))
