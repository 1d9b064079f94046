"""Attacks on synthetic data: the part of a secret that they find within a loss.

A cell has people, each with a secret bit. The attacker may count, with noise, the people of chosen groups whose bit is
one. All counts together cost each person's bit the whole loss. No private data are involved.

References: I. Dinur, K. Nissim, Revealing information while preserving privacy, PODS 2003 (many random counts); D.
Denning, P. Denning, M. Schwartz, The tracker, TODS 4 (1), 1979 (two counts that differ by one person). Proof of the
bounds: docs/proofs/advantage.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.protocol import Noise
from mechanisms.risk.advantage import bound_posterior

_FINEST = 64  # a noise rate beyond which discrete noise is zero but for less than one draw in 1e27
_SPREAD = 0.25  # variance of a secret bit, as the attacker sees it before
_RATE_DIGITS = (
    1 << 20
)  # a rate is rounded down to a multiple of one over this: the attack never gets more than its loss


@dataclass(frozen=True, slots=True)
class BitAttack:
    """The result of an attack: the fraction of the bits that it guessed right, and a bound for any attack."""

    right_share: float
    bound: float


def reconstruct_bits(
    *, people: int, counts: int, epsilon: float | None, runs: int, seed: int, noise: Noise
) -> BitAttack:
    """Attack people's bits through noisy counts of random halves of the people, by the best linear estimate.

    Guarantee: the expected fraction of right bits is at most `bound`. Each bit is a guess between two values that
    changes each count by one, or not at all (docs/proofs/advantage.md). The fraction found is a mean over `runs`.

    Parameters:
        people, counts: the number of bits, and the number of counts that share the loss evenly; at least one.
        epsilon: the loss of one bit by all counts together, above 0, or None for counts without noise.
        runs: the number of synthetic cells, at least one.
        seed: of the random bits and groups, which are nobody's secret.
    """
    if min(people, counts, runs) < 1:
        raise ValueError("an attack has people, counts and runs")
    chosen = np.random.default_rng(seed)
    rate = None if epsilon is None else _choose_rate(epsilon, counts)
    spread = 0.0 if rate is None else _compute_variance(float(rate))
    right = 0
    for _ in range(runs):
        bits = chosen.integers(0, 2, people)
        groups = chosen.integers(0, 2, (counts, people)).astype(np.float64)
        seen = groups @ bits.astype(np.float64)
        if rate is not None:
            seen = seen + noise.draw_discrete_laplace(rate=rate, size=counts)
        centred = seen - groups.sum(axis=1) / 2
        if rate is None:
            found = np.linalg.lstsq(groups, centred, rcond=None)[0]
        else:
            gram = groups.T @ groups + (spread / _SPREAD) * np.eye(people)
            found = np.linalg.solve(gram, groups.T @ centred)
        right += int(np.count_nonzero((found > 0) == (bits == 1)))
    return BitAttack(right / (runs * people), 1.0 if epsilon is None else bound_posterior(epsilon, prior=0.5))


def track_victim(epsilon: float) -> BitAttack:
    """Return the exact success of the tracker: two counts that differ by the victim, each with half of the loss.

    Guarantee: both the tracker's success and its bound are exact (docs/proofs/advantage.md).

    >>> attack = track_victim(1.0)
    >>> round(attack.right_share, 4), round(attack.bound, 4)
    (0.5649, 0.7311)
    """
    if not 0 < epsilon < math.inf:
        raise ValueError("a loss is above 0")
    decay = math.exp(-epsilon / 2)
    equal = ((1 - decay) / (1 + decay)) ** 2 * (1 + decay**2) / (1 - decay**2)
    return BitAttack((1 + equal) / 2, bound_posterior(epsilon, prior=0.5))


def single_out_victim(epsilon: float) -> BitAttack:
    """Return the exact success of one count of the victim alone, with the whole loss.

    Either nobody else meets the count's filter, or all other bits are known.

    Guarantee: it reaches the bound, so the bound is tight. Counts of single persons share nobody, so each finds its
    person's bit as often (docs/proofs/advantage.md).

    >>> attack = single_out_victim(1.0)
    >>> attack.right_share == attack.bound
    True
    """
    bound = bound_posterior(epsilon, prior=0.5)
    return BitAttack(bound, bound)


def _choose_rate(epsilon: float, counts: int) -> Fraction:
    if not 0 < epsilon < math.inf:
        raise ValueError("a loss is above 0")
    rate = min(epsilon / counts, float(_FINEST))
    return max(Fraction(math.floor(rate * _RATE_DIGITS), _RATE_DIGITS), Fraction(1, _RATE_DIGITS))


def _compute_variance(rate: float) -> float:
    decay = math.exp(-rate)
    return 2 * decay / (1 - decay) ** 2
