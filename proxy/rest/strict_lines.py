"""A strict reader of HTTP's lines by RFC 9112, for cases in which h11 is lenient.

Guarantee: a request that a proxy in front could split differently is refused. This is a line that ends without CR or
is folded onto the next, a repeated length, a chunk line with more than its length, and fields after the last chunk.
h11 itself refuses invalid lengths, spaces before a colon, codings other than `chunked`, and incomplete chunks.
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
    """A connection's buffer of unread bytes.

    Its methods raise h11.RemoteProtocolError for lines that break the rules.
    """

    def __init__(self, connection: h11.Connection) -> None:
        super().__init__()
        self._connection = connection

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Return the lines of a request's head, or the lines after the last chunk.

        Return None until all have arrived.
        """
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
        """Return the line before a chunk's data. Return None until it has arrived."""
        line = super().maybe_extract_next_line()
        if not (_CHUNK_LINE.fullmatch(line) if line is not None else _BEGINS_CHUNK_LINE.fullmatch(self._data)):
            raise h11.RemoteProtocolError("a chunk's line is not its length alone")
        return line
