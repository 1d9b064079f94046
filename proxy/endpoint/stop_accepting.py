"""An end to accepting that loses no client between the system's queue and a connection of ours."""

import asyncio
import socket
from collections.abc import Iterable

BACKLOG = 1024  # how many clients the system may keep in its queue
_TURNS = 3  # accepted; a transport; its protocol knows of it


async def accept_no_more(listening: Iterable[socket.socket]) -> None:
    """Take no more connections from sockets that this event loop listens on; those taken already get their protocol.

    Whoever is not taken stays in the system's queue, for another process or for the close of the socket to refuse.
    To be awaited before `Server.close`: a connection taken just before that fails in asyncio (Python 3.11 and 3.12)
    without being closed, and its client waits until the process ends.
    """
    loop, sockets = asyncio.get_running_loop(), tuple(listening)
    for _ in range(_TURNS):
        for one in sockets:
            loop.remove_reader(one.fileno())  # each time: after a lack of descriptors asyncio begins anew by a timer
        await asyncio.sleep(0)
