"""The detection of a shadow server that hangs, and its termination."""

import asyncio
import os
import signal
import time
from contextlib import suppress

from proxy.shadow.address import ShadowAddress

_ANSWER_S = 5.0  # for a server process to be made and to say one byte
_END_S = 10.0  # for a server that goes on to end its sessions: those that hear nothing it kills after five seconds
_LOOK_S = 0.05  # between two looks whether it has ended: each is a stat
_ASK_FOR_TLS = bytes((0, 0, 0, 8, 4, 210, 22, 47))  # SSLRequest, which every server answers at once, full or not


async def is_answering(shadow: ShadowAddress) -> bool:
    """Return True if the server sends a byte, or closes the connection, after a client connects."""
    try:
        async with asyncio.timeout(_ANSWER_S):
            reader, writer = await asyncio.open_unix_connection(shadow.socket)
            try:
                writer.write(_ASK_FOR_TLS)
                await reader.read(1)
            finally:
                writer.close()
    except ConnectionResetError:
        return True
    except (OSError, TimeoutError):  # nobody takes the connection, or nobody says a word
        return False
    return True


def end_hung_server(shadow: ShadowAddress) -> None:
    """Terminate a server that does not answer.

    Ask the server to shut down, and let it continue if it was stopped by a signal. Kill it if it still runs after a
    time limit.
    """
    file = shadow.directory / "postmaster.pid"
    try:
        server = int(file.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return
    with suppress(ProcessLookupError):
        os.kill(server, signal.SIGQUIT)
        os.kill(server, signal.SIGCONT)
        latest = time.monotonic() + _END_S
        while file.exists() and time.monotonic() < latest:
            time.sleep(_LOOK_S)
        if file.exists():
            os.kill(server, signal.SIGKILL)
