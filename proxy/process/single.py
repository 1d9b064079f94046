"""Keyhole up and running: the shadow, the PostgreSQL endpoint and REST over one open policy, on one event loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import uvicorn

from planner.errors import KeyholeError
from planner.policy.sections import RestSection, ServerLimitsSection
from proxy.endpoint.cancel_requests import Siblings
from proxy.endpoint.server import BACKLOG, Endpoint, accept_no_more
from proxy.observe.telemetry import Telemetry
from proxy.process.addresses import Addresses, ListenAddress, Sockets, bound
from proxy.process.generations import Generations
from proxy.process.operations import operations, readings
from proxy.rest import uvicorn_server as rest_server
from proxy.rest.app import create_app
from proxy.security.mock_users import Strangers
from proxy.security.tls import Tls
from proxy.service.readiness import Readiness, readiness
from proxy.service.service import Serving


@dataclass(frozen=True, slots=True)
class Running:
    """A Keyhole that serves."""

    addresses: Addresses
    endpoint: Endpoint


@asynccontextmanager
async def running(
    generations: Generations,
    *,
    accepting: Sockets,
    tls: Tls | None = None,
    limits: ServerLimitsSection | None = None,
    rest: RestSection | None = None,
    metrics: ListenAddress | None = None,
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


@asynccontextmanager
async def _rest(
    serving: Serving, ready: Readiness, *, accepting: socket.socket, limits: RestSection, tls: Tls | None
) -> AsyncIterator[None]:
    async with _http(rest_server.config(create_app(serving, limits, ready), limits, tls=tls), accepting=accepting):
        yield


@asynccontextmanager
async def _metrics(seen: Telemetry, ready: Readiness, *, place: ListenAddress | None) -> AsyncIterator[int | None]:
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
