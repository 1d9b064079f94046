"""The equal split: every occurrence of a literal gets the same share.

Proof: docs/proofs/apportionment.md, "The published rules".
"""


def split_bound_equally(*, bound: float, occurrences: int) -> tuple[float, ...]:
    """Return `bound / n` for each of `n` occurrences.

    Guarantee: by the union bound the error rate is at most `bound`, for any formula and any dependence.

    References: ProBE, section 4.1 (the baseline).

    >>> split_bound_equally(bound=0.06, occurrences=3)
    (0.02, 0.02, 0.02)
    """
    return (bound / occurrences,) * occurrences
