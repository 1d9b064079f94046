"""A page as the site's tool reads it: GitHub's anchors, lists four spaces deep, links that lead to the site's files."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path

_FENCE = re.compile(r"^( *)(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`]+`")
_HEADING = re.compile(r"^(#{1,6}) (.+?)\s*$")
_ITEM = re.compile(r"^(?:[-*]|\d+\.) ")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


class BrokenLink(Exception):
    """A link of a page to a file that the repository does not have."""


def adapt_page(text: str, page: str, places: Mapping[str, str], *, root: Path) -> str:
    """Return a page for the site. `page` is its path in the repository, `places` are the site's files.

    Raises BrokenLink.
    """
    parts = groupby(_adapt_lines(text.split("\n")), key=itemgetter(0))
    joined = ((is_code, "\n".join(line for _, line in lines)) for is_code, lines in parts)
    return "\n".join(part if is_code else rewrite_links(part, page, places, root=root) for is_code, part in joined)


def find_title(text: str) -> str:
    """Return the heading of a page."""
    return next(found[2] for line in text.splitlines() if (found := _HEADING.match(line)))


def make_anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading.

    >>> make_anchor("Health, `/readyz` and logs")
    'health-readyz-and-logs'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _adapt_lines(lines: list[str]) -> Iterator[tuple[bool, str]]:
    """Yield the lines of a page, those of fenced code marked True.

    Headings get their anchors, and indentation in lists is doubled: the tool's dialect wants four spaces.
    """
    used: Counter[str] = Counter()
    fence, deeper = "", ""
    in_list, after_gap, in_indented_block = False, True, False
    for line in lines:
        if fence:
            yield True, deeper + line if line else line
            fence = "" if line.strip() == fence else fence
            continue
        indent = line[: len(line) - len(line.lstrip(" "))]
        if in_indented_block and _ITEM.match(line):
            yield False, ""  # directly below a paragraph of the item before, an item would continue the paragraph
            in_indented_block = False
        elif after_gap:
            in_indented_block = in_list and bool(indent)
        in_list = bool(_ITEM.match(line)) or (in_list and (bool(indent) or not line or not after_gap))
        deeper = indent if in_list else ""
        heading = _HEADING.match(line)
        after_gap = not line or bool(heading)
        if opened := _FENCE.match(line):
            fence = opened[2]
            yield True, deeper + line
        elif heading:
            name = make_anchor(heading[2])
            yield False, f"{line.rstrip()} {{#{name}{f'-{used[name]}' if used[name] else ''}}}"
            used[name] += 1
        else:
            yield False, deeper + (_CODE.sub(_unescape_bars, line) if line.startswith("|") else line)


def _unescape_bars(code: re.Match[str]) -> str:
    """Return code in a table without the backslash that GitHub wants before a bar, and the tool shows."""
    return code[0].replace(r"\|", "|")


def rewrite_links(text: str, page: str, places: Mapping[str, str], *, root: Path) -> str:
    """Return text whose links lead to files of the site. A file that the site does not have is named by its path.

    Raises BrokenLink.
    """

    def rewrite(link: re.Match[str]) -> str:
        mark, label, target = link.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return link[0]
        path, hash_sign, fragment = target.partition("#")
        found = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        if found in places:
            there = posixpath.relpath(places[found], posixpath.dirname(places[page]) or ".")
            return f"{mark}[{label}]({there}{hash_sign}{fragment})"
        if found.startswith("..") or not (root / found).exists():
            raise BrokenLink(f"{page}: {target}")
        is_name = label.strip("`") in found.rsplit("/", 1)[-1]
        return f"`{found}`" if is_name else f"{label} (`{found}`)"

    return _LINK.sub(rewrite, text)
