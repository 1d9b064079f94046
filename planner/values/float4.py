"""Decimals rounded to PostgreSQL's `real`, exactly once."""

from decimal import Decimal
from fractions import Fraction
from struct import error, pack, unpack


def nearest_real(value: Fraction) -> Decimal | None:
    """The `real` that PostgreSQL reads from the number's decimal text, as an exact decimal; None out of its range.

    A double is never between the number and its `real`: rounding twice could end on the other neighbour.
    """
    try:
        (near,) = unpack("<f", pack("<f", float(value)))
    except (OverflowError, error):
        return None
    (bits,) = unpack("<i", pack("<f", near))
    candidates = [unpack("<f", pack("<i", bits + step))[0] for step in (-1, 0, 1) if (bits + step) & 0x7FFFFFFF]
    finite = [found for found in (*candidates, near) if abs(found) < float("inf") and found == found]
    best = min(finite, key=lambda found: (abs(Fraction(found) - value), unpack("<i", pack("<f", found))[0] & 1))
    if value and best == 0:
        return None
    return Decimal(best)
