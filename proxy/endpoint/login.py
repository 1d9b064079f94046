"""From a new connection to an authenticated analyst: TLS, startup, SCRAM-SHA-256.

Nothing reaches the shadow before the proof is right, and a wrong one tells nothing but that.
"""

import asyncio
import codecs
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ssl import SSLError

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from proxy.endpoint.tls_handshake import TlsChannel, agree_to_tls, begins_with_tls, shake_hands
from proxy.security.failed_logins import FailedLogins
from proxy.security.mock_users import MockUsers
from proxy.security.scram import AuthenticationFailed, ScramServer, Verifier
from proxy.security.tls import Credentials, Tls
from proxy.security.violation import ProtocolViolation
from proxy.wire.backend import (
    AUTH_OK,
    AUTH_SASL,
    AUTH_SASL_CONTINUE,
    AUTH_SASL_FINAL,
    Authentication,
    NegotiateProtocolVersion,
)
from proxy.wire.cursor import PayloadReader
from proxy.wire.frontend import NEWEST_MINOR, PROTOCOL_3_0, Cancel, Credential, EncryptionRequest, Startup
from proxy.wire.server_side import ReceivedMessage, ServerProtocol
from proxy.wire.startup import Login, read_login

UTF8 = codecs.lookup("utf-8")
CHUNK_BYTES = 64 * 1024
"""Read from a client at once; asyncio's own streams stop reading at the same size, so more would not come."""
_SENT_EVERY_S = 0.02  # between two looks whether a client that is leaving has what it was told: nobody waits for it
_COPIES = 3  # the message, its text, and its one statement's
_WIDE_COPIES = 9  # the same, where one character may make every other of a text four bytes wide


class ClientGone(Exception):
    """The error for a client that has ended the connection."""


@dataclass(frozen=True, slots=True)
class LoginOrigin:
    """The network that a login comes from, the mock replies for unknown users, and the recent failed logins."""

    network: str
    mock_users: MockUsers
    failures: FailedLogins


class ClientStream:
    """A client's socket, unencrypted or with TLS, and its protocol state.

    `channel` is None without TLS. `was_probed`: a message was sent to find out if the client still exists. `heard` is
    called whenever the client has sent something.
    """

    def __init__(
        self,
        connection: ServerProtocol,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        heard: Callable[[], None],
    ) -> None:
        self.connection = connection
        self.reader = reader
        self.writer = writer
        self.channel: TlsChannel | None = None
        self.was_probed = False
        self._handled_bytes = 0
        self._accepted = writer  # held, for the socket is closed when the writer is collected
        self._heard = heard
        self._between = False  # whether TLS was agreed to and the handshake is not over yet

    @property
    def held_bytes(self) -> int:
        """The bytes in memory that the client has sent. A message in progress counts once for each copy of it."""
        return self.connection.buffered + self._handled_bytes

    @contextmanager
    def count_as_held(self, received: ReceivedMessage) -> Iterator[None]:
        """Count the memory of a message while the block handles it."""
        self._handled_bytes = (_COPIES if received.is_ascii else _WIDE_COPIES) * received.size
        try:
            yield
        finally:
            self._handled_bytes = 0

    async def read_message(self) -> ReceivedMessage:
        """Return the next message. Raise ClientGone or ProtocolViolation."""
        while (received := self.connection.next_message()) is None:
            try:
                data = await self.reader.read(CHUNK_BYTES)
            except SSLError:
                raise ClientGone from None
            if not data:
                raise ClientGone
            self._heard()
            self.connection.receive(data)
        return received

    async def start_tls(self, credentials: Credentials, *, agreeing: bool) -> None:
        """Start TLS, after an SSLRequest if `agreeing`, otherwise because the client began a handshake.

        Raises ProtocolViolation for unencrypted data after the request, SSLError or ClientGone if the handshake fails.
        """
        self._heard()
        self.connection.start_encryption()
        if agreeing:
            await agree_to_tls(self.reader, self.writer)
        self._between = True
        try:
            self.channel = await shake_hands(self._accepted, credentials, insists_on_alpn=not agreeing)
        except SSLError:
            raise
        except OSError:
            raise ClientGone from None
        self.reader, self.writer = self.channel.reader, self.channel.writer
        self._between = False

    async def wait_until_sent(self) -> None:
        """Wait until the client has received everything that was written, at any pace, or is gone."""
        ways = (self.writer.transport, self._accepted.transport)
        while any(way.get_write_buffer_size() and not way.is_closing() for way in ways):
            await asyncio.sleep(_SENT_EVERY_S)

    def write_report(self, report: bytes) -> None:
        """Send a last message before the connection ends.

        During a handshake send nothing, since it would not be encrypted.
        """
        if not self._between:
            self.writer.write(report)

    async def hang_up(self, *, grace_s: float) -> None:
        """Close the connection. Wait up to `grace_s` until the client has received everything that was written."""
        self.connection.close()
        if self._between:
            self.writer.transport.abort()
            return
        self.writer.close()
        if self.channel is not None:
            self.channel.raw_channel.release()
        try:
            await asyncio.wait_for(self.writer.wait_closed(), grace_s)
        except (OSError, TimeoutError, asyncio.CancelledError):
            self.writer.transport.abort()


async def log_in(
    stream: ClientStream, catalog: Catalog, tls: Tls | None, *, caller: LoginOrigin, check: Callable[[], None]
) -> Login | Cancel:
    """Return the login that succeeded, or a request to cancel. Raise KeyholeError, ProtocolViolation or ClientGone.

    `check` may raise its own error before any password is checked. A request to cancel is always possible. With `tls`,
    reading from the client must have been paused from the start.
    """
    if tls is not None and await begins_with_tls(stream.writer):
        await stream.start_tls(tls.read_credentials(), agreeing=False)
    while isinstance((message := (await stream.read_message()).message), EncryptionRequest):
        if tls is None or message.is_gss:
            stream.writer.write(b"N")
        else:
            await stream.start_tls(tls.read_credentials(), agreeing=True)
    if isinstance(message, Cancel):
        return message
    if not isinstance(message, Startup):
        raise ProtocolViolation("expected a startup packet")
    if tls is not None and tls.required and stream.channel is None:
        hint = "Connect with sslmode=verify-full, or sslmode=require where you cannot verify."
        raise KeyholeError("KH407", "this server takes logins only over TLS", hint=hint)
    check()
    asked = read_login(message)
    if message.version[1] > NEWEST_MINOR or asked.extensions:
        stream.writer.write(NegotiateProtocolVersion(PROTOCOL_3_0 | asked.minor_version, asked.extensions).encode())
    await _authenticate(stream, catalog, asked.user, caller)
    if asked.database != catalog.database:
        served = f'the one that is served is "{catalog.database}"'
        raise ProtocolViolation(f'database "{asked.database}" does not exist, {served}', sqlstate="3D000")
    return asked


async def _authenticate(stream: ClientStream, catalog: Catalog, user: str, caller: LoginOrigin) -> None:
    exchange = _make_exchange(catalog, user, stream.channel, caller.mock_users)
    offered = b"".join(mechanism.encode() + b"\0" for mechanism in exchange.mechanisms)
    stream.writer.write(Authentication(AUTH_SASL, offered + b"\0").encode())
    cursor = PayloadReader(await _read_credential(stream))
    mechanism = cursor.read_string().decode("ascii", "replace")
    client_first = cursor.read_value()
    cursor.check_end()
    server_first = exchange.answer_client_first(client_first or b"", mechanism=mechanism)
    stream.writer.write(Authentication(AUTH_SASL_CONTINUE, server_first).encode())
    proof = await _read_credential(stream)
    # nothing is waited for from here to the note: however many come at once, no proof too many is looked at
    if wait_s := caller.failures.get_wait_s(caller.network, user=user):
        hint = f"Log in again in {wait_s} s."
        raise KeyholeError("KH430", "too many failed logins from this address", hint=hint)
    try:
        server_final = exchange.answer_client_final(proof)
    except AuthenticationFailed:
        caller.failures.note_failure(caller.network, user=user)
        raise KeyholeError("KH401", f'password authentication failed for user "{user}"') from None
    stream.connection.accept_login()
    stream.writer.write(Authentication(AUTH_SASL_FINAL, server_final).encode() + Authentication(AUTH_OK).encode())


async def _read_credential(stream: ClientStream) -> bytes:
    message = (await stream.read_message()).message
    if not isinstance(message, Credential):
        raise ProtocolViolation("expected a SASL response")
    return message.data


def _make_exchange(catalog: Catalog, user: str, channel: TlsChannel | None, mock_users: MockUsers) -> ScramServer:
    """Return an exchange with the analyst's verifier, or with one that looks the same from outside.

    If the client does not show the certificate that the analyst must have, the exchange fails like one with a wrong
    password. So nobody can try passwords without the certificate.
    """
    end_point = None if channel is None else channel.end_point
    # computed for known users, too, so that a login takes as long for both
    stranger = mock_users.make_verifier(user, catalog.analysts)
    analyst = catalog.find_analyst(user)
    if analyst is not None:
        shown = None if channel is None else channel.common_name
        admitted = analyst.certificate_name is None or analyst.certificate_name == shown
        return ScramServer(Verifier.parse(analyst.verifier), mocked=not admitted, end_point=end_point)
    return ScramServer(stranger, mocked=True, end_point=end_point)
