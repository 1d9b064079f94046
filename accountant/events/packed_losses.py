"""Losses per key as they lie in the ledger's database: the losses that occur, and for each key which of them it is.

The bytes that are read are those that were written: the event has their SHA-256. Losses of before, which lie there as
they are, are read as ever. A question has few losses (one for each step at which a key's noise may end), so a key takes
one byte instead of eight, and zlib a part of that.
"""

import zlib
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from accountant.charges import NanoArray
from accountant.errors import LedgerUnavailable

_MARK: Final = b"losses\x01\xff"
"""The first bytes of packed losses. Read as an int64 they are negative, and no loss is."""
_COUNT_BYTES: Final = 4  # of how many losses occur; more than 65,536 are not packed
_NUMBERS: Final = ("<u1", "<u2")
"""The types that a key's number may have, by how many losses occur: up to 256, up to 65,536."""
_Number = TypeVar("_Number", np.int64, np.float64)


def pack_losses(losses: bytes) -> bytes:
    """Return little-endian int64 losses in a shorter form, or as they are where there is none."""
    found = np.frombuffer(losses, dtype="<i8")
    levels = find_levels(found)
    number = _choose_number_type(levels.size)
    if number is None:
        return losses
    numbers = np.searchsorted(levels, found).astype(number)
    packed = b"".join(
        (_MARK, levels.size.to_bytes(_COUNT_BYTES, "little"), levels.tobytes(), zlib.compress(numbers.tobytes(), 1))
    )
    return packed if len(packed) < len(losses) else losses


def unpack_losses(stored: bytes) -> bytes:
    """Unpack losses of `pack_losses`. Raise `LedgerUnavailable` if it did not write them."""
    if not stored.startswith(_MARK):
        return stored
    start = len(_MARK) + _COUNT_BYTES
    count = int.from_bytes(stored[len(_MARK) : start], "little")
    number = _choose_number_type(count)
    try:
        levels: NanoArray = np.frombuffer(stored, dtype="<i8", count=count, offset=start)
        numbers = np.frombuffer(zlib.decompress(stored[start + levels.nbytes :]), dtype=number)
        unpacked: bytes = levels[numbers].tobytes()
    except (zlib.error, ValueError, IndexError) as error:
        raise LedgerUnavailable("stored losses per key cannot be read") from error
    return unpacked


def find_levels(losses: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return which losses occur, in order. `np.unique` would import numpy's masked arrays first."""
    ordered = np.sort(losses)
    is_new = np.ones(ordered.size, dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def _choose_number_type(count: int) -> str | None:
    return next((one for one in _NUMBERS if count <= 1 << 8 * np.dtype(one).itemsize), None)
