"""Reading typed values from a payload, strictly: nothing missing, nothing left over."""

from proxy.wire.frames import INT16, INT32, UINT32
from proxy.wire.violation import ProtocolViolation


class Cursor:
    """A position in a payload. Every method raises ProtocolViolation where the payload is too short."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def int16(self) -> int:
        """A signed 16-bit integer."""
        value: int = INT16.unpack(self.take(2))[0]
        return value

    def int32(self) -> int:
        """A signed 32-bit integer."""
        value: int = INT32.unpack(self.take(4))[0]
        return value

    def uint32(self) -> int:
        """An unsigned 32-bit integer, such as an OID."""
        value: int = UINT32.unpack(self.take(4))[0]
        return value

    def count(self) -> int:
        """A 16-bit number of things that follow; PostgreSQL reads it unsigned."""
        return self.int16() & 0xFFFF

    def string(self) -> bytes:
        """A NUL-terminated string, without its terminator."""
        end = self._payload.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        value = self._payload[self._at : end]
        self._at = end + 1
        return value

    def take(self, size: int) -> bytes:
        """Exactly `size` bytes."""
        end = self._at + size
        if size < 0 or end > len(self._payload):
            raise ProtocolViolation("insufficient data left in message")
        value = self._payload[self._at : end]
        self._at = end
        return value

    def value(self) -> bytes | None:
        """A length-prefixed value; length -1 is NULL."""
        size = self.int32()
        if size < -1:
            raise ProtocolViolation("invalid value length in message")
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._payload) - self._at)

    @property
    def at_end(self) -> bool:
        """Whether everything has been read."""
        return self._at == len(self._payload)

    def end(self) -> None:
        """Insist that everything has been read."""
        if not self.at_end:
            raise ProtocolViolation("invalid message format")
