"""The posterior of one person's place for an attacker who observes every place's count through some technique.

To the attacker all people are alike. Each is at place `l` with the public probability `p_l`, independently, and there
are `people` of them. Given the observations, the probability that a person is at a place is the expected share of the
people there. These probabilities sum to one over the places. The published attack uses one place at a time, so its
numbers need not sum to one, and it learns less.

| here | the thesis and the formulas |
|---|---|
| people, prior | m, p_l |
| likelihoods | f_l(y_l given z) |
| find_joint_posterior | E(c_l given all y) / m |
| find_posterior_of_one_place | equation 4.4, its sum from 0 |

Reference: PET evaluation (thesis), chapter 4 and appendix B. Proof: docs/proofs/posterior.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

_TRIMMED = 1e-30  # of a weight, beside the greatest: what is cut off changes no posterior's tenth digit

Floats = npt.NDArray[np.float64]
CONFIDENCES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)  # upper ends of the published classes of confidence


def find_joint_posterior(likelihoods: Sequence[Floats], prior: Sequence[float] | Floats, *, people: int) -> Floats:
    """Return, for each place, the probability that a given person is there, given all observations.

    Guarantee: equals the sum over all ways to place the people, to a relative 1e-9; sums to one.
    Proof: docs/proofs/posterior.md.

    Parameters:
        likelihoods: for each place, those of the true counts 0 to `people`, up to a common factor.
        prior: for each place, the probability that a person is there; not negative, sums to one.
        people: how many there are, at least one, known to the attacker.

    Raises:
        ValueError: lengths differ, a prior does not sum to one, or no placing explains the observations.

    Seen was 2 at the first place of two, exactly, and nothing of the second; three people in all:

    >>> seen = [np.array([0.0, 0.0, 1.0, 0.0]), np.ones(4)]
    >>> find_joint_posterior(seen, (0.5, 0.5), people=3).round(4).tolist()
    [0.6667, 0.3333]
    """
    _check_observations(likelihoods, prior, people)
    weights = [_weigh_by_poisson(seen, people * share) for seen, share in zip(likelihoods, prior, strict=True)]
    places = len(weights)
    before = [_SparseWeights(0, np.ones(1))]
    for one in weights[:-1]:
        before.append(_convolve_weights(before[-1], one))
    after = _SparseWeights(0, np.ones(1))
    expected = np.zeros(places)
    total = 0.0
    for place in range(places - 1, -1, -1):
        own = weights[place]
        together = _convolve_weights(before[place], after, is_trimmed=False)
        others = together.read_at(people - own.places)
        chances = own.values * others
        total = float(chances.sum())
        if not total > 0.0:
            raise ValueError("no way of placing the people explains what was seen")
        expected[place] = float((own.places * chances).sum()) / total
        after = _convolve_weights(after, own)
    return np.asarray(expected / expected.sum())


def find_posterior_of_one_place(likelihood: Floats, prior: float, *, people: int) -> float:
    """Run the published attack on the count of one place alone.

    The sum includes the case of an empty place, which the paper leaves out.

    Guarantee: equation 4.4 with the sum from z = 0 (docs/proofs/posterior.md).

    >>> round(find_posterior_of_one_place(np.array([0.0, 0.0, 1.0, 0.0]), 0.5, people=3), 4)
    0.6667
    """
    if likelihood.size != people + 1 or people < 1 or not 0 <= prior <= 1:
        raise ValueError("a likelihood has one number for each count from 0 to the people")
    from scipy.special import gammaln, xlogy  # here, since every command reads this file and few compute this

    counts = np.arange(people + 1)
    ways = gammaln(people + 1) - gammaln(counts + 1) - gammaln(people - counts + 1)
    logs = ways + xlogy(counts, prior) + xlogy(people - counts, 1 - prior)
    weights = np.exp(logs - logs.max()) * likelihood
    total = float(weights.sum())
    if not total > 0.0:
        raise ValueError("no count explains what was seen")
    return float((weights * counts).sum()) / total / people


def bound_belief_in_presence(epsilon: float, *, prior: float) -> float:
    """Return the largest belief to which a prior belief in a person's presence can grow.

    Guarantee: for whatever was released within `epsilon` (docs/proofs/posterior.md).

    >>> round(bound_belief_in_presence(1.0, prior=0.5), 4)
    0.7311
    """
    return _bound_belief(epsilon, prior)


def bound_belief_in_place(epsilon: float, *, prior: float) -> float:
    """Return the largest belief that a person is in one place rather than another.

    This changes two presences, so odds change by at most `exp(2 epsilon)`.

    Guarantee: holds if every place's count is released within `epsilon` (docs/proofs/posterior.md). The thesis uses
    `exp(epsilon)`, which two places with noise of rate 1 already exceed: .8808 occurs.

    >>> round(bound_belief_in_place(1.0, prior=0.5), 4)
    0.8808
    """
    return _bound_belief(2 * epsilon, prior)


def find_confidence_class(posterior: float) -> int:
    """Return the published class of a probability, one of six: (0, .1], (.1, .25], ..., (.9, 1].

    >>> [find_confidence_class(posterior) for posterior in (0.1, 0.11, 0.95)]
    [0, 1, 5]
    """
    return next(place for place, end in enumerate(CONFIDENCES) if posterior <= end or end == CONFIDENCES[-1])


def _bound_belief(epsilon: float, prior: float) -> float:
    if not 0 <= prior <= 1 or not 0 <= epsilon < math.inf:
        raise ValueError("a belief is between 0 and 1, and a loss is not negative")
    return prior if prior in (0.0, 1.0) else 1 / (1 + math.exp(-epsilon) * (1 - prior) / prior)


@dataclass(frozen=True, slots=True, eq=False)
class _SparseWeights:
    """Weights of the counts `start`, `start + 1`, and so on. All other weights are zero."""

    start: int
    values: Floats = field(repr=False)

    @property
    def places(self) -> npt.NDArray[np.int64]:
        return np.arange(self.start, self.start + self.values.size)

    def read_at(self, places: npt.NDArray[np.int64]) -> Floats:
        """Return the weights of these places."""
        index = places - self.start
        inside = (index >= 0) & (index < self.values.size)
        return np.where(inside, self.values[np.clip(index, 0, self.values.size - 1)], 0.0)


def _weigh_by_poisson(likelihood: Floats, mean: float) -> _SparseWeights:
    """Return the likelihood times Poisson's distribution, trimmed.

    Given their sum, independent Poisson counts place people as the prior says.
    """
    from scipy.special import gammaln, xlogy  # here, as above

    counts = np.arange(likelihood.size)
    with np.errstate(divide="ignore"):
        logs = xlogy(counts, mean) - gammaln(counts + 1) + np.log(likelihood)
    highest = logs.max()
    if not math.isfinite(highest):
        raise ValueError("no way of placing the people explains what was seen")
    return _trim_weights(_SparseWeights(0, np.asarray(np.exp(logs - highest))))


def _convolve_weights(one: _SparseWeights, other: _SparseWeights, *, is_trimmed: bool = True) -> _SparseWeights:
    together = _SparseWeights(one.start + other.start, np.convolve(one.values, other.values))
    return _trim_weights(together) if is_trimmed else together


def _trim_weights(weights: _SparseWeights) -> _SparseWeights:
    highest = float(weights.values.max())
    kept = np.flatnonzero(weights.values > _TRIMMED * highest)
    return _SparseWeights(weights.start + int(kept[0]), weights.values[kept[0] : kept[-1] + 1] / highest)


def _check_observations(likelihoods: Sequence[Floats], prior: Sequence[float] | Floats, people: int) -> None:
    if len(likelihoods) != len(prior) or len(prior) == 0 or people < 1:
        raise ValueError("every place has a prior and an observation, and there is at least one person")
    if any(seen.size != people + 1 for seen in likelihoods):
        raise ValueError("a likelihood has one number for each count from 0 to the people")
    if min(prior) < 0 or abs(sum(prior) - 1) > 1e-6:
        raise ValueError("a prior is not negative and sums to one")
