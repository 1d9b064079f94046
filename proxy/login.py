"""From a new connection to an authenticated analyst: encryption requests, startup, SCRAM-SHA-256.

Nothing reaches the shadow before the proof is right, and a wrong one tells nothing but that.
"""

import asyncio
import codecs
from dataclasses import dataclass
from hashlib import sha256

from planner.catalog import Catalog
from planner.errors import KeyholeError
from proxy.wire.backend import (
    AUTH_OK,
    AUTH_SASL,
    AUTH_SASL_CONTINUE,
    AUTH_SASL_FINAL,
    Authentication,
    NegotiateProtocolVersion,
)
from proxy.wire.cursor import Cursor
from proxy.wire.frontend import PROTOCOL_3_0, Cancel, Credential, EncryptionRequest, Startup
from proxy.wire.scram import ITERATIONS, MECHANISM, AuthenticationFailed, ScramServer, Verifier
from proxy.wire.server import Received, ServerConnection
from proxy.wire.startup import Login, login
from proxy.wire.violation import ProtocolViolation

UTF8 = codecs.lookup("utf-8")
CHUNK_BYTES = 64 * 1024


class ClientGone(Exception):
    """The client ended the connection."""


@dataclass(slots=True)
class ClientStream:
    """A client's socket and its protocol state."""

    connection: ServerConnection
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def next(self) -> Received:
        """The next message. Raises ClientGone or ProtocolViolation."""
        while (received := self.connection.next_message()) is None:
            if not (data := await self.reader.read(CHUNK_BYTES)):
                raise ClientGone
            self.connection.receive(data)
        return received


async def log_in(stream: ClientStream, catalog: Catalog) -> Login | Cancel:
    """The login that was proved, or a request to cancel. Raises KeyholeError, ProtocolViolation or ClientGone."""
    while isinstance((message := (await stream.next()).message), EncryptionRequest):
        stream.writer.write(b"N")
    if isinstance(message, Cancel):
        return message
    if not isinstance(message, Startup):
        raise ProtocolViolation("expected a startup packet")
    asked = login(message)
    if message.version[1] > 0 or asked.extensions:
        stream.writer.write(NegotiateProtocolVersion(PROTOCOL_3_0, asked.extensions).encode())
    await _authenticate(stream, catalog, asked.user)
    if asked.database != catalog.database:
        raise ProtocolViolation(f'database "{asked.database}" does not exist', sqlstate="3D000")
    return asked


async def _authenticate(stream: ClientStream, catalog: Catalog, user: str) -> None:
    exchange = _exchange(catalog, user)
    stream.writer.write(Authentication(AUTH_SASL, MECHANISM.encode() + b"\0\0").encode())
    cursor = Cursor(await _credential(stream))
    if cursor.string() != MECHANISM.encode():
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    client_first = cursor.value()
    cursor.end()
    server_first = exchange.first(client_first or b"")
    stream.writer.write(Authentication(AUTH_SASL_CONTINUE, server_first).encode())
    try:
        server_final = exchange.final(await _credential(stream))
    except AuthenticationFailed:
        raise KeyholeError("KH401", f'password authentication failed for user "{user}"') from None
    stream.connection.authenticated()
    stream.writer.write(Authentication(AUTH_SASL_FINAL, server_final).encode() + Authentication(AUTH_OK).encode())


async def _credential(stream: ClientStream) -> bytes:
    message = (await stream.next()).message
    if not isinstance(message, Credential):
        raise ProtocolViolation("expected a SASL response")
    return message.data


def _exchange(catalog: Catalog, user: str) -> ScramServer:
    """An exchange with the analyst's verifier, or with one that looks the same from outside."""
    analyst = catalog.analyst(user)
    if analyst is not None:
        return ScramServer(Verifier.parse(analyst.verifier), mocked=False)
    known = [other.verifier for other in catalog.analysts]
    iterations = Verifier.parse(known[0]).iterations if known else ITERATIONS
    # as secret as the verifiers, and the same after a restart
    secret = sha256("\n".join(known).encode()).digest()
    return ScramServer(Verifier.mock(user, secret=secret, iterations=iterations), mocked=True)
