"""The connections to a PostgreSQL source. The owner sees why one fails, in the log or as KH008.

An analyst sees the same KH501 whatever the cause.
"""

from contextlib import AbstractContextManager
from typing import Any, Self

import psycopg

from accountant.store.deadline import limit_waits
from accountant.store.punctual import PunctualConnection
from planner.errors import KeyholeError
from proxy.sources.failures import log_unreachable_source
from proxy.sources.source_refusals import (
    report_full_postgres,
    report_late_postgres,
    report_unknown_encoding,
    report_unreachable_postgres,
)

OPENING_S = 10
"""To log in at the source: less than a question may take by default, so that a gone source is told as such."""
GIVEN_UP_S = 5.0
"""After the time in which the source was to end a statement by itself, for its word that it did: a network's delay. A
connection on which none has come is dead, and so then is what ran there: the server ends it at that time, or when it
runs again and finds nobody."""
_NO_ROOM = ("too many connections", "too many clients", "connection slots are reserved", "no more connections allowed")


class SourceConnection(PunctualConnection):
    """A connection to the source, whose waits have a time limit.

    A failed connection is logged, at most once a minute for each cause.
    """

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Connect as psycopg does."""
        try:
            return super().connect(conninfo, **kwargs)
        except psycopg.OperationalError as error:
            log_unreachable_source("too many connections" if _lacks_connections(error) else "no answer")
            raise


def limit_statements(*, after_ms: int) -> AbstractContextManager[None]:
    """Give the block's statements a time limit.

    The source ends them itself. If it does not answer, the connection is closed `GIVEN_UP_S` later, and
    psycopg.OperationalError is raised.
    """
    return limit_waits(after_ms / 1000 + GIVEN_UP_S)


def try_connecting(url: str) -> None:
    """Connect once and disconnect, to check that the database can be reached.

    Raises:
        KeyholeError: KH008, with the cause, for the owner.
    """
    try:
        with PunctualConnection.connect(url, connect_timeout=OPENING_S) as connection:
            encoding = connection.info.parameter_status("server_encoding")
    except psycopg.Error as error:
        raise _make_refusal(error) from None
    if encoding == "SQL_ASCII":
        raise report_unknown_encoding()


def find_connection_error(url: str) -> KeyholeError:
    """Return an error that says why the pool has had no connection for `OPENING_S`.

    Connect once more to find the cause. Raise KH008 if the connection fails again.
    """
    try_connecting(url)
    return report_late_postgres()


def _make_refusal(error: psycopg.Error) -> KeyholeError:
    detail = " ".join(str(error).split())
    if _lacks_connections(error):
        return report_full_postgres(detail=detail)
    return report_unreachable_postgres(detail=detail)


def _lacks_connections(error: psycopg.Error) -> bool:
    """Return True if a login failed for lack of connections.

    Such a failure has no SQLSTATE. It is recognised by the English text of PostgreSQL or a pooler.
    """
    return any(words in str(error) for words in _NO_ROOM)
