r"""Regular expressions and SIMILAR TO patterns that are equivalent to LIKE patterns, and these patterns.

    ^not_          not\_%
    late|lost$     %late%, %lost
    ^(a.c|b.*)$    a_c, b%

They consist of texts, `.`, `.*`, `^` and `$`, and alternatives. PostgreSQL's `.` is any character, also the end of a
line, and `^` and `$` are the ends of the whole text. Letters, classes and repetitions would depend on a locale, or
match no LIKE pattern.
"""

import re

from planner.values.like import escape_pattern

_CLASS = r"\[\^?(?:[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]|[A-Za-z0-9 _.,:;@#/+*])+-?\]"
_ATOM = rf"(?:{_CLASS}|\\d|\\[-./+*()]|[A-Za-z0-9 _,:;@#/-])"
_REPEATED = r"(?:[?*+]|\{\d{1,2}(?:,\d{0,2})?\})?(?![?*+{])"
_PLAIN = re.compile(rf"\^?(?:{_ATOM}{_REPEATED}|\((?:{_ATOM}{_REPEATED})+\)\??(?![?*+{{]))+\$?")
_LONGEST_PLAIN = 100  # characters of an expression with classes
_MOST_ENDLESS = 2  # repetitions without an end, also of the place where it begins: an engine may try all their lengths
_SPECIAL = frozenset("\\^$.[]|()*+?{}")
_MOST_ALTERNATIVES = 64  # as many patterns as one LIKE without capitals may become


def convert_expression(written: str) -> tuple[str, ...] | None:
    """Return LIKE patterns that together match the same texts as a regular expression of PostgreSQL.

    Return None for an expression that no LIKE patterns express.
    """
    anchored = (False, False)
    if written.startswith("^(") and written.endswith(")$") and not written.startswith("^(?"):
        written, anchored = written[2:-2], (True, True)
    elif written.startswith("^(") and written.endswith(")") and not written.startswith("^(?"):
        written, anchored = written[2:-1], (True, False)
    alternatives = _split(written)
    if alternatives is None:
        return None
    found = [_read_alternative(one, anchored=anchored) for one in alternatives]
    return None if None in found else tuple(one for one in found if one is not None)


def write_plain_expression(written: str) -> str | None:
    """Return a regular expression of PostgreSQL in a form that all engines read alike.

    It has characters, classes of ASCII letters and digits, their repetitions, and optional parts of these. A digit is
    one of 0 to 9. An engine that backtracks takes time at most proportional to the square of a text's length. Return
    None for other expressions.
    """
    if len(written) > _LONGEST_PLAIN or _PLAIN.fullmatch(written) is None:
        return None
    outside = re.sub(_CLASS, "", re.sub(r"\\.", "", written))
    endless = len(re.findall(r"[*+]|,\}", outside)) + (not written.startswith("^"))
    ranges = re.findall(r"(\w)-(\w)", "".join(re.findall(_CLASS, written)))
    counts = re.findall(r"\{(\d+),(\d+)\}", outside)
    if endless > _MOST_ENDLESS or any(a > b for a, b in ranges) or any(int(a) > int(b) for a, b in counts):
        return None
    made = re.sub(r"\\d", "[0-9]", written)
    return re.sub(r"\\(.)", r"[\1]", made).replace("(", "(?:").replace("[(?:]", "[(]")


def convert_similar_pattern(written: str) -> tuple[str, ...] | None:
    """Return LIKE patterns that together match the same texts as a SIMILAR TO pattern. Return None if none do."""
    alternatives = _split(written)
    if alternatives is None:
        return None
    found: list[str] = []
    for one in alternatives:
        made, characters = "", iter(one)
        for character in characters:
            escaped = character == "\\"
            text = next(characters, None) if escaped else character
            if text is None or (escaped and _is_letter(text)) or (escaped and text == '"'):
                return None
            if not escaped and text in "[]()*+?{}|":
                return None
            made += text if not escaped and text in "%_" else escape_pattern(text)
        found.append(made)
    return tuple(found)


def _split(written: str) -> list[str] | None:
    """Return the alternatives between bars. Return None if one is empty, or if there are too many."""
    parts, escaped = [""], False
    for character in written:
        if character == "|" and not escaped:
            parts.append("")
            continue
        escaped = character == "\\" and not escaped
        parts[-1] += character
    return parts if all(parts) and len(parts) <= _MOST_ALTERNATIVES else None


def _read_alternative(written: str, *, anchored: tuple[bool, bool]) -> str | None:
    at_start, at_end = anchored
    made, at = "", 0
    if written.startswith("^") and not at_start:
        at_start, at = True, 1
    while at < len(written):
        character, following = written[at], written[at + 1 : at + 2]
        if character == "$" and at + 1 == len(written) and not anchored[1]:
            at_end, at = True, at + 1
        elif character == ".":
            many = following == "*"
            made, at = made + ("%" if many else "_"), at + 1 + many
            if written[at : at + 1] in ("*", "+", "?", "{"):
                return None
        else:
            if character == "\\":
                character, at = following, at + 1
                if not character or _is_letter(character):
                    return None
            elif character in _SPECIAL:
                return None
            if written[at + 1 : at + 2] in ("*", "+", "?", "{"):
                return None
            made, at = made + escape_pattern(character), at + 1
    return ("" if at_start else "%") + made + ("" if at_end else "%")


def _is_letter(character: str) -> bool:
    """Return True if a backslash before the character gives it a meaning, or may."""
    return character.isalnum() or not character.isascii()
