"""HTTP's lines read as RFC 9112 wants them sent, where h11 is as generous as it allows recipients to be.

Guarantee: what a proxy in front could take for other lines, another length or other chunks than Keyhole does is no
request: a line that ends without CR or is folded onto the next, a length that is said twice, the same or not, a chunk
whose line has more than its length, and fields after the last chunk. h11 itself refuses other lengths, spaces before a
colon, other codings than `chunked`, and what is left of broken chunks.
"""

import re

import h11
from h11._receivebuffer import ReceiveBuffer  # no setting of h11 makes it strict; the tests notice should this change

_NO_LINE_END = re.compile(rb"(?<!\r)\n")
_FOLD = re.compile(rb"\n[ \t]")
_LENGTHS = re.compile(rb"(?i)\ncontent-length:([^\r\n]*)")
_CHUNK_LINE = re.compile(rb"[0-9A-Fa-f]{1,20}\r\n")  # h11 takes as many digits
_BEGINS_CHUNK_LINE = re.compile(rb"[0-9A-Fa-f]{0,20}\r?")


class StrictLines(ReceiveBuffer):
    """The unread bytes of a connection. Raises h11.RemoteProtocolError."""

    def __init__(self, connection: h11.Connection) -> None:
        super().__init__()
        self._connection = connection

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines of a head, or those after the last chunk; None until all have come."""
        held = bytes(self)
        lines = super().maybe_extract_lines()
        if lines is None:
            return None
        taken = held[: len(held) - len(self)]
        if _NO_LINE_END.search(taken) or _FOLD.search(taken):
            raise h11.RemoteProtocolError("a line is folded, or does not end with CR and LF")
        if sum(1 + said.count(b",") for said in _LENGTHS.findall(taken)) > 1:
            raise h11.RemoteProtocolError("the length is said twice")
        if lines and self._connection.their_state is h11.SEND_BODY:
            raise h11.RemoteProtocolError("fields come after the last chunk")
        return lines

    def maybe_extract_next_line(self) -> bytearray | None:
        """Return the line before a chunk; None until it has come."""
        line = super().maybe_extract_next_line()
        if not (_CHUNK_LINE.fullmatch(line) if line is not None else _BEGINS_CHUNK_LINE.fullmatch(self._data)):
            raise h11.RemoteProtocolError("a chunk's line is not its length alone")
        return line
