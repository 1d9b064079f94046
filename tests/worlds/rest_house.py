"""REST alone over real sockets, and raw bytes to it: what no HTTP client would send."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path

import uvicorn

from planner.policy.sections import RestSection
from proxy.open_policy.service import Service
from proxy.rest import uvicorn_server as rest_server
from proxy.rest.app import create_app
from proxy.rest.documentation import SITE
from proxy.security.tls import Tls
from tests.effort import PATIENCE_S
from tests.worlds.house import check_once
from tests.worlds.wards import TOKENS, install

TOKEN = TOKENS["ada"]
UNHURRIED = RestSection(
    requests_per_minute=10**6, requests_per_minute_per_address=10**6, failed_logins_per_minute=10**6
)


@contextmanager
def own_house(directory: Path) -> Iterator[Service]:
    """A service that a test may ruin."""
    with Service.open(check_once(install(directory))) as opened:
        yield opened


@contextmanager
def served(service: Service, limits: RestSection, *, tls: Tls | None = None, site: Path = SITE) -> Iterator[int]:
    """REST on a free port of loopback while the block runs."""
    listening = socket.create_server(("127.0.0.1", 0))
    ready: Future[asyncio.Event] = Future()

    async def serve() -> None:
        server = uvicorn.Server(rest_server.make_config(create_app(service, limits, site=site), limits, tls=tls))
        stop = asyncio.Event()
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        stop_soon.append((asyncio.get_running_loop(), stop))
        ready.set_result(stop)
        await stop.wait()
        server.should_exit = server.force_exit = True
        await serving

    stop_soon: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        ready.result(PATIENCE_S)
        yield int(listening.getsockname()[1])
    finally:
        for loop, stop in stop_soon:
            loop.call_soon_threadsafe(stop.set)
        thread.join()


def exchange(port: int, sent: bytes, *, timeout_s: float = PATIENCE_S) -> bytes:
    """Everything that comes back until the server closes the connection."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=timeout_s)) as connection:
        connection.sendall(sent)
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    came = b""
    try:
        while piece := connection.recv(65536):
            came += piece
    except ConnectionResetError:
        pass
    return came


def request(
    method: str = "GET", target: str = "/v1/budget", *, more: bytes = b"", body: bytes = b"", close: bool = True
) -> bytes:
    """A well-formed request of ada's, with more headers if given."""
    head = f"{method} {target} HTTP/1.1\r\nHost: keyhole\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    ending = b"Connection: close\r\n" if close else b""
    return head + more + ending + b"\r\n" + body
