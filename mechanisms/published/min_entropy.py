"""The min-entropy of an answer: the least uncertainty, in nats, that an adversary's posterior may have.

Per-key losses bound an adversary's posterior over the keys that an individual may be in; gamma is the least entropy
that a posterior within the bounds can have. Two sets of posteriors are in use. MIDE bounds each posterior by itself
(a box cut with the simplex); the true set is smaller: the weights `q_i exp(+-epsilon_i)`, normalised. So gamma of the
box is never above gamma of the true set.

What is printed but does not hold: algorithm 5 says it returns the option of higher entropy (it must be the lower);
and lemma A.2 (`f(x1) + f(x2) < f(x1 - d) + f(x2 + d)` for `x1 > x2`, `f(x) = -x ln x`) holds for `0 < d < x1 - x2`
alone: beyond, the two values have changed places and moved further apart.

| here | MIDE |
|---|---|
| low, high | l_i, u_i |
| room | Delta_i |
| slack | s |

References: MIDE section 5.4, algorithm 5, lemmas A.1 and A.2.

Proof: docs/proofs/min_entropy.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MOST_KEYS = 24  # the recursion is exponential in the keys
_MOST_VERTICES = 1 << 22  # bounds time and memory: one float each
_ROUNDING = 1e-12  # more than sums of floats of order one lose


@dataclass(frozen=True, slots=True)
class Bracket:
    """A lower and an upper bound of an unknown number."""

    lower: float
    upper: float


def compute_entropy(posterior: Values) -> float:
    """Return the entropy `-sum p ln p` of a distribution. A probability of 0 adds nothing."""
    positive = posterior[posterior > 0.0]
    return float(-np.sum(positive * np.log(positive)))


def bound_posteriors(epsilons: Sequence[float], *, priors: Sequence[float] | None = None) -> tuple[Values, Values]:
    """Return MIDE's bounds of each single posterior, `(low, high)`, both of shape (keys,).

    Parameters:
        epsilons: the loss of each key, >= 0.
        priors: positive, summing to one; None for uniform.

    References: MIDE eq. A.2 (Definition 5.4 for uniform priors).
    """
    losses = np.asarray(epsilons, dtype=np.float64)
    weights = _check_priors(priors, losses.size)
    least, most = weights * np.exp(-losses), weights * np.exp(losses)
    return least / most.sum(), most / least.sum()


def minimise_entropy(epsilons: Sequence[float]) -> Values:
    """Return the posterior of least entropy within the box, for uniform priors: MIDE's algorithm 5, corrected.

    Guarantee: exact. The intervals are nested. So at some minimum the widest key is at a bound, or all other keys are
    at their lower bounds, or all at their upper bounds. Each step tries these options.

    Parameters:
        epsilons: the loss of each key, >= 0; at most `MOST_KEYS`, for the recursion is exponential in them.

    Raises:
        ValueError: no keys, or too many; `compute_min_entropy_by_level` has no such limit.

    References: MIDE algorithm 5, theorem 5.8.
    """
    low, high = bound_posteriors(epsilons)
    if not 1 <= low.size <= MOST_KEYS:
        raise ValueError(f"the recursion doubles with every key: between 1 and {MOST_KEYS} keys")
    order = np.argsort(high, kind="stable")
    result = np.empty(low.size)
    result[order] = _minimise_recursively(low[order], high[order] - low[order], 1.0 - float(low.sum()))
    return result


def _minimise_recursively(low: Values, room: Values, slack: float) -> Values:
    if low.size == 1:
        return low + slack
    others = float(room[:-1].sum())
    widest_first = min(float(room[-1]), slack)
    option_1 = np.append(_minimise_recursively(low[:-1], room[:-1], slack - widest_first), low[-1] + widest_first)
    others_first = min(others, slack)
    option_2 = np.append(_minimise_recursively(low[:-1], room[:-1], others_first), low[-1] + slack - others_first)
    return option_1 if compute_entropy(option_1) <= compute_entropy(option_2) else option_2


def compute_min_entropy_by_level(losses: Sequence[float], counts: Sequence[int]) -> float:
    """Return gamma, the least entropy within the box, for keys with few distinct losses and uniform priors.

    Guarantee: exact (to rounding). Keys of one level are interchangeable. So a vertex is a count per level and one
    fractional key. The narrower levels are all at their lower or all at their upper bounds, so only the counts of
    wider levels are enumerated.

    Parameters:
        losses: distinct, >= 0.
        counts: keys on each, >= 0; not all zero.

    Raises:
        ValueError: the lengths differ, no key, or more than four million counts to try.
    """
    present = sorted((loss, count) for loss, count in zip(losses, counts, strict=True) if count > 0)
    if not present:
        raise ValueError("min-entropy needs at least one key")
    number = np.array([count for _, count in present], dtype=np.int64)
    if float(np.prod((number[1:] + 1).astype(np.float64))) > _MOST_VERTICES:
        raise ValueError("too many keys on too many levels; use the bracket")
    loss = np.array([value for value, _ in present])
    least, most = float((number * np.exp(-loss)).sum()), float((number * np.exp(loss)).sum())
    low, high = np.exp(-loss) / most, np.exp(loss) / least
    return min(
        _find_least_entropy_with_fraction(level, low, high, number, are_narrower_full=narrower_full)
        for level in range(loss.size)
        for narrower_full in (False, True)
    )


def _find_least_entropy_with_fraction(
    level: int, low: Values, high: Values, number: Counts, *, are_narrower_full: bool
) -> float:
    """Return the least entropy with the fractional key on `level`, over all counts of the wider levels."""
    room = high - low
    terms_low, terms_high = -low * np.log(low), -high * np.log(high)
    narrower = number[:level]
    at = (room[:level] if are_narrower_full else np.zeros(level)) * narrower
    slack = np.array([1.0 - float((number * low).sum()) - float(at.sum())])
    total = np.array([float((narrower * (terms_high if are_narrower_full else terms_low)[:level]).sum())])
    for wider in range(level + 1, number.size):
        raised = np.arange(number[wider] + 1, dtype=np.float64)
        slack = np.subtract.outer(slack, raised * room[wider]).ravel()
        total = np.add.outer(total, raised * terms_high[wider] + (number[wider] - raised) * terms_low[wider]).ravel()
    feasible = (slack >= -_ROUNDING) & (slack <= number[level] * room[level] + _ROUNDING)
    slack, total = np.clip(slack[feasible], 0.0, None), total[feasible]
    if slack.size == 0:
        return np.inf
    if room[level] <= 0.0:
        return float(np.min(total + number[level] * terms_low[level]))
    raised = np.minimum(np.floor(slack / room[level] + _ROUNDING), number[level] - 1)
    rest = np.clip(low[level] + slack - raised * room[level], low[level], high[level])
    own = raised * terms_high[level] + (number[level] - 1 - raised) * terms_low[level] - rest * np.log(rest)
    return float(np.min(total + own))


def compute_min_entropy_by_class(losses: Sequence[float], priors: Sequence[float], counts: Sequence[int]) -> float:
    """Return gamma, the least entropy within the box, for keys in few classes of equal loss and prior.

    Guarantee: exact (to rounding). With different priors the intervals are not nested, so algorithm 5 does not apply.
    A vertex is still a count per class and one fractional key. The counts of all classes except that key's are
    enumerated.

    Parameters:
        losses: per class, >= 0.
        priors: per class, the prior of each of its keys, > 0; over all keys they sum to one.
        counts: keys in each class, >= 0; not all zero.

    Raises:
        ValueError: the lengths differ, no key, priors that do not sum to one, or over four million counts to try.

    References: MIDE eq. A.2.
    """
    loss, prior, number = _read_classes(losses, priors, counts)
    _refuse_many_counts(number, besides=1)
    least, most = prior * np.exp(-loss), prior * np.exp(loss)
    low, high = least / float((number * most).sum()), most / float((number * least).sum())
    found = []
    for fractional in range(number.size):
        order = [fractional, *(other for other in range(number.size) if other != fractional)]
        found.append(
            _find_least_entropy_with_fraction(0, low[order], high[order], number[order], are_narrower_full=False)
        )
    return min(found)


def compute_true_min_entropy_by_class(losses: Sequence[float], priors: Sequence[float], counts: Sequence[int]) -> float:
    """Return gamma, the least entropy, over the exact set of possible posteriors.

    The parameters are those of `compute_min_entropy_by_class`.

    Guarantee: exact (to rounding): Entropy is concave, so at a minimum every weight is `q exp(-eps)` or `q exp(eps)`.
    Keys of one class are interchangeable, so only the number of raised keys in each class is enumerated.
    """
    loss, prior, number = _read_classes(losses, priors, counts)
    _refuse_many_counts(number, besides=0)
    total, logs = np.zeros(1), np.zeros(1)
    for epsilon, weight, keys in zip(loss, prior, number, strict=True):
        raised = np.arange(keys + 1, dtype=np.float64) if epsilon > 0.0 else np.zeros(1)
        least, most = weight * np.exp(-epsilon), weight * np.exp(epsilon)
        total = np.add.outer(total, raised * most + (keys - raised) * least).ravel()
        logs = np.add.outer(logs, raised * most * np.log(most) + (keys - raised) * least * np.log(least)).ravel()
    return max(0.0, float(np.min(np.log(total) - logs / total)))


def _read_classes(
    losses: Sequence[float], priors: Sequence[float], counts: Sequence[int]
) -> tuple[Values, Values, Counts]:
    present = [(loss, prior, n) for loss, prior, n in zip(losses, priors, counts, strict=True) if n > 0]
    if not present:
        raise ValueError("min-entropy needs at least one key")
    loss, prior, number = (np.array(column) for column in zip(*present, strict=True))
    if not np.all(prior > 0.0) or abs(float((prior * number).sum()) - 1.0) > 1e-9:
        raise ValueError("priors are positive and sum to one over all keys")
    return loss.astype(np.float64), prior.astype(np.float64), number.astype(np.int64)


def _refuse_many_counts(number: Counts, *, besides: int) -> None:
    """Raise ValueError if too many counts would be tried. The `besides` smallest classes do not count."""
    tried = np.sort(number)[besides:] + 1
    if float(np.prod(tried.astype(np.float64))) > _MOST_VERTICES:
        raise ValueError("too many keys in too many classes; use the bracket")


def bracket_min_entropy(epsilons: Sequence[float], *, priors: Sequence[float] | None = None) -> Bracket:
    """Return certified bounds of gamma over the exact set of possible posteriors, for any priors.

    Guarantee: `lower <= gamma <= upper`. Entropy is concave, so a least point is a vertex: every weight at `q
    exp(-eps)` or `q exp(eps)`. With `Z` the sum of the weights and `T = sum w ln w`, the entropy is `ln Z - T / Z`;
    for given `Z` the most that `T` can be lies on or below the hull of the keys sorted by `ln q + eps coth eps`. The
    hull's vertices are posteriors themselves (upper bound); the least of `ln Z - T / Z` along the hull is the lower
    bound, less a margin for rounding.

    Parameters:
        epsilons: the loss of each key, >= 0; at least one.
        priors: positive, summing to one; None for uniform.

    Raises:
        ValueError: no keys, or priors that are not positive or do not sum to one.
    """
    losses = np.asarray(epsilons, dtype=np.float64)
    if losses.size == 0:
        raise ValueError("min-entropy needs at least one key")
    weights = _check_priors(priors, losses.size)
    least, most = weights * np.exp(-losses), weights * np.exp(losses)
    moving = losses > 0.0
    width = (most - least)[moving]
    gain = (most * (np.log(weights) + losses) - least * (np.log(weights) - losses))[moving]
    order = np.argsort(-gain / width, kind="stable")
    sums = np.concatenate(([0.0], np.cumsum(width[order]))) + least.sum()
    logs = np.concatenate(([0.0], np.cumsum(gain[order]))) + float((least * (np.log(weights) - losses)).sum())
    vertices = np.log(sums) - logs / sums
    upper = float(vertices.min())
    lower = upper
    if order.size:
        slope = (gain / width)[order]
        intercept = logs[:-1] - slope * sums[:-1]
        inside = (-intercept > sums[:-1]) & (-intercept < sums[1:])
        lowest = np.log(np.where(inside, -intercept, 1.0)) - slope + 1.0
        lower = min(upper, float(np.min(lowest, where=inside, initial=np.inf)))
    margin = _ROUNDING * losses.size * (1.0 + float(losses.max()) + float(np.abs(np.log(weights)).max()))
    return Bracket(lower=max(0.0, lower - margin), upper=upper + margin)


def _check_priors(priors: Sequence[float] | None, keys: int) -> Values:
    if priors is None:
        return np.full(keys, 1.0 / max(keys, 1))
    weights = np.asarray(priors, dtype=np.float64)
    if weights.size != keys or not np.all(weights > 0.0) or abs(float(weights.sum()) - 1.0) > 1e-9:
        raise ValueError("priors are positive, one per key, and sum to one")
    return weights
