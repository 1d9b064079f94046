"""Open policies one after another, each with the shadow that shows its tables: sessions stay on that of their login.

Guarantee: one generation answers at a time. From the moment another is taken, nothing is begun on those of before; a
question that had its turn at the source there is committed. A generation is closed when nobody uses it any more.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType

import structlog

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.sections import ServerLimitsSection
from proxy.endpoint.connection_limits import count_shadow_connections
from proxy.monitors.reading import ServiceMonitorReader
from proxy.observe.logs import describe_exception
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.service import Service
from proxy.pipeline.answering import StatementAnswerer
from proxy.process.early_data import EarlyShadowData, make_shadow_directory
from proxy.session.port import SessionBacking
from proxy.shadow.address import ShadowAddress
from proxy.shadow.binaries import PostgresPrograms, find_own_programs
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.key_labels import LabelReader
from proxy.shadow.schema import build_schema

log = structlog.get_logger("keyhole.generations")

MOST = 3
"""So many with sessions at once: each has a shadow, connections and balances of its own."""


@dataclass(frozen=True, slots=True)
class Generation:
    """An open policy and the shadow that shows its tables. `close` closes both, and may block.

    `binaries` are the operator's own PostgreSQL programs, if the shadow was started from them.
    """

    number: int
    service: Service
    shadow: ShadowAddress
    close: Callable[[], None]
    binaries: PostgresPrograms | None = None

    @staticmethod
    def lend(service: Service, shadow: ShadowAddress) -> "Generation":
        """Return the only generation of a process, over a service and a shadow that the caller opens and closes."""
        return Generation(1, service, shadow, lambda: None)

    @property
    def backing(self) -> SessionBacking:
        """Return the backing on which sessions are opened."""
        labels = LabelReader(lambda: (self.shadow, self.service.catalog.database))
        answering = StatementAnswerer(self.service, ServiceMonitorReader(self.service, labels))
        return SessionBacking(self.service.catalog, answering, self.shadow, self.service.hold_open)


class Generations:
    """The generations of one process: the newest, and older ones that sessions still use. For one event loop.

    At the end of the block all are closed, even if sessions use them.
    """

    def __init__(self, first: Generation) -> None:
        self._newest = first
        self._older: list[Generation] = []
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def newest(self) -> Generation:
        """The generation that answers new questions."""
        return self._newest

    @property
    def open(self) -> tuple[Generation, ...]:
        """All open generations, the oldest first."""
        return (*self._older, self._newest)

    @property
    def telemetry(self) -> Telemetry:
        """Return the operator's metrics and logs of all generations."""
        return self._newest.service.telemetry

    @contextmanager
    def hold_open(self) -> Iterator[Service]:
        """Yield the service of the newest generation, which stays open while the block runs. Any thread may call it."""
        with ExitStack() as holding:
            while True:
                answering = self._newest.service
                try:
                    holding.enter_context(answering.hold_open())
                except KeyholeError:
                    if answering is self._newest.service:
                        raise
                else:
                    break
            yield answering

    def replace_newest(self, generation: Generation) -> None:
        """Let another generation answer questions from now on. Close the earlier generation once no session uses it."""
        before, self._newest = self._newest, generation
        self._older.append(before)
        loop = asyncio.get_running_loop()

        def part_with_unused() -> None:
            with suppress(RuntimeError):  # the loop has ended, and `close` has seen to it
                loop.call_soon_threadsafe(self._close_unused, before)

        before.service.retire(part_with_unused)

    async def __aenter__(self) -> "Generations":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left, self._older = self.open, []
        if self._closing:
            await asyncio.wait(self._closing)
        for generation in left:
            await asyncio.to_thread(close_generation, generation)

    def _close_unused(self, generation: Generation) -> None:
        if generation not in self._older:
            return
        self._older.remove(generation)
        log.info("generation ended", generation=generation.number)
        closing = asyncio.create_task(asyncio.to_thread(close_generation, generation))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


def close_generation(generation: Generation) -> None:
    """Close a generation. Log an error instead of raising it."""
    try:
        generation.close()
    except Exception as error:
        log.error("generation not closed", generation=generation.number, **describe_exception(error))


def choose_oldest_kept(numbers: Iterable[int]) -> int:
    """Return the number of the oldest generation that may keep its sessions. At most `MOST` generations stay open."""
    return sorted(numbers)[-MOST:][0]


def open_first_generation(service: Service, policy: Policy, *, early: EarlyShadowData | None = None) -> Generation:
    """Open the first generation of a policy, with its own shadow. Use the data directory of `early`, if given.

    Raise KH002, KH013 and KH406.
    """
    return _open_with_shadow(1, service, policy, early=early)


def open_next_generation(policy: Policy, *, after: Generation) -> Generation:
    """Open the generation of a policy beside the open generation `after`."""
    return _open_with_shadow(after.number + 1, after.service.open_successor(policy), policy)


def _open_with_shadow(
    number: int, service: Service, policy: Policy, *, early: EarlyShadowData | None = None
) -> Generation:
    with ExitStack() as opened:
        opened.enter_context(service)
        binaries = find_own_programs(policy)
        shadow = opened.enter_context(
            run_prepared_shadow(service.catalog, limits=policy.server.limits, binaries=binaries, early=early)
        )
        return Generation(number, service, shadow, opened.pop_all().close, binaries)


@contextmanager
def run_prepared_shadow(
    catalog: Catalog,
    *,
    limits: ServerLimitsSection | None = None,
    workers: int = 1,
    binaries: PostgresPrograms | None = None,
    early: EarlyShadowData | None = None,
) -> Iterator[ShadowAddress]:
    """Run a shadow that shows `catalog` while the block runs, for `workers` processes with these limits each.

    It is started from `binaries`, or the wheel's, which may have made `early` data. Raises KH002, KH013 and KH406.
    """
    limits, tables = limits or ServerLimitsSection(), len(catalog.public_tables)
    with _run_shadow(limits, workers=workers, public_tables=tables, binaries=binaries, early=early) as shadow:
        build_schema(shadow.address, catalog)
        log.info("shadow started", postgresql=shadow.version, own=binaries is not None)
        yield shadow.address


@contextmanager
def run_brief_shadow(catalog: Catalog, *, binaries: PostgresPrograms | None) -> Iterator[ShadowAddress]:
    """Run a shadow that shows `catalog` for one command, without logging. Raise KH002, KH013 and KH406."""
    limits, tables = ServerLimitsSection(), len(catalog.public_tables)
    with _run_shadow(limits, workers=1, public_tables=tables, binaries=binaries) as shadow:
        build_schema(shadow.address, catalog)
        yield shadow.address


def try_shadow(catalog: Catalog, *, limits: ServerLimitsSection, binaries: PostgresPrograms | None) -> None:
    """Start a shadow that shows `catalog` without the rows of public tables, and stop it. Raise KH002, KH013 and KH406.

    This finds the faults that `find_faults` (`proxy/shadow/validity.py`) leaves to PostgreSQL: in the SQL of stored
    questions, and in programs of the operator's own.
    """
    without_rows = tuple(replace(public, rows=()) for public in catalog.public_tables)
    with _run_shadow(limits, workers=1, public_tables=len(without_rows), binaries=binaries) as shadow:
        build_schema(shadow.address, replace(catalog, public_tables=without_rows))


@contextmanager
def _run_shadow(
    limits: ServerLimitsSection,
    *,
    workers: int,
    public_tables: int,
    binaries: PostgresPrograms | None,
    early: EarlyShadowData | None = None,
) -> Iterator[EmbeddedShadow]:
    with ExitStack() as opened:
        place = make_shadow_directory() if early is None or binaries is not None else early.hand_over_directory()
        yield opened.enter_context(
            EmbeddedShadow(
                opened.enter_context(place),
                connections=workers * count_shadow_connections(limits),
                session_memory_mb=limits.session_memory_mb,
                public_tables=public_tables,
                binaries=binaries,
            )
        )
