r"""E'...' strings as plain ones of the same length, so that every character around them keeps its position.

What an escape stands for is never longer than the escape: `\n` is one character, `\'` is two as `''`.
"""

import re

from planner.errors import KeyholeError
from planner.parser.lexer import Token

_SUSPECT = re.compile(r"[eE]'")
_ESCAPE = re.compile(
    r"\\(?:u(?P<four>[0-9A-Fa-f]{4})|U(?P<eight>[0-9A-Fa-f]{8})|x(?P<hex>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})"
    r"|(?P<other>.))",
    re.DOTALL,
)
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def without_escapes(text: str, tokens: tuple[Token, ...]) -> str:
    """The text with plain strings in place of E'...' strings; those that another string continues are left alone.

    Raises KH100 for an escape that is no character.
    """
    if not _SUSPECT.search(text):
        return text
    parts: list[str] = []
    at = 0
    for index, token in enumerate(tokens):
        if token.kind != "string" or text[token.start : token.start + 2] not in ("E'", "e'"):
            continue
        if index + 1 < len(tokens) and tokens[index + 1].kind == "string":
            continue
        try:
            plain = _plain(text[token.start + 2 : token.end - 1])
        except (ValueError, OverflowError):
            raise KeyholeError("KH100", "an escape in a string is no character", position=token.start + 1) from None
        parts += (text[at : token.start], f"'{plain}'".rjust(token.end - token.start))
        at = token.end
    return "".join((*parts, text[at:]))


def _plain(escaped: str) -> str:
    """What stands between the quotes of a plain string. Raises ValueError."""
    content = bytearray()
    at = 0
    while at < len(escaped):
        if escaped[at] == "\\":
            match = _ESCAPE.match(escaped, at)
            if match is None or match["other"] in ("u", "U"):
                raise ValueError(escaped)
            content += _decode_escape(match)
            at = match.end()
        else:
            content += escaped[at].encode()
            at += 2 if escaped.startswith("''", at) else 1
    # two \u that are halves of one character become it, as in PostgreSQL; half a character is none
    made = content.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
    if "\0" in made:
        raise ValueError(escaped)
    return made.replace("'", "''")


def _decode_escape(match: re.Match[str]) -> bytes:
    if code := match["four"] or match["eight"]:
        return chr(int(code, 16)).encode("utf-8", "surrogatepass")
    if byte := match["hex"]:
        return bytes((int(byte, 16),))
    if byte := match["octal"]:
        return bytes((int(byte, 8) & 0xFF,))
    return _LETTERS.get(match["other"], match["other"]).encode()
