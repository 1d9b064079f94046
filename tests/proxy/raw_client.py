"""A client that speaks the protocol message by message, for what libpq cannot be made to send."""

import socket
from collections.abc import Callable
from types import TracebackType

from proxy.wire import backend
from proxy.wire.backend import (
    AUTH_OK,
    AUTH_SASL_FINAL,
    Authentication,
    BackendKeyData,
    BackendMessage,
    NegotiateProtocolVersion,
    ReadyForQuery,
)
from proxy.wire.frames import FrameReader
from proxy.wire.frontend import Credential, FrontendMessage, Startup
from tests.effort import PATIENCE_S
from tests.proxy.wire.scram_client import ScramClient
from tests.worlds.countries import PASSWORD


class RawClient:
    """Connected, and logged in unless `user` is empty. `negotiated` is the server's word on the protocol version."""

    def __init__(
        self,
        port: int,
        user: str = "ada",
        password: str = PASSWORD,
        *,
        minor: int = 0,
        options: tuple[bytes, ...] = (),
        encrypted: Callable[[socket.socket], socket.socket] | None = None,
        source: str = "127.0.0.1",
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S, source_address=(source, 0))
        if encrypted is not None:
            self.socket = encrypted(self.socket)
        self.negotiated: NegotiateProtocolVersion | None = None
        self._reader = FrameReader(limit_bytes=1 << 24, merges_rows=False)
        self.key = BackendKeyData(0, b"")
        if user:
            self.log_in(user, password, minor=minor, options=options)

    def send(self, *messages: FrontendMessage) -> None:
        self.send_bytes(b"".join(message.encode() for message in messages))

    def send_bytes(self, data: bytes) -> None:
        self.socket.sendall(data)

    def next(self) -> BackendMessage | None:
        """The next message; None at the end of the connection."""
        while (frame := self._reader.read_typed_frame()) is None:
            if not (data := self.socket.recv(65536)):
                return None
            self._reader.feed(data)
        return backend.decode(frame)

    def until_ready(self) -> list[BackendMessage]:
        """Everything up to and with ReadyForQuery."""
        found: list[BackendMessage] = []
        while (message := self.next()) is not None:
            found.append(message)
            if isinstance(message, ReadyForQuery):
                break
        return found

    def until_end(self) -> list[BackendMessage]:
        """Everything until the server hangs up."""
        return list(iter(self.next, None))

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def _authentication(self) -> Authentication:
        message = self.next()
        if isinstance(message, NegotiateProtocolVersion):
            self.negotiated, message = message, self.next()
        assert isinstance(message, Authentication), message
        return message

    def log_in(self, user: str, password: str, *, minor: int = 0, options: tuple[bytes, ...] = ()) -> None:
        """Log in on a connection that was opened without a user."""
        unknown = tuple((option, b"1") for option in options)
        self.send(Startup((3, minor), ((b"user", user.encode()), (b"database", b"retail"), *unknown)))
        scram = ScramClient(password)
        assert b"SCRAM-SHA-256" in self._authentication().data.split(b"\0")
        first = scram.first()
        self.send(Credential(b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first))
        self.send(Credential(scram.final(self._authentication().data)))
        final = self._authentication()
        assert (final.step, final.data) == (AUTH_SASL_FINAL, scram.expected)
        assert self._authentication().step == AUTH_OK
        self.key = next(message for message in self.until_ready() if isinstance(message, BackendKeyData))
