"""A ranking as numbers, and its contract.

| here | the proof |
|---|---|
| keys, limit, offset, tolerance | n, k, a, t |
| fnr, fpr | beta, alpha |

Proof: docs/proofs/ranking.md.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankingTask:
    """One ranking as numbers. All of them are public.

    With `v` the values from the greatest to the least (ascending: from the least to the greatest, and all below with
    opposite signs): a key with `S <= v[limit] - tolerance` is returned with probability at most `fpr`, and one with `S
    >= v[limit + 1] + tolerance` is missed with probability at most `fnr`, for every database. Of two keys whose values
    are `tolerance` apart or more, both are returned in the wrong order with probability at most the smaller of the two
    rates. If `limit >= keys` all are returned, and only the last sentence matters.

    With `offset`, that number of keys at the front is skipped: a key that lies between `v[offset]` and `v[limit + 1]`,
    and is `tolerance` away from both, is missed with probability at most `fnr`, and one that is `tolerance` outside of
    `v[offset + 1]` and `v[limit]` is returned with probability at most `fpr`. With `allows_any_cut` all are returned,
    and for any two places that are fixed beforehand a key truly between them that is `tolerance` away from the keys
    beyond stands outside with probability at most the smaller rate. With `partitions` each has `keys` of its own, and
    all of this holds in each.

    Parameters:
        keys: the size of the public key domain of one partition. A mask may leave some out.
        limit: the most keys that are returned of a partition, >= 0.
        descending: True if the greatest come first.
        sensitivity: the most one privacy unit changes one key's value, integer units, >= 1.
        tolerance: integer units, >= 1.
        fnr, fpr: in (0, 1).
    """

    keys: int
    limit: int
    descending: bool
    sensitivity: int
    tolerance: int
    fnr: float
    fpr: float
    partitions: int = 1
    offset: int = 0
    allows_any_cut: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for a parameter outside its range."""
        if min(self.keys, self.limit, self.offset, self.partitions) < 0 or self.sensitivity < 1 or self.tolerance < 0:
            raise ValueError("a ranking is of some keys, with a limit and a tolerance that are not negative")
        if not (0.0 < self.fnr < 1.0 and 0.0 < self.fpr < 1.0):
            raise ValueError("error rates lie between 0 and 1")

    @property
    def is_known_in_public(self) -> bool:
        """True if the answer is known without data: nothing is returned, or there is one key at most."""
        return self.keys <= 1 or min(self.limit, self.keys) <= self.offset

    @property
    def has_one_edge(self) -> bool:
        """True if the returned keys are separated from the rest at one place at most."""
        return not self.offset and not self.allows_any_cut

    @property
    def overtaking_events(self) -> tuple[tuple[int, int, float], ...]:
        """The events that must be rare, as `(behind, ahead, chance)`.

        In such an event, one of `behind` keys is ranked before one of `ahead` keys whose true values are better by
        `tolerance`. The tuple is empty if only the order of keys is promised.
        """
        size, first, last, least = self.keys, self.offset, self.limit, min(self.fnr, self.fpr) / 2.0
        if self.allows_any_cut:
            return ((size - 1, 1, least), (1, size - 1, least))
        if last >= size:
            return ((1, first, self.fnr), (size - first, 1, self.fpr)) if first else ()
        if not first:
            return ((size - last, 1, self.fnr), (1, last, self.fpr))
        either = self.fnr / 2.0
        return ((size - last, 1, either), (1, first, either), (1, last, self.fpr), (size - first, 1, self.fpr))
