"""The frames of the protocol: a type byte, a four-byte length that includes itself, and a payload."""

from collections.abc import Container
from struct import Struct
from typing import NamedTuple

from proxy.security.violation import ProtocolViolation

INT16 = Struct("!h")
INT32 = Struct("!i")
UINT16 = Struct("!H")
UINT32 = Struct("!I")
HEADER = Struct("!BI")

LOGIN_LIMIT_BYTES = 10_000  # PostgreSQL's own limit on a startup packet
MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024  # of any message: what is worked on is held three times, for each session
_MERGED = frozenset(map(ord, "Dd"))  # DataRow, and CopyData, which is a row of COPY
_FREED_BYTES = 64 * 1024  # what was handed out of a buffer is freed from here on: moving what follows costs as much


class Frame(NamedTuple):
    """One message with its header, as it is sent. From a merging reader, also a run of DataRow or CopyData messages.

    It is a tuple for speed, like `ReceivedMessage`: two of them are made for every message.
    """

    kind: int
    raw: bytes

    @property
    def payload(self) -> bytes:
        """Return the bytes after the header. Do not use it for a run of rows."""
        return self.raw[5:]


def make_frame(kind: str, *parts: bytes) -> bytes:
    """Return the bytes of a message with this type letter, whose payload is the joined `parts`."""
    length = 4 + sum(len(part) for part in parts)
    return b"".join((HEADER.pack(ord(kind), length), *parts))


class FrameReader:
    """A reader that cuts a byte stream into frames. The bytes may arrive in pieces of any size.

    Guarantee: at most 64 kB of frames that were already returned stay in memory.

    `limit_bytes` bounds a message's length field, and with it the bytes that a peer can make Keyhole buffer. With
    `merges_rows`, adjacent complete messages of rows are returned as one frame, so that a relay copies them at once.
    """

    def __init__(self, *, limit_bytes: int, merges_rows: bool) -> None:
        self.limit_bytes = limit_bytes
        self._merges_rows = merges_rows
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        if self._start:
            self._discard_read_bytes()
        self._buffer += data

    @property
    def buffered(self) -> int:
        """The number of received bytes that are not yet returned as frames."""
        return len(self._buffer) - self._start

    @property
    def has_frame(self) -> bool:
        """Return True if a complete message with a type byte has arrived, even an invalid one."""
        available = len(self._buffer) - self._start
        return available >= 5 and available > UINT32.unpack_from(self._buffer, self._start + 1)[0]

    def read_untyped_packet(self) -> bytes | None:
        """Return the payload of the next packet without a type byte, or None if it is incomplete.

        Startup, cancel and encryption requests are such packets.
        """
        if self.buffered < 4:
            return None
        (length,) = UINT32.unpack_from(self._buffer, self._start)
        if not 8 <= length <= self.limit_bytes:
            raise ProtocolViolation("invalid length of startup packet")
        if self.buffered < length:
            return None
        payload = bytes(self._buffer[self._start + 4 : self._start + length])
        self._start += length
        return payload

    def read_typed_frame(self, allowed: Container[int] | None = None) -> Frame | None:
        """Return the next frame, or None if it is incomplete. Raise ProtocolViolation for a type that is not `allowed`.

        A type is refused before its payload has arrived.
        """
        buffer, begin = self._buffer, self._start
        if len(buffer) == begin:
            return None
        kind = buffer[begin]
        if allowed is not None and kind not in allowed:
            raise ProtocolViolation(f"invalid message type {kind} in this state")
        end = self._find_frame_end(begin)
        if end is None:
            return None
        if self._merges_rows and kind in _MERGED:
            while end < len(buffer) and buffer[end] == kind and (following := self._find_frame_end(end)) is not None:
                end = following
        whole = bytes(memoryview(buffer)[begin:end])
        self._start = end
        if end > _FREED_BYTES:
            self._discard_read_bytes()
        return Frame(kind, whole)

    def _discard_read_bytes(self) -> None:
        del self._buffer[: self._start]
        self._start = 0

    def _find_frame_end(self, begin: int) -> int | None:
        available = len(self._buffer) - begin
        if available < 5:
            return None
        length: int = UINT32.unpack_from(self._buffer, begin + 1)[0]
        if not 4 <= length <= self.limit_bytes:
            raise ProtocolViolation("invalid message length")
        return begin + 1 + length if available > length else None
