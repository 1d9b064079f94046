"""The groups whose sums an aggregate adds up, seen from one group: its own, all, or some of a calendar."""

from dataclasses import dataclass
from fractions import Fraction

from mechanisms.protocol import Deviation, Quantile


@dataclass(frozen=True, slots=True)
class KeyCells:
    """The other groups whose sums an aggregate adds up, relative to one group of the answer.

    They have all values of the keys `summed_keys`, and the group's own values of the other keys. If `key` is set, a
    group whose value of `key` has index p reads the groups whose values have the indices `used_places[p]`. If that is
    empty, the aggregate has the value `empty_value`, in its unit, or no value. With `most_places` the aggregate is a
    mean: each group that is read counts `most_places // len(used_places[p])` times. With a `statistic` it is that
    statistic of the groups' values. A comparison without a value is NULL, or false if `false_without_value` is set.
    With `averages_means` a mean of rows is the mean of the groups' means instead.
    """

    summed_keys: tuple[str, ...] = ()
    key: str | None = None
    used_places: tuple[tuple[int, ...], ...] = ()
    most_places: int = 0
    empty_value: Fraction | None = None
    statistic: Quantile | Deviation | None = None
    false_without_value: bool = False
    averages_means: bool = False

    def list_weights(self) -> tuple[int, ...]:
        """Return the weights of the groups that are read, as indices of `key` (0: not read)."""
        return tuple(
            len(taken) and (self.most_places // len(taken) if self.most_places else 1) for taken in self.used_places
        )

    def count_own_uses(self, place: int) -> int:
        """Return how often a group at an index of `key` counts itself (0: it does not read itself)."""
        taken = self.used_places[place]
        return 0 if place not in taken else self.most_places // len(taken) if self.most_places else 1

    @property
    def indices_without_value(self) -> frozenset[int]:
        """The indices of the values of `key` whose groups have no value: they read no group and have no default."""
        return frozenset() if self.empty_value is not None else self.indices_without_groups

    @property
    def may_have_no_value(self) -> bool:
        """True if a comparison with these groups may be NULL: groups are missing, or a divisor may be 0."""
        divides = isinstance(self.statistic, Deviation) and self.statistic.if_equal is not None
        return divides or bool(self.indices_without_value)

    @property
    def indices_without_groups(self) -> frozenset[int]:
        """The indices of the values of `key` whose groups read no other group."""
        return frozenset(place for place, taken in enumerate(self.used_places) if not taken)


OWN_GROUP_ALONE = KeyCells()
