import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.security.violation import ProtocolViolation
from proxy.wire.backend import AUTH_OK, Authentication, BackendKeyData, DataRow, ParameterStatus, ReadyForQuery, Report
from proxy.wire.client import ClientProtocol, ClientState
from proxy.wire.frames import LOGIN_LIMIT_BYTES, MESSAGE_LIMIT_BYTES
from proxy.wire.frontend import (
    Bind,
    Cancel,
    Credential,
    EncryptionRequest,
    Execute,
    Flush,
    FrontendMessage,
    Parse,
    Query,
    Startup,
    Sync,
    Terminate,
)
from proxy.wire.server_side import TRANSITIONS, ConnectionState, ServerProtocol
from tests.in_turn import in_turn

STARTUP = Startup((3, 0), ((b"user", b"ada"),))


def messages(connection: ServerProtocol) -> list[FrontendMessage]:
    found = []
    while (received := connection.next_message()) is not None:
        found.append(received.message)
    return found


def opened() -> ServerProtocol:
    connection = ServerProtocol()
    connection.receive(STARTUP.encode())
    assert messages(connection) == [STARTUP]
    connection.accept_login()
    connection.open_session()
    return connection


def test_a_client_and_a_server_joined_in_memory_log_in_and_talk() -> None:
    client, server = ClientProtocol(), ServerProtocol()
    server.receive(client.encode_startup({"user": "ada", "database": "retail"}))
    first = server.next_message()
    assert first is not None
    assert first.message == Startup((3, 0), ((b"user", b"ada"), (b"database", b"retail")))
    server.accept_login()
    client.receive(Authentication(AUTH_OK).encode() + ParameterStatus(b"server_version", b"18.4").encode())
    assert not client.log_in()
    client.receive(BackendKeyData(7, b"abcd").encode() + ReadyForQuery(b"I").encode())
    assert client.log_in()
    assert client.state is ClientState.OPEN
    assert client.parameters == {b"server_version": b"18.4"}
    assert client.key == BackendKeyData(7, b"abcd")
    server.open_session()
    server.receive(Query(b"SELECT 1").encode())
    assert messages(server) == [Query(b"SELECT 1")]
    answer = DataRow((b"1",)).encode() + ReadyForQuery(b"I").encode()
    client.receive(answer)
    assert [frame.raw for frame in iter(client.next_frame, None)] == [
        DataRow((b"1",)).encode(),
        ReadyForQuery(b"I").encode(),
    ]


def test_a_refused_login_keeps_the_reason() -> None:
    client = ClientProtocol()
    refusal = Report("E", ((b"C", b"28000"),))
    client.receive(refusal.encode())
    assert client.log_in()
    assert client.refusal == refusal


def test_one_byte_at_a_time_makes_no_difference() -> None:
    connection = ServerProtocol()
    found: list[FrontendMessage] = []
    batch: list[FrontendMessage] = [
        Parse(b"", b"SELECT 1", ()),
        Bind(b"", b"", (), (), ()),
        Execute(b"", 0),
        Sync(),
        Query(b"x"),
        Terminate(),
    ]

    def feed(data: bytes) -> None:
        for byte in data:
            connection.receive(bytes([byte]))
            found.extend(messages(connection))

    feed(EncryptionRequest(is_gss=True).encode())
    feed(EncryptionRequest(is_gss=False).encode())
    feed(STARTUP.encode())
    feed(Credential(b"proof").encode())
    connection.accept_login()
    connection.open_session()
    feed(b"".join(message.encode() for message in batch))
    assert found == [
        EncryptionRequest(is_gss=True),
        EncryptionRequest(is_gss=False),
        STARTUP,
        Credential(b"proof"),
        *batch,
    ]
    assert connection.state is ConnectionState.CLOSED


def test_after_an_error_in_a_batch_everything_up_to_sync_is_dropped() -> None:
    connection = opened()
    connection.receive(Parse(b"a", b"x", ()).encode())
    assert messages(connection) == [Parse(b"a", b"x", ())]
    connection.fail_batch()
    skipped: tuple[FrontendMessage, ...] = (
        Bind(b"", b"a", (), (), ()),
        Execute(b"", 0),
        Flush(),
        Query(b"dropped too"),
    )
    for message in skipped:
        connection.receive(message.encode())
    connection.receive(Sync().encode() + Query(b"SELECT 1").encode())
    assert messages(connection) == [Sync(), Query(b"SELECT 1")]
    assert connection.state is ConnectionState.IDLE


def test_an_error_outside_a_batch_skips_nothing() -> None:
    connection = opened()
    connection.fail_batch()
    connection.receive(Query(b"SELECT 1").encode())
    assert messages(connection) == [Query(b"SELECT 1")]


@in_turn(
    ("state", "data"),
    [
        ("startup", Query(b"SELECT 1").encode()),
        ("startup", b"\0\0\0\x07"),
        ("startup", (LOGIN_LIMIT_BYTES + 1).to_bytes(4, "big")),
        ("startup", Startup((2, 0), ()).encode()),
        ("startup", STARTUP.encode()[:-1] + b"x"),
        ("startup", EncryptionRequest(is_gss=False).encode() * 2),
        ("startup", EncryptionRequest(is_gss=False).encode() + STARTUP.encode()),
        ("startup", Cancel(1, b"abc").encode()),
        ("login", Query(b"SELECT 1").encode()),
        ("login", STARTUP.encode()),
        ("login", b"p" + (LOGIN_LIMIT_BYTES + 1).to_bytes(4, "big")),
        ("login", b"p" + b"\xff\xff\xff\xff"),
        ("open", STARTUP.encode()),
        ("open", Credential(b"x").encode()),
        ("open", b"Z\0\0\0\x05I"),
        ("open", b"Q" + (MESSAGE_LIMIT_BYTES + 1).to_bytes(4, "big")),
        ("open", b"Q\xff\xff\xff\xff"),
        ("open", b"Q\0\0\0\x03"),
        ("open", b"Q\0\0\0\x05x"),
        ("open", b"Q\0\0\0\x07x\0y"),
        ("open", b"S\0\0\0\x05x"),
        ("open", b"D\0\0\0\x06X\0"),
    ],
)
def test_what_breaks_the_protocol_ends_the_connection(state: str, data: bytes) -> None:
    connection = ServerProtocol()
    if state == "login":
        connection.receive(STARTUP.encode())
        messages(connection)
    elif state == "open":
        connection = opened()
    connection.receive(data)
    with pytest.raises(ProtocolViolation):
        messages(connection)
    assert connection.state is ConnectionState.CLOSED
    connection.receive(Query(b"SELECT 1").encode())
    assert messages(connection) == []


def test_a_client_cannot_make_the_server_buffer_before_it_is_known() -> None:
    connection = ServerProtocol()
    connection.receive(STARTUP.encode())
    messages(connection)
    connection.receive(Credential(b"x").encode())
    messages(connection)
    connection.accept_login()
    with pytest.raises(ProtocolViolation):
        connection.receive(b"Q" * (3 * LOGIN_LIMIT_BYTES))


def test_nothing_is_read_between_authentication_and_readiness() -> None:
    connection = ServerProtocol()
    connection.receive(STARTUP.encode() + Query(b"early").encode())
    first = connection.next_message()
    assert first is not None
    connection.accept_login()
    assert connection.next_message() is None
    connection.open_session()
    assert messages(connection) == [Query(b"early")]


@given(st.binary(max_size=300), st.sampled_from(["startup", "login", "open"]))
def test_any_bytes_give_messages_or_a_violation(data: bytes, state: str) -> None:
    connection = opened() if state == "open" else ServerProtocol()
    if state == "login":
        connection.receive(STARTUP.encode())
    try:
        connection.receive(data)
        messages(connection)
    except ProtocolViolation:
        assert connection.state is ConnectionState.CLOSED


def test_the_table_covers_every_state() -> None:
    assert set(TRANSITIONS) == set(ConnectionState)


def test_what_came_in_the_clear_is_not_taken_into_tls() -> None:
    connection = ServerProtocol()
    connection.receive(STARTUP.encode()[:3])
    with pytest.raises(ProtocolViolation):
        connection.start_encryption()
    assert connection.state is ConnectionState.CLOSED


@pytest.mark.parametrize("gss", [True, False])
def test_inside_tls_encryption_cannot_be_asked_for(gss: bool) -> None:
    connection = ServerProtocol()
    connection.receive(EncryptionRequest(is_gss=False).encode())
    assert messages(connection) == [EncryptionRequest(is_gss=False)]
    connection.start_encryption()
    connection.receive(EncryptionRequest(is_gss=gss).encode())
    with pytest.raises(ProtocolViolation):
        messages(connection)
