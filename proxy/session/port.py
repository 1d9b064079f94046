"""The base of a session of the PostgreSQL endpoint: who answers its questions, and the shadow for all the rest.

Whatever is no question never comes to an `Asker`.
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
        """Split and classify; positions of refusals count in `sql`. Fast, pure, called on the event loop."""

    def find_question(self, sql: str, *, in_sql: bool) -> str | None:
        """Return the question of a statement that the shadow holds, as a statement; None if the shadow answers it.

        Pure.

        `in_sql`: it was prepared by PREPARE, which is part of the text.
        """

    def find_parameter_casts(self, statement: str) -> tuple[ParameterCast, ...]:
        """Return the casts of parameters in a statement's questions, which the shadow is to compute. Pure."""

    def prepare(self, request: Request) -> Prepared:
        """Plan one intercepted statement; nothing is spent."""

    def release(self, prepared: Prepared, *, withdrawn: Event) -> ReleasedArrays:
        """Reserve, run, decide, commit. Blocks. Reserves nothing more once `withdrawn` is set, and raises KH409."""


@dataclass(frozen=True, slots=True)
class SessionBacking:
    """Whom the policy knows, who answers, and the shadow, which shows `catalog` already.

    `using` keeps all of it there while a session lasts.
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
