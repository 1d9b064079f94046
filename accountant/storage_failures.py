"""The causes of storage failures in words for the operator, from the database's error codes alone.

A driver's own text is never passed on, as it may contain the address or values of a statement.
"""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from accountant.errors import LedgerUnavailable, StorageFailed, StorageFull

_FULL = "its disk is full"
_HELD = "others held its lock for too long"
_PRIMARY = 0xFF  # SQLite's extended codes have the primary one in their lowest byte
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT)
_SQLITE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: _HELD,
    sqlite3.SQLITE_LOCKED: _HELD,
    sqlite3.SQLITE_READONLY: "it may not be written",
    sqlite3.SQLITE_PERM: "it may not be written",
    sqlite3.SQLITE_CANTOPEN: "its file, or one beside it, cannot be opened or made",
    sqlite3.SQLITE_IOERR: "its disk failed",
    sqlite3.SQLITE_NOMEM: "memory ran out",
    sqlite3.SQLITE_CORRUPT: "what it holds is damaged",
    sqlite3.SQLITE_NOTADB: "its file is no database",
}
_POSTGRESQL = {
    "53100": _FULL,
    "53200": "its server ran out of memory",
    "53300": "its server takes no more connections",
    "55P03": _HELD,
    "40P01": _HELD,
    "57014": "its server ended the statement, which took too long",
    "25P03": "its server ended the transaction, which did nothing for too long",
    "25006": "its server lets nobody write: a standby, or read only",
    "3D000": "its server has no such database",
    "42501": "the role may not do that there",
    "42P01": "a table of it is gone",
}
"""By SQLSTATE; what is not here, by its first two characters."""
_CLASSES = {
    "08": "the connection to its server is gone",
    "28": "its server refuses the login",
    "53": "its server lacks a resource",
    "57": "its server is starting up or shutting down",
    "58": "its server failed on a file",
    "XX": "what its server holds is damaged",
}
_DRIVER = {
    "_WaitTimeout": "its server did not answer in time",
    "ConnectionTimeout": "its server did not answer in time",
    "OperationalError": "its server cannot be reached, or the connection is gone",
}
"""By psycopg's class, of what the network said and not the server."""
_SYSTEM = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EACCES: "it may not be opened",
    errno.EPERM: "it may not be opened",
    errno.EROFS: "its disk can only be read",
    errno.ENOENT: "it or its folder is gone",
}


@contextmanager
def explain_failures() -> Iterator[None]:
    """Turn failures of drivers and files in the block into errors that name the cause.

    Raise `StorageFull`, `StorageFailed`, `LedgerUnavailable`.
    """
    try:
        yield
    except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:  # the last where a text in SQLite is none
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        words, kind = explain_cause(cause)
        raise kind(f"the ledger's storage failed: {words}") from error


def explain_cause(cause: BaseException) -> tuple[str, type[LedgerUnavailable]]:
    """Return the cause of a failure in words, and the class of the error for it."""
    words = _find_words(cause)
    code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None)
    named = ", ".join(part for part in (type(cause).__name__, code) if part)
    told = named if words is None else f"{words} ({named})"
    if words == _FULL:
        return told, StorageFull
    number = getattr(cause, "sqlite_errorcode", None)
    is_damaged = number is not None and number & _PRIMARY in _DAMAGED
    return told, LedgerUnavailable if is_damaged or isinstance(cause, UnicodeDecodeError) else StorageFailed


def _find_words(cause: BaseException) -> str | None:
    match cause:
        case sqlite3.Error():
            # a disk without room for another 32 KiB of the index of locks
            if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_IOERR_SHMSIZE:
                return _FULL
            return _SQLITE.get(getattr(cause, "sqlite_errorcode", 0) & _PRIMARY)
        case PoolTimeout():
            return "all connections were in use for too long"
        case UnicodeDecodeError():
            return "what it holds is damaged"
        case OSError(errno=number):
            return _SYSTEM.get(number or 0)
    if (state := getattr(cause, "sqlstate", None)) is not None:
        return _POSTGRESQL.get(state) or _CLASSES.get(state[:2])
    return _DRIVER.get(type(cause).__name__)
