"""The baseline of zeros, which reads no count and loses nothing. A mechanism that cannot beat it is of no use.

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
    """A mechanism that releases a zero for every tick. Its scaled error is 1 on every stream of counts.

    Guarantee: no loss at all (docs/proofs/streams.md).
    """

    epsilon: Fraction = Fraction(0)
    sensitivity: int = 1
    name: str = "zeros"

    def start(self) -> Stateless:
        """Return the empty state."""
        return Stateless()

    def advance(self, states: Sequence[Stateless], counts: Integers, *, noise: Noise) -> Tick[Stateless]:
        """Return a zero for each stream. Nothing is kept between ticks."""
        del noise
        check_counts(states, counts)
        return Tick(states=tuple(states), estimates=(Fraction(0),) * len(states))
