"""The packed form of losses per key in the ledger's database: the distinct losses, and each key's number.

Unpacking gives the original bytes, whose SHA-256 is in the event. Older losses are stored unpacked and can be read. A
question has few distinct losses (one for each step at which a key's noise may end), so a key takes one byte instead of
eight before zlib compresses it.
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
    """Return little-endian int64 losses in packed form, or unchanged if that is not shorter."""
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
    """Return the losses that `pack_losses` packed. Raise `LedgerUnavailable` for any other bytes."""
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
    """Return the distinct losses in ascending order, like `np.unique`, which would first import masked arrays."""
    ordered = np.sort(losses)
    is_new = np.ones(ordered.size, dtype=np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def _choose_number_type(count: int) -> str | None:
    return next((one for one in _NUMBERS if count <= 1 << 8 * np.dtype(one).itemsize), None)
