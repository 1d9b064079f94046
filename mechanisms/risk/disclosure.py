"""Disclosures by ratios of two noisy counts, as published: the probability that they reveal a share in a group.

A group of rows that agree on public columns, and how many of them have a sensitive value, are both counted with Laplace
noise. Their ratio estimates the share. It has neither mean nor variance, since the noisy size may be zero. This module
computes its exact probabilities. A disclosure in this sense is about groups. It holds whether or not a person took
part, and no promise about presence prevents it.

| here | the thesis |
|---|---|
| group, holders | phi = abs(g), theta = abs(g_sa) |
| scale | b, of both noises |
| compute_ratio_at_most | F(z) |
| width | tau |
| find_least_chance | CP_tau |
| compute_jump | J |

Reference: C. Han, Differential privacy and its limits (thesis), chapter 3: lemma 2, definitions 3 and 4. Proof:
docs/proofs/disclosure.md.
"""

import math

_NEAR = 1e-6  # from a removable singularity: its sides differ by less than the 1e-10 that rounding loses there


def compute_ratio_at_most(z: float, *, group: float, holders: float, scale: float) -> float:
    """Return the probability `P(Y / X <= z)` that a noisy ratio is at most `z`.

    Here 0 <= holders <= group.

    Guarantee: lemma 2, to 1e-9; docs/proofs/disclosure.md has the three values of `z` that it leaves out.

    >>> round(compute_ratio_at_most(0.5, group=100, holders=50, scale=10), 4)
    0.5
    """
    if not 0 <= holders <= group or group <= 0 or not 0 < scale < math.inf:
        raise ValueError("some of a group of one or more have the value, and noise has a scale above zero")
    for singular in (-1.0, 1.0):
        if abs(z - singular) < _NEAR:
            low, high = (_apply_lemma(singular + side * _NEAR, group, holders, scale) for side in (-1, 1))
            return low + (high - low) * (z - singular + _NEAR) / (2 * _NEAR)
    return _apply_lemma(z, group, holders, scale)


def compute_chance_within(width: float, *, group: float, holders: float, scale: float) -> float:
    """Return the probability that the noisy ratio is within `width` times the share of the share: `CP_tau`.

    Guarantee: exact (docs/proofs/disclosure.md).

    >>> round(compute_chance_within(0.2, group=1000, holders=500, scale=25), 4)
    0.9752
    """
    if width <= 0 or holders <= 0:
        raise ValueError("a share above zero is learned to within a width above zero")
    share = holders / group
    low, high = (
        compute_ratio_at_most((1 + side * width) * share, group=group, holders=holders, scale=scale) for side in (-1, 1)
    )
    return high - low


def compute_jump(*, group: float, holders: float, base_rate: float) -> float:
    """Return the factor by which the value is more frequent in the group than overall: its share over the base rate.

    >>> round(compute_jump(group=339, holders=284, base_rate=0.24892), 3)
    3.366
    """
    if group <= 0 or not 0 < base_rate <= 1:
        raise ValueError("a group has a row or more, and a base rate is above 0")
    return holders / group / base_rate


def apply_rule_of_thumb(*, group: float, scale: float) -> float:
    """Return the thesis's rule of thumb `2 (b / phi)^2`. It is small if the noise hardly changes the ratio.

    The thesis calls it the variance of the ratio. The ratio has no variance.

    >>> [apply_rule_of_thumb(group=size, scale=10) for size in (5000, 1000)]
    [8e-06, 0.0002]
    """
    return 2 * (scale / group) ** 2


def _apply_lemma(z: float, group: float, holders: float, scale: float) -> float:
    """Return `F(z)` by lemma 2, for `z` away from -1 and 1. At 0 it is the limit."""
    nothing = math.exp(-group / scale) / 2
    both = math.exp(-(holders + group) / scale)
    if z == 0.0:
        return nothing - both / 2 + math.exp(-holders / scale) / 2
    squared = z * z
    tail = -both / (2 * (z + 1)) + nothing
    if z < 0:
        rising = squared / (2 * (1 - squared)) * math.exp((holders - z * group) / (z * scale))
        return rising + tail - math.exp((z * group - holders) / scale) / (2 * (squared - 1))
    if z * group <= holders:
        rising = squared / (2 * (squared - 1)) * math.exp((z * group - holders) / (z * scale))
        return rising + tail - math.exp((z * group - holders) / scale) / (2 * (squared - 1))
    rising = squared / (2 * (1 - squared)) * math.exp((holders - z * group) / (z * scale))
    return rising + tail + 1 - math.exp((holders - z * group) / scale) / (2 * (1 - squared))
