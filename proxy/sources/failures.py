"""Failures of the source while data is touched: not for ever.

Rewritten SQL cannot fail on data by itself. Should an engine fail all the same (memory, a time limit, a lost
connection), then the analyst learns of it at a moment that no row decides (`public_moments.py`); and whoever has met
too many failures is refused before anything is reserved. So what failures could tell is at most so many bits an hour.
"""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from proxy.sources.refusals import too_many_failures

log = structlog.get_logger("keyhole.source")

MOST_FAILURES = 10
"""A source that restarts is forgiven; were failures to follow from rows, they could tell so many bits."""
WINDOW_S = 3600.0  # for so long a failure counts


class SourceFailures:
    """Counts failures per analyst, in this process.

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
    def counted(self, analyst: str, *, is_over: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """The block reads for an analyst: should it fail, that is one failure more.

        Parameters:
            is_over: whether the timeout has passed, which the log then names as the cause.
        """
        try:
            yield
        except Exception:
            why = "it ran into limits.statement_timeout_ms" if is_over() else "the engine failed or cannot be reached"
            log.warning("a question failed in the source", analyst=analyst, why=why)
            with self._lock:
                self._times[analyst].append(time.monotonic())
            raise
