"""One session's own connection to the shadow, in its analyst's role. It passes frames through unchanged."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from planner.errors import KeyholeError
from proxy.shadow.address import ShadowAddress
from proxy.shadow.answers import AnswerQueue, ExpectedAnswer
from proxy.shadow.link import ShadowLink, ShadowLoginRefused
from proxy.wire import backend
from proxy.wire.backend import Report
from proxy.wire.frames import Frame
from proxy.wire.frontend import Cancel, Flush, Parse, Sync, Terminate

_CANCELLED_S = 5.0  # for a request to cancel: PostgreSQL answers at once, and one that hangs holds up no client
_PARSED_S = 60.0  # for the grammar's word on the longest text; a shadow that hangs says none
MOST_UNANSWERED = 1000  # a longer pipeline would not make the shadow faster, and expected answers are held in memory
_GATHERED_BYTES = 64 * 1024  # as much as is read from a client at once: what it sent in one piece goes on in one
_FLUSH = Flush().encode()
_READY = ord("Z")
_PARSED = frozenset(map(ord, "1E"))
GRAMMAR_FILES = frozenset((b"scan.l", b"scansup.c", b"gram.y", b"parser.c"))
"""Files of PostgreSQL whose errors are about the form of a text alone."""
_ANALYSIS_FILES = b"parse_"  # parse_clause.c, parse_relation.c, ...
_NOT_IN_ENCODING = b"22021"
_CANCELLED = b"57014"
_TIMED_OUT = b"canceling statement due to statement timeout"


class ShadowRelay:
    """A relay that sends messages to the shadow, and passes the client's answers on at once.

    While the client reads too slowly, nothing more is read from the shadow.

    A caller with several messages sets `gathers`, so that they are sent together. `before_ready` returns bytes for the
    client, sent just before a ReadyForQuery outside a transaction. `on_settled` is called when everything has been
    answered.
    """

    def __init__(
        self,
        link: ShadowLink,
        *,
        address: ShadowAddress,
        settings: dict[str, str],
        client: asyncio.StreamWriter,
    ) -> None:
        self.answers = AnswerQueue()
        self.gathers = False
        self.before_ready: Callable[[], bytes] = bytes
        self.on_settled: Callable[[], None] = _do_nothing
        self.parameters = link.connection.parameters
        self.settings = settings
        self._link = link
        self._address = address
        self._client = client
        self._waiting: asyncio.Future[None] | None = None
        self._gathered = bytearray()
        self._attention = asyncio.Event()  # tells the pump that the shadow is gone or that the client reads too slowly
        self._high_water_bytes = client.transport.get_write_buffer_limits()[1]
        self._busy_since: float | None = None
        self._is_late = False
        self.settled_at = asyncio.get_running_loop().time()
        self._heard_at = self.settled_at
        self._is_paused = False

    @staticmethod
    async def open(address: ShadowAddress, settings: dict[str, str], client: asyncio.StreamWriter) -> "ShadowRelay":
        """Connect and log in. Raise ShadowLoginRefused, or KH406 if the shadow cannot be reached."""
        return ShadowRelay(await ShadowLink.open(address, settings), address=address, settings=settings, client=client)

    async def find_syntax_error(self, text: bytes) -> bytes | None:
        """Return PostgreSQL's syntax error in a text of several statements, as its ErrorResponse, or None.

        Run nothing. A separate connection is used, because the error would end this session's transaction. Raise KH406
        if no shadow answers.
        """
        try:
            async with asyncio.timeout(_PARSED_S):
                return await self._ask_syntax_error(text)
        except TimeoutError:
            raise KeyholeError(
                "KH406", "the shadow database does not answer", hint="Send the statement again in a moment."
            ) from None

    async def _ask_syntax_error(self, text: bytes) -> bytes | None:
        encoding = self.parameters.get(b"client_encoding", b"UTF8").decode("ascii")
        try:
            link = await ShadowLink.open(self._address, {**self.settings, "client_encoding": encoding})
        except ShadowLoginRefused:
            raise KeyholeError(
                "KH406", "the shadow database has no connection left", hint="Send the statement again in a moment."
            ) from None
        try:
            link.transport.write(Parse(b"", text).encode() + Sync().encode())
            while (frame := link.connection.next_frame()) is None or frame.kind not in _PARSED:
                if frame is None:
                    await link.wait_for_bytes()
        finally:
            link.transport.close()
        return frame.raw if is_syntax_error(frame) else None

    def send(self, raw: bytes, expected: ExpectedAnswer | None = None) -> None:
        """Queue bytes for the shadow, and note the answers to expect."""
        if expected is not None:
            self.answers.expect(expected)
            if self._busy_since is None and not self.answers.is_settled:
                self._busy_since = asyncio.get_running_loop().time()
        if not self.gathers and not self._gathered:
            self._link.transport.write(raw)
            return
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._send_gathered)
        self._gathered += raw
        if not self.gathers or len(self._gathered) > _GATHERED_BYTES:
            self._send_gathered()

    async def keep_pace(self) -> None:
        """Wait while the client reads too slowly, or while the shadow reads or answers too slowly."""
        transport = self._client.transport
        if transport.is_closing() or transport.get_write_buffer_size():
            await self._client.drain()
        if not self._link.is_writable:
            await self._link.wait_until_writable()
        if self.answers.waiting >= MOST_UNANSWERED:
            await self.settle()

    async def settle(self) -> None:
        """Wait until everything sent so far has been answered. Raise ConnectionError if the shadow is lost."""
        self._send_gathered()
        if not self.answers.is_settled:
            self._link.transport.write(_FLUSH)
        while not self.answers.is_settled:
            if self._link.is_over:
                raise ConnectionResetError("the shadow ended the connection")
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting

    async def forward_answers(self) -> None:
        """Pass answers on until the shadow ends the connection. Raise ConnectionError if the client is lost."""
        self._link.listen(arrived=self._on_arrival, ended=self._note_end)
        try:
            while not self._link.is_over:
                await self._attention.wait()
                self._attention.clear()
                await self._client.drain()
                self._link.transport.resume_reading()
                self._is_paused, self._heard_at = False, asyncio.get_running_loop().time()
        finally:
            self._wake()
        if self._link.failure is not None:
            raise self._link.failure

    @property
    def process(self) -> int:
        """The number of the shadow's process for this session."""
        key = self._link.connection.key
        return 0 if key is None else key.process

    @property
    def unread_bytes(self) -> int:
        """The number of bytes kept for the client that it has not read yet."""
        return self._client.transport.get_write_buffer_size()

    @property
    def held_bytes(self) -> int:
        """The number of buffered bytes, in both directions."""
        link = self._link
        unsent = len(self._gathered) + link.transport.get_write_buffer_size()
        return unsent + link.connection.buffered + self.unread_bytes

    def get_busy_seconds(self, now: float) -> float:
        """Return how long the shadow has been answering, in seconds; 0 if it is idle.

        The time is counted from the last finished answer, or from the first message after an idle time. `now` is the
        event loop's time.
        """
        return 0.0 if self._busy_since is None else now - self._busy_since

    def get_silent_seconds(self, now: float) -> float:
        """Return for how many seconds the shadow has sent nothing, although an answer is expected.

        The result is 0 while nothing is read from the shadow. `now` is the event loop's time.
        """
        if self._busy_since is None or self._is_paused:
            return 0.0
        return now - max(self._busy_since, self._heard_at)

    async def cancel(self) -> None:
        """Ask the shadow to cancel this session's statement, and wait until it has received the request.

        Without waiting, the request could cancel the session's next statement. Stop waiting after a time limit.
        """
        if (key := self._link.connection.key) is None:
            return
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CANCELLED_S):
                reader, writer = await asyncio.open_unix_connection(self._address.socket)
                try:
                    writer.write(Cancel(process=key.process, secret=key.secret).encode())
                    await reader.read()
                finally:
                    writer.close()

    async def cancel_as_timed_out(self) -> None:
        """Cancel the running statement, and send the client the error of PostgreSQL's own statement timeout."""
        self._is_late = True
        await self.cancel()

    async def end(self) -> None:
        """Close the connection, and stop the session's running statement in the shadow."""
        transport = self._link.transport
        self._gathered.clear()
        if transport.get_write_buffer_size():
            transport.abort()  # the shadow may wait for us to read, and then would never take what is still to be sent
        elif not transport.is_closing():
            transport.write(Terminate().encode())
            transport.close()
        if not self.answers.is_settled:
            await self.cancel()

    def _send_gathered(self) -> None:
        if self._gathered:
            self._link.transport.write(bytes(self._gathered))
            self._gathered.clear()

    def _on_arrival(self) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        self._forward()
        if self._client.transport.is_closing() or self.unread_bytes > self._high_water_bytes:
            self._link.transport.pause_reading()
            self._is_paused = True
            self._attention.set()

    def _note_end(self) -> None:
        self._attention.set()
        self._wake()

    def _forward(self) -> None:
        shown: list[bytes] = []
        completed = self.answers.completed
        while (frame := self._link.connection.next_frame()) is not None:
            if frame.kind == ord("S"):
                name, _, rest = frame.payload.partition(b"\0")
                self.parameters[name] = rest[:-1]
            if self._is_late and frame.kind == ord("E"):
                frame = _reword_as_timeout(frame)
            taken = self.answers.take_frame(frame)
            if taken and frame.kind == _READY and self.answers.status == b"I":
                shown.append(self.before_ready())
            shown.append(taken)
        self._client.write(b"".join(shown))
        if self.answers.is_settled:
            self._busy_since = None
            self._is_late = False
            self.settled_at = asyncio.get_running_loop().time()
            self._wake()
            self.on_settled()
        elif self.answers.completed != completed:
            self._busy_since = asyncio.get_running_loop().time()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _do_nothing() -> None:
    """Do nothing. This is the callback until another one is set."""


def _reword_as_timeout(frame: Frame) -> Frame:
    """Return the ErrorResponse to a cancelled statement, reworded as PostgreSQL's error for a timeout.

    Return other errors unchanged.
    """
    report = backend.decode(frame)
    if not isinstance(report, Report) or report.find_field(b"C") != _CANCELLED:
        return frame
    fields = tuple((name, _TIMED_OUT if name == b"M" else value) for name, value in report.fields)
    return Frame(frame.kind, Report(report.kind, fields).encode())


def is_syntax_error(frame: Frame) -> bool:
    """Return True if a frame is an ErrorResponse of PostgreSQL's lexer or grammar.

    Every text must pass the lexer and the grammar first.
    """
    report = backend.decode(frame) if frame.kind == ord("E") else None
    return isinstance(report, Report) and (
        report.find_field(b"F") in GRAMMAR_FILES or report.find_field(b"C") == _NOT_IN_ENCODING
    )


def is_failed_transaction(frame: Frame) -> bool:
    """Return True if a frame is PostgreSQL's error for a statement in a failed transaction."""
    report = backend.decode(frame) if frame.kind == ord("E") else None
    return isinstance(report, Report) and report.find_field(b"C") == b"25P02"


def read_analysis_error(frame: Frame) -> Report | None:
    """Return the error if PostgreSQL could parse a statement but not analyse it, as for an unknown name.

    Otherwise None.
    """
    report = backend.decode(frame) if frame.kind == ord("E") else None
    if not isinstance(report, Report) or not (report.find_field(b"F") or b"").startswith(_ANALYSIS_FILES):
        return None
    return report
