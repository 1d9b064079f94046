"""The deadline of a call to the ledger, which limits all its waits for locks and servers."""

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

from accountant.errors import StorageFailed

# a lock that is awaited for 0 ms is awaited for ever
_SHORTEST_MS = 1

_moment: ContextVar[float | None] = ContextVar("moment", default=None)


class Deadline:
    """The moment `timeout_ms` milliseconds after its construction."""

    def __init__(self, timeout_ms: int) -> None:
        self.moment = time.monotonic() + timeout_ms / 1000

    @property
    def left_s(self) -> float:
        """Return the remaining time in seconds, at least 0."""
        return max(0.0, self.moment - time.monotonic())

    @property
    def left_ms(self) -> int:
        """Return the remaining time in milliseconds, at least 1."""
        return max(_SHORTEST_MS, round(1000 * self.left_s))

    @contextmanager
    def hold_lock(self, lock: "threading.Lock | threading.RLock") -> Iterator[None]:
        """Hold the lock inside the block. Raise `StorageFailed` if it is not free by the deadline."""
        if not lock.acquire(timeout=self.left_s):
            raise StorageFailed("another thread has waited for its storage for too long")
        try:
            yield
        finally:
            lock.release()


@contextmanager
def limit_server_waits(moment: float) -> Iterator[None]:
    """Limit the waits for servers inside the block to `moment`, in seconds of `time.monotonic`.

    An earlier limit of a surrounding block stays in force.
    """
    outer = _moment.get()
    before = _moment.set(moment if outer is None else min(outer, moment))
    try:
        yield
    finally:
        _moment.reset(before)


def limit_waits(seconds: float) -> AbstractContextManager[None]:
    """Limit all waits for servers inside the block, together, to `seconds` from now."""
    return limit_server_waits(time.monotonic() + seconds)


def find_block_deadline() -> float | None:
    """Return the moment that the surrounding `limit_server_waits` blocks set, or None."""
    return _moment.get()
