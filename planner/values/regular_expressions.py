"""Regular expressions and SIMILAR TO patterns that mean what LIKE patterns mean, and these patterns.

    ^not_          not\\_%
    late|lost$     %late%, %lost
    ^(a.c|b.*)$    a_c, b%

They are texts, `.`, `.*`, `^` and `$`, and alternatives of these. PostgreSQL's `.` is any character, a line's end
too, and `^` and `$` are the ends of the whole text. Letters, classes and repetitions would depend on a locale, or on no
LIKE pattern.
"""

from planner.values.like import escape_pattern

_SPECIAL = frozenset("\\^$.[]|()*+?{}")
_MOST_ALTERNATIVES = 64  # as many patterns as one LIKE without capitals may become


def patterns_of_expression(written: str) -> tuple[str, ...] | None:
    """Return the LIKE patterns of which a text matches one exactly if it matches a regular expression of PostgreSQL.

    None for an expression that says more.
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


def patterns_of_similar(written: str) -> tuple[str, ...] | None:
    """Return the LIKE patterns of which a text matches one exactly if it is SIMILAR TO a pattern, likewise."""
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
    """The alternatives between bars; None where one is empty, or they are too many."""
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
    """Whether a backslash gives a character a meaning, or may."""
    return character.isalnum() or not character.isascii()
