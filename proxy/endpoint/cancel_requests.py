"""Which worker a session belongs to, and how a request to cancel reaches it.

A client's request to cancel is a connection of its own, which any worker may accept. The process number in it begins
with the session's worker; the request goes on to that worker through a Unix socket in a folder that nobody else may
enter. That module decides if its secret is right.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from proxy.wire.frontend import Cancel

MOST_WORKERS = 64  # of 2^31 process numbers each has 2^25 for its sessions, and few machines have more cores
_NUMBERS = 1 << 31  # clients read a session's process number as a signed 32-bit integer
_PER_WORKER = _NUMBERS // MOST_WORKERS
_MOST_BYTES = 4 + 256  # the process number and the longest secret that protocol 3.2 admits
_HANDED_OVER_S = 5.0  # a worker of the same machine needs one turn of its loop; one that hangs must not hold the client


@dataclass(frozen=True, slots=True)
class SiblingWorkers:
    """The other worker processes of one Keyhole, as worker number `worker` sees them.

    Without `folder` there are none.
    """

    worker: int = 0
    folder: Path | None = None

    @property
    def numbers(self) -> range:
        """The process numbers that this worker gives its sessions. No session has the number 0."""
        if self.folder is None:
            return range(1, _NUMBERS)
        return range(max(1, self.worker * _PER_WORKER), (self.worker + 1) * _PER_WORKER)

    async def forward(self, request: Cancel) -> None:
        """Send a cancel request to the worker process whose session it names. Do nothing if no such worker listens."""
        if self.folder is None or request.process in self.numbers:
            return
        path = _name_socket(self.folder, request.process // _PER_WORKER)
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_HANDED_OVER_S):
                reader, writer = await asyncio.open_unix_connection(path)
                try:
                    writer.write(request.process.to_bytes(4) + request.secret)
                    writer.write_eof()
                    # once its connection ends, the client may rely on the request having been handled
                    await reader.read()
                finally:
                    writer.close()

    @asynccontextmanager
    async def listen(self, cancel: Callable[[Cancel], Awaitable[None]]) -> AsyncIterator[None]:
        """Call `cancel` with every request that other workers forward while the block runs."""
        if self.folder is None:
            yield
            return

        async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_HANDED_OVER_S):
                    sent = await _read_until_end(reader)
                    if 4 < len(sent) <= _MOST_BYTES:
                        await cancel(Cancel(process=int.from_bytes(sent[:4]), secret=sent[4:]))
            writer.close()

        path = _name_socket(self.folder, self.worker)
        path.unlink(missing_ok=True)  # a worker that died may have left it
        async with await asyncio.start_unix_server(attend, path):
            yield


async def _read_until_end(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while len(found) <= _MOST_BYTES and (more := await reader.read(_MOST_BYTES)):
        found += more
    return found


def _name_socket(folder: Path, worker: int) -> Path:
    return folder / f"{worker}.sock"
