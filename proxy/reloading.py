"""The policy read again while Keyhole serves: all of it takes effect, or nothing does.

`[budget]`, `[accuracy]`, `[limits]`, `[analysts.*]` and the caps of tables may change in a running Keyhole. Whatever
the shadow shows, and where Keyhole listens or reads, needs a restart: open sessions have planned on it.
"""

import asyncio

import structlog

from planner.catalog import Catalog
from planner.errors import KeyholeError
from planner.policy import Policy
from proxy.logs import fault
from proxy.pins import PinSource, pinned_catalog
from proxy.server import Endpoint
from proxy.service import Service
from proxy.shadow.address import ShadowAddress
from proxy.shadow.schema import update_roles

log = structlog.get_logger("keyhole.reload")

_FIXED = ("source", "ledger", "server", "views")


class RestartNeeded(Exception):
    """A policy that a running Keyhole cannot take; `changed` are the sections that differ."""

    def __init__(self, changed: tuple[str, ...]) -> None:
        super().__init__("a restart is needed")
        self.changed = changed


class Reloading:
    """What a reload changes: an open service and the endpoint in front of it. For one event loop.

    `policy` is the one that they were opened with. `shadow` is None where another process keeps the shadow's roles.
    """

    def __init__(
        self, service: Service, endpoint: Endpoint, *, policy: Policy, shadow: ShadowAddress | None = None
    ) -> None:
        self._service = service
        self._endpoint = endpoint
        self._policy = policy
        self._shadow = shadow

    async def reload(self, policy: Policy | None = None) -> None:
        """Take `policy`, or read the file again, and its pins. What cannot be used is logged, and nothing changes.

        Sessions of analysts who are gone, or who must log in in another way, end with 57P01; all others go on, and
        their next question is decided by the new policy. Raises nothing.
        """
        try:
            policy = policy or Policy.load(self._policy.path)
            catalog = await asyncio.to_thread(self._compiled, policy)
        except Exception as error:
            log_refusal(error)
            return
        self._policy = policy
        self._service.catalog = catalog
        log.info("policy reloaded", sessions_ended=self._endpoint.take(catalog))

    def _compiled(self, policy: Policy) -> Catalog:
        catalog = compatible(self._policy, policy, digest=self._service.catalog.digest, source=self._service.source)
        if self._shadow is not None:
            update_roles(self._shadow, catalog)
        return catalog


def compatible(old: Policy, new: Policy, *, digest: str, source: PinSource) -> Catalog:
    """The catalog of a policy that may follow another one, whose catalog has `digest`, without a restart.

    Raises RestartNeeded, or KeyholeError for what is wrong with the new policy.
    """
    changed = tuple(name for name in _FIXED if getattr(old, name) != getattr(new, name))
    if changed:
        raise RestartNeeded(changed)
    catalog = pinned_catalog(new, source)
    if catalog.digest != digest:
        raise RestartNeeded(("tables",))
    return catalog


def log_refusal(error: Exception) -> None:
    """Say why the last policy stays."""
    match error:
        case RestartNeeded(changed=changed):
            log.error("policy not reloaded", why=str(error), changed=list(changed))
        case KeyholeError():
            log.error("policy not reloaded", code=error.code, why=error.message)
        case _:
            log.error("policy not reloaded", **fault(error))
