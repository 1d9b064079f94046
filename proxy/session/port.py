"""The interfaces that a session of the PostgreSQL endpoint needs: an `Asker` and the shadow.

The `Asker` answers questions and sees nothing else. The shadow answers all other statements.
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
from proxy.pipeline.messages import Prepared, ReleasedArrays, Request, StatementPart
from proxy.shadow.address import ShadowAddress
from proxy.wire.startup import Login


class Asker(Protocol):
    """The pipeline as sessions use it. Every method may be called from a worker thread and raises KeyholeError."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The `keyhole.*` settings and their defaults, as text."""

    def read_statements(self, sql: str) -> tuple[StatementPart, ...]:
        """Split a text into statements and classify them. It is fast and pure, and runs on the event loop.

        Positions of refusals count in `sql`.
        """

    def find_question(self, sql: str, *, in_sql: bool) -> str | None:
        """Return the question in a statement that the shadow holds. Return None if the shadow answers the statement.

        It is pure. `in_sql` is True if PREPARE made the statement; its text then includes the PREPARE.
        """

    def find_parameter_casts(self, statement: str) -> tuple[ParameterCast, ...]:
        """Return the casts of parameters in a statement's questions, which the shadow must compute. It is pure."""

    def prepare(self, request: Request) -> Prepared:
        """Plan one question that Keyhole has intercepted. Charge nothing."""

    def release(self, prepared: Prepared, *, withdrawn: Event) -> ReleasedArrays:
        """Reserve, run, decide and commit. It blocks. Once `withdrawn` is set, reserve nothing more and raise KH409."""


@dataclass(frozen=True, slots=True)
class SessionBacking:
    """The policy's analysts, the `Asker` that answers them, and a shadow that already shows `catalog`.

    `using` keeps all of them open while a session lasts.
    """

    catalog: Catalog
    asker: Asker
    shadow: ShadowAddress
    using: Callable[[], AbstractContextManager[object]] = nullcontext

    def make_startup_settings(self, login: Login) -> dict[str, str]:
        """Return the shadow session's startup: role, database, defaults of `keyhole.*`, then the client's settings.

        Raises KH402 and KH403 for settings of Keyhole that SET would refuse. Call it after the login only: the hint
        names parameters of stored questions.
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
