"""One connection to the shadow. Received bytes are passed on at once, in the same turn of the event loop."""

import asyncio
from collections.abc import Callable

from planner.errors import KeyholeError
from proxy.shadow.address import ShadowAddress
from proxy.wire.backend import Report
from proxy.wire.client import ClientProtocol, ClientState


class ShadowLoginRefused(Exception):
    """The error for a login that the shadow refused. The shadow's own report says why."""

    def __init__(self, report: Report) -> None:
        super().__init__("the shadow refused the login")
        self.report = report


class ShadowLink(asyncio.Protocol):
    """A connection to the shadow with its protocol state.

    The callbacks given to `listen` are called when bytes arrive and when the connection ends. If a callback raises an
    error, the connection ends, and the error is kept in `failure`.
    """

    def __init__(self) -> None:
        self.connection = ClientProtocol()
        self.is_over = False
        self.failure: Exception | None = None
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._changed = asyncio.Event()
        self._arrived: Callable[[], None] = self._changed.set
        self._ended: Callable[[], None] = self._changed.set

    @staticmethod
    async def open(address: ShadowAddress, settings: dict[str, str]) -> "ShadowLink":
        """Connect and log in. Raise ShadowLoginRefused, or KH406 if the shadow cannot be reached."""
        try:
            _, link = await asyncio.get_running_loop().create_unix_connection(ShadowLink, address.socket)
        except OSError:
            raise KeyholeError(
                "KH406", "the shadow database does not answer", hint="Connect again in a moment."
            ) from None
        connection = link.connection
        try:
            link.transport.write(connection.encode_startup(settings))
            while not connection.log_in():
                await link.wait_for_bytes()
        except BaseException:
            link.transport.close()
            raise
        if connection.state is ClientState.CLOSED and connection.refusal is not None:
            link.transport.close()
            raise ShadowLoginRefused(connection.refusal)
        return link

    @property
    def transport(self) -> asyncio.Transport:
        """The transport to which bytes for the shadow are written."""
        if self._transport is None:
            raise RuntimeError("not connected")
        return self._transport

    @property
    def is_writable(self) -> bool:
        """Return True if the shadow reads fast enough for more bytes to be written."""
        return self._writable.is_set()

    def listen(self, *, arrived: Callable[[], None], ended: Callable[[], None]) -> None:
        """Set the callbacks. Call them at once if bytes or the end have arrived since the login."""
        self._arrived, self._ended = arrived, ended
        self._notify_arrival()
        if self.is_over:
            ended()

    async def wait_for_bytes(self) -> None:
        """Wait until more bytes arrive, during the login. Raise KH406 if none arrive."""
        if self.is_over and not self._changed.is_set():
            raise KeyholeError("KH406", "the shadow database ended the connection", hint="Connect again.")
        await self._changed.wait()
        self._changed.clear()

    async def wait_until_writable(self) -> None:
        """Wait while the shadow reads too slowly. Raise ConnectionError if the connection has ended."""
        await self._writable.wait()
        if self.is_over:
            raise ConnectionResetError("the shadow ended the connection")

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Process bytes that the shadow sent."""
        self.connection.receive(data)
        self._notify_arrival()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Note that the connection has ended."""
        self.is_over = True
        self._writable.set()
        self._ended()

    def pause_writing(self) -> None:
        """Note that the shadow reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that the shadow has caught up."""
        self._writable.set()

    def _notify_arrival(self) -> None:
        try:
            self._arrived()
        except Exception as error:
            self.failure = error
            self.transport.abort()
