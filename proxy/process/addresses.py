"""Where Keyhole listens: sockets bound before anything is started, and said aloud once it serves."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import structlog

from planner.errors import KeyholeError
from proxy.process.systemd import READY, STOPPING, notify

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


@contextmanager
def sockets(*, host: str, port: int, rest_port: int) -> Iterator[Sockets]:
    """Both sockets while the block runs. Port 0 takes a free one. Raises KH406."""
    with bound(Place(host, port)) as postgresql, bound(Place(host, rest_port)) as rest:
        yield Sockets(postgresql, rest)


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
