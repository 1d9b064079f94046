"""Paragraphs: the pieces of a file that hold sentences, without code, formulas, tables and link targets."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CODE = "Code"
"""Stands for a piece of inline code: one word, which may begin a sentence."""

_FENCE = re.compile(r"\s*(?:>\s*)?(```|~~~)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s+")
_ENTRY = re.compile(r"[\w*]+(?:, [\w*]+)*:(?:\s|$)")  # `epsilon: the loss` under Parameters
_LEAD = re.compile(r"(\*\*|__)(?P<lead>[^*]*?[.:?]?)\1[.:]?(?:\s+|$)")
_INLINE_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$\s](?:[^$\n]*[^$\s])?\$(?!\d)", re.DOTALL)
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_TAG = re.compile(r"</?[a-zA-Z][^>\n]*>|https?://\S+")
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, list item, heading or table row, with the number of its first line.

    `is_prose` is false for headings and table rows, which hold words and no sentences.
    """

    line: int
    text: str
    is_prose: bool = True


def plain(text: str) -> str:
    """Return the text without marks: inline code and formulas are one word each, links are their texts."""
    text = _INLINE_CODE.sub(CODE, text)
    text = _FORMULA.sub(CODE, text)
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    return " ".join(_EMPHASIS.sub("", _TAG.sub("", text)).split())


def _blank_comments(text: str) -> str:
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)


def _made(line: int, lines: Iterable[str]) -> Iterator[Block]:
    """Yield the block of these lines, and before it what it begins with in bold letters, which is a heading."""
    text = " ".join(lines)
    lead = _LEAD.match(text)
    if lead is not None and (lead[0].rstrip()[-1] in ".:?" or lead["lead"][-1:] in {".", ":", "?"}):
        yield Block(line, plain(lead["lead"]), is_prose=False)
        text = text[lead.end() :]
    if text:
        yield Block(line, plain(text))


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page."""
    held: list[str] = []
    begun = 1
    fence = ""
    for number, line in enumerate(_blank_comments(text).splitlines(), start=1):
        mark = _FENCE.match(line)
        if fence or mark:
            yield from _made(begun, held)
            held = []
            fence = "" if fence and mark and mark[1] == fence else fence or (mark[1] if mark else "")
            continue
        bare = line.strip().removeprefix(">").strip()
        item = _ITEM.match(bare)
        whole = bare.startswith(("|", "#")) or bool(re.fullmatch(r"-{3,}|={3,}|\[[^\]]+\]:\s.*", bare))
        if not bare or item or whole:
            yield from _made(begun, held)
            held = []
            bare = bare[item.end() :] if item and not whole else bare
        if whole:
            yield from (Block(number, plain(part), is_prose=False) for part in bare.strip("|# ").split("|"))
        elif bare:
            begun = begun if held else number
            held.append(bare)
    yield from _made(begun, held)


def docstring_blocks(text: str, *, line: int) -> Iterator[Block]:
    """Yield the blocks of a docstring that begins in this line; examples and tables of symbols are left out."""
    held: list[str] = []
    begun = line
    is_example = False
    for number, raw in enumerate(text.splitlines(), start=line):
        bare = raw.strip()
        is_example = bool(bare) and (is_example or bare.startswith(">>>"))
        item = _ITEM.match(bare)
        is_row = bool(re.search(r"\S(?: {2,}| \| )\S", bare))
        if not bare or item or is_example or is_row or _ENTRY.match(bare):
            yield from _made(begun, held)
            held = []
        if bare and not is_example and not is_row:
            begun = begun if held else number
            held.append(bare[item.end() :] if item else bare)
    yield from _made(begun, held)
