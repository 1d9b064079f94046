"""Text arrays in PostgreSQL's binary format, which needs no quoting, and as literals where no parameter may stand."""

import codecs
import re
from collections.abc import Iterable
from struct import pack

_ESCAPED, _BACKSLASH = re.compile(r'["\\]'), r"\\\g<0>"
TEXT, TEXT_ARRAY = 25, 1009  # their oids in pg_type


def text_array(values: Iterable[str | None], codec: codecs.CodecInfo) -> bytes:
    """A one-dimensional text[] (None is NULL), its elements in the client's encoding."""
    elements = [None if value is None else codec.encode(value)[0] for value in values]
    if not elements:
        return pack("!iiI", 0, 0, TEXT)
    header = pack("!iiIii", 1, any(element is None for element in elements), TEXT, len(elements), 1)
    return header + b"".join(
        b"\xff\xff\xff\xff" if element is None else pack("!i", len(element)) + element for element in elements
    )


def array_literal(values: Iterable[str | None]) -> str:
    """The same as a string constant, for a session whose `standard_conforming_strings` is on."""
    elements = ("NULL" if value is None else f'"{_ESCAPED.sub(_BACKSLASH, value)}"' for value in values)
    return "'" + ("{" + ",".join(elements) + "}").replace("'", "''") + "'"
