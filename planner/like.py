"""LIKE as PostgreSQL matches it, with backslash as its escape, in time bounded by the product of the lengths."""


def _wildcards(pattern: str) -> list[str | None]:
    """The pattern as single characters, "" for `_` and None for `%`."""
    parts: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            parts.append(next(characters))
        else:
            parts.append({"%": None, "_": ""}.get(character, character))
    return parts


def unfinished(pattern: str) -> bool:
    """Whether a LIKE pattern ends in the middle of an escape."""
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def like(text: str, pattern: str) -> bool:
    """Whether text LIKE pattern; time is at most the product of the lengths."""
    parts = _wildcards(pattern)
    at = part = 0
    star = mark = -1
    while at < len(text):
        if part < len(parts) and parts[part] is not None and parts[part] in ("", text[at]):
            at, part = at + 1, part + 1
        elif part < len(parts) and parts[part] is None:
            star, mark, part = part, at, part + 1
        elif star >= 0:
            mark += 1
            at, part = mark, star + 1
        else:
            return False
    return all(rest is None for rest in parts[part:])


def like_prefix(pattern: str) -> str:
    """The characters with which every match of the pattern begins."""
    prefix = ""
    for part in _wildcards(pattern):
        if not part:
            break
        prefix += part
    return prefix
