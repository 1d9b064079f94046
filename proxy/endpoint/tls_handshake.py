"""TLS on a connection that asyncio has accepted: after PostgreSQL's SSLRequest, or from the first byte on.

Guarantee: no byte that came in the clear is ever taken for one that came through TLS, and nothing is written in the
clear once TLS was agreed to.
"""

import asyncio
import socket
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID

from proxy.security.half_open import DelayedEnd, HalfOpenTls
from proxy.security.tls import ALPN, Credentials
from proxy.security.violation import ProtocolViolation

AGREED = b"S"
SHUTDOWN_TIMEOUT_S = 2.0  # for the client's own close, which many never send; until then its socket stays open
_FIRST_BYTE_OF_TLS = b"\x16"


@dataclass(frozen=True, slots=True)
class TlsChannel:
    """A connection with TLS: its streams, and the certificates for a login.

    `end_point` is the hash of the server's certificate, for channel binding. `common_name` is the name in the client's
    verified certificate. Release `raw_channel` after the writer has been closed.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    end_point: bytes | None
    common_name: str | None
    raw_channel: DelayedEnd


def pause_before_first_byte(writer: asyncio.StreamWriter) -> None:
    """Stop reading from a newly accepted client until `begins_with_tls` has seen the first byte.

    Call it when the connection is made. The pause takes effect one turn of the loop later, before anything is read. Up
    to Python 3.11.6 asyncio begins to read after that callback, even if reading was paused in it.
    """
    asyncio.get_running_loop().call_soon(_get_transport(writer).pause_reading)


async def begins_with_tls(writer: asyncio.StreamWriter) -> bool:
    """Wait for the client's first byte, and return True if it starts a TLS handshake. The byte stays unread.

    The client must have been held from the start, or the byte may be gone already.
    """
    loop = asyncio.get_running_loop()
    # a second handle on the socket: the loop lets nobody watch one that a transport has
    with writer.get_extra_info("socket").dup() as watched:
        arrived = asyncio.Event()
        loop.add_reader(watched.fileno(), arrived.set)
        try:
            await arrived.wait()
        finally:
            loop.remove_reader(watched.fileno())
        first: bytes = watched.recv(1, socket.MSG_PEEK)
    _get_transport(writer).resume_reading()
    return first == _FIRST_BYTE_OF_TLS


async def agree_to_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer an SSLRequest with yes. Raise ProtocolViolation if the client has sent unencrypted data after it.

    Reading stops before the answer is sent, so that only the handshake reads the client's next bytes.
    """
    _get_transport(writer).pause_reading()
    reader.feed_eof()  # so that what was received can be looked at without waiting for more
    if await reader.read(1):
        raise ProtocolViolation("received unencrypted data after an encryption request")
    writer.write(AGREED)


async def shake_hands(writer: asyncio.StreamWriter, credentials: Credentials, *, insists_on_alpn: bool) -> TlsChannel:
    """Run the TLS handshake on the socket of `writer`, and return the encrypted connection.

    Raise OSError if the handshake fails. The streams are new: nothing that was received before is in them.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = await loop.start_tls(
        writer.transport,
        protocol,
        credentials.context,
        server_side=True,
        ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
    )
    if transport is None:
        raise ConnectionResetError("the client left during the handshake")
    protocol.connection_made(transport)
    session: HalfOpenTls = transport.get_extra_info("ssl_object")
    # what was read together with the end is handed to the reader in this turn of the loop
    session.notify_at_end(lambda: loop.call_soon(reader.feed_eof))
    inside = _get_transport(writer).get_protocol()
    assert isinstance(inside, asyncio.BufferedProtocol)
    _get_transport(writer).set_protocol(below := DelayedEnd(inside, session))
    named = session.selected_alpn_protocol()
    if named != ALPN and (insists_on_alpn or named is not None):
        transport.abort()
        raise ConnectionAbortedError("the client has come for another protocol, or names none and sent no SSLRequest")
    return TlsChannel(
        reader=reader,
        writer=asyncio.StreamWriter(transport, protocol, reader, loop),
        end_point=credentials.end_point,
        common_name=_read_common_name(session.getpeercert(binary_form=True)),
        raw_channel=below,
    )


def _get_transport(writer: asyncio.StreamWriter) -> asyncio.Transport:
    transport = writer.transport
    assert isinstance(transport, asyncio.Transport)
    return transport


def _read_common_name(certificate: bytes | None) -> str | None:
    """Return the one common name in a certificate that the handshake has verified."""
    if certificate is None:
        return None
    names = x509.load_der_x509_certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if len(names) == 1 else None
