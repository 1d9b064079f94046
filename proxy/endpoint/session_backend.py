"""What a session of the PostgreSQL endpoint is opened on."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from planner.catalog.model import Catalog
from proxy.pipeline.port import Asker
from proxy.shadow.address import ShadowAddress
from proxy.wire.startup import Login


@dataclass(frozen=True, slots=True)
class Backing:
    """Whom the policy knows, who answers, and the shadow, which shows `catalog` already.

    `using` keeps all of it there while a session lasts.
    """

    catalog: Catalog
    asker: Asker
    shadow: ShadowAddress
    using: Callable[[], AbstractContextManager[object]] = nullcontext

    def settings(self, login: Login) -> dict[str, str]:
        """The shadow session's startup: role, database, defaults of `keyhole.*`, then what the client brought."""
        return {
            "user": login.user,
            "database": self.catalog.database,
            "statement_timeout": str(self.catalog.statement_timeout_ms),
            **self.asker.settings,
            **dict(login.settings),
        }
