"""One session's own connection to the shadow, under its analyst's role: frames go through as they are."""

import asyncio
from contextlib import suppress

from planner.errors import KeyholeError
from proxy.shadow.address import ShadowAddress
from proxy.shadow.answers import Answers, Expected
from proxy.wire import backend
from proxy.wire.backend import Report
from proxy.wire.client import ClientConnection, ClientState
from proxy.wire.frames import Frame
from proxy.wire.frontend import Cancel, Flush, Parse, Sync, Terminate

_CHUNK_BYTES = 64 * 1024
_CANCELLED_S = 5.0
MOST_UNANSWERED = 1000
_PARSED = frozenset(map(ord, "1E"))
_GRAMMAR_FILES = frozenset((b"scan.l", b"scansup.c", b"gram.y", b"parser.c"))
_NOT_IN_ENCODING = b"22021"


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
        settings: dict[str, str],
        client: asyncio.StreamWriter,
    ) -> None:
        self.answers = Answers()
        self.parameters = connection.parameters
        self.settings = settings
        self._connection = connection
        self._reader = reader
        self._writer = writer
        self._address = address
        self._client = client
        self._waiting: asyncio.Future[None] | None = None
        self._ended = False
        self._busy_since: float | None = None
        self.settled_at = asyncio.get_running_loop().time()

    @staticmethod
    async def open(address: ShadowAddress, settings: dict[str, str], client: asyncio.StreamWriter) -> "Relay":
        """Log in. Raises Refused, or KH406 when the shadow cannot be reached."""
        connection, reader, writer = await _logged_in(address, settings)
        return Relay(connection, reader=reader, writer=writer, address=address, settings=settings, client=client)

    async def syntax_error(self, text: bytes) -> bytes | None:
        """What PostgreSQL's grammar has against a text of several statements, as its ErrorResponse; nothing is run.

        Asked on a connection of its own, because the error would end this session's transaction. Raises KH406.
        """
        encoding = self.parameters.get(b"client_encoding", b"UTF8").decode("ascii")
        try:
            connection, reader, writer = await _logged_in(self._address, {**self.settings, "client_encoding": encoding})
        except Refused:
            raise KeyholeError("KH406", "the shadow database has no connection left") from None
        try:
            writer.write(Parse(b"", text).encode() + Sync().encode())
            while (frame := connection.next_frame()) is None or frame.kind not in _PARSED:
                if frame is None:
                    if not (data := await reader.read(_CHUNK_BYTES)):
                        raise KeyholeError("KH406", "the shadow database ended the connection")
                    connection.receive(data)
        finally:
            writer.close()
        return frame.raw if is_syntax_error(frame) else None

    def send(self, raw: bytes, expected: Expected | None = None) -> None:
        """Queue bytes for the shadow and note what they will be answered with."""
        if expected is not None:
            self.answers.expect(expected)
            if self._busy_since is None and not self.answers.settled:
                self._busy_since = asyncio.get_running_loop().time()
        self._writer.write(raw)

    async def keep_pace(self) -> None:
        """Wait while the client is behind with reading, or the shadow with reading or answering."""
        await self._client.drain()
        await self._writer.drain()
        if self.answers.waiting >= MOST_UNANSWERED:
            await self.settle()

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
        """Ask the shadow to cancel what it runs for this session, and wait until it has heard.

        Otherwise it might hear when the session's next statement runs already.
        """
        if (key := self._connection.key) is None:
            return
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CANCELLED_S):
                reader, writer = await asyncio.open_unix_connection(self._address.socket)
                try:
                    writer.write(Cancel(process=key.process, secret=key.secret).encode())
                    await reader.read()
                finally:
                    writer.close()

    async def end(self) -> None:
        """Hang up, and leave nothing running in the shadow."""
        if self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()  # it may never read on: it waits for us to read
        elif not self._writer.is_closing():
            self._writer.write(Terminate().encode())
            self._writer.close()
        if not self.answers.settled:
            await self.cancel()

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
            self.settled_at = asyncio.get_running_loop().time()
            self._wake()
        elif self.answers.completed != completed:
            self._busy_since = asyncio.get_running_loop().time()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def is_syntax_error(frame: Frame) -> bool:
    """Whether a frame is the ErrorResponse of PostgreSQL's lexer or grammar, which every text must pass first."""
    report = backend.decode(frame) if frame.kind == ord("E") else None
    return isinstance(report, Report) and (
        report.field(b"F") in _GRAMMAR_FILES or report.field(b"C") == _NOT_IN_ENCODING
    )


def is_failed_transaction(frame: Frame) -> bool:
    """Whether a frame is the ErrorResponse to everything that cannot be done in a failed transaction."""
    report = backend.decode(frame) if frame.kind == ord("E") else None
    return isinstance(report, Report) and report.field(b"C") == b"25P02"


async def _logged_in(
    address: ShadowAddress, settings: dict[str, str]
) -> tuple[ClientConnection, asyncio.StreamReader, asyncio.StreamWriter]:
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
    return connection, reader, writer
