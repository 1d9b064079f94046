"""The line of each key of a TOML text, for error messages."""

import re
import tomllib
from collections.abc import Mapping

_HEADER = re.compile(r"\s*\[\[?(?P<path>.+?)\]\]?\s*(#.*)?$")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'')


def find_key_lines(text: str) -> Mapping[tuple[str, ...], int]:
    """Return the 1-based line of every table header and every assignment of a valid TOML text, by path.

    Keys inside inline tables have no entry of their own: look up the longest path that has one.
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    pending = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if pending:
            pending += "\n" + line
        elif match := _HEADER.match(line):
            path = _parse_path(f"[{match['path']}]")
            if path is not None:
                table = path
                lines.setdefault(table, number)
            continue
        elif "=" in (blanked := _STRING.sub(lambda string: "_" * len(string[0]), line)):
            if blanked.lstrip().startswith("#"):
                continue
            path = _parse_path(line[: blanked.index("=")] + "= 0")
            if path is not None:
                lines.setdefault(table + path, number)
            pending = line
        if pending and _is_complete(pending):
            pending = ""
    return lines


def find_line(path: tuple[str, ...], lines: Mapping[tuple[str, ...], int]) -> int | None:
    """Return the line of a key, or of the nearest enclosing key that has a line."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _parse_path(text: str) -> tuple[str, ...] | None:
    try:
        node: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while isinstance(node, dict) and len(node) == 1:
        ((key, node),) = node.items()
        path.append(key)
    return tuple(path)


def _is_complete(assignment: str) -> bool:
    try:
        tomllib.loads(assignment)
    except tomllib.TOMLDecodeError:
        return False
    return True
