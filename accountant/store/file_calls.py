"""SQLite connections that record how long their calls to the file take.

A call waits for other writers at most `timeout_ms` of the ledger. A call that takes much longer waits for the file
system, and no thread can interrupt it.
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_going_on: dict[
    object, float
] = {}  # since when, in seconds of `time.monotonic`; changed by single steps of the interpreter


def measure_longest_call() -> float:
    """Return the seconds since the oldest unreturned call began; 0 if there is none."""
    begun = list(_going_on.values())
    return time.monotonic() - min(begun) if begun else 0.0


@contextmanager
def _note_call() -> Iterator[None]:
    call = object()
    _going_on[call] = time.monotonic()
    try:
        yield
    finally:
        del _going_on[call]


class TimedCursor(sqlite3.Cursor):
    """sqlite3's cursor, with the start of each call recorded."""

    def execute(self, *given: Any) -> "TimedCursor":
        """Execute a statement as sqlite3's cursor does."""
        with _note_call():
            super().execute(*given)
        return self

    def executemany(self, *given: Any) -> "TimedCursor":
        """Execute a statement for many rows as sqlite3's cursor does."""
        with _note_call():
            super().executemany(*given)
        return self

    def fetchone(self) -> Any:
        """Fetch a row as sqlite3's cursor does."""
        with _note_call():
            return super().fetchone()

    def fetchmany(self, *given: Any, **named: Any) -> list[Any]:
        """Fetch some rows as sqlite3's cursor does."""
        with _note_call():
            return super().fetchmany(*given, **named)

    def fetchall(self) -> list[Any]:
        """Fetch all rows as sqlite3's cursor does."""
        with _note_call():
            return super().fetchall()


class TimedConnection(sqlite3.Connection):
    """sqlite3's connection, with the start of each call recorded, including the opening of the file."""

    def __init__(self, *given: Any, **named: Any) -> None:
        with _note_call():
            super().__init__(*given, **named)

    def cursor(self, *given: Any, **named: Any) -> Any:
        """Return a `TimedCursor`, or a cursor of the class that the caller gives."""
        return super().cursor(*given, **named) if given or named else super().cursor(TimedCursor)

    def execute(self, *given: Any) -> Any:
        """Execute a statement as sqlite3's connection does."""
        return self.cursor().execute(*given)

    def commit(self) -> None:
        """Commit as sqlite3's connection does."""
        with _note_call():
            super().commit()

    def rollback(self) -> None:
        """Roll back as sqlite3's connection does."""
        with _note_call():
            super().rollback()

    def close(self) -> None:
        """Close the connection as sqlite3's does."""
        with _note_call():
            super().close()
