"""Who uses something that may be given up while it is in use: it is closed when the last of them has gone.

Guarantee: once it is given up nobody begins to use it, and what was to be done then is done once, when nobody does.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class GivenUp(Exception):
    """Nobody may begin to use it any more."""


class UsageCount:
    """Counts users. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._then: Callable[[], None] | None = None
        self._is_given_up = False

    @property
    def is_given_up(self) -> bool:
        """Return True if somebody has given it up."""
        return self._is_given_up

    @contextmanager
    def use(self) -> Iterator[None]:
        """Use it inside the block. Raise GivenUp if nobody may begin."""
        with self._lock:
            if self._is_given_up:
                raise GivenUp
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                last = self._take_last()
            last()

    def give_up(self, then: Callable[[], None]) -> None:
        """Stop new uses. Call `then` when nobody uses it, in the thread of the last user.

        Only the first time counts.
        """
        with self._lock:
            if self._is_given_up:
                return
            self._is_given_up, self._then = True, then
            last = self._take_last()
        last()

    def _take_last(self) -> Callable[[], None]:
        then = self._then
        if then is None or self._users:
            return _do_nothing
        self._then = None
        return then


def _do_nothing() -> None:
    pass
