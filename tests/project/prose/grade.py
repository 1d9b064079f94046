"""The Flesch-Kincaid grade of a text: the years of school that it asks of a reader."""

import re
from collections.abc import Iterable

from tests.project.prose.blocks import Block
from tests.project.prose.rules import sentences, words

_VOWELS = re.compile(r"[aeiouy]+")


def count_syllables(word: str) -> int:
    """Return the number of groups of vowels, without a silent e at the end; at least one."""
    word = word.lower()
    silent = word.endswith("e") and not word.endswith(("le", "ee"))
    return max(1, len(_VOWELS.findall(word)) - silent)


def grade(blocks: Iterable[Block]) -> float:
    """Return 0.39 words per sentence + 11.8 syllables per word - 15.59; NaN for a text without sentences.

    References: Kincaid, Fishburne, Rogers, Chissom 1975, Derivation of New Readability Formulas.
    """
    said = [words(sentence) for block in blocks if block.is_prose for sentence in sentences(block.text)]
    length = sum(len(one) for one in said)
    if not length:
        return float("nan")
    syllables = sum(count_syllables(word) for one in said for word in one)
    return 0.39 * length / len(said) + 11.8 * syllables / length - 15.59
