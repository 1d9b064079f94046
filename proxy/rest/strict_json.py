"""A strict JSON parser: it refuses repeated names, NaN, and deep nesting."""

import json
import re
from typing import Any, Never

from proxy.rest.request_refusals import refuse_unreadable

MOST_DEPTH = 32  # a request nests three levels; the parser recurses, and must not run out of stack
MOST_TEXTS = 10_000  # and brackets: a question has a tenth of it, and each takes time to look at
# a string that never ends is taken to the end of the body, so that every byte is looked at once
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)


def read_json(body: bytes) -> Any:
    """Parse a body as strict JSON. Raise KH408 if it is malformed.

    A repeated name is refused, since two readers could understand it differently.
    """
    _check_size(body)
    try:
        text = body.decode("utf-8")  # RFC 8259: nothing else between systems; a byte order mark is no JSON
        return json.loads(text, object_pairs_hook=_make_object, parse_constant=_refuse_number)
    except (ValueError, RecursionError):
        raise refuse_unreadable("the body is not JSON") from None


def _check_size(body: bytes) -> None:
    depth = 0
    for number, token in enumerate(_TOKENS.finditer(body), start=1):
        if number > MOST_TEXTS:
            raise refuse_unreadable(f"the body has more than {MOST_TEXTS:,} texts and brackets")
        match token[0]:
            case b"[" | b"{":
                depth += 1
            case b"]" | b"}":
                depth -= 1
        if depth > MOST_DEPTH:
            raise refuse_unreadable(f"the body is nested deeper than {MOST_DEPTH} levels")


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise refuse_unreadable("a name stands twice in one object of the body")
    return members


def _refuse_number(_: str) -> Never:
    raise refuse_unreadable("the body holds a number that JSON does not have")
