"""The log: one JSON object per line on standard error, without data.

Guarantee: a line has only what Keyhole's own code names. For a library's log entry it has the library's name and the
level. For an exception it has the type and the line of code that raised it. A driver's message could quote SQL and
keys.
"""

import logging
import sys
from pathlib import Path
from typing import Any

import structlog

LEVELS = ("debug", "info", "warning", "error")


def log_to_standard_error(level: str) -> None:
    """Write log entries of level `level`, one of `LEVELS`, or above to standard error from now on."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # looked up at each line, since standard error may be another one by then; and written at once with its end, or
        # lines of several processes would stand in one another
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),
    )
    root = logging.getLogger()
    root.handlers = [_LibraryLogs()]
    root.setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    logging.captureWarnings(capture=True)


def describe_exception(error: BaseException) -> dict[str, str]:
    """Return, for the log, an unexpected exception's type and the line of code that raised it, never its text."""
    found = {"kind": type(error).__name__}
    trace = error.__traceback__
    while trace is not None:
        found["where"] = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


class _LibraryLogs(logging.Handler):
    """A handler that writes log entries of libraries without their texts."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line in place of a library's log entry."""
        error = record.exc_info[1] if record.exc_info else None
        told: dict[str, Any] = {"library": record.name, **({} if error is None else describe_exception(error))}
        structlog.get_logger().log(record.levelno, "a library logged something", **told)
