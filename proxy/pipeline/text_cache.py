"""Remembering what was made of texts, within a bound on their length as well as their number.

Guarantee: whoever sends many long texts, each another one, makes nobody remember more than a few of them.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

SHORT_CHARACTERS = 2048  # texts that may be remembered by the hundred; that many of this length are a megabyte
_LONG_TEXTS = 4  # a statement, and what is cut out of it, while it is being read


def remember_texts(entries: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Return a decorator that caches a pure function of a text.

    It keeps the last `entries` short texts, and the last four of more than `SHORT_CHARACTERS`, since one statement asks
    several times for the same.
    """

    def decorator(function: Callable[[str], T]) -> Callable[[str], T]:
        short, long = lru_cache(entries)(function), lru_cache(_LONG_TEXTS)(function)

        @wraps(function)
        def look(text: str) -> T:
            return short(text) if len(text) <= SHORT_CHARACTERS else long(text)

        return look

    return decorator
