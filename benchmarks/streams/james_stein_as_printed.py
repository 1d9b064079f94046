"""The thesis's equation 5.7 as it stands there, to be drawn beside the corrected one. Never part of the product."""

from collections.abc import Sequence
from fractions import Fraction


def move_from_average(group: Sequence[int], latest: int, variance: Fraction) -> Fraction:
    """The noisy count plus its own shrunken distance from the average; where all are equal the count itself."""
    size, total = len(group), sum(group)
    spread = size * sum(count * count for count in group) - total * total
    if spread == 0:
        return Fraction(latest)
    return (1 - (size - 1) * size * variance / spread) * (latest - Fraction(total, size)) + latest
