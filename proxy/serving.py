"""Keyhole up and running: the shadow, the PostgreSQL endpoint and REST over one open policy, on one event loop."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn

from planner.errors import KeyholeError
from planner.policy import Policy
from proxy.answering import Answering
from proxy.rest import create_app
from proxy.server import Endpoint
from proxy.service import Service
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.schema import build_schema


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a running Keyhole listens."""

    host: str
    port: int
    rest_port: int
    database: str

    @property
    def postgresql(self) -> str:
        """The endpoint's URL, without a user."""
        return f"postgresql://{self.host}:{self.port}/{self.database}"

    @property
    def rest(self) -> str:
        """The base URL of REST."""
        return f"http://{self.host}:{self.rest_port}"


@asynccontextmanager
async def running(service: Service, *, host: str, port: int, rest_port: int) -> AsyncIterator[Addresses]:
    """Serve until the block ends. Port 0 takes a free one."""
    # The shadow holds no data, so it lives in a folder of its own that goes away with it.
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder, EmbeddedShadow(Path(folder) / "shadow") as shadow:
        await asyncio.to_thread(build_schema, shadow.address, service.catalog)
        endpoint = Endpoint(service.catalog, asker=Answering(service), shadow=shadow.address)
        with _listening(host, port):
            await endpoint.start(host, port)
        try:
            async with _rest(service, host=host, port=rest_port) as taken:
                yield Addresses(host=host, port=endpoint.port, rest_port=taken, database=service.catalog.database)
        finally:
            await endpoint.stop()


class _Server(uvicorn.Server):
    """uvicorn without signal handlers of its own: ending is decided here."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def _listening(host: str, port: int) -> Iterator[None]:
    """Say which address cannot be had."""
    try:
        yield
    except OSError as error:
        why = "no such host" if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        hint = "Stop what listens there, or choose another address or port: --host, --port, --rest-port, or [server]."
        raise KeyholeError("KH406", f"cannot listen on {host}:{port} ({why})", hint=hint) from None


@asynccontextmanager
async def _rest(service: Service, *, host: str, port: int) -> AsyncIterator[int]:
    config = uvicorn.Config(create_app(service), host=host, port=port, log_level="warning", access_log=False)
    server = _Server(config)
    with _listening(host, port):
        taken = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    serving = asyncio.create_task(server.serve(sockets=[taken]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if not server.started:
            raise KeyholeError("KH406", "REST could not be started")
        yield taken.getsockname()[1]
    finally:
        server.should_exit = True
        await serving


def run(policy_path: Path, *, host: str | None, port: int | None, rest_port: int | None) -> None:
    """Serve in the foreground until SIGINT or SIGTERM. Raises KeyholeError for what is wrong with the policy."""
    _log_to_standard_error()
    section = Policy.load(policy_path).server
    with Service.open(policy_path) as service:
        asyncio.run(
            _until_told(
                service,
                host=section.host if host is None else host,
                port=section.port if port is None else port,
                rest_port=section.rest_port if rest_port is None else rest_port,
            )
        )


def _log_to_standard_error() -> None:
    """One JSON object a line, for whoever runs the service; standard output is for people."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
    )


async def _until_told(service: Service, *, host: str, port: int, rest_port: int) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    async with running(service, host=host, port=port, rest_port=rest_port) as addresses:
        print(f"endpoint {addresses.postgresql}, REST and docs {addresses.rest}/docs", flush=True)
        await told.wait()
        print("stopping", flush=True)


@contextmanager
def in_background(service: Service, *, host: str, port: int, rest_port: int) -> Iterator[Addresses]:
    """Serve from a thread of its own while the block runs; for the demo, benchmarks and tests."""
    started: Future[Addresses] = Future()
    stop = threading.Event()

    async def serve() -> None:
        try:
            async with running(service, host=host, port=port, rest_port=rest_port) as addresses:
                started.set_result(addresses)
                await asyncio.to_thread(stop.wait)
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="keyhole-serving")
    thread.start()
    try:
        yield started.result()
    finally:
        stop.set()
        thread.join()
