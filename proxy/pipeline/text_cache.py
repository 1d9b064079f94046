"""Caches for functions of texts, which limit the number and length of the kept texts.

Guarantee: however many different long texts a client sends, only a few of them are kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

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


class ObjectCache(Generic[T]):
    """The results of a pure function of two objects and a text, for its last `entries` short texts.

    Objects are the same only if they are identical. The cache keeps them, so that none can take another's place.
    """

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[int, int, str], tuple[object, object, T]] = OrderedDict()

    def find_or_make(self, first: object, second: object, text: str, make: Callable[[], T]) -> T:
        """Return the cached result, else the one that `make` returns. A long text, or a refusal, is not kept."""
        if len(text) > SHORT_CHARACTERS:
            return make()
        key = (id(first), id(second), text)
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key][2]
        made = make()
        with self._lock:
            self._found[key] = (first, second, made)
            while len(self._found) > self._entries:
                self._found.popitem(last=False)
        return made
