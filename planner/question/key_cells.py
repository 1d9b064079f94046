"""The groups whose sums an aggregate adds up, seen from one group: its own, all, or some of a calendar."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyCells:
    """Groups by the question's keys: all values of the keys `whole`, of the others the group's own.

    On `key`, if there is one, a group whose value has place p takes the places `taken[p]`. A group that takes none has
    no value to compare. With `most` it is a mean: each group counts `most // len(taken[p])` times.
    """

    whole: tuple[str, ...] = ()
    key: str | None = None
    taken: tuple[tuple[int, ...], ...] = ()
    most: int = 0


OWN_GROUP_ALONE = KeyCells()
