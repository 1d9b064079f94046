"""Keyhole up and running: the shadow, the PostgreSQL endpoint and REST over one open policy, on one event loop."""

import asyncio
import os
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog
import uvicorn

from planner.catalog import Catalog
from planner.errors import KeyholeError
from planner.policy import Policy, RestSection, ServerLimitsSection
from proxy import rest_server
from proxy.answering import Answering
from proxy.cancelling import Siblings
from proxy.limits import shadow_connections
from proxy.logs import to_standard_error
from proxy.operations import operations, readings
from proxy.readiness import Readiness, readiness
from proxy.reloading import Reloading
from proxy.rest import create_app
from proxy.server import Endpoint
from proxy.service import Service
from proxy.shadow.address import ShadowAddress
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.schema import build_schema
from proxy.systemd import READY, STOPPING, notify
from proxy.telemetry import Telemetry
from proxy.tls import Tls, exposure

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

    @property
    def postgresql(self) -> str:
        """The endpoint's URL, without a user."""
        return f"postgresql://{self.host}:{self.port}/{self.database}"

    @property
    def rest(self) -> str:
        """The base URL of REST."""
        return f"http://{self.host}:{self.rest_port}"


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


@contextmanager
def prepared_shadow(
    catalog: Catalog, *, limits: ServerLimitsSection | None = None, workers: int = 1
) -> Iterator[ShadowAddress]:
    """A shadow that shows `catalog` while the block runs, for so many workers with these limits each."""
    connections = workers * shadow_connections(limits or ServerLimitsSection())
    # it holds no data, so it lives in a folder of its own that goes away with it
    with (
        tempfile.TemporaryDirectory(prefix="keyhole-") as folder,
        EmbeddedShadow(Path(folder) / "shadow", connections=connections) as shadow,
    ):
        build_schema(shadow.address, catalog)
        yield shadow.address


@asynccontextmanager
async def running(
    service: Service,
    *,
    shadow: ShadowAddress,
    accepting: Sockets,
    tls: Tls | None = None,
    limits: ServerLimitsSection | None = None,
    rest: RestSection | None = None,
    metrics: Place | None = None,
    siblings: Siblings | None = None,
) -> AsyncIterator[Running]:
    """Serve until the block ends. `tls` and `limits` are PostgreSQL's alone, `rest` limits REST.

    Without `metrics` there is no port for the operator. With `siblings` other processes accept on the same sockets,
    over the same shadow.
    """
    siblings = siblings or Siblings()
    seen, ready = service.telemetry, readiness(service, shadow)
    endpoint = Endpoint(
        service.catalog,
        asker=Answering(service),
        shadow=shadow,
        tls=tls,
        limits=limits,
        telemetry=seen,
        siblings=siblings,
    )
    seen.watch(*readings(service, endpoint, shadow, ready))
    await endpoint.start(shared=accepting.postgresql)
    try:
        async with (
            siblings.listening(endpoint.cancel),
            _rest(service, ready, accepting=accepting.rest, limits=rest or RestSection()),
            _metrics(seen, ready, place=metrics) as metrics_port,
        ):
            host, port = accepting.postgresql.getsockname()[:2]
            addresses = Addresses(
                host=host,
                port=port,
                rest_port=accepting.rest.getsockname()[1],
                database=service.catalog.database,
                metrics_port=metrics_port,
            )
            yield Running(addresses, endpoint)
    finally:
        await endpoint.stop()


class _Server(uvicorn.Server):
    """uvicorn without signal handlers of its own: ending is decided here."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


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
    service: Service, ready: Readiness, *, accepting: socket.socket, limits: RestSection
) -> AsyncIterator[None]:
    async with _http(rest_server.config(create_app(service, limits, ready), limits), accepting=accepting):
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
    server = _Server(config)
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
            from proxy.workers import supervise

            supervise(policy, accepting=accepting, metrics=metrics, workers=several)
            return
        with (
            Service.over(policy, telemetry=Telemetry(log=structlog.get_logger())) as service,
            prepared_shadow(service.catalog, limits=section.limits) as shadow,
        ):
            asyncio.run(
                _until_told(service, policy=policy, shadow=shadow, accepting=accepting, tls=tls, metrics=metrics)
            )


async def _until_told(
    service: Service,
    *,
    policy: Policy,
    shadow: ShadowAddress,
    accepting: Sockets,
    tls: Tls | None,
    metrics: Place | None,
) -> None:
    told, again = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    loop.add_signal_handler(signal.SIGHUP, again.set)
    async with running(
        service,
        shadow=shadow,
        accepting=accepting,
        tls=tls,
        limits=policy.server.limits,
        rest=policy.server.rest,
        metrics=metrics,
    ) as up:
        reloading = Reloading(service, up.endpoint, policy=policy, shadow=shadow)

        async def reload() -> None:
            if tls is not None:
                tls.reload()
            await reloading.reload()

        with each_time(again, reload):
            announce(up.addresses, metrics_ports=(up.addresses.metrics_port,))
            await told.wait()
            say_goodbye()


@contextmanager
def each_time(event: asyncio.Event, work: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Do `work` whenever `event` is set while the block runs, one after the other."""

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
            async with running(service, shadow=shadow, accepting=accepting, tls=tls, rest=rest, metrics=metrics) as up:
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
