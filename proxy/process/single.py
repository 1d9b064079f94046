"""Keyhole up and running: the shadow, the PostgreSQL endpoint and REST over one open policy, on one event loop."""

import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog
import uvicorn

from planner.errors import KeyholeError
from planner.policy.file import Policy, RestSection, ServerLimitsSection
from proxy.concurrency.signals import Signals
from proxy.endpoint.cancel_requests import Siblings
from proxy.endpoint.server import Endpoint
from proxy.endpoint.stop_accepting import BACKLOG, accept_no_more
from proxy.observe.logs import to_standard_error
from proxy.observe.telemetry import Telemetry
from proxy.process.generations import Generation, Generations, first_generation, prepared_shadow
from proxy.process.operations import operations, readings
from proxy.process.reload import Reloading
from proxy.process.systemd import READY, STOPPING, notify
from proxy.rest import uvicorn_server as rest_server
from proxy.rest.app import create_app
from proxy.security.mock_users import Strangers
from proxy.security.tls import Tls, exposure
from proxy.service.login_secret import login_secret
from proxy.service.readiness import Readiness, readiness
from proxy.service.service import Service, Serving
from proxy.shadow.address import ShadowAddress

log = structlog.get_logger("keyhole.serving")


@dataclass(frozen=True, slots=True)
class Place:
    """Where to listen; port 0 takes a free one."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running Keyhole listens."""

    host: str
    port: int
    rest_port: int
    database: str
    metrics_port: int | None = None
    rest_scheme: str = "http"

    @property
    def postgresql(self) -> str:
        """The endpoint's URL, without a user."""
        return f"postgresql://{self.host}:{self.port}/{self.database}"

    @property
    def rest(self) -> str:
        """The base URL of REST."""
        return f"{self.rest_scheme}://{self.host}:{self.rest_port}"


@dataclass(frozen=True, slots=True)
class Sockets:
    """Where a Keyhole accepts connections: bound already, and maybe shared with other processes."""

    postgresql: socket.socket
    rest: socket.socket


@dataclass(frozen=True, slots=True)
class Running:
    """A Keyhole that serves."""

    addresses: Addresses
    endpoint: Endpoint


@contextmanager
def sockets(*, host: str, port: int, rest_port: int) -> Iterator[Sockets]:
    """Both sockets while the block runs. Port 0 takes a free one. Raises KH406."""
    with bound(Place(host, port)) as postgresql, bound(Place(host, rest_port)) as rest:
        yield Sockets(postgresql, rest)


@asynccontextmanager
async def running(
    generations: Generations,
    *,
    accepting: Sockets,
    tls: Tls | None = None,
    limits: ServerLimitsSection | None = None,
    rest: RestSection | None = None,
    metrics: Place | None = None,
    siblings: Siblings | None = None,
    strangers: Strangers | None = None,
) -> AsyncIterator[Running]:
    """Serve over the newest generation until the block ends. `limits` are PostgreSQL's alone, `rest` limits REST.

    Without `metrics` there is no port for the operator. With `siblings` other processes accept on the same sockets,
    over the same shadows. `strangers` is what unknown users are told; without it another in each process.
    """
    siblings = siblings or Siblings()
    seen, newest = generations.telemetry, generations.newest
    ready = readiness(generations, lambda: generations.newest.shadow)
    rest_tls = tls if tls is not None and tls.covers_rest else None
    endpoint = Endpoint(newest.backing, tls=tls, limits=limits, telemetry=seen, siblings=siblings, strangers=strangers)
    seen.watch(*readings(generations, endpoint, ready))
    await endpoint.start(shared=accepting.postgresql)
    stopping: asyncio.Task[None] | None = None
    try:
        async with (
            siblings.listening(endpoint.cancel),
            _rest(generations, ready, accepting=accepting.rest, limits=rest or RestSection(), tls=rest_tls),
            _metrics(seen, ready, place=metrics) as metrics_port,
        ):
            host, port = accepting.postgresql.getsockname()[:2]
            addresses = Addresses(
                host=host,
                port=port,
                rest_port=accepting.rest.getsockname()[1],
                database=newest.service.catalog.database,
                metrics_port=metrics_port,
                rest_scheme="http" if rest_tls is None else "https",
            )
            try:
                yield Running(addresses, endpoint)
            finally:
                # beside REST, whose last request may take long: nobody may log in meanwhile
                stopping = asyncio.create_task(endpoint.stop())
    finally:
        await (stopping or endpoint.stop())


class HttpServer(uvicorn.Server):
    """uvicorn without signal handlers of its own: ending is decided here, and leaves no client waiting.

    It takes one connection at a time: the first process to wake takes not all that wait, and where a process has no
    more file descriptors asyncio says so once and not for every place in the queue.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        config.backlog = 1
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, with a queue as long as that of PostgreSQL's port."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the server."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and end those there are, each after its request."""
        for server in self.servers:
            await accept_no_more(server.sockets)
        await super().shutdown(sockets)


@contextmanager
def bound(place: Place) -> Iterator[socket.socket]:
    """A listening socket while the block runs. Raises KH406, saying which address cannot be had."""
    try:
        taken = socket.create_server(
            (place.host, place.port), family=socket.AF_INET6 if ":" in place.host else socket.AF_INET
        )
    except OSError as error:
        why = "no such host" if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        hint = "Stop what listens there, or choose another: --host, --port, --rest-port, --metrics-port, or [server]."
        raise KeyholeError("KH406", f"cannot listen on {place.host}:{place.port} ({why})", hint=hint) from None
    with taken:
        yield taken


@asynccontextmanager
async def _rest(
    serving: Serving, ready: Readiness, *, accepting: socket.socket, limits: RestSection, tls: Tls | None
) -> AsyncIterator[None]:
    async with _http(rest_server.config(create_app(serving, limits, ready), limits, tls=tls), accepting=accepting):
        yield


@asynccontextmanager
async def _metrics(seen: Telemetry, ready: Readiness, *, place: Place | None) -> AsyncIterator[int | None]:
    if place is None:
        yield None
        return
    with bound(place) as taken:
        async with _http(operations(seen, ready), accepting=taken):
            yield taken.getsockname()[1]


@asynccontextmanager
async def _http(config: uvicorn.Config, *, accepting: socket.socket) -> AsyncIterator[None]:
    """Serve HTTP on a bound socket while the block runs; requests that run at its end are answered. Raises KH406."""
    server = HttpServer(config)
    serving = asyncio.create_task(server.serve(sockets=[accepting]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if not server.started:
            raise KeyholeError("KH406", "an HTTP server could not be started")
        yield
    finally:
        server.should_exit = True
        await serving


def run(
    policy_path: Path,
    *,
    host: str | None,
    port: int | None,
    rest_port: int | None,
    metrics_host: str | None = None,
    metrics_port: int | None = None,
    workers: int | None = None,
) -> None:
    """Serve in the foreground until SIGINT or SIGTERM; SIGHUP reads the policy again. Raises KeyholeError for what is
    wrong with the policy."""
    signals = Signals()
    policy = Policy.load(policy_path)
    to_standard_error(policy.server.log_level)
    section, tls = policy.server, Tls.of(policy)
    for warning in exposure(host or section.host, tls, now=datetime.now(UTC)):
        log.warning("exposed", what=warning)
    wanted = section.metrics_port if metrics_port is None else metrics_port
    metrics = None if wanted is None else Place(metrics_host or section.metrics_host, wanted)
    with sockets(
        host=section.host if host is None else host,
        port=section.port if port is None else port,
        rest_port=section.rest_port if rest_port is None else rest_port,
    ) as accepting:
        several = section.workers if workers is None else workers
        if several > 1:
            from proxy.process.supervisor import supervise

            supervise(policy, accepting=accepting, metrics=metrics, workers=several, signals=signals)
            return
        service = Service.over(policy, telemetry=Telemetry(log=structlog.get_logger()))
        strangers = Strangers(login_secret(policy))
        signals.hold()
        with signals.excusing():
            first = first_generation(service, policy)
            asyncio.run(
                _until_told(
                    first,
                    policy=policy,
                    accepting=accepting,
                    tls=tls,
                    metrics=metrics,
                    strangers=strangers,
                    signals=signals,
                )
            )


async def _until_told(
    first: Generation,
    *,
    policy: Policy,
    accepting: Sockets,
    tls: Tls | None,
    metrics: Place | None,
    strangers: Strangers,
    signals: Signals,
) -> None:
    told, again = asyncio.Event(), asyncio.Event()
    signals.hand_over(end=told, reload=again)
    async with AsyncExitStack() as opened:
        generations = await opened.enter_async_context(Generations(first))
        if told.is_set():
            return
        up = await opened.enter_async_context(
            running(
                generations,
                accepting=accepting,
                tls=tls,
                limits=policy.server.limits,
                rest=policy.server.rest,
                metrics=metrics,
                strangers=strangers,
            )
        )
        reloading = Reloading(generations, up.endpoint, policy=policy)

        async def reload() -> None:
            if tls is not None:
                tls.reload()
            await reloading.reload()

        async with each_time(again, reload):
            announce(up.addresses, metrics_ports=(up.addresses.metrics_port,))
            await told.wait()
            say_goodbye()


@asynccontextmanager
async def each_time(event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Do `work` whenever `event` is set while the block runs, one after the other; at the end it is cancelled."""

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


def announce(addresses: Addresses, *, metrics_ports: Sequence[int | None]) -> None:
    """Tell operator, log and service manager that Keyhole serves, each worker's metrics on a port of its own."""
    ports = [str(port) for port in metrics_ports if port is not None]
    operator = f", metrics on port {', '.join(ports)}" if ports else ""
    print(f"endpoint {addresses.postgresql}, REST and docs {addresses.rest}/docs{operator}", flush=True)
    log.info("started", port=addresses.port, rest_port=addresses.rest_port, metrics_port=addresses.metrics_port)
    notify(READY)


def say_goodbye() -> None:
    """Tell them that Keyhole ends."""
    notify(STOPPING)
    log.info("stopping")
    print("stopping", flush=True)


@contextmanager
def in_background(
    service: Service,
    *,
    host: str,
    port: int,
    rest_port: int,
    tls: Tls | None = None,
    rest: RestSection | None = None,
    metrics: Place | None = None,
) -> Iterator[Addresses]:
    """Serve from a thread of its own while the block runs; for the demo, benchmarks and tests."""
    started: Future[Addresses] = Future()
    stop = threading.Event()

    async def serve(shadow: ShadowAddress, accepting: Sockets) -> None:
        try:
            async with (
                Generations(Generation.lent(service, shadow)) as generations,
                running(generations, accepting=accepting, tls=tls, rest=rest, metrics=metrics) as up,
            ):
                started.set_result(up.addresses)
                await asyncio.to_thread(stop.wait)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    with prepared_shadow(service.catalog) as shadow, sockets(host=host, port=port, rest_port=rest_port) as accepting:
        thread = threading.Thread(target=lambda: asyncio.run(serve(shadow, accepting)), name="keyhole-serving")
        thread.start()
        try:
            yield started.result()
        finally:
            stop.set()
            thread.join()
