"""The longest `statement_timeout` that a client may have set.

Only PostgreSQL knows where one statement of a text or a pipeline ends and the next begins. PostgreSQL therefore
enforces the timeout, unless the client may have set a longer one than the owner allows.
"""

import math
import re
from collections.abc import Mapping

from planner.parser.lexer import Token, read_tokens

SETTING = "statement_timeout"
_VALUE = re.compile(r"\s*([0-9]+)\s*(us|ms|s|min|h|d)?\s*")  # fractions may be rounded to 0, which switches it off
_MILLISECONDS = {None: 1.0, "us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}
"""In PostgreSQL's units of time; a number without one is milliseconds."""


def read_login_timeout_ms(settings: Mapping[str, str]) -> float:
    """Return the longest timeout that the settings of a login set."""
    return max((_parse_ms(value) for name, value in settings.items() if name.lower() == SETTING), default=math.inf)


def find_longest_timeout_ms(text: str) -> float:
    """Return the longest timeout that a text may set by SET or set_config(), or 0 if it sets none.

    Guarantee: PostgreSQL's timeout is never longer than the result, for every text that is not refused. The result is
    infinite if the text switches the timeout off, or sets it by a parameter or an expression. Raise KH100.
    """
    if SETTING not in text.lower():  # names cannot be written otherwise: those with escapes are refused
        return 0.0
    found = read_tokens(text)
    return max(
        (_read_assigned_ms(found, at) for at, token in enumerate(found) if token.value.lower() == SETTING), default=0.0
    )


def _read_assigned_ms(found: tuple[Token, ...], at: int) -> float:
    """Return the timeout assigned to the setting's name at token `at`. Return 0 if it is only named or reset there."""
    following = found[at + 1 : at + 4]
    if not following:
        return 0.0
    if not (following[0].value.startswith("=") or following[0].value.lower() in ("to", ",")):
        return 0.0
    if len(following) < 2 or following[0].value not in ("=", "to", ","):
        return math.inf
    value = following[1]
    if value.is_word("default"):
        return 0.0
    if len(following) > 2 and following[2].value not in (";", ",", ")"):
        return math.inf
    return _parse_ms(value.value) if value.kind in ("number", "string") else math.inf


def _parse_ms(value: str) -> float:
    read = _VALUE.fullmatch(value)
    if read is None:
        return math.inf
    found = float(read[1]) * _MILLISECONDS[read[2]]
    return math.ceil(found) if found >= 1 else math.inf
