"""SPS: sampling, perturbing and scaling. Groups too large for their shares to stay hidden are thinned first.

A group larger than its criterion allows keeps only the allowed number of records, with each sensitive value's part of
them. These are perturbed, and repeated until the group has its old size. So group sizes are published. The number of
repetitions reveals the group's largest share (`infer_share` in reconstruction_privacy.py).

| here | the paper |
|---|---|
| counts | D, by personal group and value |
| the part kept | tau = s_g / size |
| the part repeated | size / g1 |

References: Han, chapter 4, algorithm SPS. Proof: docs/proofs/published_tables.md.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise
from mechanisms.publishing.binomials import draw_binomials
from mechanisms.publishing.reconstruction_privacy import Criterion
from mechanisms.publishing.uniform_perturbation import perturb_uniformly


@dataclass(frozen=True, slots=True, eq=False)
class SampledTable:
    """The published table.

    `published_counts` is by group and published value. `is_thinned` is True for thinned groups, and not published.
    """

    published_counts: Integers
    is_thinned: Booleans


def sample_and_perturb(counts: Integers, criterion: Criterion, *, noise: Noise) -> SampledTable:
    """Publish a table: from records by group and value, return records by group and published value.

    Guarantee: none for presence; for a group's shares only what `criterion` says.
    Proof: docs/proofs/published_tables.md.

    Parameters:
        counts: int64 of shape (groups, values).
    """
    sizes = counts.sum(axis=1)
    allowed = find_allowed_sizes(counts, criterion)
    thinned = sizes > allowed
    kept = counts.copy()
    for group in np.flatnonzero(thinned):
        part = Fraction(float(allowed[group])) / int(sizes[group])
        kept[group] = [_round_randomly(int(number) * part, noise) for number in counts[group]]
    published = perturb_uniformly(kept, retention=Fraction(criterion.retention), noise=noise)
    for group in np.flatnonzero(thinned):
        left = int(published[group].sum())
        if left:
            times = Fraction(int(sizes[group]), left)
            whole = times.numerator // times.denominator
            more = draw_binomials(published[group], probability=times - whole, noise=noise)
            published[group] = published[group] * whole + more
    return SampledTable(published, thinned)


def find_allowed_sizes(counts: Integers, criterion: Criterion) -> npt.NDArray[np.float64]:
    """Return the largest allowed size of each group. A group without records has no limit."""
    sizes = counts.sum(axis=1)
    allowed = np.full(len(sizes), np.inf)
    known: dict[Fraction, float] = {}
    for group in np.flatnonzero(sizes):
        share = Fraction(int(counts[group].max()), int(sizes[group]))
        if share not in known:
            known[share] = criterion.find_largest_size(float(share))
        allowed[group] = known[share]
    return allowed


def _round_randomly(number: Fraction, noise: Noise) -> int:
    """Round a number at random so that it is right on average: up with the probability of its fraction."""
    whole = number.numerator // number.denominator
    return whole + int(noise.draw_bernoulli(probability=number - whole, size=1)[0])
