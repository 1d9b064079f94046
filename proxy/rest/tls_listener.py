"""How a client comes in to REST over TLS: a handshake of limited time and number, then HTTP.

Guarantee: there are never more than `connections` unfinished handshakes, and none takes longer than
`receive_timeout_ms`. A new one takes the place of the oldest, so that whoever opens connections and says nothing keeps
nobody out. (asyncio's own servers wait a minute for a handshake and count none.)
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


def door(inside: type[H11Protocol], *, tls: Tls, limits: RestSection) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol of a new connection: `inside` takes over when the handshake is made."""

    class GuardedDoor(Door):
        entrance = Entrance(inside, tls, limits)

    return GuardedDoor


@dataclass(frozen=True, slots=True)
class Entrance:
    """The shared state of all connections to one port.

    `waiting` ones wait for the end of a handshake, the oldest first.
    """

    inside: type[H11Protocol]
    tls: Tls
    limits: RestSection
    waiting: "dict[Door, None]" = field(default_factory=dict)


class Door(asyncio.Protocol):
    """A connection whose handshake is not over. Nothing is read or written in the clear."""

    entrance: Entrance

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._make = partial(self.entrance.inside, config, server_state, app_state, _loop)
        self._known: set[Any] = server_state.connections  # whom uvicorn tells that it stops
        self._early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake of a client that has connected."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("TLS needs a stream")
        self._socket = transport
        waiting = self.entrance.waiting
        while len(waiting) >= self.entrance.limits.connections:
            oldest = next(iter(waiting))
            del waiting[oldest]
            oldest.shutdown()
        waiting[self] = None
        self._known.add(self)
        # the first thing that it does is to read no more: before the first byte, which belongs to the handshake
        self._entering = asyncio.get_running_loop().create_task(self._let_in(transport))

    def data_received(self, data: bytes) -> None:
        """Take encrypted bytes that came in one packet with the end of the handshake."""
        self._early.append(data)

    def shutdown(self) -> None:
        """Hang up."""
        self._socket.abort()

    async def _let_in(self, transport: asyncio.Transport) -> None:
        try:
            encrypted = await self._shaken_hands(transport)
        except OSError:  # no TLS, none of ours, or too slow
            transport.abort()
            return
        finally:
            self.entrance.waiting.pop(self, None)
            self._known.discard(self)
        if encrypted is None or encrypted.is_closing():
            return
        if encrypted.get_extra_info("ssl_object").selected_alpn_protocol() not in (HTTP_ALPN, None):
            encrypted.abort()
            return
        inside = self._make()
        encrypted.set_protocol(inside)
        wrapped = _Encrypted(encrypted, transport)
        inside.connection_made(wrapped)
        for data in self._early:
            if not wrapped.is_closing():
                inside.data_received(data)

    async def _shaken_hands(self, transport: asyncio.Transport) -> asyncio.Transport | None:
        if transport.is_closing():
            return None
        limits = self.entrance.limits
        return await asyncio.get_running_loop().start_tls(
            transport,
            self,
            self.entrance.tls.read_credentials().http,
            server_side=True,
            ssl_handshake_timeout=limits.receive_timeout_ms / 1000,
            ssl_shutdown_timeout=limits.send_timeout_ms / 1000,
        )


class _Encrypted(asyncio.Transport):
    """asyncio's TLS except for its end: it says good-bye and goes, where asyncio would wait for the client's good-bye.

    Clients that keep connections for later requests do not send one before they look at the connection again.
    """

    def __init__(self, encrypted: asyncio.Transport, beneath: asyncio.Transport) -> None:
        super().__init__()
        self._encrypted = encrypted
        self._beneath = beneath

    def close(self) -> None:
        """Send what was written and a good-bye, and close. Who does not read has `send_timeout_ms`."""
        if self._encrypted.is_closing():
            return
        self._encrypted.close()
        if not self._encrypted.get_write_buffer_size():
            self._beneath.close()

    def abort(self) -> None:
        """Close at once."""
        self._encrypted.abort()

    def is_closing(self) -> bool:
        """Return True if it is closed or about to be."""
        return self._encrypted.is_closing()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send, encrypted."""
        self._encrypted.write(data)

    def pause_reading(self) -> None:
        """Hand nothing on."""
        self._encrypted.pause_reading()

    def resume_reading(self) -> None:
        """Hand on what comes."""
        self._encrypted.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set when the protocol is told to pause writing, in bytes."""
        self._encrypted.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return asyncio's knowledge of the connection."""
        return self._encrypted.get_extra_info(name, default)
