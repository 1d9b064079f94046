"""Several processes that serve on the same ports, over one shadow and one ledger, and the one that keeps them running.

The parent binds the ports, keeps the shadow, and serves nobody. Workers accept from the same sockets, so whoever is
free takes the next connection, and what waits while a worker is started anew is taken by the others. Each has a service
of its own: connections to source and ledger, threads, counters, metrics. A pipe tells a worker what to do; its end
tells it that the parent is gone.
"""

import asyncio
import multiprocessing
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import structlog

from planner.catalog import Catalog
from planner.errors import KeyholeError
from planner.policy import Policy, RestSection
from proxy.cancelling import Siblings
from proxy.logs import fault, to_standard_error
from proxy.reloading import Reloading, RestartNeeded, compatible, log_refusal
from proxy.service import Service, open_policy_source
from proxy.serving import (
    Addresses,
    Place,
    Sockets,
    announce,
    each_time,
    prepared_shadow,
    running,
    say_goodbye,
)
from proxy.shadow.address import ShadowAddress
from proxy.shadow.schema import update_roles
from proxy.telemetry import Telemetry
from proxy.tls import Tls

log = structlog.get_logger("keyhole.workers")

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
STEADY_S = 60.0
"""A worker that lived so long did not die of how it starts: the next pause is the first one again."""
_DIVIDED = (
    "requests_per_minute",
    "requests_per_minute_per_address",
    "failed_logins_per_minute",
    "concurrent_requests",
    "concurrent_requests_per_analyst",
    "connections",
)


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is started with. `policy` is the accepted one, whatever its file says now."""

    worker: int
    workers: int
    policy: Policy
    digest: str
    shadow: ShadowAddress
    accepting: Sockets
    metrics: Place | None
    folder: Path


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker serves."""

    addresses: Addresses


@dataclass(frozen=True, slots=True)
class Failed:
    """A worker could not start."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Reload:
    """Go on with another policy."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class Stop:
    """End, as gracefully as one process alone would."""


def supervise(policy: Policy, *, accepting: Sockets, metrics: Place | None, workers: int) -> None:
    """Serve with so many processes until SIGINT or SIGTERM. The metrics of worker i are on the i-th port from
    `metrics` on. Raises KeyholeError for what is wrong with the policy, and where a worker cannot start at first."""
    with Service.over(policy) as service:  # checked once, and the ledger brought to this version by one process alone
        catalog = service.catalog
    with prepared_shadow(catalog, limits=policy.server.limits, workers=workers) as shadow:
        folder = shadow.directory.parent / "workers"
        folder.mkdir(mode=0o700)
        made = _Supervisor(
            policy, catalog, shadow=shadow, accepting=accepting, metrics=metrics, workers=workers, folder=folder
        )
        asyncio.run(made.run())


class _Worker:
    """A worker's process, as its parent sees it."""

    def __init__(self, task: Task) -> None:
        context = multiprocessing.get_context("spawn")  # no threads and no event loop of the parent's come along
        self._pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(task, theirs), daemon=True)
        self.process.start()
        theirs.close()

    async def report(self) -> Ready | Failed:
        """What becomes of its start."""
        await _readable(self._pipe.fileno())
        with suppress(EOFError, OSError):
            said = self._pipe.recv()
            if isinstance(said, Ready | Failed):
                return said
        return Failed("KH406", "a worker could not be started")

    def tell(self, message: Reload | Stop) -> None:
        """Tell it, if it still hears."""
        with suppress(OSError):
            self._pipe.send(message)

    async def ended(self) -> int | None:
        """Wait until the process is gone; its exit status."""
        await _readable(self.process.sentinel)
        self.process.join()
        self._pipe.close()
        return self.process.exitcode


class _Supervisor:
    """The parent's event loop."""

    def __init__(
        self,
        policy: Policy,
        catalog: Catalog,
        *,
        shadow: ShadowAddress,
        accepting: Sockets,
        metrics: Place | None,
        workers: int,
        folder: Path,
    ) -> None:
        self._policy = policy
        self._catalog = catalog
        self._shadow = shadow
        self._accepting = accepting
        self._metrics = metrics
        self._number = workers
        self._folder = folder
        self._workers: dict[int, _Worker] = {}
        self._told = asyncio.Event()
        self._again = asyncio.Event()

    async def run(self) -> None:
        """Start the workers, keep them running, stop them."""
        loop = asyncio.get_running_loop()
        for ending in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(ending, self._told.set)
        loop.add_signal_handler(signal.SIGHUP, self._again.set)
        keeping: list[asyncio.Task[None]] = []
        try:
            for number in range(self._number):
                self._workers[number] = _Worker(self._task(number))
            reports = await asyncio.gather(*(worker.report() for worker in self._workers.values()))
            ready = [_insisted(report) for report in reports]
            keeping = [asyncio.create_task(self._keep(number)) for number in self._workers]
            with each_time(self._again, self._reload):
                announce(ready[0], metrics_ports=[one.metrics_port for one in ready])
                await self._told.wait()
                say_goodbye()
        finally:
            self._told.set()
            for worker in self._workers.values():
                worker.tell(Stop())
            await asyncio.gather(*keeping)
            await asyncio.gather(*(worker.ended() for worker in self._workers.values()))

    def _task(self, number: int) -> Task:
        place = self._metrics
        if place is not None and place.port:
            place = Place(place.host, place.port + number)
        return Task(
            worker=number,
            workers=self._number,
            policy=self._policy,
            digest=self._catalog.digest,
            shadow=self._shadow,
            accepting=self._accepting,
            metrics=place,
            folder=self._folder,
        )

    async def _keep(self, number: int) -> None:
        """Start a worker anew whenever it ends, after pauses that grow, until everything ends."""
        loop, pause_s = asyncio.get_running_loop(), FIRST_PAUSE_S
        while True:
            started = loop.time()
            status = await self._workers[number].ended()
            del self._workers[number]
            if self._told.is_set():
                return
            pause_s = FIRST_PAUSE_S if loop.time() - started > STEADY_S else pause_s
            log.error("worker ended", worker=number, status=status, pause_s=pause_s)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), pause_s)
                return
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._workers[number] = _Worker(self._task(number))

    async def _reload(self) -> None:
        try:
            policy = Policy.load(self._policy.path)
            catalog = await asyncio.to_thread(self._compiled, policy)
        except Exception as error:
            log_refusal(error)
            return
        self._policy, self._catalog = policy, catalog
        for worker in self._workers.values():
            worker.tell(Reload(policy))

    def _compiled(self, policy: Policy) -> Catalog:
        source = open_policy_source(self._policy)
        try:
            catalog = compatible(self._policy, policy, digest=self._catalog.digest, source=source)
        finally:
            source.close()
        update_roles(self._shadow, catalog)
        return catalog


def _insisted(report: Ready | Failed) -> Addresses:
    if isinstance(report, Failed):
        raise KeyholeError(report.code, report.message)
    return report.addresses


def _work(task: Task, pipe: Connection) -> None:
    """A worker's whole life, in its own process."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # a terminal tells everybody; the parent decides
    to_standard_error(task.policy.server.log_level)
    structlog.contextvars.bind_contextvars(worker=task.worker)
    seen = Telemetry(log=structlog.get_logger())
    try:
        tls = Tls.of(task.policy)
        with Service.over(task.policy, telemetry=seen, workers=task.workers) as service:
            if service.catalog.digest != task.digest:
                raise RestartNeeded(("tables",))
            asyncio.run(_serve(task, pipe, service, tls=tls))
    except KeyholeError as error:
        log.error("worker failed", code=error.code, why=error.message)
        _say(pipe, Failed(error.code, error.message))
        raise SystemExit(1) from None
    except Exception as error:
        log.error("worker failed", **fault(error))
        _say(pipe, Failed("KH406", "a worker could not be started"))
        raise SystemExit(1) from None


async def _serve(task: Task, pipe: Connection, service: Service, *, tls: Tls | None) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopping.set)
    siblings = Siblings(task.worker, task.folder)
    rest = divided(task.policy.server.rest, task.workers)
    async with running(
        service,
        shadow=task.shadow,
        accepting=task.accepting,
        tls=tls,
        limits=task.policy.server.limits,
        rest=rest,
        metrics=task.metrics,
        siblings=siblings,
    ) as up:
        wanted: asyncio.Queue[Policy] = asyncio.Queue()
        loop.add_reader(pipe.fileno(), lambda: _hear(pipe, wanted.put_nowait, stopping.set))
        reloading = Reloading(service, up.endpoint, policy=task.policy)

        async def reload() -> None:
            while True:
                policy = await wanted.get()
                if tls is not None:
                    tls.reload()
                await reloading.reload(policy)

        reloads = asyncio.create_task(reload())
        _say(pipe, Ready(up.addresses))
        await stopping.wait()
        reloads.cancel()
        loop.remove_reader(pipe.fileno())


def _hear(pipe: Connection, take: Callable[[Policy], None], stop: Callable[[], None]) -> None:
    try:
        message = pipe.recv()
    except (EOFError, OSError):
        message = Stop()  # the parent is gone
    if isinstance(message, Reload):
        take(message.policy)
    else:
        stop()


def _say(pipe: Connection, message: Ready | Failed) -> None:
    with suppress(OSError):
        pipe.send(message)


def divided(limits: RestSection, workers: int) -> RestSection:
    """One worker's part of what REST admits, rounded up."""
    return limits.model_copy(update={name: -(-getattr(limits, name) // workers) for name in _DIVIDED})


async def _readable(descriptor: int) -> None:
    """Wait until a descriptor has something to read, or has ended."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, there.set)
    try:
        await there.wait()
    finally:
        loop.remove_reader(descriptor)
