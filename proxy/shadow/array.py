"""Text arrays in PostgreSQL's binary format, which needs no quoting, and as literals where no parameter may stand."""

import codecs
import re
from collections.abc import Iterable
from struct import pack

_ESCAPED, _BACKSLASH = re.compile(r'["\\]'), r"\\\g<0>"
TEXT, TEXT_ARRAY = 25, 1009  # their oids in pg_type


def text_array(values: Iterable[str | None], codec: codecs.CodecInfo) -> bytes:
    """A one-dimensional text[] (None is NULL), its elements in the client's encoding."""
    written: dict[str | None, bytes] = {None: b"\xff\xff\xff\xff"}

    def write(value: str | None) -> bytes:
        """An element with its length, made once for each text: millions of keys have thousands of them."""
        found = written.get(value)
        if found is None and value is not None:
            element = codec.encode(value)[0]
            found = written[value] = pack("!i", len(element)) + element
        assert found is not None
        return found

    elements = [write(value) for value in values]
    if not elements:
        return pack("!iiI", 0, 0, TEXT)
    has_null = any(element is written[None] for element in elements)
    return pack("!iiIii", 1, has_null, TEXT, len(elements), 1) + b"".join(elements)


def array_literal(values: Iterable[str | None]) -> str:
    """The same as a string constant, for a session whose `standard_conforming_strings` is on."""
    elements = ("NULL" if value is None else f'"{_ESCAPED.sub(_BACKSLASH, value)}"' for value in values)
    return "'" + ("{" + ",".join(elements) + "}").replace("'", "''") + "'"
