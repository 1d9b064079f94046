"""The rules of prose, each a function from a block to its findings.

A sentence has at most `LONGEST` words. None begins with What, Whoever or Whether, except a question. No "but for", no
"so that" twice in a paragraph, no "not ... but" within one clause, and none of the words that `BANNED` lists.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.project.prose.blocks import Block

LONGEST = 30

BANNED = {
    "foretell": "predict",
    "foretells": "predicts",
    "foretelling": "predicting",
    "foretold": "predicted",
    "dear": "expensive",
    "dearer": "more expensive",
    "dearest": "most expensive",
    "anew": "again",
    "whoever": "who",
}
"""Each word with what to write for it."""

_BANNED = re.compile(rf"\b({'|'.join(BANNED)})\b", re.IGNORECASE)
_LAW = re.compile(r"(?<!\bby )\blaws?\b(?! of large numbers| of total| firm| enforcement| says)", re.IGNORECASE)
_LEGAL = re.compile(r"\b(?:(?:privacy|data protection|national|case|criminal) laws?|the law requires)\b", re.IGNORECASE)
_BUT_FOR = re.compile(r"\bbut for\b", re.IGNORECASE)
_NOT_BUT = re.compile(r"\bnot\b[^,.;:()!?–—]*?\bbut\b(?! for\b)", re.IGNORECASE)
_SO_THAT = re.compile(r"\bso that\b", re.IGNORECASE)
_BEGINNING = re.compile(r"[\"'“‘(\[]*(What|Whoever|Whether)\b(?!-)")
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|et al|vs|cf|resp|approx|[Ee]q|[Ff]ig|Sec|Thm|pp)|\.)\.$")
_END = re.compile(r"[.!?][\"'”’)\]]*(?=\s+[\"'“‘(\[]*[A-Z0-9])")
_WORD = re.compile(r"[^\W_][\w'’./,%+-]*")


@dataclass(frozen=True, slots=True)
class Finding:
    """A line, the rule that it breaks, and the words that break it."""

    line: int
    rule: str
    words: str

    def __str__(self) -> str:
        """Return the rule and the words, cut to a line."""
        return f"{self.rule}: {self.words if len(self.words) <= 90 else self.words[:87] + '...'}"


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a plain text."""
    begun = 0
    for end in _END.finditer(text):
        if not _ABBREVIATED.search(text[begun : end.start() + 1]):
            yield text[begun : end.end()].strip()
            begun = end.end()
    if text[begun:].strip():
        yield text[begun:].strip()


def words(text: str) -> list[str]:
    """Return the words of a plain text; a number is one."""
    return _WORD.findall(text)


def _long_sentences(block: Block) -> Iterator[Finding]:
    for sentence in sentences(block.text):
        if (length := len(words(sentence))) > LONGEST:
            yield Finding(block.line, f"{length} words in a sentence, {LONGEST} are allowed", sentence)


def _beginnings(block: Block) -> Iterator[Finding]:
    for sentence in sentences(block.text):
        found = _BEGINNING.match(sentence)
        if found and not sentence.rstrip("\"'”’)]").endswith("?"):
            yield Finding(block.line, f'a sentence begins with "{found[1]}"', sentence)


def _repeated_so_that(block: Block) -> Iterator[Finding]:
    if len(_SO_THAT.findall(block.text)) > 1:
        yield Finding(block.line, '"so that" twice in a paragraph', block.text)


def _not_but(block: Block) -> Iterator[Finding]:
    for found in _NOT_BUT.finditer(block.text):
        yield Finding(block.line, '"not ... but": say what is the case', found[0])


def _but_for(block: Block) -> Iterator[Finding]:
    for found in _BUT_FOR.finditer(block.text):
        yield Finding(block.line, '"but for": say "except"', block.text[max(0, found.start() - 30) : found.end() + 30])


def _banned_words(block: Block) -> Iterator[Finding]:
    for found in _BANNED.finditer(block.text):
        yield Finding(block.line, f'say "{BANNED[found[1].lower()]}"', found[1])


def _laws(block: Block) -> Iterator[Finding]:
    for found in _LAW.finditer(_LEGAL.sub("", block.text)):
        yield Finding(block.line, 'say "distribution", or name the rule', block.text[: found.end()][-60:])


_OF_SENTENCES: tuple[Callable[[Block], Iterator[Finding]], ...] = (
    _long_sentences,
    _beginnings,
    _repeated_so_that,
    _not_but,
)
_OF_WORDS: tuple[Callable[[Block], Iterator[Finding]], ...] = (_but_for, _banned_words)


def check(block: Block, *, is_page: bool) -> Iterator[Finding]:
    """Yield the findings in a block; "law" is looked for in pages alone."""
    for rule in (*(_OF_SENTENCES if block.is_prose else ()), *_OF_WORDS, *((_laws,) if is_page else ())):
        yield from rule(block)
