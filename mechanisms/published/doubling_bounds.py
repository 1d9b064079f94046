"""A private bound as published: the first of doubling candidates that enough units lie within, by a sparse vector.

Two-sided noise on the number of units wanted and, twice as wide, on each comparison. It is here to compare with
(mechanisms/publishing/private_bounds.py): no question can name it.

Gaps of the print that are filled: candidates end at a public end, the last of which is released where none passes; how
many units there are is public. Its theorem 9 takes the logarithm of zero where the first candidate is released, and is
not relied on.

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
    """Return the least, doubled again and again, up to the public end, which is the last.

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


def find_first_covering(within: Integers, *, wanted: int, epsilon: Fraction, noise: Noise) -> Integers:
    """Run independent scans side by side: return the index of the first candidate released, or the last, for each row.

    Guarantee: each row's is `epsilon`-private under adding or removing one unit (docs/proofs/private_bounds.md).

    Parameters:
        within: how many units lie within each candidate, int64 of shape (scans, candidates), within +-2**60.
        wanted: how many should lie within; public.
    """
    passing = run_sparse_vector(
        within - wanted, least=0, threshold_rate=epsilon / 2, query_rate=epsilon / 4, most_positives=1, noise=noise
    )
    passing[:, -1] |= ~passing.any(axis=1)
    return np.asarray(passing.argmax(axis=1), dtype=np.int64)
