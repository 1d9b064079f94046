"""By when a ledger must have let somebody in, who then waits for nobody any more."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from accountant.errors import StorageFailed

# a lock that is awaited for 0 ms is awaited for ever
_SHORTEST_MS = 1


class Deadline:
    """A moment, so many milliseconds from now."""

    def __init__(self, timeout_ms: int) -> None:
        self.moment = time.monotonic() + timeout_ms / 1000

    @property
    def left_s(self) -> float:
        """What is left, in seconds; at least 0."""
        return max(0.0, self.moment - time.monotonic())

    @property
    def left_ms(self) -> int:
        """What is left, in milliseconds, at least 1."""
        return max(_SHORTEST_MS, round(1000 * self.left_s))

    @contextmanager
    def holding(self, lock: "threading.Lock | threading.RLock") -> Iterator[None]:
        """The block has the lock. Raises `StorageFailed` where it is not free by then."""
        if not lock.acquire(timeout=self.left_s):
            raise StorageFailed("another thread has waited for its storage for too long")
        try:
            yield
        finally:
            lock.release()
