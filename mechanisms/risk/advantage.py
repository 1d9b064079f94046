"""A privacy loss in plain figures: changes of odds, success rates of guesses, and the loss for a wanted risk.

`epsilon` always bounds the effect of one privacy unit's presence: the probability of any release changes by a factor of
at most `exp(epsilon)` when the unit is added or removed. If a unit is surely there, but in *this* group or *that* one,
two presences are in question, and the odds move by at most `exp(2 epsilon)`.

| here | the formulas |
|---|---|
| prior, posterior | pi; pi e^epsilon / (1 - pi + pi e^epsilon) |
| advantage | TPR - FPR of the best membership test |
| candidates | M, equally likely before; kappa = 1 / M |
| success | s |

References: P. Kairouz, S. Oh, P. Viswanath, The composition theorem for differential privacy, ICML 2015; B. Kulynych et
al., Unifying re-identification, attribute inference and data reconstruction risks in differential privacy, 2025.
Proof: docs/proofs/advantage.md.
"""

import math

_LARGEST = 700.0  # a loss beyond has an exponential that is no float, and protects from nothing


def bound_posterior(epsilon: float, *, prior: float) -> float:
    """Return the largest belief to which a prior belief of `prior` can grow, for anybody and any choice of questions.

    Guarantee: odds of presence move by at most `exp(epsilon)`, for adaptive analysts as well.
    Proof: docs/proofs/advantage.md.

    Parameters:
        epsilon: the loss, >= 0. If the belief is that a unit is in one group rather than another, give twice the loss
            of a presence.
        prior: a probability, 0 <= prior <= 1.

    >>> round(bound_posterior(math.log(3), prior=0.5), 4), round(bound_posterior(1.0, prior=0.01), 4)
    (0.75, 0.0267)
    """
    _check_epsilon(epsilon)
    _check_probability(prior)
    if prior in (0.0, 1.0):
        return prior
    return 1.0 / (1.0 + (1.0 - prior) / prior * math.exp(-min(epsilon, _LARGEST)))


def bound_advantage(epsilon: float) -> float:
    """Return the largest advantage (true-positive minus false-positive rate) of any test for presence.

    Guarantee: holds for adaptive analysts within a cap of `epsilon`; attained by randomised response. Proof:
    docs/proofs/advantage.md.

    >>> [round(bound_advantage(epsilon), 4) for epsilon in (0.5, 1, 2)]
    [0.2449, 0.4621, 0.7616]
    """
    _check_epsilon(epsilon)
    return math.tanh(epsilon / 2)


def bound_true_positive_rate(epsilon: float, *, false_positive_rate: float) -> float:
    """Return the largest true-positive rate of any test for presence at this false-positive rate.

    Guarantee: as for `bound_advantage` (docs/proofs/advantage.md).

    >>> round(bound_true_positive_rate(1.0, false_positive_rate=0.01), 4)
    0.0272
    """
    _check_epsilon(epsilon)
    _check_probability(false_positive_rate)
    factor = math.exp(min(epsilon, _LARGEST))
    return min(factor * false_positive_rate, 1.0 - (1.0 - false_positive_rate) / factor)


def bound_guess(epsilon: float, *, candidates: int) -> float:
    """Return the highest success rate of a guess among equally likely candidates: a person, a group, a secret.

    Guarantee: holds for the value of one unit among `candidates` values, whatever else is known, and for adaptive
    analysts within a cap of `epsilon` for a presence. Proof: docs/proofs/advantage.md.

    >>> [round(bound_guess(1.0, candidates=many), 4) for many in (2, 10, 100)]
    [0.8161, 0.2718, 0.0272]
    """
    _check_epsilon(epsilon)
    _check_candidates(candidates)
    return min(
        bound_true_positive_rate(epsilon, false_positive_rate=1.0 / candidates),
        bound_posterior(2 * epsilon, prior=1.0 / candidates),
    )


def find_epsilon_for_advantage(advantage: float) -> float:
    """Return the greatest loss with which `bound_advantage` is at most this, 0 < advantage < 1.

    >>> [round(find_epsilon_for_advantage(wanted), 4) for wanted in (0.1, 0.25, 0.5)]
    [0.2007, 0.5108, 1.0986]
    """
    if not 0.0 < advantage < 1.0:
        raise ValueError("an advantage is between 0 and 1")
    return 2.0 * math.atanh(advantage)


def find_epsilon_for_posterior(*, prior: float, posterior: float) -> float:
    """Return the greatest loss at which a belief of `prior` becomes at most `posterior`, 0 < prior < posterior < 1.

    >>> [round(find_epsilon_for_posterior(prior=a, posterior=b), 4) for a, b in ((0.5, 0.75), (0.1, 0.2), (0.01, 0.05))]
    [1.0986, 0.8109, 1.6507]
    """
    if not 0.0 < prior < posterior < 1.0:
        raise ValueError("a belief grows from above 0 to below 1")
    return _compute_logit(posterior) - _compute_logit(prior)


def find_epsilon_for_guess(*, candidates: int, success: float) -> float:
    """Return the greatest loss with which `bound_guess` is at most `success`, 1/candidates < success < 1.

    >>> round(find_epsilon_for_guess(candidates=100, success=0.05), 4)
    1.6094
    """
    _check_candidates(candidates)
    blind = 1.0 / candidates
    if not blind < success < 1.0:
        raise ValueError("a guess is right more often than by chance, and not always")
    return max(
        math.log(success * candidates),
        math.log((1.0 - blind) / (1.0 - success)),
        (_compute_logit(success) - _compute_logit(blind)) / 2,
    )


def _compute_logit(probability: float) -> float:
    return math.log(probability / (1.0 - probability))


def _check_epsilon(epsilon: float) -> None:
    if not 0.0 <= epsilon < math.inf:
        raise ValueError("a loss is a finite number that is not negative")


def _check_probability(value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise ValueError("a probability is between 0 and 1")


def _check_candidates(candidates: int) -> None:
    if candidates < 2:
        raise ValueError("a guess is among two candidates or more")
