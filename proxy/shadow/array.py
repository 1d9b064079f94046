"""Text arrays in PostgreSQL's binary format, which needs no quoting, or as SQL literals."""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from struct import pack
from typing import TypeVar

_Element = TypeVar("_Element")
_Written = TypeVar("_Written", str, bytes)
_ESCAPED, _BACKSLASH = re.compile(r'["\\]'), r"\\\g<0>"
TEXT, TEXT_ARRAY = 25, 1009  # their oids in pg_type
_NULL = b"\xff\xff\xff\xff"
_AT_ONCE = 1 << 16  # elements joined at a time: memory, and how long the interpreter's lock is held, against turns


def encode_text_array(values: Sequence[str | None], codec: codecs.CodecInfo) -> bytes:
    """Return a one-dimensional text[] in binary format, with texts in the client's encoding. None is NULL."""

    def write(value: str | None) -> bytes:
        """Return an element with its length."""
        if value is None:
            return _NULL
        element = codec.encode(value)[0]
        return pack("!i", len(element)) + element

    if not values:
        return pack("!iiI", 0, 0, TEXT)
    written = _ElementCache(write)
    elements = b"".join(_join_elements(values, written, b""))
    return pack("!iiIii", 1, None in written, TEXT, len(values), 1) + elements


def write_array_literal(values: Sequence[str | None]) -> str:
    """Return the same array as an SQL string literal, for sessions with `standard_conforming_strings` on."""

    def write(value: str | None) -> str:
        if value is None:
            return "NULL"
        return f'"{_ESCAPED.sub(_BACKSLASH, value)}"'.replace("'", "''")

    return "'{" + ",".join(_join_elements(values, _ElementCache(write), ",")) + "}'"


class _ElementCache(dict[str | None, _Element]):
    """A cache of encoded texts. Millions of keys contain only thousands of different texts."""

    def __init__(self, write: Callable[[str | None], _Element]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, value: str | None) -> _Element:
        written = self[value] = self._write(value)
        return written


def _join_elements(
    values: Sequence[str | None], written: _ElementCache[_Written], between: _Written
) -> Iterator[_Written]:
    for start in range(0, len(values), _AT_ONCE):
        yield between.join(map(written.__getitem__, values[start : start + _AT_ONCE]))
