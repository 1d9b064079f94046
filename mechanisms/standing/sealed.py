"""States of windows as bytes: a version, the digest of the calibration that they belong to, a body and a checksum.

The checksum detects accidents, not deliberate changes by somebody who can write states. Integers are little-endian.
"""

import hashlib
import zlib
from dataclasses import dataclass

import numpy as np

from mechanisms.formula import Integers

_VERSION = b"\x01"  # of the form of states; another form has another
_DIGEST_BYTES = 16  # by which a calibration is recognised: two that anybody meets never share them
_CHECK_BYTES = 4  # of a checksum: one accident in four billion is not seen
_NUMBER_BYTES = 4  # of the number of keys, of a look, of a width: more than any of them has


def compute_digest(calibration: object) -> bytes:
    """Return the digest that identifies a calibration. It is made of frozen values, whose printed form says all.

    >>> compute_digest((1, 2)) == compute_digest((1, 2)) != compute_digest((1, 3))
    True
    """
    return hashlib.sha256(repr(calibration).encode()).digest()[:_DIGEST_BYTES]


def seal(body: bytes, *, digest: bytes) -> bytes:
    """Wrap a state in bytes: version, digest of its calibration, body and checksum. `unseal` checks them.

    >>> bytes(unseal(seal(b"state", digest=b"whose"), digest=b"whose").take(5))
    b'state'
    """
    sealed = _VERSION + digest + body
    return sealed + zlib.crc32(sealed).to_bytes(_CHECK_BYTES, "little")


def unseal(state: bytes, *, digest: bytes) -> "StateReader":
    """Return the body of a state that was sealed.

    Raises:
        ValueError: bytes that were not sealed so, were cut off or changed, or belong to another calibration.
    """
    begin = len(_VERSION) + len(digest)
    if state[: len(_VERSION)] != _VERSION or state[len(_VERSION) : begin] != digest:
        raise ValueError("these are not the states of such a window")
    if zlib.crc32(state[:-_CHECK_BYTES]).to_bytes(_CHECK_BYTES, "little") != state[-_CHECK_BYTES:]:
        raise ValueError("the states of a window are cut off, or were changed")
    return StateReader(memoryview(state)[:-_CHECK_BYTES], position=begin)


def write_number(number: int) -> bytes:
    """Write a small whole number, as `StateReader.take_number` reads it."""
    return number.to_bytes(_NUMBER_BYTES, "little")


@dataclass(slots=True)
class StateReader:
    """Takes what comes next of a state; raises ValueError where it ends too soon."""

    body: memoryview
    position: int

    def take(self, size: int) -> memoryview:
        """Return the next bytes, so many."""
        begin, self.position = self.position, self.position + size
        if self.position > len(self.body):
            raise ValueError("the states of a window are cut off")
        return self.body[begin : self.position]

    def take_number(self) -> int:
        """Read a number of `write_number`."""
        return int.from_bytes(self.take(_NUMBER_BYTES), "little")

    def take_array(self, size: int, kind: np.dtype[np.generic]) -> Integers:
        """Read so many whole numbers of a kind."""
        return np.frombuffer(self.take(size * kind.itemsize), dtype=kind).astype(np.int64)

    def take_integers(self, size: int, width: int) -> list[int]:
        """Read so many whole numbers of so many bytes each."""
        body = bytes(self.take(size * width))
        return [
            int.from_bytes(body[begin : begin + width], "little") for begin in range(0, size * width, max(1, width))
        ]

    def check_end(self) -> None:
        """Raise ValueError unless all was read."""
        if self.position != len(self.body):
            raise ValueError("the states of a window are followed by something else")
