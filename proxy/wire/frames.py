"""Frames: a type byte, a four-byte length that counts itself, a payload. The startup packet has no type byte."""

from dataclasses import dataclass
from struct import Struct

from proxy.wire.violation import ProtocolViolation

INT16 = Struct("!h")
INT32 = Struct("!i")
UINT16 = Struct("!H")
UINT32 = Struct("!I")
HEADER = Struct("!BI")

LOGIN_LIMIT_BYTES = 10_000
MESSAGE_LIMIT_BYTES = 16 * 1024 * 1024
DATA_ROW = ord("D")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message as it travels, header included; or, from a merging reader, a run of DataRow messages."""

    kind: int
    raw: bytes

    @property
    def payload(self) -> bytes:
        """What follows the header. Meaningless for a run of rows."""
        return self.raw[5:]


def frame(kind: str, *parts: bytes) -> bytes:
    """The bytes of a message of that type letter."""
    length = 4 + sum(len(part) for part in parts)
    return b"".join((HEADER.pack(ord(kind), length), *parts))


class FrameReader:
    """Cuts a byte stream into frames; bytes may arrive in any pieces.

    `limit_bytes` bounds a message's length field and thereby what a peer can make us buffer. With `merges_rows`,
    complete DataRow messages that lie side by side come out as one frame, so that a relay copies them at once.
    """

    def __init__(self, *, limit_bytes: int, merges_rows: bool) -> None:
        self.limit_bytes = limit_bytes
        self._merges_rows = merges_rows
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Append received bytes."""
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    @property
    def buffered(self) -> int:
        """Bytes received and not yet handed out."""
        return len(self._buffer) - self._start

    def untyped(self) -> bytes | None:
        """The payload of the next packet without a type byte (startup, cancel, encryption requests), if complete."""
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

    def typed(self, allowed: frozenset[int] | None = None) -> Frame | None:
        """The next frame, if complete. A type that is not `allowed` is refused before its payload is awaited."""
        begin = self._start
        end = self._end_of_frame(begin, allowed)
        if end is None:
            return None
        kind = self._buffer[begin]
        if self._merges_rows and kind == DATA_ROW:
            while (following := self._end_of_frame(end, None)) is not None and self._buffer[end] == DATA_ROW:
                end = following
        self._start = end
        return Frame(kind=kind, raw=bytes(self._buffer[begin:end]))

    def _end_of_frame(self, begin: int, allowed: frozenset[int] | None) -> int | None:
        available = len(self._buffer) - begin
        if available < 1:
            return None
        if allowed is not None and self._buffer[begin] not in allowed:
            raise ProtocolViolation(f"invalid message type {self._buffer[begin]} in this state")
        if available < 5:
            return None
        (length,) = UINT32.unpack_from(self._buffer, begin + 1)
        if not 4 <= length <= self.limit_bytes:
            raise ProtocolViolation("invalid message length")
        return begin + 1 + length if available > length else None
