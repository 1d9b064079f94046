"""PeGaSus's Perturber: the Laplace mechanism with fresh noise at each tick.

References: Chen's thesis, section 5.3.1. Proof: docs/proofs/streams.md.
"""

from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.protocol import Noise


def add_noise(counts: Integers, *, rate: Fraction, noise: Noise) -> Integers:
    """Add discrete Laplace noise to each count.

    Guarantee: `rate * sensitivity` for each count (docs/proofs/streams.md).

    Parameters:
        counts: int64, any shape, within +-2**61.

    Raises:
        Unachievable: the rate lies outside the range of exact sampling.
    """
    return counts + noise.draw_discrete_laplace(rate=rate, size=counts.size).reshape(counts.shape)
