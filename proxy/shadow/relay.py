"""One session's own connection to the shadow, under its analyst's role: frames go through as they are."""

import asyncio
from contextlib import suppress

from planner.errors import KeyholeError
from proxy.shadow.address import ShadowAddress
from proxy.shadow.answers import Answers, Expected
from proxy.wire.backend import Report
from proxy.wire.client import ClientConnection, ClientState
from proxy.wire.frontend import Cancel, Flush, Terminate

_CHUNK_BYTES = 64 * 1024


class Refused(Exception):
    """The shadow refused the login; its own report says why."""

    def __init__(self, report: Report) -> None:
        super().__init__("the shadow refused the login")
        self.report = report


class Relay:
    """Sends messages to the shadow; a pump brings the answers back and gives the client what it asked for.

    Back-pressure runs through: the pump waits for the client to read before it reads on from the shadow.
    """

    def __init__(
        self,
        connection: ClientConnection,
        *,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        address: ShadowAddress,
        client: asyncio.StreamWriter,
    ) -> None:
        self.answers = Answers()
        self.parameters = connection.parameters
        self._connection = connection
        self._reader = reader
        self._writer = writer
        self._address = address
        self._client = client
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self._busy_since: float | None = None

    @staticmethod
    async def open(address: ShadowAddress, settings: dict[str, str], client: asyncio.StreamWriter) -> "Relay":
        """Log in. Raises Refused, or KH406 when the shadow cannot be reached."""
        try:
            reader, writer = await asyncio.open_unix_connection(address.socket)
        except OSError:
            raise KeyholeError("KH406", "the shadow database does not answer") from None
        connection = ClientConnection()
        try:
            writer.write(connection.startup(settings))
            while not connection.log_in():
                if not (data := await reader.read(_CHUNK_BYTES)):
                    raise KeyholeError("KH406", "the shadow database ended the connection")
                connection.receive(data)
        except BaseException:
            writer.close()
            raise
        if connection.state is ClientState.CLOSED and connection.refusal is not None:
            writer.close()
            raise Refused(connection.refusal)
        return Relay(connection, reader=reader, writer=writer, address=address, client=client)

    def send(self, raw: bytes, expected: Expected | None = None) -> None:
        """Queue bytes for the shadow and note what they will be answered with."""
        if expected is not None:
            self.answers.expect(expected)
            if self._busy_since is None and not self.answers.settled:
                self._busy_since = asyncio.get_running_loop().time()
        self._writer.write(raw)

    async def drain(self) -> None:
        """Wait while the shadow is behind with reading."""
        await self._writer.drain()

    async def settle(self) -> None:
        """Wait until everything sent so far has been answered. Raises ConnectionError when the shadow is gone."""
        if not self.answers.settled:
            self._writer.write(Flush().encode())
        while not self.answers.settled:
            if self._ended:
                raise ConnectionResetError("the shadow ended the connection")
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    async def pump(self) -> None:
        """Bring answers back until the shadow ends the connection."""
        try:
            while data := await self._reader.read(_CHUNK_BYTES):
                self._connection.receive(data)
                self._forward()
                await self._client.drain()
        finally:
            self._ended = True
            self._wake()

    @property
    def unread_bytes(self) -> int:
        """Bytes held for the client because it has not read them yet."""
        return self._client.transport.get_write_buffer_size()

    def busy_for(self, now: float) -> float:
        """Seconds since the shadow has had something to answer, in the loop's time."""
        return 0.0 if self._busy_since is None else now - self._busy_since

    async def cancel(self) -> None:
        """Ask the shadow to cancel what it runs for this session."""
        if (key := self._connection.key) is None:
            return
        with suppress(OSError):
            _, writer = await asyncio.open_unix_connection(self._address.socket)
            writer.write(Cancel(process=key.process, secret=key.secret).encode())
            with suppress(OSError):
                await writer.drain()
            writer.close()

    def close(self) -> None:
        """Say good-bye and hang up."""
        if not self._writer.is_closing():
            self._writer.write(Terminate().encode())
            self._writer.close()

    def _forward(self) -> None:
        shown: list[bytes] = []
        completed = self.answers.completed
        while (frame := self._connection.next_frame()) is not None:
            if frame.kind == ord("S"):
                name, _, rest = frame.payload.partition(b"\0")
                self.parameters[name] = rest[:-1]
            shown.append(self.answers.take(frame))
        self._client.write(b"".join(shown))
        if self.answers.settled:
            self._busy_since = None
            self._wake()
        elif self.answers.completed != completed:
            self._busy_since = asyncio.get_running_loop().time()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
