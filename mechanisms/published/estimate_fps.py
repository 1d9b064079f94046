"""EstimateFPs, ProBE's estimate of the number of keys that a noisy threshold test returned wrongly.

From the noisy distances of one occurrence (positive where its condition seems to hold) with threshold shift `u`:
`O_p = {z > -u}` reported positive, `O_pp = {z > u}` definitely positive, `O_n` the rest. Then `FP_ub = |O_p| - (1 -
beta) |O_pp|` (22) and `N_lb = (|O_n| - beta k) / (1 - beta)` (23), counting only keys that the operators around the
occurrence have not settled: positives that were returned, negatives that were not. Wrong keys are allowed up to
`alpha / n` of `N_lb`.

**What it claims** (theorem 5.1): if no estimate exceeds its allowance, `P(key returned | formula false) <= alpha` for
every key (definition 3.2).

**What does not hold.** The estimate counts keys and says nothing of any one of them: it takes the share of high noisy
values among the negatives for the chance of a high noisy value of a negative. A single key just below the threshold
among a thousand far below is returned with probability `1 - a**u / (1 + a)`, about `1 - beta`, and the estimate
accepts, since one key is less than a tenth of a thousand; tests/mechanisms/published/test_estimate_fps.py shows it.
What ProBE really bounds is a key false by the whole uncertain region, `z <= -2u`, and that already by its first phase
(docs/proofs/probe.md). Nor is `FP_ub` an upper bound on the count, even on average: of negatives just below the
threshold a share of `beta` has `z > u`, and of these only a share of `beta` is counted, so that `FP_ub / FP` tends to
`1 - beta`; nothing for small shares, but a factor of .6 at `beta = .4`.

What bounds the realised rate soundly, on any data, is `bound_realised_fpr` in mechanisms/audit/realised_rates.py.

| here | ProBE |
|---|---|
| shift | u, alpha_i |
| share | beta_i |
| false_positives, negatives | FP_ub, N_lb |
| returned | O |

References: ProBE section 5.2, equations 22 and 23, algorithms 3 and 4, theorem 5.1; docs/proofs/probe.md.
"""

import math
from dataclasses import dataclass

import numpy as np

from mechanisms.formula import Booleans, Integers


@dataclass(frozen=True, slots=True)
class EstimatedFps:
    """The estimate: `false_positives` is FP_ub, and `negatives` is N_lb, at least zero."""

    false_positives: float
    negatives: float

    def count_excess(self, *, fpr: float) -> int:
        """Return the number of keys that must still be removed, rounded up.

        It is zero if the estimate is within `fpr * negatives`.
        """
        return max(0, math.ceil(self.false_positives - fpr * self.negatives))


def estimate_fps(distances: Integers, *, shift: int, share: float, returned: Booleans) -> EstimatedFps:
    """Compute equations 22 and 23 for one occurrence. They depend only on noisy values, so they add no privacy loss.

    Parameters:
        distances: noisy distances, positive where the condition seems to hold, shape (keys,).
        shift: `u`, integer units: the test accepted above `-shift`.
        share: the part of the false-negative rate spent on the occurrence, in (0, 1).
        returned: True for each key that the formula returned, shape (keys,).
    """
    positive = distances > -shift
    reported = np.count_nonzero(positive & returned)
    definite = np.count_nonzero((distances > shift) & returned)
    rejected = np.count_nonzero(~positive & ~returned)
    return EstimatedFps(
        false_positives=reported - (1.0 - share) * definite,
        negatives=max(0.0, (rejected - share * distances.size) / (1.0 - share)),
    )


def find_uncertain_keys(distances: Integers, *, shift: int, returned: Booleans) -> Booleans:
    """Return True for each key that was returned on an uncertain value: it is in the paper's `O_p` but not in `O_pp`.

    A second phase tests these keys again.
    """
    return np.asarray((distances > -shift) & (distances <= shift) & returned, dtype=np.bool_)


def narrow_tolerance(distances: Integers, *, shift: int, excess: int, returned: Booleans) -> int | None:
    """Return the narrower tolerance `2u'` of the second phase, in integer units.

    At this tolerance `excess` uncertain keys lie left of `c - 2u'`. Return None if no positive tolerance does it.
    Parameters as for `find_uncertain_keys`; `excess` is at least one. The result is at least 1 and less than `shift`.
    """
    values = np.sort(distances[find_uncertain_keys(distances, shift=shift, returned=returned)])
    if excess >= values.size or values[excess] >= 0:
        return None
    return -int(values[excess])
