"""How long a question waits: for the same one, which its analyst asked a moment before, and for the source.

Guarantee: whoever waits here holds nothing that another question needs, no connection, lock or turn, and has spent
nothing. Only a question of the same analyst is ever waited for.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from accountant.verbs.in_flight import Repeated
from planner.errors import KeyholeError
from proxy.pipeline.messages import Asked

_LEAST_S, _MOST_S = 0.005, 0.25
_PART = 4  # a look after every quarter of the time waited so far


class Patience:
    """The time that one question may wait before it reserves, `timeout_ms` in all, counted from now on."""

    def __init__(self, asked: Asked, *, timeout_ms: int) -> None:
        self._asked = asked
        self._started = time.monotonic()
        self._timeout_s = timeout_ms / 1000
        self._withdrawn = asked.withdrawn or Event()
        self._is_late = False
        self.waited = False

    @property
    def left_ms(self) -> int:
        """What is left of it."""
        return max(0, round(1000 * (self._timeout_s - self._passed_s)))

    @property
    def _passed_s(self) -> float:
        return time.monotonic() - self._started

    @contextmanager
    def for_the_first(self) -> Iterator[None]:
        """Run the block; where it finds its question under way or just answered, end it there after a moment, and it is
        to be run again. Raises KH409 as soon as the question is withdrawn, and KH501 when its time is up: not before
        it was run once more then, since what was found may be an answer."""
        try:
            yield
        except Repeated:
            self.waited = True
        else:
            return
        left_s = self._timeout_s - self._passed_s
        if left_s <= 0 and self._is_late:
            raise _still_asked()
        self._is_late = left_s <= 0
        self._withdrawn.wait(max(0.0, min(max(self._passed_s / _PART, _LEAST_S), _MOST_S, left_s)))
        self._asked.check_wanted()


def _still_asked() -> KeyholeError:
    return KeyholeError(
        "KH501",
        "the same question, which you asked before, is still being answered",
        detail="This one waited for its answer as long as a question may. It has spent nothing.",
        hint="Ask again later: once it is answered, the same question costs nothing.",
    )
