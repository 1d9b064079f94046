"""Window states as bytes: a version, the digest of their calibration, a body and a checksum.

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
    """Return the digest that identifies a calibration in stored states.

    It is a digest of `repr`, so the names of these classes and of their fields must never change: stored states would
    no longer be read.

    >>> compute_digest((1, 2)) == compute_digest((1, 2)) != compute_digest((1, 3))
    True
    """
    return hashlib.sha256(repr(calibration).encode()).digest()[:_DIGEST_BYTES]


def seal_state(body: bytes, *, digest: bytes) -> bytes:
    """Wrap a state in bytes: version, digest of its calibration, body and checksum. `unseal_state` checks them.

    >>> bytes(unseal_state(seal_state(b"state", digest=b"whose"), digest=b"whose").read_bytes(5))
    b'state'
    """
    sealed = _VERSION + digest + body
    return sealed + zlib.crc32(sealed).to_bytes(_CHECK_BYTES, "little")


def unseal_state(state: bytes, *, digest: bytes) -> "StateReader":
    """Check a sealed state and return a reader of its body.

    Raises:
        ValueError: the bytes are no sealed state, were cut off or changed, or belong to another calibration.
    """
    begin = len(_VERSION) + len(digest)
    if state[: len(_VERSION)] != _VERSION or state[len(_VERSION) : begin] != digest:
        raise ValueError("these are not the states of such a window")
    if zlib.crc32(state[:-_CHECK_BYTES]).to_bytes(_CHECK_BYTES, "little") != state[-_CHECK_BYTES:]:
        raise ValueError("the states of a window are cut off, or were changed")
    return StateReader(memoryview(state)[:-_CHECK_BYTES], position=begin)


def write_number(number: int) -> bytes:
    """Encode a small whole number as bytes. `StateReader.read_number` reads them."""
    return number.to_bytes(_NUMBER_BYTES, "little")


@dataclass(slots=True)
class StateReader:
    """A reader of a state's bytes, from front to back. It raises ValueError if the state ends too soon."""

    body: memoryview
    position: int

    def read_bytes(self, size: int) -> memoryview:
        """Return the next `size` bytes."""
        begin, self.position = self.position, self.position + size
        if self.position > len(self.body):
            raise ValueError("the states of a window are cut off")
        return self.body[begin : self.position]

    def read_number(self) -> int:
        """Read a number that `write_number` encoded."""
        return int.from_bytes(self.read_bytes(_NUMBER_BYTES), "little")

    def read_array(self, size: int, kind: np.dtype[np.generic]) -> Integers:
        """Read `size` whole numbers of a numpy type."""
        return np.frombuffer(self.read_bytes(size * kind.itemsize), dtype=kind).astype(np.int64)

    def read_integers(self, size: int, width: int) -> list[int]:
        """Read `size` whole numbers of `width` bytes each."""
        body = bytes(self.read_bytes(size * width))
        return [
            int.from_bytes(body[begin : begin + width], "little") for begin in range(0, size * width, max(1, width))
        ]

    def check_end(self) -> None:
        """Raise ValueError unless all bytes were read."""
        if self.position != len(self.body):
            raise ValueError("the states of a window are followed by something else")
