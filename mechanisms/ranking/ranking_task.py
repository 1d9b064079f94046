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

    Let `v` be the values from the greatest to the least. (If ascending, from the least to the greatest, and all signs
    below are opposite.) For every database, a key with `S <= v[limit] - tolerance` is returned with probability at most
    `fpr`. A key with `S >= v[limit + 1] + tolerance` is missed with probability at most `fnr`. Of two keys whose values
    are `tolerance` apart or more, both are returned in the wrong order with probability at most the smaller of the two
    rates. If `limit >= keys` all are returned, and only the last sentence matters.

    With `offset`, that number of keys at the front is skipped. A key that lies between `v[offset]` and `v[limit + 1]`,
    and is `tolerance` away from both, is missed with probability at most `fnr`. A key that is `tolerance` outside of
    `v[offset + 1]` and `v[limit]` is returned with probability at most `fpr`. With `allows_any_cut` all keys are
    returned. Take any two places that are fixed beforehand, and a key that is truly between them and `tolerance` away
    from the keys beyond. It is ranked outside of these places with probability at most the smaller rate. With
    `partitions` all of this holds in each partition, which has `keys` of its own.

    Parameters:
        keys: the size of the public key domain of one partition. A mask may leave some out.
        limit: the most keys that are returned of a partition, >= 0.
        descending: True if the greatest come first.
        sensitivity: the most one privacy unit changes one key's value, integer units, >= 1.
        tolerance: integer units, >= 1.
        moved: the most by which one privacy unit in one cell changes the values of all keys together, if a value is
            read off several cells. None if a cell counts in one key alone.
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
    moved: int | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a parameter outside its range."""
        if min(self.keys, self.limit, self.offset, self.partitions) < 0 or self.sensitivity < 1 or self.tolerance < 0:
            raise ValueError("a ranking is of some keys, with a limit and a tolerance that are not negative")
        if not (0.0 < self.fnr < 1.0 and 0.0 < self.fpr < 1.0):
            raise ValueError("error rates lie between 0 and 1")

    @property
    def charged_sensitivity(self) -> int:
        """The sum of all changes of values by one privacy unit in one cell."""
        return self.sensitivity if self.moved is None else self.moved

    @property
    def is_known_in_public(self) -> bool:
        """True if public facts decide the answer: no key is returned, or there is at most one key."""
        return self.keys <= 1 or min(self.limit, self.keys) <= self.offset

    @property
    def has_one_edge(self) -> bool:
        """True if at most one place separates the returned keys from the others."""
        return not self.offset and not self.allows_any_cut

    @property
    def overtaking_events(self) -> tuple[tuple[int, int, float], ...]:
        """The events that must be rare, as `(behind, ahead, probability)`.

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
