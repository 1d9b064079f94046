"""PostgreSQL's text of a one-dimensional array: `{flu,"common cold",NULL}`."""

import json
import re
from fractions import Fraction

from planner.values.model import Constant, Number, Untyped

# Nothing backtracks, so that reading a client's text takes time in proportion to its length.
_BARE = r'[^{},"\\\s](?:[^{},"\\]*[^{},"\\\s])?'
_ITEM = re.compile(rf'\s*+(?:"((?:[^"\\]++|\\.)*+)"|({_BARE}))\s*+([,}}])', re.DOTALL)


def members(text: str) -> list[str | None] | None:
    """The elements, None for NULL; None for text that is no such array, or one of several dimensions."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    if not text[1:-1].strip() and text.endswith("}"):
        return []
    found: list[str | None] = []
    at = 1
    while True:
        item = _ITEM.match(text, at)
        if item is None:
            return None
        if item[1] is not None:
            found.append(re.sub(r"\\(.)", r"\1", item[1], flags=re.DOTALL))
        else:
            found.append(None if item[2].strip().lower() == "null" else item[2].strip())
        at = item.end()
        if item[3] == "}":
            return found if at == len(text) else None


def json_members(text: str) -> list[Constant] | None:
    """The elements of an array as `to_jsonb` writes it, numbers with all their digits; None for anything else."""
    try:
        found = json.loads(text, parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or any(isinstance(item, list | dict | float) for item in found):
        return None
    return [Untyped(item) if isinstance(item, str) else item for item in found]


def _number(text: str) -> Number:
    return Number(Fraction(text), integral=re.fullmatch(r"-?\d+", text) is not None)
