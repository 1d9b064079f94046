"""uvicorn run by Keyhole: on sockets that are bound already, and ended by its starter instead of by signals."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn

from planner.errors import KeyholeError
from proxy.endpoint.server import BACKLOG, stop_accepting

_STARTED_EVERY_S = 0.01  # how soon a start is noticed against looks at a flag: uvicorn offers nothing to wait for


class HttpServer(uvicorn.Server):
    """A uvicorn server that leaves no client waiting when it stops.

    It accepts one connection at a time. So the first process to wake does not accept all waiting connections. A process
    without free file descriptors then reports that once, not for every place in the queue.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        config.backlog = 1
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with a queue as long as that of the PostgreSQL port."""
        await super().startup(sockets)
        for one in sockets or ():
            one.listen(BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process that runs the server."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and close each open one after its current request."""
        for server in self.servers:
            await stop_accepting(server.sockets)
        await super().shutdown(sockets)


@asynccontextmanager
async def serve_http(config: uvicorn.Config, *, accepting: socket.socket) -> AsyncIterator[None]:
    """Serve HTTP on a bound socket while the block runs. Running requests are answered at its end.

    Raise KH406 if the server does not start.
    """
    server = HttpServer(config)
    serving = asyncio.create_task(server.serve(sockets=[accepting]))
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(_STARTED_EVERY_S)
        if not server.started:
            raise KeyholeError("KH406", "an HTTP server could not be started")
        yield
    finally:
        server.should_exit = True
        await serving
