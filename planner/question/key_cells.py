"""The groups whose sums an aggregate adds up, seen from one group: its own, all, or some of a calendar."""

from dataclasses import dataclass
from fractions import Fraction

from mechanisms.protocol import Deviation, Quantile


@dataclass(frozen=True, slots=True)
class KeyCells:
    """The groups whose sums an aggregate adds up, seen from one group of the answer.

    They have all values of the keys `summed_keys`, and the group's own values of the other keys. If `key` is set, a
    group whose value of it has index p reads the groups whose values have the indices `taken[p]`. If it reads none,
    the aggregate has the value `default`, in its unit, or no value to compare. With `most` the aggregate is a mean:
    each group that is read counts `most // len(taken[p])` times. With a `statistic` it is that of the groups' values.
    A comparison without a value is NULL, or false if it `fails` instead.
    """

    summed_keys: tuple[str, ...] = ()
    key: str | None = None
    taken: tuple[tuple[int, ...], ...] = ()
    most_places: int = 0
    default: Fraction | None = None
    statistic: Quantile | Deviation | None = None
    fails: bool = False

    def list_weights(self) -> tuple[int, ...]:
        """Return by value of `key`, as indices, how often each group counts that is read for it (0: not read)."""
        return tuple(len(taken) and (self.most_places // len(taken) if self.most_places else 1) for taken in self.taken)

    @property
    def lacking(self) -> frozenset[int]:
        """The indices of the values of `key` whose groups read no group and have no default."""
        return frozenset() if self.default is not None else self.empty

    @property
    def may_have_no_value(self) -> bool:
        """True if a comparison with it is NULL in some groups: they lack groups, or it divides and may be 0."""
        divides = isinstance(self.statistic, Deviation) and self.statistic.if_equal is not None
        return divides or bool(self.lacking)

    @property
    def empty(self) -> frozenset[int]:
        """The indices of the values of `key` whose groups read no group."""
        return frozenset(place for place, taken in enumerate(self.taken) if not taken)


OWN_GROUP_ALONE = KeyCells()
