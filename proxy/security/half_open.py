"""TLS that can end in one direction first, as TCP can. A client that has stopped sending still gets its answers.

asyncio closes both directions when the client's TLS goodbye (close_notify) or the end of its TCP stream (FIN) comes.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any


class HalfOpenTls(ssl.SSLObject):
    """TLS for asyncio that does not tell asyncio when the client stops sending.

    The end is reported to `on_end`, after all bytes were read.

    `is_cut` is True once no more bytes can arrive on the TCP connection.
    """

    is_cut = False
    on_end: Callable[[], object] | None = None
    _has_ended = False

    def read(self, *wanted: Any) -> bytes:
        """Return the bytes that have arrived. Raise SSLWantReadError if there are none, even if no more can arrive."""
        try:
            got = super().read(*wanted)
        except ssl.SSLWantReadError:
            if self.is_cut:
                self._notify_end()
            raise
        if not got:  # the client has said good-bye
            self._notify_end()
            raise ssl.SSLWantReadError
        return got

    def notify_at_end(self, on_end: Callable[[], object]) -> None:
        """Call `on_end` when the client stops sending, or at once if it already has."""
        self.on_end = on_end
        if self._has_ended:
            on_end()

    def _notify_end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            if self.on_end is not None:
                self.on_end()


class DelayedEnd(asyncio.BufferedProtocol):
    """A layer between a connection and asyncio's TLS (`inside`). It reports the end of input only after `release`."""

    def __init__(self, inside: asyncio.BufferedProtocol, session: HalfOpenTls) -> None:
        self._inside = inside
        self._session = session
        self._is_released = False

    def release(self) -> None:
        """Report the end of input to `inside` from now on. Called once this side is closed.

        The client of a cut connection cannot send a TLS goodbye any more, so nobody need wait for it.
        """
        self._is_released = True
        if self._session.is_cut:
            self._inside.eof_received()

    # --- asyncio's side

    def get_buffer(self, sizehint: int) -> Any:
        """Return a buffer for the next bytes."""
        return self._inside.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Process bytes that have arrived."""
        self._inside.buffer_updated(nbytes)

    def eof_received(self) -> bool:
        """Note that no more bytes arrive. The other direction stays open until this side is closed."""
        self._session.is_cut = True
        if self._is_released:
            return bool(self._inside.eof_received())
        self._inside.buffer_updated(0)  # have it read, and find that there is no more
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection has ended."""
        self._inside.connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        self._inside.pause_writing()

    def resume_writing(self) -> None:
        """Note that the client has caught up."""
        self._inside.resume_writing()
