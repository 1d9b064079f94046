"""A private bound as published: the first of doubling candidates with enough units within it, by a sparse vector.

The wanted number of units has two-sided noise, and each comparison noise twice as wide. No question can name it. It is
here for comparison with mechanisms/publishing/private_bounds.py.

Two gaps of the print are filled. Candidates end at a public end, which is released if no candidate passes. The number
of units is public. Theorem 9 of the print takes the logarithm of zero if the first candidate is released, so it is not
used.

| here | the thesis |
|---|---|
| wanted | theta n |
| least | mu |

References: Chen's thesis, algorithm 10. Proof of the loss: docs/proofs/private_bounds.md.
"""

from fractions import Fraction

import numpy as np

from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.published.sparse_vector import run_sparse_vector


def list_doubling_candidates(least: int, *, greatest: int) -> tuple[int, ...]:
    """Return `least` and its doublings below `greatest`, then `greatest` as the last candidate.

    Raises:
        ValueError: not `1 <= least <= greatest`.

    >>> list_doubling_candidates(3, greatest=20)
    (3, 6, 12, 20)
    """
    if not 1 <= least <= greatest:
        raise ValueError("the least candidate is one or more, and not above the greatest")
    found = [least]
    while 2 * found[-1] < greatest:
        found.append(2 * found[-1])
    return (*found, greatest) if greatest > least else (least,)


def find_first_covering_candidate(within: Integers, *, wanted: int, epsilon: Fraction, noise: Noise) -> Integers:
    """Run independent scans in parallel. Return the index of the released candidate for each row.

    Guarantee: each row's index is `epsilon`-private under adding or removing one unit (docs/proofs/private_bounds.md).

    Parameters:
        within: the number of units within each candidate, int64 of shape (scans, candidates), within +-2**60.
        wanted: the number of units that should be within; public.
    """
    passing = run_sparse_vector(
        within - wanted, least=0, threshold_rate=epsilon / 2, query_rate=epsilon / 4, most_positives=1, noise=noise
    )
    passing[:, -1] |= ~passing.any(axis=1)
    return np.asarray(passing.argmax(axis=1), dtype=np.int64)
