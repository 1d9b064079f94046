"""Gradual release: noise at growing accuracy whose whole history costs no more than its last level.

`draw_chain` draws all levels at once, fine to coarse; `refine_noise` draws a finer value given a stored coarse one.
Both have the same joint law, Koufogiannis, Han and Pappas' (2015): every coarser noise is the next finer one plus an
independent increment, so anybody who has seen the finest value learns nothing from the coarser ones.

| here | the proof | MIDE |
|---|---|---|
| coarse, fine (rates) | -ln a1, -ln a2 | eps_(j-1), eps_j |
| `draw_chain`, `refine_noise` | V1 = V2 + W; V2 given V1 | PRIVRELAX |

References: Koufogiannis, Han, Pappas, "Gradual release of sensitive data under differential privacy"; MIDE
section 5.3. Proof: docs/proofs/gradual_release.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mechanisms.certified import Probability, certify_changed_noise, certify_noise_not_risen
from mechanisms.formula import Integers
from mechanisms.noise.exact import GREATEST_RATE, check_rate
from mechanisms.protocol import Noise


def draw_chain(rates: Sequence[Fraction], *, size: int, noise: Noise) -> Integers:
    """Draw noises `K_1 .. K_m` for each of `size` values, to be revealed in this order.

    `K_i` is discrete Laplace noise of rate `rates[i - 1]`.

    Guarantee: revealing `S + K_1 .. S + K_j`, with `j` chosen from what was revealed before, is `rates[j - 1] *
    sensitivity`-private; the joint law is exact given uniform bytes.

    Parameters:
        rates: strictly increasing (coarse to fine), each within the sampler's range, at least one.
        size: number of values; the result is int64 of shape (len(rates), size).

    Raises:
        Unachievable: a rate lies outside the sampler's range.
        ValueError: the rates do not increase.
    """
    if not rates or any(coarse >= fine for coarse, fine in pairwise(rates)):
        raise ValueError("the rates of a gradual release strictly increase")
    chain = np.empty((len(rates), size), dtype=np.int64)
    chain[-1] = noise.draw_discrete_laplace(rate=rates[-1], size=size)
    for level in range(len(rates) - 2, -1, -1):
        moved = _certify_changed_noise(rates[level], rates[level + 1])
        increment = noise.draw_thinned_laplace(rate=rates[level], nonzero=moved, size=size)
        np.add(chain[level + 1], increment, out=chain[level])
    return chain


def refine_noise(value: Integers, *, coarse: Fraction, fine: Fraction, noise: Noise) -> Integers:
    """Draw the noise of rate `fine` given that the noise of rate `coarse` was `value`.

    Guarantee: exactly the conditional law of `draw_chain`, so stored noise may be refined any number of times, to rates
    chosen from what was revealed before, and the total loss is the last level's.

    By symmetry `value >= 0`. Let `below` and `kept` be independent geometric draws of rates `coarse + fine` and `fine -
    coarse`. The finer noise is `kept - below` if that is less than `value`. Otherwise a coin decides if it is `value`,
    or above it by one more geometric draw. No draw is rejected, and the number of draws depends on noise alone.

    Parameters:
        value: int64, any shape; noise, not noisy values.
        coarse, fine: rates with `coarse < fine`, both and their difference within the sampler's range.

    Raises:
        Unachievable: a rate lies outside the sampler's range.
        ValueError: `fine` is not above `coarse`.
    """
    law = _make_refinement(coarse, fine)
    size = np.abs(value.reshape(value.size))
    finer = _draw_geometric(law.kept, size.size, noise)
    finer -= _draw_geometric(law.below, size.size, noise)
    reached = np.flatnonzero(finer >= size)
    finer[reached] = size[reached]
    risen = reached[~noise.draw_bernoulli_by_digits(probability=law.not_risen, size=reached.size)]
    finer[risen] += _draw_geometric(law.below, risen.size, noise)
    finer = finer.reshape(value.shape)
    return np.where(value < 0, -finer, finer)


def _draw_geometric(rate: Fraction, size: int, noise: Noise) -> Integers:
    """Draw `G` with `P(G = n) = (1 - a) a**n`. Beyond the sampler's range, draw the lesser of two at half the rate."""
    if rate > GREATEST_RATE:
        return np.minimum(_draw_geometric(rate / 2, size, noise), _draw_geometric(rate / 2, size, noise))
    return noise.draw_geometric(rate=rate, size=size)


@lru_cache(maxsize=1024)
def _certify_changed_noise(coarse: Fraction, fine: Fraction) -> Probability:
    """Return one object per pair of rates, so that its digits are worked out once."""
    return certify_changed_noise(coarse=coarse, fine=fine)


@dataclass(frozen=True, slots=True)
class _Refinement:
    """The draw of `refine_noise` for one pair of rates: two geometric distributions by their rates, and a coin."""

    kept: Fraction
    below: Fraction
    not_risen: Probability


@lru_cache(maxsize=1024)
def _make_refinement(coarse: Fraction, fine: Fraction) -> _Refinement:
    """Return one object for each pair of rates, so that its digits are computed once. Raise as `refine_noise` does."""
    if fine <= coarse:
        raise ValueError("the rates of a gradual release strictly increase")
    check_rate(coarse)
    check_rate(fine)
    return _Refinement(
        kept=fine - coarse, below=coarse + fine, not_risen=certify_noise_not_risen(coarse=coarse, fine=fine)
    )
