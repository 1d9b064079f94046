"""A count of the users of a resource that may be given up while it is in use. The last user closes it.

Guarantee: once a resource is given up, nobody begins to use it. Its closing call is made once, when nobody uses it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class GivenUp(Exception):
    """The error for a use that would begin after the resource was given up."""


class UsageCount:
    """The number of users of one resource. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._then: Callable[[], None] | None = None
        self._is_given_up = False

    @property
    def is_given_up(self) -> bool:
        """Return True if the resource has been given up."""
        return self._is_given_up

    @contextmanager
    def use(self) -> Iterator[None]:
        """Count one user during the block. Raise GivenUp if the resource has been given up."""
        with self._lock:
            if self._is_given_up:
                raise GivenUp
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                last = self._end_use()
            last()

    def give_up(self, then: Callable[[], None]) -> None:
        """Stop new uses. Call `then` when nobody uses it, in the thread of the last user.

        Only the first time counts.
        """
        with self._lock:
            if self._is_given_up:
                return
            self._is_given_up, self._then = True, then
            last = self._end_use()
        last()

    def _end_use(self) -> Callable[[], None]:
        then = self._then
        if then is None or self._users:
            return _do_nothing
        self._then = None
        return then


def _do_nothing() -> None:
    pass
