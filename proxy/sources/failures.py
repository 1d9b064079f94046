"""The limit on how often an analyst's questions may fail in the source after data was touched.

Rewritten SQL cannot fail on data by itself. If an engine still fails (memory, a time limit, a lost connection), the
analyst learns of it at a moment that does not depend on rows (`public_moments.py`). An analyst with too many failures
is refused before anything is reserved. Therefore failures can reveal at most `MOST_FAILURES` bits an hour to one
analyst.
"""

import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from planner.errors import KeyholeError
from proxy.sources.source_refusals import SourceFailed, refuse_after_failures, report_unreachable_source

TIME_OVER = "it ran into limits.statement_timeout_ms"
_STATES = {
    "57014": TIME_OVER,
    "42703": "a column is gone",
    "42P01": "a relation is gone",
    "42501": "the reader's role may not read it",
    "53100": "the source's disk is full",
    "53200": "the source ran out of memory",
    "08": "the connection is gone",
    "22": "a value that the source cannot compute with",
    "53": "the source lacks a resource",
    "57": "the source is shutting down",
}
"""By SQLSTATE or its first two characters."""
_CLASSES = {
    "TypesChanged": "a column is of another type",
    "MissingColumn": "a column is gone",
    "MissingKey": "what kept a key unique is gone: reload",
    "FilesChanged": "files were replaced meanwhile",
    "InterruptException": TIME_OVER,
    "OutOfMemoryException": "the source ran out of memory",
    "IOException": "a file cannot be read",
    "HTTPException": "a file cannot be read",
    "InvalidInputException": "a file is not what its name says, or a value cannot be read",
    "CatalogException": "a relation is gone",
    "BinderException": "a column is gone",
    "ConversionException": "a value that the source cannot compute with",
    "OutOfRangeException": "a value that the source cannot compute with",
    "PoolTimeout": "no connection was free in time",
    "OperationalError": "the connection is gone",
    "_WaitTimeout": "the source does not answer",
}
"""By the class of an engine's error."""


def explain_failure(error: BaseException) -> str:
    """Return a text for the log that says why the source failed.

    The text names only the kind of failure. The engine's own text may contain values.
    """
    if isinstance(error, KeyholeError):
        return error.message
    state = getattr(error, "sqlstate", None) or ""
    words = _STATES.get(state) or _STATES.get(state[:2]) or _CLASSES.get(type(error).__name__)
    return words or "the engine failed; its own log says why"


MOST_FAILURES = 10
"""A source that restarts is forgiven; were failures to follow from rows, they could tell so many bits."""
WINDOW_S = 3600.0  # for so long a failure counts


_PAUSE_S = 60.0  # between two lines of the log for the same cause, so that a gone source does not fill it


class _Notice:
    """A logger of causes that logs the same cause at most once a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._said: dict[str, float] = {}

    def say(self, why: str) -> None:
        """Log a cause, unless it was logged within the last minute. Commands of the command line log nothing."""
        import structlog  # it takes a tenth of the start of a command, which logs nothing

        if not structlog.is_configured():
            return
        with self._lock:
            now = time.monotonic()
            if now < self._said.get(why, -_PAUSE_S) + _PAUSE_S:
                return
            self._said[why] = now
        log = structlog.get_logger("keyhole.source")
        log.warning("no connection to the source", why=why)


_notice = _Notice()


def log_unreachable_source(why: str) -> None:
    """Log why a question cannot reach the source, at most once a minute for each cause."""
    _notice.say(why)


def refuse_unopened_source(error: KeyholeError) -> KeyholeError:
    """Return the refusal of a question whose source is not open, and log why. A stored answer needs no source."""
    log_unreachable_source(getattr(error, "why", "") or explain_failure(error))
    return report_unreachable_source()


def refuse_without_turn() -> KeyholeError:
    """Return the refusal of a question that got no turn at the source in time, and log that."""
    log_unreachable_source("as many questions are under way as the source is asked at once")
    return report_unreachable_source()


class SourceFailures:
    """The counters of failed questions per analyst, in this process.

    Each of `workers` processes allows an equal share of `MOST_FAILURES`.
    """

    def __init__(self, *, workers: int = 1) -> None:
        self._most = max(1, MOST_FAILURES // workers)
        self._lock = threading.Lock()
        self._times: dict[str, deque[float]] = defaultdict(deque)

    def check(self, analyst: str) -> None:
        """Raise KH503 for an analyst with too many failures in the last hour. Nothing was spent."""
        with self._lock:
            times = self._times[analyst]
            while times and times[0] < time.monotonic() - WINDOW_S:
                times.popleft()
            if len(times) < self._most:
                return
        raise refuse_after_failures(self._most)

    @contextmanager
    def count_failure(self, analyst: str, *, is_over: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Count one failure for the analyst if the block, which reads the source, raises.

        Parameters:
            is_over: returns True if the timeout has passed. The log then names it as the cause.
        """
        try:
            yield
        except Exception as error:
            if is_over():
                why = TIME_OVER
            else:
                why = error.why if isinstance(error, SourceFailed) else "see what was logged before"
            import structlog  # as above

            log = structlog.get_logger("keyhole.source")
            log.warning("a question failed in the source", analyst=analyst, why=why)
            with self._lock:
                self._times[analyst].append(time.monotonic())
            raise
