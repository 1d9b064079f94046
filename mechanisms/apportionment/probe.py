"""ProBE's apportionment, Theorem 4.5: shares in proportion to sensitivity over threshold shift.

Proof: docs/proofs/apportionment.md, "The published rules".
"""

from collections.abc import Sequence


def split_by_probe(*, bound: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Return the published split, `bound * w_i / sum_j o_j w_j` for each occurrence of a sub-query.

    Every occurrence has fresh noise.

    Guarantee: by the union bound the error rate is at most `bound`; among such splits the sum over occurrences of `w_i
    ln(1 / (2 share_i))` is least.

    Parameters:
        bound: the rate to split.
        weights: `w_i = sensitivity / shift` (per unit), one entry per occurrence, so that `o_i` equal entries
            stand for a sub-query that occurs `o_i` times.

    References: ProBE, Theorems 4.3 and 4.5; MIDE eq. 6.17 and 6.21 (sensitivity 1).

    Of two sub-queries the one whose threshold shift is half as wide gets twice the share:

    >>> split_by_probe(bound=0.06, weights=[1 / 100, 1 / 50])
    (0.02, 0.04)
    """
    total = sum(weights)
    return tuple(bound * weight / total for weight in weights)
