"""A rate limit by name: one token bucket for each name, in memory, for a bounded number of names."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_NAMES = 10_000  # some megabytes; limits per address do not stop a sender with more addresses than that


class RateLimit:
    """A limit of `per_minute` requests at once for each name, refilled at the same number per minute.

    Guarantee: memory stays bounded. Beyond `most_names`, the name with the oldest request is forgotten, since its
    bucket is the fullest. Use this from one event loop, since no method waits or locks.
    """

    def __init__(
        self, per_minute: int, *, most_names: int = MOST_NAMES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = float(per_minute)
        self._most_names = most_names
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name: tokens left, when that was

    def get_wait_s(self, name: str) -> int:
        """Return the seconds until the name's next request is allowed; 0 if now. Count nothing."""
        left = self._count_tokens(name)
        return 0 if left >= 1 else max(1, math.ceil((1 - left) * 60 / self._most))

    def count_if_allowed(self, name: str) -> int:
        """Count a request of the name if it is allowed now. Return the seconds to wait, as `get_wait_s` does."""
        wait = self.get_wait_s(name)
        if wait == 0:
            self._buckets[name] = (self._count_tokens(name) - 1, self._clock())
            self._buckets.move_to_end(name)
            while len(self._buckets) > self._most_names:
                self._buckets.popitem(last=False)
        return wait

    def __len__(self) -> int:
        return len(self._buckets)

    def _count_tokens(self, name: str) -> float:
        left, since = self._buckets.get(name, (self._most, 0.0))
        return min(self._most, left + (self._clock() - since) * self._most / 60)
