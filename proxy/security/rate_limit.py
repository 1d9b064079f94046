"""How often somebody may come: a bucket of tokens a name, in memory, and never more than so many names."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_NAMES = 10_000  # some megabytes; whoever has more addresses than that is not held up by limits per address


class RateLimit:
    """At most `per_minute` at once for each name, and as many again in every minute after that.

    Guarantee: memory stays bounded; beyond `most_names` the name that came longest ago is forgotten, which is one whose
    bucket is the fullest. For one event loop: nothing here waits or locks.
    """

    def __init__(
        self, per_minute: int, *, most_names: int = MOST_NAMES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = float(per_minute)
        self._most_names = most_names
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name: tokens left, when that was

    def get_wait_s(self, name: str) -> int:
        """Return the whole seconds until the name may come again; 0 if it may come now. Nothing is taken."""
        left = self._count_tokens(name)
        return 0 if left >= 1 else max(1, math.ceil((1 - left) * 60 / self._most))

    def count_if_allowed(self, name: str) -> int:
        """Return `get_wait_s`, and count the name's coming if it may come."""
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
