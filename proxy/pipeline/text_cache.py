"""A cache for functions of one text, which limits the number and length of the kept texts.

Guarantee: however many different long texts a client sends, only a few of them are kept.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")

SHORT_CHARACTERS = 2048  # texts that may be remembered by the hundred; that many of this length are a megabyte
_LONG_TEXTS = 4  # a statement, and what is cut out of it, while it is being read


def cache_by_text(entries: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Return a decorator that caches a pure function of a text.

    The cache keeps the results for the last `entries` short texts, and for the last four texts longer than
    `SHORT_CHARACTERS`. One statement needs the same result several times.
    """

    def decorator(function: Callable[[str], T]) -> Callable[[str], T]:
        short, long = lru_cache(entries)(function), lru_cache(_LONG_TEXTS)(function)

        @wraps(function)
        def look(text: str) -> T:
            return short(text) if len(text) <= SHORT_CHARACTERS else long(text)

        return look

    return decorator
