"""The state machine of a connection under arbitrary bytes: how they are cut changes nothing, and before the login no
message gets through but those of a login."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from proxy.security.violation import ProtocolViolation
from proxy.wire.frontend import Cancel, Credential, EncryptionRequest, FrontendMessage, Startup
from proxy.wire.server_side import ConnectionState, ServerProtocol
from tests.proxy.wire.test_messages import FRONTEND, UNTYPED

EARLY = "received unencrypted data after an encryption request"
LOGIN = Startup((3, 0), ((b"user", b"ada"),)).encode() + Credential(b"proof").encode()
lengths = st.sampled_from((0, 3, 4, 5, 8, 2**31 - 1, 2**31, 2**32 - 1)).map(lambda length: length.to_bytes(4, "big"))
headers = st.tuples(st.sampled_from(b"pQPBDECSHXFdcfRZ\0").map(lambda kind: bytes([kind])), lengths).map(b"".join)
streams = st.lists(
    st.one_of(FRONTEND.map(lambda one: one.encode()), UNTYPED.map(lambda one: one.encode()), st.binary(), headers),
    max_size=8,
).map(b"".join)


def conversation(pieces: list[bytes], *, believing: bool) -> list[FrontendMessage | str]:
    """What comes out of a connection, the violation included; `believing` takes the first credential for the proof."""
    connection = ServerProtocol()
    told: list[FrontendMessage | str] = []
    try:
        for piece in pieces:
            connection.receive(piece)
            while (received := connection.next_message()) is not None:
                told.append(received.message)
                if (
                    believing
                    and connection.state is ConnectionState.AUTHENTICATING
                    and isinstance(received.message, Credential)
                ):
                    connection.accept_login()
                    connection.open_session()
    except ProtocolViolation as violation:
        assert connection.state is ConnectionState.CLOSED
        told.append(violation.message)
        connection.receive(LOGIN)
        assert connection.next_message() is None
    return told


@given(streams, st.lists(st.integers(0, 2000), max_size=10), st.booleans())
def test_how_a_stream_is_cut_changes_nothing(stream: bytes, cuts: list[int], logs_in: bool) -> None:
    data = LOGIN + stream if logs_in else stream
    at = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    pieces = [data[a:b] for a, b in pairwise(at)]
    whole = conversation([data], believing=True)
    if EARLY in whole:  # what comes together with a request for TLS is taken for an attack, and only then
        return
    assert conversation(pieces, believing=True) == whole
    assert conversation([data[place : place + 1] for place in range(len(data))], believing=True) == whole


@given(streams, st.booleans())
def test_before_the_login_nothing_but_a_login_gets_through(stream: bytes, begins: bool) -> None:
    data = LOGIN + stream if begins else stream
    for message in conversation([data], believing=False):
        assert isinstance(message, Startup | EncryptionRequest | Cancel | Credential | str)


@given(st.lists(FRONTEND, max_size=6), st.data())
def test_one_changed_byte_gives_messages_or_a_violation(messages: list[FrontendMessage], data: st.DataObject) -> None:
    stream = bytearray(b"".join(message.encode() for message in messages))
    if stream:
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    conversation([LOGIN + bytes(stream)], believing=True)
