"""The interfaces that a session needs: an `Asker`, which answers questions, and the shadow.

The `Asker` gets only questions. The shadow answers all other statements.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from planner.catalog.catalog import Catalog
from planner.statements.kinds import OWN_NAMES
from planner.statements.set_reset import check_own_setting
from planner.values.constant import ParameterCast
from proxy.pipeline.messages import PreparedRequest, ReleasedArrays, Request, StatementPart
from proxy.shadow.address import ShadowAddress
from proxy.wire.startup import Login


class Asker(Protocol):
    """The pipeline as sessions use it. Every method may be called from a worker thread, and raises KeyholeError."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The `keyhole.*` settings, each with its default as text."""

    def read_statements(self, sql: str) -> tuple[StatementPart, ...]:
        """Split a text into statements, and mark those that Keyhole answers.

        The method is fast and has no side effects, so it runs on the event loop. The position of a refusal counts
        characters of `sql`.
        """

    def find_question(self, sql: str, *, in_sql: bool) -> str | None:
        """Return the question in a prepared statement's text. Return None if the shadow answers the statement.

        The method has no side effects. `in_sql` is True if SQL's PREPARE made the statement; the text then begins with
        PREPARE.
        """

    def find_parameter_casts(self, statement: str) -> tuple[ParameterCast, ...]:
        """Return the parameter casts in a statement's questions, such as `$1::date`. The shadow must compute them."""

    def prepare(self, request: Request) -> PreparedRequest:
        """Plan a statement that Keyhole answers. Charge nothing."""

    def release(self, prepared: PreparedRequest, *, withdrawn: Event) -> ReleasedArrays:
        """Reserve, run, decide and commit the planned questions, and return the keys as arrays.

        The call blocks. Once `withdrawn` is set, reserve nothing more and raise KH409.
        """


@dataclass(frozen=True, slots=True)
class SessionBacking:
    """The services behind a session: the catalog, the `Asker`, and a shadow that already shows the catalog's tables.

    `hold_open` returns a context manager that keeps all of them open during a session.
    """

    catalog: Catalog
    asker: Asker
    shadow: ShadowAddress
    hold_open: Callable[[], AbstractContextManager[object]] = nullcontext

    def make_startup_settings(self, login: Login) -> dict[str, str]:
        """Return the shadow session's settings: role, database, `keyhole.*` defaults, and the client's own.

        Raise KH402 and KH403 for `keyhole.*` settings that SET would also refuse. Call this only after the login,
        because a hint names parameters of stored questions.
        """
        for name, value in login.settings:
            if name.lower().startswith(OWN_NAMES):
                check_own_setting(name.lower(), value, self.catalog)
        return {
            "user": login.user,
            "database": self.catalog.database,
            "statement_timeout": str(self.catalog.statement_timeout_ms),
            **self.asker.settings,
            **dict(login.settings),
        }
