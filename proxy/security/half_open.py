"""TLS whose one direction may end before the other, as TCP's may: a client that has said all still hears the answers.

asyncio closes both when either the client's good-bye (close_notify) or the end of what it sends (FIN) comes.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any


class HalfOpenTls(ssl.SSLObject):
    """TLS as asyncio knows it, but `told` alone hears that no more comes, after everything that came before.

    `is_cut`: nothing more comes from below.
    """

    is_cut = False
    told: Callable[[], object] | None = None
    _has_ended = False

    def read(self, *wanted: Any) -> bytes:
        """Return the bytes that have come. Raise SSLWantReadError if nothing has, or comes any more."""
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

    def notify_at_end(self, told: Callable[[], object]) -> None:
        """Notify of the end from now on, and at once if it has come already."""
        self.told = told
        if self._has_ended:
            told()

    def _notify_end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            if self.told is not None:
                self.told()


class DelayedEnd(asyncio.BufferedProtocol):
    """Between a connection and asyncio's TLS on it: `inside` hears of the end of what comes when it is `released`."""

    def __init__(self, inside: asyncio.BufferedProtocol, session: HalfOpenTls) -> None:
        self._inside = inside
        self._session = session
        self._is_released = False

    def release(self) -> None:
        """Stop waiting for the good-bye of a client that can send none, once this side is closed."""
        self._is_released = True
        if self._session.is_cut:
            self._inside.eof_received()

    # --- asyncio's side

    def get_buffer(self, sizehint: int) -> Any:
        """Return room for the next bytes."""
        return self._inside.get_buffer(sizehint)

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that have come."""
        self._inside.buffer_updated(nbytes)

    def eof_received(self) -> bool:
        """Note that nothing more comes. The other direction stays open until this side is closed."""
        self._session.is_cut = True
        if self._is_released:
            return bool(self._inside.eof_received())
        self._inside.buffer_updated(0)  # have it read, and find that there is no more
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is over."""
        self._inside.connection_lost(exc)

    def pause_writing(self) -> None:
        """Note that the client is behind with reading."""
        self._inside.pause_writing()

    def resume_writing(self) -> None:
        """Note that the client has caught up."""
        self._inside.resume_writing()
