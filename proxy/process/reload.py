"""The policy read again while Keyhole serves: all of it takes effect, or nothing does.

Where the shadow would show the same, another catalog takes the place of the last one, in sessions that are open too.
Where it would not (tables, stored questions, pins, the source, room, another PostgreSQL), a second generation is opened
beside the first (`proxy/process/generations.py`), and everything that can fail has failed before it is taken. Settings
that are bound once, and the ledger, need a restart.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import structlog

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.relation_names import list_known_names
from planner.policy.sections import BandsSection, ServerLimitsSection, ServerSection
from proxy.endpoint.connection_limits import count_shadow_connections
from proxy.endpoint.server import Endpoint
from proxy.observe.logs import describe_exception, log_to_standard_error
from proxy.open_policy.pins import PinSource, read_pinned_catalog
from proxy.open_policy.service import find_ledger_url
from proxy.process.generations import (
    Generation,
    Generations,
    choose_oldest_kept,
    close_generation,
    open_next_generation,
)
from proxy.report.analyst_shares import log_changed_shares
from proxy.shadow.binaries import PostgresPrograms, find_own_programs
from proxy.shadow.schema import update_roles
from proxy.sources.shared import is_same_source

log = structlog.get_logger("keyhole.reload")
T = TypeVar("T")

_FREE = frozenset({"database", "limits", "log_level"})
"""Of `[server]`: the others are bound, or read, once."""


class RestartNeeded(Exception):
    """The error for a policy that needs a restart. `changed` names the sections that differ."""

    def __init__(self, changed: tuple[str, ...]) -> None:
        super().__init__("a restart is needed")
        self.changed = changed


class GenerationNotOpened(Exception):
    """The error if a worker process could not open the new policy. `why` is the worker's description."""

    def __init__(self, why: dict[str, object]) -> None:
        super().__init__("a worker could not open it")
        self.why = why


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy in force, its catalog's digest, and the start settings of its shadow.

    `started_with` are the limits, and `binaries` the operator's own PostgreSQL, if any.
    """

    policy: Policy
    digest: str
    started_with: ServerLimitsSection
    binaries: PostgresPrograms | None

    @staticmethod
    def make_for_shadow(policy: Policy, digest: str, binaries: PostgresPrograms | None) -> "PolicyInForce":
        """Return the state of a policy whose shadow was started with this policy's limits."""
        return PolicyInForce(policy, digest, policy.server.limits, binaries)

    def check_no_restart(self, new: Policy) -> None:
        """Raise RestartNeeded if a new policy changes a setting that is read only at the start, or the ledger.

        The ledger is another one if its URL differs, or if the URL is relative and the policy file is now a link into
        another folder.
        """
        old = self.policy
        bound = [name for name in ServerSection.model_fields if name not in _FREE]
        changed = [f"server.{name}" for name in bound if getattr(new.server, name) != getattr(old.server, name)]
        if (new.ledger, find_ledger_url(new)) != (old.ledger, find_ledger_url(old)):
            changed.append("ledger")
        if changed:
            raise RestartNeeded(tuple(changed))

    def find_usable_catalog(self, new: Policy, source: PinSource) -> Catalog | None:
        """Return the catalog of a new policy if the running shadow and its sessions can use it, else None.

        `source` is that of the policy in force. Raises KH003 to KH007, KH010 and KH013.
        """
        old = self.policy
        if not is_same_source(new, old) or (new.views, new.server.database) != (old.views, old.server.database):
            return None
        if (
            _list_bands(new) != _list_bands(old)
            or new.monitors != old.monitors
            or list_known_names(new) != list_known_names(old)
        ):
            return None
        if not self._fits_limits(new.server.limits) or find_own_programs(new) != self.binaries:
            return None
        catalog = read_pinned_catalog(new, source)
        return catalog if catalog.digest == self.digest else None

    def _fits_limits(self, limits: ServerLimitsSection) -> bool:
        """Return True if the shadow can be used within other limits."""
        started = self.started_with
        enough = count_shadow_connections(limits) <= count_shadow_connections(started)
        return enough and limits.session_memory_mb == started.session_memory_mb

    def replace_policy(self, policy: Policy) -> "PolicyInForce":
        """Return the state with another policy over the same shadow."""
        return PolicyInForce(policy, self.digest, self.started_with, self.binaries)


def _list_bands(policy: Policy) -> list[tuple[str, BandsSection | None]]:
    """Return the bands that a policy's shadow shows, which change no answer and no digest."""
    of_tables = [(name, table.bands) for name, table in policy.tables.items()]
    columns = [
        (f"{name}.{column}", section.bands)
        for name, table in policy.tables.items()
        for column, section in table.columns.items()
    ]
    return [*of_tables, *columns]


class PolicySwitch:
    """The steps that put a policy into force in a serving process: at its endpoint, and in its generations."""

    def __init__(self, generations: Generations, endpoint: Endpoint, *, log_level: str) -> None:
        self._generations = generations
        self._endpoint = endpoint
        self._log_level = log_level

    def use_catalog(self, policy: Policy, catalog: Catalog) -> None:
        """Use another catalog in all sessions, one that the shadow shows already."""
        service = self._generations.newest.service
        service.policy, service.catalog = policy, catalog
        self._log_reload(policy, sessions_ended=self._use_newest(policy))

    def use_generation(self, policy: Policy, generation: Generation, *, oldest: int) -> None:
        """Answer with another generation from now on.

        Earlier sessions keep theirs, unless it is older than `oldest`.
        """
        self._generations.replace_newest(generation)
        too_old = [one.shadow for one in self._generations.open if one.number < oldest]
        ended = self._use_newest(policy) + sum(map(self._endpoint.end_sessions_on, too_old))
        self._log_reload(policy, sessions_ended=ended, generation=generation.number)

    def _log_reload(self, policy: Policy, **what: int) -> None:
        log.info("policy reloaded", **what)
        if policy.server.log_level != self._log_level:
            self._log_level = policy.server.log_level
            log_to_standard_error(self._log_level)

    def _use_newest(self, policy: Policy) -> int:
        return self._endpoint.use_backing(self._generations.newest.backing, policy.server.limits)


class PolicyReloader:
    """The reload of a policy in a process that serves alone and runs its own shadows. For one event loop.

    `policy` is the one with which the newest generation was opened.
    """

    def __init__(self, generations: Generations, endpoint: Endpoint, *, policy: Policy) -> None:
        self._generations = generations
        self._taking = PolicySwitch(generations, endpoint, log_level=policy.server.log_level)
        newest = generations.newest
        self._now = PolicyInForce.make_for_shadow(policy, newest.service.catalog.digest, newest.binaries)
        self._changing = asyncio.Lock()

    async def replace_lost_generation(self) -> None:
        """Open a new generation of the policy in force after the newest shadow was lost.

        Raise any error of opening it.
        """
        async with self._changing:
            policy, newest = self._now.policy, self._generations.newest
            opened = await run_or_undo(lambda: open_next_generation(policy, after=newest), undo=close_generation)
            self._now = PolicyInForce.make_for_shadow(policy, opened.service.catalog.digest, opened.binaries)
            self._taking.use_generation(policy, opened, oldest=opened.number)

    async def reload_policy(self) -> None:
        """Read the policy file and its pins again, and use them. Log a policy that cannot be used, and change nothing.

        If an analyst was removed, or must log in by other means, the analyst's sessions end with 57P01. All other
        sessions continue. Raises nothing.
        """
        async with self._changing:
            await self._reload_locked()

    async def _reload_locked(self) -> None:
        try:
            policy = Policy.load(self._now.policy.path)
            opened = await run_or_undo(lambda: self._open_policy(policy), undo=_close_new_generation)
        except Exception as error:
            log_refusal(error)
            return
        if isinstance(opened, Generation):
            self._now = PolicyInForce.make_for_shadow(policy, opened.service.catalog.digest, opened.binaries)
            oldest = choose_oldest_kept([opened.number, *(one.number for one in self._generations.open)])
            self._taking.use_generation(policy, opened, oldest=oldest)
        else:
            self._now = self._now.replace_policy(policy)
            self._taking.use_catalog(policy, opened)

    def _open_policy(self, policy: Policy) -> Catalog | Generation:
        self._now.check_no_restart(policy)
        newest = self._generations.newest
        catalog = self._now.find_usable_catalog(policy, newest.service.source)
        if catalog is not None:
            update_roles(newest.shadow, catalog)
            log_changed_shares(self._now.policy, policy, catalog)
            return catalog
        check_source_can_open(newest, policy)
        opened = open_next_generation(policy, after=newest)
        log_changed_shares(self._now.policy, policy, opened.service.catalog)
        return opened


def check_source_can_open(newest: Generation, policy: Policy) -> None:
    """Raise RestartNeeded if the new policy's source can be opened only after the open one is closed."""
    if newest.service.clashes_with(policy):
        raise RestartNeeded(("source",))


def _close_new_generation(opened: Catalog | Generation) -> None:
    if isinstance(opened, Generation):
        opened.close()


@asynccontextmanager
async def repeat_on_event(event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run `work` each time `event` is set while the block runs. Cancel a run at the end of the block."""

    async def wait() -> None:
        while True:
            await event.wait()
            event.clear()
            await work()

    waiting = asyncio.create_task(wait())
    try:
        yield
    finally:
        waiting.cancel()
        await asyncio.wait({waiting})


async def run_or_undo(work: Callable[[], T], *, undo: Callable[[T], None]) -> T:
    """Return the result of `work`, which runs in a thread. If the caller is cancelled, undo the work."""
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        if doing.exception() is None:
            await asyncio.to_thread(undo, doing.result())
        raise


def describe_refusal(error: Exception) -> dict[str, object]:
    """Return the reason why a policy is not used, for the log: its code, and never a library's own text."""
    match error:
        case RestartNeeded(changed=changed):
            return {"why": str(error), "changed": list(changed)}
        case GenerationNotOpened():
            return error.why
        case KeyholeError():
            return {"code": error.code, "why": error.message}
        case _:
            return dict(describe_exception(error))


def log_refusal(error: Exception) -> None:
    """Log why the new policy is not used."""
    log.error("policy not reloaded", **describe_refusal(error))
