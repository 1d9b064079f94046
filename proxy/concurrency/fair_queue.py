"""A fair queue for few places: an analyst with many or slow questions does not keep the others waiting.

Guarantee: an analyst never has more than half of the places (rounded up), and a place stays free only while everybody
who waits has that many. Whoever waits and has no place is passed by at most one question of each other analyst, however
many of those are in line.

Very long texts wait here for one place in the whole process, whoever sends them over whichever endpoint: reading and
planning them holds the interpreter's lock, and as many at once as there are threads would leave the event loops hardly
any time.
"""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import TIMEOUT_MAX
from typing import Generic, TypeVar

T = TypeVar("T")

VERY_LONG_BYTES = 64 * 1024
"""Longer than what people and their tools write; below it, texts that wait would only add up."""
_UNTIL_IT_COMES_MS = int(TIMEOUT_MAX) * 1000  # the longest that a lock can be waited for


class FairQueue(Generic[T]):
    """A queue for a fixed number of places, fair between analysts. It is not thread-safe."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._share = (places + 1) // 2
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, dict[T, None]] = {}  # in order of their coming
        self._served: dict[str, int] = {}  # when each who waits was last given a place
        self._places_given = 0

    @property
    def is_empty(self) -> bool:
        """Return True if nobody waits and nobody has a place."""
        return not self._waiting and not self._taken

    def join(self, analyst: str, one: T) -> None:
        """Add a waiter to the queue."""
        self._waiting.setdefault(analyst, {})[one] = None
        # a newcomer counts as served just now, so that nobody gets ahead by leaving
        self._served.setdefault(analyst, self._places_given)

    def leave(self, analyst: str, one: T) -> bool:
        """Remove a waiter from the queue. Return False if it already has a place."""
        own = self._waiting.get(analyst, {})
        if one not in own:
            return False
        del own[one]
        self._forget_if_idle(analyst)
        return True

    def admit(self) -> Iterator[tuple[str, T]]:
        """Yield each waiter that gets a place now, with its analyst."""
        while self._free and (analyst := self._choose_analyst()) is not None:
            one = next(iter(self._waiting[analyst]))
            del self._waiting[analyst][one]
            self._forget_if_idle(analyst)
            self._free -= 1
            self._taken[analyst] += 1
            self._places_given += 1
            if analyst in self._served:
                self._served[analyst] = self._places_given
            yield analyst, one

    def free_place(self, analyst: str) -> None:
        """Free a place of an analyst."""
        self._free += 1
        self._taken[analyst] -= 1
        if not self._taken[analyst]:
            del self._taken[analyst]

    def _choose_analyst(self) -> str | None:
        may = (analyst for analyst in self._waiting if self._taken[analyst] < self._share)
        return min(may, key=lambda analyst: (self._taken[analyst], self._served[analyst]), default=None)

    def _forget_if_idle(self, analyst: str) -> None:
        if not self._waiting[analyst]:
            del self._waiting[analyst], self._served[analyst]


class FairTurns:
    """A fair queue for threads that wait: at most the given number run at a time."""

    def __init__(self, places: int) -> None:
        self._line: FairQueue[threading.Event] = FairQueue(places)
        self._lock = threading.Lock()

    @contextmanager
    def take_turn(self, analyst: str, *, timeout_ms: int) -> Iterator[bool]:
        """Wait for a turn, and hold it during the block. Yield True if it came within the timeout."""
        called = threading.Event()
        with self._lock:
            self._line.join(analyst, called)
            self._call_next()
        try:
            called.wait(timeout_ms / 1000)
        finally:
            with self._lock:
                has_turn = not self._line.leave(analyst, called)
        try:
            yield has_turn
        finally:
            if has_turn:
                with self._lock:
                    self._line.free_place(analyst)
                    self._call_next()

    def _call_next(self) -> None:
        for _, called in self._line.admit():
            called.set()


_LONG_TEXTS = FairTurns(1)  # one place: as many readers as there are threads would share the interpreter's lock anyway


@contextmanager
def read_very_long_alone(text: str | bytes, *, analyst: str) -> Iterator[None]:
    """Hold the right to read or plan a very long text in the block. One such text is processed at a time.

    Wait until then. Shorter texts never wait. While an analyst waits, each other analyst may pass with at most one
    text. Never use this within itself.
    """
    if not _is_very_long(text):
        yield
        return
    with _LONG_TEXTS.take_turn(analyst, timeout_ms=_UNTIL_IT_COMES_MS):
        yield


def _is_very_long(text: str | bytes) -> bool:
    if isinstance(text, str) and VERY_LONG_BYTES // 4 < len(text) <= VERY_LONG_BYTES:
        text = text.encode("utf-8", "surrogatepass")
    return len(text) > VERY_LONG_BYTES
