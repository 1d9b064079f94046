"""The groups whose sums an aggregate adds up, seen from one group: its own, all, or some of a calendar."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class KeyCells:
    """Groups by the question's keys: all values of the keys `whole`, of the others the group's own.

    On `key`, if there is one, a group whose value has place p takes the places `taken[p]`. A group that takes none has
    the value `default`, in the unit of the aggregate, or no value to compare. With `most` it is a mean: each group
    counts `most // len(taken[p])` times.
    """

    whole: tuple[str, ...] = ()
    key: str | None = None
    taken: tuple[tuple[int, ...], ...] = ()
    most: int = 0
    default: Fraction | None = None

    @property
    def lacking(self) -> frozenset[int]:
        """The places of groups that take none and have no default."""
        return frozenset() if self.default is not None else self.empty

    @property
    def empty(self) -> frozenset[int]:
        """The places of groups that take none."""
        return frozenset(place for place, taken in enumerate(self.taken) if not taken)


OWN_GROUP_ALONE = KeyCells()
