"""PostgreSQL's own syntax errors for refused texts, for callers without a session.

Guarantee: the shadow parses the text in the sender's role, and runs nothing of it. The shadow has no private row, so an
error depends on the text alone. Only one text is parsed at a time, for at most one second, so sessions never lack a
connection. If the shadow does not answer in time, the refusal stays unchanged.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

import psycopg
from psycopg import generators, pq

from accountant.store.deadline import limit_waits
from accountant.store.punctual import PunctualConnection
from planner.errors import KeyholeError
from proxy.shadow.address import ShadowAddress
from proxy.shadow.relay import GRAMMAR_FILES

_LONGEST_S = 1.0  # a text of a megabyte takes some hundredths
_UNREADABLE, _SYNTAX_ERROR = "KH100", b"42601"


@dataclass(frozen=True, slots=True)
class GrammarCheck:
    """A check of texts by PostgreSQL's grammar, in the shadow that is current at the time of the check.

    `find_shadow` returns the shadow's address and the name of its database.
    """

    find_shadow: Callable[[], tuple[ShadowAddress, str]]
    _turn: Lock = field(default_factory=Lock)

    def prefer_syntax_error(self, refusal: KeyholeError, *, sql: str, analyst: str) -> KeyholeError:
        """Return PostgreSQL's syntax error in place of a refusal of form (KH1xx), if the text has one.

        Otherwise return the refusal.
        """
        if not refusal.code.startswith("KH1") or "\0" in sql or not self._turn.acquire(timeout=_LONGEST_S):
            return refusal
        try:
            return self._ask_grammar(refusal, sql, analyst)
        except (psycopg.Error, UnicodeEncodeError):
            return refusal
        finally:
            self._turn.release()

    def _ask_grammar(self, refusal: KeyholeError, sql: str, analyst: str) -> KeyholeError:
        address, database = self.find_shadow()
        make_conninfo = address.make_conninfo(user=analyst, database=database)
        with limit_waits(_LONGEST_S), PunctualConnection.connect(make_conninfo, client_encoding="utf8") as connection:
            connection.pgconn.send_prepare(b"", sql.encode())
            (found,) = connection.wait(generators.execute(connection.pgconn))
        is_unreadable = refusal.code == _UNREADABLE
        told_first = found.error_field(pq.DiagnosticField.SOURCE_FILE) in GRAMMAR_FILES or is_unreadable
        if found.error_field(pq.DiagnosticField.SQLSTATE) != _SYNTAX_ERROR or not told_first:
            return refusal
        message = found.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        position = found.error_field(pq.DiagnosticField.STATEMENT_POSITION)
        return KeyholeError(
            _UNREADABLE,
            message.decode(),
            hint=refusal.hint if is_unreadable else None,
            position=None if position is None else int(position),
        )
