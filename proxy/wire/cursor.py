"""A strict reader of typed values in a message's payload: no value may be missing, and no byte may be left over."""

from proxy.security.violation import ProtocolViolation
from proxy.wire.frames import INT16, INT32, UINT32


class PayloadReader:
    """A reader of one payload, which starts at byte `at`.

    Every method raises ProtocolViolation if bytes are missing.
    """

    __slots__ = ("_at", "_payload")

    def __init__(self, payload: bytes, at: int = 0) -> None:
        self._payload = payload
        self._at = at

    def read_int16(self) -> int:
        """Return a signed 16-bit integer."""
        value: int = INT16.unpack_from(self._payload, self._skip(2))[0]
        return value

    def read_int32(self) -> int:
        """Return a signed 32-bit integer."""
        value: int = INT32.unpack_from(self._payload, self._skip(4))[0]
        return value

    def read_uint32(self) -> int:
        """Return an unsigned 32-bit integer, such as an OID."""
        value: int = UINT32.unpack_from(self._payload, self._skip(4))[0]
        return value

    def read_count(self) -> int:
        """Return an unsigned 16-bit number of items that follow."""
        return self.read_int16() & 0xFFFF

    def read_string(self) -> bytes:
        """Return a NUL-terminated string, without its terminator."""
        end = self._payload.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message")
        value = self._payload[self._at : end]
        self._at = end + 1
        return value

    def read_bytes(self, size: int) -> bytes:
        """Return exactly `size` bytes."""
        begin = self._skip(size)
        return self._payload[begin : self._at]

    def read_value(self) -> bytes | None:
        """Return a value whose length is sent before it. Return None for length -1, which means NULL."""
        size = self.read_int32()
        if size < -1:
            raise ProtocolViolation("invalid value length in message")
        return None if size == -1 else self.read_bytes(size)

    def read_rest(self) -> bytes:
        """Return all remaining bytes."""
        return self.read_bytes(len(self._payload) - self._at)

    def _skip(self, size: int) -> int:
        begin = self._at
        end = begin + size
        if size < 0 or end > len(self._payload):
            raise ProtocolViolation("insufficient data left in message")
        self._at = end
        return begin

    def check_end(self) -> None:
        """Raise ProtocolViolation if any byte was not read."""
        if self._at != len(self._payload):
            raise ProtocolViolation("invalid message format")
