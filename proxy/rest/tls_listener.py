"""TLS for REST: a handshake that is limited in time and number, then HTTP.

Guarantee: there are never more than `connections` unfinished handshakes, and none takes longer than
`receive_timeout_ms`. A new one replaces the oldest, so that idle connections cannot keep others out. (asyncio's own
servers wait a minute for a handshake and do not count them.)
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from planner.policy.sections import RestSection
from proxy.security.tls import HTTP_ALPN, Tls


def make_protocol(inside: type[H11Protocol], *, tls: Tls, limits: RestSection) -> type[asyncio.Protocol]:
    """Return the protocol class for new TLS connections in uvicorn. `inside` handles HTTP after the handshake."""

    class GuardedDoor(TlsHandshake):
        listener = ListenerState(inside, tls, limits)

    return GuardedDoor


@dataclass(frozen=True, slots=True)
class ListenerState:
    """The state that all connections to one port share.

    `open_handshakes` are the connections with an unfinished handshake, the oldest first.
    """

    http_protocol: type[H11Protocol]
    tls: Tls
    limits: RestSection
    open_handshakes: "dict[TlsHandshake, None]" = field(default_factory=dict)


class TlsHandshake(asyncio.Protocol):
    """A connection during its TLS handshake. Nothing is read or sent unencrypted."""

    listener: ListenerState

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._make = partial(self.listener.http_protocol, config, server_state, app_state, _loop)
        self._known: set[Any] = server_state.connections  # whom uvicorn tells that it stops
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the TLS handshake with a client that has connected."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("TLS needs a stream")
        self._socket = transport
        waiting = self.listener.open_handshakes
        while len(waiting) >= self.listener.limits.connections:
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.shutdown()
        waiting[self] = None
        self._known.add(self)
        # the first thing that it does is to read no more: before the first byte, which belongs to the handshake
        self._entering = asyncio.get_running_loop().create_task(self._start_http(transport))

    def data_received(self, data: bytes) -> None:
        """Handle encrypted bytes that arrived with the end of the handshake."""
        self._early.append(data)

    def shutdown(self) -> None:
        """Close the connection, since the server is ending."""
        self._socket.abort()

    async def _start_http(self, transport: asyncio.Transport) -> None:
        try:
            encrypted = await self._finish_handshake(transport)
        except OSError:  # no TLS, none of ours, or too slow
            transport.abort()
            return
        finally:
            self.listener.open_handshakes.pop(self, None)
            self._known.discard(self)
        if encrypted is None or encrypted.is_closing():
            return
        if encrypted.get_extra_info("ssl_object").selected_alpn_protocol() not in (HTTP_ALPN, None):
            encrypted.abort()
            return
        inside = self._make()
        encrypted.set_protocol(inside)
        wrapped = _EncryptedTransport(encrypted, transport)
        inside.connection_made(wrapped)
        for data in self._early:
            if not wrapped.is_closing():
                inside.data_received(data)

    async def _finish_handshake(self, transport: asyncio.Transport) -> asyncio.Transport | None:
        if transport.is_closing():
            return None
        limits = self.listener.limits
        return await asyncio.get_running_loop().start_tls(
            transport,
            self,
            self.listener.tls.read_credentials().http,
            server_side=True,
            ssl_handshake_timeout=limits.receive_timeout_ms / 1000,
            ssl_shutdown_timeout=limits.send_timeout_ms / 1000,
        )


class _EncryptedTransport(asyncio.Transport):
    """asyncio's TLS transport, which on closing sends close_notify and does not wait for the client's.

    Clients that keep connections open answer a close_notify only when they next use the connection.
    """

    def __init__(self, encrypted: asyncio.Transport, beneath: asyncio.Transport) -> None:
        super().__init__()
        self._encrypted = encrypted
        self._beneath = beneath

    def close(self) -> None:
        """Send everything written and a close_notify, and close. A client that does not read has `send_timeout_ms`."""
        if self._encrypted.is_closing():
            return
        self._encrypted.close()
        if not self._encrypted.get_write_buffer_size():
            self._beneath.close()

    def abort(self) -> None:
        """Close at once."""
        self._encrypted.abort()

    def is_closing(self) -> bool:
        """Return True if the connection is closed or closing."""
        return self._encrypted.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send bytes."""
        self._encrypted.write(data)

    def pause_reading(self) -> None:
        """Stop passing on received data."""
        self._encrypted.pause_reading()

    def resume_reading(self) -> None:
        """Pass on received data again."""
        self._encrypted.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the buffer sizes, in bytes, at which the protocol must pause and resume writing."""
        self._encrypted.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information on the connection, as asyncio's transport does."""
        return self._encrypted.get_extra_info(name, default)
