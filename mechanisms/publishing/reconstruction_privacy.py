"""(lambda, delta)-reconstruction privacy: the largest group whose shares stay hard to estimate.

As published, a group is private if a Chernoff bound on either tail of the estimate's error is at least `delta`. But an
upper bound may be large while the tail is small. At the allowed size an estimate is within `lambda` far more often than
`1 - delta`. With exact tails hardly any group may be published unchanged.

| here | the paper |
|---|---|
| share | f, the largest frequency of a value in the group |
| relative_error | lambda, a part of that share |
| least_tail | delta |
| retention, values, floor | p, m, q = (1 - p) / m |
| compute_published_size | s_g |

References: Han, chapter 4, corollary 4. Proof: docs/proofs/published_tables.md.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Integers

_LONGEST_SEARCH = 16  # times the size at which a normal tail is as wanted: there it is that at four times the distance
_LEAST_SEARCH = 64  # sizes that are looked at in any case: small groups are far from normal
_SHARES = 200  # at which the chance of a good estimate is looked up; it moves slowly between them
_TIES = 1e-12  # an estimate that is off by exactly `relative_error` is within it, whatever floating point makes of that


@dataclass(frozen=True, slots=True)
class Criterion:
    """The requirement that every group's published records have to meet. All of it is public.

    Parameters:
        retention: the probability that a record keeps its value, above 0 and below 1.
        value_count: the number of values of the sensitive column, at least 2.
        relative_error: the part of a share by which an estimate may be off, above 0 and at most 1.
        least_tail: the least probability of each tail, above 0 and below 1.
        uses_exact_tails: True to use the tails themselves, False for bounds on them.
    """

    retention: float
    value_count: int
    relative_error: float
    least_tail: float
    uses_exact_tails: bool

    def __post_init__(self) -> None:
        """Raise ValueError for a parameter out of range."""
        if not (
            0 < self.retention < 1
            and 0 < self.relative_error <= 1
            and 0 < self.least_tail < 1
            and self.value_count >= 2
        ):
            raise ValueError("0 < retention < 1, 0 < relative_error <= 1, 0 < least_tail < 1, and two values or more")

    def find_largest_size(self, share: float) -> float:
        """Return the largest allowed size of a group with this largest share; 0 if no size is allowed.

        It is a whole number if `uses_exact_tails`.
        """
        return float(find_exact_size(self, share)) if self.uses_exact_tails else compute_published_size(self, share)


def compute_published_size(criterion: Criterion, share: float) -> float:
    """Return the published largest size of a group, `-2 (f p + q) ln(delta) / (lambda p f)^2`.

    Guarantee: none about the error itself: see `find_least_chance`. Proof: docs/proofs/published_tables.md.

    >>> criterion = Criterion(retention=0.5, value_count=2, relative_error=0.3, least_tail=0.3, uses_exact_tails=False)
    >>> [round(compute_published_size(criterion, share), 1) for share in (0.5, 0.7, 0.9)]
    [214.0, 131.0, 92.5]
    """
    kept = criterion.retention * share
    floor = (1 - criterion.retention) / criterion.value_count
    return -2 * (kept + floor) * math.log(criterion.least_tail) / (criterion.relative_error * kept) ** 2


def compute_error_tails(criterion: Criterion, share: float, *, size: int) -> tuple[float, float]:
    """Return the exact probabilities that the estimate of a share is too large, and that it is too small.

    The estimate is too large or too small if it is off by more than `relative_error` of the share. The number of
    records with the value is rounded to a whole one, and the share is computed from it.

    >>> criterion = Criterion(retention=0.5, value_count=2, relative_error=0.3, least_tail=0.3, uses_exact_tails=False)
    >>> [round(tail, 4) for tail in compute_error_tails(criterion, 0.76, size=116)]
    [0.0014, 0.0023]
    """
    from scipy import special, stats  # here, since every command reads this file and few compute this

    holders = round(size * share)
    floor = (1 - criterion.retention) / criterion.value_count
    own = holders / size
    middle, reach = (
        size * (criterion.retention * own + floor),
        size * criterion.retention * criterion.relative_error * own,
    )
    first_above = math.floor(middle + reach + _TIES * size) + 1
    last_below = math.ceil(middle - reach - _TIES * size) - 1
    kept = np.arange(holders + 1)
    chances = stats.binom.pmf(kept, holders, criterion.retention + floor)
    others = size - holders
    above = float(chances @ special.bdtrc(np.clip(first_above - kept - 1, -1, others), others, floor))
    below = float(chances @ _compute_at_most(last_below - kept, others, floor))
    return above, below


def find_exact_size(criterion: Criterion, share: float) -> int:
    """Return the largest size of a group at which both error tails are at least `least_tail`.

    Return 0 if there is none.

    Guarantee: a group of that size, all of it perturbed, is estimated to within `relative_error` of its largest share
    with probability `1 - 2 * least_tail` at most. Proof: docs/proofs/published_tables.md.

    >>> criterion = Criterion(retention=0.5, value_count=2, relative_error=0.3, least_tail=0.3, uses_exact_tails=True)
    >>> find_exact_size(criterion, 0.76), find_exact_size(criterion, 0.9)
    (8, 6)
    """
    from scipy import special  # here, as above

    kept = criterion.retention * share
    floor = (1 - criterion.retention) / criterion.value_count
    at_distance = special.ndtri(1 - criterion.least_tail)  # standard deviations
    variance = share * (criterion.retention + floor) * (1 - criterion.retention - floor)
    variance += (1 - share) * floor * (1 - floor)
    nearly = variance * (at_distance / (criterion.relative_error * kept)) ** 2
    last = min(compute_published_size(criterion, share), max(_LEAST_SEARCH, _LONGEST_SEARCH * nearly))
    for size in range(math.floor(last), 0, -1):
        if min(compute_error_tails(criterion, share, size=size)) >= criterion.least_tail:
            return size
    return 0


def find_least_chance(criterion: Criterion) -> float:
    """Return the least probability, over all shares, that the share of a largest group is estimated well enough.

    It follows from public numbers. An attacker has at least this probability.

    >>> criterion = Criterion(retention=0.5, value_count=2, relative_error=0.3, least_tail=0.3, uses_exact_tails=False)
    >>> find_least_chance(criterion) > 0.98
    True
    """
    shares = np.linspace(1 / criterion.value_count, 1, _SHARES)
    sizes = [max(1, math.floor(compute_published_size(criterion, share))) for share in shares]
    return min(
        1 - sum(compute_error_tails(criterion, float(share), size=size))
        for share, size in zip(shares, sizes, strict=True)
    )


def infer_share(criterion: Criterion, size: float) -> float:
    """Infer a group's largest share from the published size after thinning.

    It is the positive root of `(lambda p)^2 s f^2 - 2 p L f - 2 q L = 0`, with `L = -ln(delta)`.

    >>> criterion = Criterion(retention=0.5, value_count=2, relative_error=0.3, least_tail=0.3, uses_exact_tails=False)
    >>> round(infer_share(criterion, 117), 4)
    0.7587
    """
    square = (criterion.relative_error * criterion.retention) ** 2 * size
    linear = -criterion.retention * -math.log(criterion.least_tail)
    constant = 2 * (1 - criterion.retention) / criterion.value_count * -math.log(criterion.least_tail)
    return (-linear + math.sqrt(linear**2 + square * constant)) / square


def _compute_at_most(limits: Integers, number: int, probability: float) -> npt.NDArray[np.float64]:
    """Return `P(X <= limit)` of a binomial variable: 0 below zero, 1 from `number` on."""
    from scipy import special  # here, as above

    found = special.bdtr(np.clip(limits, 0, number), number, probability)
    return np.where(limits < 0, 0.0, found)
