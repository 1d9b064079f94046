"""Raw sockets that begin TLS in the ways that libpq cannot be made to."""

import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from proxy.wire.frontend import EncryptionRequest
from tests.effort import PATIENCE_S

SSL_REQUEST = EncryptionRequest(is_gss=False).encode()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def read_to_end(sock: socket.socket) -> bytes:
    """Everything until the server hangs up."""
    found = b""
    try:
        while more := sock.recv(65536):
            found += more
    except ConnectionResetError:
        pass
    return found


def client_context(directory: Path, *, alpn: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=directory / "authority.crt")
    if alpn is not None:
        context.set_alpn_protocols([alpn])
    return context


def agreed(port: int) -> socket.socket:
    """A connection that has been told `S`."""
    sock = connected(port)
    sock.sendall(SSL_REQUEST)
    assert sock.recv(1) == b"S"
    return sock


def encrypted(context: ssl.SSLContext) -> Callable[[socket.socket], socket.socket]:
    """How a client goes over to TLS after an SSLRequest."""

    def encrypt(sock: socket.socket) -> socket.socket:
        sock.sendall(SSL_REQUEST)
        assert sock.recv(1) == b"S"
        return context.wrap_socket(sock, server_hostname="127.0.0.1")

    return encrypt


class Handshake:
    """A client's handshake in memory, so that a test decides when which byte is sent."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = context.wrap_bio(self._incoming, self._outgoing, server_hostname="127.0.0.1")

    def step(self, received: bytes = b"") -> bytes:
        """What to send after `received`."""
        if received:
            self._incoming.write(received)
        with suppress(ssl.SSLWantReadError):
            self.session.do_handshake()
        return self._outgoing.read()

    def finish(self, sock: socket.socket) -> None:
        """The rest of the handshake. Raises ssl.SSLError, or ConnectionError when the server hangs up."""
        while self.session.version() is None:
            if not (data := sock.recv(65536)):
                raise ConnectionResetError
            sock.sendall(self.step(data))

    def ask_after_finishing(self, sock: socket.socket, data: bytes) -> bytes:
        """Both, where it does not matter which of them fails."""
        self.finish(sock)
        return self.ask(sock, data)

    def ask(self, sock: socket.socket, data: bytes, *, before: bytes = b"") -> bytes:
        """Send `data` encrypted, at once after `before`, and return the first bytes that come back."""
        self.session.write(data)
        sock.sendall(before + self._outgoing.read())
        while True:
            try:
                return self.session.read(65536)
            except ssl.SSLWantReadError:
                if not (more := sock.recv(65536)):
                    raise ConnectionResetError from None
                self._incoming.write(more)
