"""LIKE as PostgreSQL matches it, with backslash as its escape, in time bounded by the product of the lengths."""


def parts(pattern: str) -> list[str | None]:
    """The pattern as single characters, "" for `_` and None for `%`."""
    found: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            found.append(next(characters))
        else:
            found.append({"%": None, "_": ""}.get(character, character))
    return found


def is_unfinished(pattern: str) -> bool:
    """Whether a LIKE pattern ends in the middle of an escape."""
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def like(text: str, pattern: str) -> bool:
    """Whether text LIKE pattern; time is at most the product of the lengths."""
    wanted = parts(pattern)
    at = part = 0
    star = mark = -1
    while at < len(text):
        if part < len(wanted) and wanted[part] is not None and wanted[part] in ("", text[at]):
            at, part = at + 1, part + 1
        elif part < len(wanted) and wanted[part] is None:
            star, mark, part = part, at, part + 1
        elif star >= 0:
            mark += 1
            at, part = mark, star + 1
        else:
            return False
    return all(rest is None for rest in wanted[part:])


def like_prefix(pattern: str) -> str:
    """The characters with which every match of the pattern begins."""
    prefix = ""
    for part in parts(pattern):
        if not part:
            break
        prefix += part
    return prefix


def with_escape(pattern: str, escape: str) -> str | None:
    """The pattern as one whose escape is the backslash; an empty `escape` is none. None if it ends unfinished."""
    made = ""
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            following = next(characters, None)
            if following is None:
                return None
            made += f"\\{following}"
        else:
            made += "\\\\" if character == "\\" else character
    return made
