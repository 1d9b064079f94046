r"""E'...' and U&'...' strings, rewritten as plain ones of the same length, so that all positions around them stay.

The value of an escape is never longer than the escape: `\n` is one character, `\'` is two as `''`.
"""

import re
from collections.abc import Sequence

from planner.errors import KeyholeError
from planner.parser.lexer import Token

_SUSPECT = re.compile(r"[eE]'|[uU]&'")
_ESCAPE = re.compile(
    r"\\(?:u(?P<four>[0-9A-Fa-f]{4})|U(?P<eight>[0-9A-Fa-f]{8})|x(?P<hex>[0-9A-Fa-f]{1,2})|(?P<octal>[0-7]{1,3})"
    r"|(?P<other>.))",
    re.DOTALL,
)
_UNICODE = (
    r"(?P<itself>{0}{0})|{0}(?P<four>[0-9A-Fa-f]{{4}})|{0}\+(?P<six>[0-9A-Fa-f]{{6}})|(?P<wrong>{0})|(?P<plain>[^{0}]+)"
)
_NO_ESCAPE = frozenset("0123456789abcdefABCDEF+'\" \t\n\r\f\v")
_LARGEST = 0x10FFFF  # the last character that Unicode has
_HALF = "invalid Unicode surrogate pair"
_NOT_A_LINE = re.compile(r"[^\r\n]")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def replace_escapes(text: str, tokens: tuple[Token, ...]) -> str:
    """Return the text with plain strings in place of E'...' and U&'...' ones.

    A string that another string continues stays as it is. Raise KH100 for an escape that is no character; for U&, in
    PostgreSQL's words.
    """
    if not _SUSPECT.search(text):
        return text
    parts: list[str] = []
    at = 0
    for index, token in enumerate(tokens):
        if token.kind != "string" or (index + 1 < len(tokens) and tokens[index + 1].kind == "string"):
            continue
        start, end = token.start, token.end
        if text[start : start + 2] in ("E'", "e'"):
            try:
                plain = _decode_plain_string(text[start + 2 : end - 1])
            except (ValueError, OverflowError):
                raise KeyholeError("KH100", "an escape in a string is no character", position=start + 1) from None
        elif text[start : start + 3] in ("U&'", "u&'"):
            escape, end = _escape_character(text, tokens[index + 1 : index + 3], end)
            plain = _decode_unicode(token, escape)
        else:
            continue
        parts += (text[at:start], f"'{plain}'".rjust(token.end - start), _NOT_A_LINE.sub(" ", text[token.end : end]))
        at = end
    return "".join((*parts, text[at:]))


def _escape_character(text: str, behind: Sequence[Token], end: int) -> tuple[str, int]:
    """Return the escape character of a U&'...' string, and the end of its UESCAPE clause.

    Raise KH100 if the string is malformed.
    """
    if not behind or not behind[0].is_word("uescape"):
        return "\\", end
    if len(behind) < 2 or behind[1].kind != "string" or text[behind[1].start] not in "'eE$":
        raise _refuse_at_token("UESCAPE must be followed by a simple string literal", text, behind[1:])
    escape = behind[1].value
    if len(escape) != 1 or not escape.isascii() or escape in _NO_ESCAPE:
        raise _refuse_at_token("invalid Unicode escape character", text, behind[1:])
    return escape, behind[1].end


def _refuse_at_token(problem: str, text: str, tokens: Sequence[Token]) -> KeyholeError:
    """Return KH100 in PostgreSQL's words, at the first of the tokens, or at the end if there is none."""
    if not tokens:
        return KeyholeError("KH100", f"{problem} at end of input", position=len(text) + 1)
    first = tokens[0]
    return KeyholeError(
        "KH100", f'{problem} at or near "{text[first.start : first.end][:80]}"', position=first.start + 1
    )


def _decode_unicode(token: Token, escape: str) -> str:
    """Return the content of a U&'...' string. Raise KH100 if the string is malformed."""
    found = re.compile(_UNICODE.format(re.escape(escape)), re.DOTALL)
    made: list[str] = []
    first = ""  # the first half of a character; the second must follow
    for match in found.finditer(token.value):
        position = token.start + match.start() + 4
        if match["wrong"] is not None:
            hint = r"Unicode escapes must be \XXXX or \+XXXXXX."  # whatever the escape character is
            raise KeyholeError("KH100", "invalid Unicode escape", hint=hint, position=position)
        code = match["four"] or match["six"]
        if code is not None and not 0 < int(code, 16) <= _LARGEST:
            raise KeyholeError("KH100", "invalid Unicode escape value", position=position)
        character = match["plain"] or (escape if code is None else chr(int(code, 16)))
        if (first != "") != ("\udc00" <= character <= "\udfff"):
            raise KeyholeError("KH100", _HALF, position=position)
        if "\ud800" <= character <= "\udbff":
            first = character
            continue
        made.append((first + character).encode("utf-16", "surrogatepass").decode("utf-16"))
        first = ""
    if first:
        raise KeyholeError("KH100", _HALF, position=token.end)
    return "".join(made).replace("'", "''")


def _decode_plain_string(escaped: str) -> str:
    """Return the content that the plain string has between its quotes. Raise ValueError."""
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
