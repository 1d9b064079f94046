"""LIKE as PostgreSQL matches it, with backslash as its escape, in time bounded by the product of the lengths."""

from collections.abc import Callable
from itertools import groupby


def split_pattern(pattern: str) -> list[str | None]:
    """Return the pattern as single characters, "" for `_` and None for `%`."""
    found: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            found.append(next(characters))
        else:
            found.append({"%": None, "_": ""}.get(character, character))
    return found


def escape_pattern(text: str) -> str:
    """Return a LIKE pattern that matches the text alone."""
    return "".join(f"\\{character}" if character in "\\%_" else character for character in text)


def is_unfinished(pattern: str) -> bool:
    """Return True if a LIKE pattern ends inside an escape."""
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def matches_pattern(text: str, pattern: str) -> bool:
    """Return True if text LIKE pattern. The time is at most the product of the lengths."""
    return _matches(text, split_pattern(pattern))


def _matches(text: str, wanted: list[str | None]) -> bool:
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


def find_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests texts against one LIKE pattern, as `matches_pattern` does.

    A pattern that is a prefix, suffix or part is matched quickly.
    """
    wanted = split_pattern(pattern)
    pieces = ["".join(part or "" for part in run) for is_text, run in groupby(wanted, bool) if is_text]
    anywhere = [part is None for part in wanted]
    match pieces, anywhere[:1], anywhere[-1:]:
        case _ if "" in wanted:
            pass
        case [head], [False], [True]:
            return lambda text: text.startswith(head)
        case [tail], [True], [False]:
            return lambda text: text.endswith(tail)
        case [part], [True], [True]:
            return lambda text: part in text
        case [whole], [False], [False]:
            return lambda text: text == whole
        case [head, tail], [False], [False]:
            least = len(head) + len(tail)
            return lambda text: len(text) >= least and text.startswith(head) and text.endswith(tail)
    return lambda text: _matches(text, wanted)


def find_prefix(pattern: str) -> str:
    """Return the characters with which every match of the pattern begins."""
    prefix = ""
    for part in split_pattern(pattern):
        if not part:
            break
        prefix += part
    return prefix


def normalise_escape(pattern: str, escape: str) -> str | None:
    """Return the pattern with the backslash as its escape. An empty `escape` means that it has none.

    Return None if it ends inside an escape.
    """
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


def collapse_wildcards(pattern: str) -> str:
    """Return an equivalent pattern without a `_` after a `%`.

    Every run of `%` and `_` becomes its `_`, followed by one `%` if it has any. An engine would try a `_` after a `%`
    again at every place of the text.
    """
    made, skipped, any_number = "", 0, False
    for part in (*split_pattern(pattern), "\x00"):  # no text has the character, so that it ends the last run
        if not part:
            skipped += part == ""
            any_number = any_number or part is None
            continue
        made += "_" * skipped + "%" * any_number + (f"\\{part}" if part in "\\%_" else part)
        skipped, any_number = 0, False
    return made[:-1]


def split_at_percent(pattern: str) -> list[list[str]]:
    """Return the parts of a pattern between its `%`, each as single characters, "" for `_`."""
    found: list[list[str]] = [[]]
    for part in split_pattern(pattern):
        if part is None:
            found.append([])
        else:
            found[-1].append(part)
    return found


def read_lengths(pattern: str) -> tuple[int, bool] | None:
    """Return the length of the texts that a collapsed pattern of wildcards matches, and True if texts may be longer.

    Return None for a pattern with other characters.
    """
    head, *behind = split_at_percent(pattern)
    return None if any(head) or any(behind) else (len(head), bool(behind))
