"""Failures of the source while data is touched: told at one moment, and not for ever.

Rewritten SQL cannot fail on data by itself. Should an engine fail all the same (memory, a time limit, a lost
connection), then the moment at which the analyst learns of it is the policy's timeout, whatever happened and whenever;
and whoever has met too many failures is refused before anything is reserved. Both depend on no row.
"""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from proxy.sources.refusals import too_many_failures

log = structlog.get_logger("keyhole.source")

MOST_FAILURES = 10
"""A source that restarts is forgiven; were failures to follow from rows, they could tell so many bits."""
WINDOW_S = 3600.0  # for so long a failure counts


class SourceFailures:
    """Holds failures back until the timeout and counts them per analyst, in this process.

    Each of several `workers` allows its part of `MOST_FAILURES`, so that all together allow no more.
    """

    def __init__(self, *, workers: int = 1) -> None:
        self._most = max(1, MOST_FAILURES // workers)
        self._lock = threading.Lock()
        self._times: dict[str, deque[float]] = defaultdict(deque)

    def check(self, analyst: str) -> None:
        """Refuse an analyst who met too many within the last hour. Raises KH503; nothing was spent."""
        with self._lock:
            times = self._times[analyst]
            while times and times[0] < time.monotonic() - WINDOW_S:
                times.popleft()
            if len(times) < self._most:
                return
        raise too_many_failures(self._most)

    @contextmanager
    def held_until(self, timeout_ms: int, *, analyst: str) -> Iterator[None]:
        """Run the block; let a refusal of it out only once `timeout_ms` have passed since its start."""
        deadline = time.monotonic() + timeout_ms / 1000
        try:
            yield
        except Exception:
            log.warning("a question failed in the source", analyst=analyst)
            with self._lock:
                self._times[analyst].append(time.monotonic())
            time.sleep(max(0.0, deadline - time.monotonic()))
            raise
