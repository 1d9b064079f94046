"""A client that connects in the very moment in which Keyhole ends is hung up on, and does not wait for it."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from starlette.applications import Starlette

from planner.policy.sections import RestSection
from proxy.endpoint.server import Endpoint, stop_accepting
from proxy.process.http_server import HttpServer
from proxy.rest import uvicorn_server as rest_server
from proxy.session.port import SessionBacking
from proxy.shadow.address import ShadowAddress
from tests.proxy.in_test_asker import FixedAsker
from tests.worlds.countries import endpoint_catalog

Serving = Callable[[socket.socket], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def postgresql(accepting: socket.socket) -> AsyncIterator[None]:
    nowhere = ShadowAddress(Path("/nowhere"), 1)
    endpoint = Endpoint(SessionBacking(endpoint_catalog(timeout_ms=1000), FixedAsker(), nowhere))
    await endpoint.start(shared=accepting)
    yield
    await endpoint.stop()


@asynccontextmanager
async def rest(accepting: socket.socket) -> AsyncIterator[None]:
    server = HttpServer(rest_server.make_config(Starlette(), RestSection()))
    serving = asyncio.create_task(server.serve(sockets=[accepting]))
    while not server.started:
        await asyncio.sleep(0)
    yield
    await server.shutdown()
    server.should_exit = True
    await serving


@pytest.fixture
def no_collection() -> Iterator[None]:
    """What is garbage stays: a connection that nobody holds is not closed by chance."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("serving", [postgresql, rest])
def test_whoever_comes_at_the_last_moment_is_hung_up_on(serving: Serving, turns: int) -> None:
    async def come() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as accepting:
            address = accepting.getsockname()
            async with serving(accepting):
                client = socket.create_connection(address)
                client.setblocking(False)
                for _ in range(turns):
                    await asyncio.sleep(0)
            with client:
                try:
                    while await loop.sock_recv(client, 4096):
                        pass
                except ConnectionResetError:
                    pass

    asyncio.run(come())


@pytest.mark.parametrize("turns", range(3))
def test_nobody_is_taken_where_listening_begins_anew_meanwhile(turns: int) -> None:
    """As asyncio does, by a timer, after it could not accept for want of descriptors."""
    taken: list[int] = []

    async def end() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as accepting:

            def begin_anew(left: int) -> None:
                if left:
                    loop.call_soon(begin_anew, left - 1)
                else:
                    loop.add_reader(accepting.fileno(), taken.append, turns)

            with socket.create_connection(accepting.getsockname()):
                loop.call_soon(begin_anew, turns)
                await stop_accepting([accepting])
                loop.remove_reader(accepting.fileno())  # as Server.close does, in the same turn

    asyncio.run(end())
    assert not taken


def test_http_is_accepted_one_by_one() -> None:
    """Beside other processes on the same socket, and without a line in the log for each that has to wait."""

    async def come() -> None:
        with ExitStack() as clients, socket.create_server(("127.0.0.1", 0)) as accepting:
            server = HttpServer(rest_server.make_config(Starlette(), RestSection()))
            serving = asyncio.create_task(server.serve(sockets=[accepting]))
            while not server.started:
                await asyncio.sleep(0)
            for _ in range(9):
                clients.enter_context(socket.create_connection(accepting.getsockname()))
            taken = [0]
            while taken[-1] < 9:
                await asyncio.sleep(0)
                taken.append(len(server.server_state.connections))
            assert max(after - before for before, after in pairwise(taken)) == 1
            server.should_exit = True
            await serving

    asyncio.run(come())
