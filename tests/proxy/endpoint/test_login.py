import socket
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from proxy.wire.backend import CommandComplete, NegotiateProtocolVersion, Report
from proxy.wire.frames import LOGIN_LIMIT_BYTES, MESSAGE_LIMIT_BYTES
from proxy.wire.frontend import Cancel, Credential, EncryptionRequest, Query, Startup, Terminate
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient


def test_the_right_password_opens_a_session_under_the_analysts_own_role(running: Running) -> None:
    with running.connect() as connection:
        row = connection.execute("SELECT current_user, session_user, current_database()").fetchone()
        assert row == ("ada", "ada", "retail")
        assert connection.info.server_version >= 180000


@pytest.mark.parametrize(("user", "password"), [("ada", "wrong"), ("nobody", "open sesame"), ("postgres", "")])
def test_a_wrong_password_and_an_unknown_user_get_the_same_refusal(running: Running, user: str, password: str) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(running.conninfo(user=user, password=password or "x"))
    assert f'KH401: password authentication failed for user "{user}"' in str(caught.value)


def test_another_database_does_not_exist(running: Running) -> None:
    with pytest.raises(psycopg.OperationalError, match='database "postgres" does not exist'):
        psycopg.connect(running.conninfo().replace("dbname=retail", "dbname=postgres"))


def test_settings_given_at_connection_start_are_in_force_and_reset_returns_to_them(running: Running) -> None:
    extra = "options='-c keyhole.fnr=0.01 -c search_path=keyhole,public' application_name=tool client_encoding=latin1"
    with psycopg.connect(running.conninfo(extra=extra), autocommit=True) as connection:
        assert connection.execute("SHOW keyhole.fnr").fetchone() == ("0.01",)
        assert connection.execute("SHOW keyhole.tolerance").fetchone() == ("10%",)
        assert connection.execute("SHOW search_path").fetchone() == ("keyhole,public",)
        assert connection.execute("SHOW application_name").fetchone() == ("tool",)
        assert connection.info.encoding == "iso8859-1"
        connection.execute("SET keyhole.fnr = 0.2")
        assert connection.execute("SHOW keyhole.fnr").fetchone() == ("0.2",)
        connection.execute("RESET keyhole.fnr")
        assert connection.execute("SHOW keyhole.fnr").fetchone() == ("0.01",)


@pytest.mark.parametrize("extra", ["options='-c role=bob'", "options='-c log_statement=all'", "replication=true"])
def test_other_settings_are_refused(running: Running, extra: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="KH404"):
        psycopg.connect(running.conninfo(extra=extra))


def test_settings_of_keyhole_are_refused_at_connection_start_as_set_refuses_them(running: Running) -> None:
    """After the password: before it, nobody is told what may be set."""
    with running.connect(autocommit=True) as connection:
        for name, value, code in (
            ("keyhole.fnr", "7", "KH402"),
            ("keyhole.fnr", "", "KH402"),
            ("Keyhole.Tolerance", "zebra", "KH402"),
            ("keyhole.mechanism", "nlm", "KH402"),
            ("keyhole.tolerence", "25", "KH403"),
            ("keyhole.param.busy.least", "25", "KH403"),
        ):
            with pytest.raises(psycopg.Error, match=code) as by_set:
                connection.execute(f"SET {name} = '{value}'".encode())
            told = by_set.value.diag
            extra = f"options='-c {name}={value}'"
            with pytest.raises(psycopg.OperationalError) as at_start:
                psycopg.connect(running.conninfo(extra=extra))
            said = f"FATAL:  {told.message_primary}"
            said += "" if told.message_detail is None else f"\nDETAIL:  {told.message_detail}"
            assert f"{said}\nHINT:  {told.message_hint}" in str(at_start.value)
            with pytest.raises(psycopg.OperationalError, match="KH401"):
                psycopg.connect(running.conninfo(password="wrong", extra=extra))


@pytest.mark.parametrize(
    "extra", ["sslmode=prefer gssencmode=prefer", "max_protocol_version=3.0", "channel_binding=prefer"]
)
def test_libpq_negotiates_down(running: Running, extra: str) -> None:
    with psycopg.connect(running.conninfo(extra=extra)) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_version_3_2_has_secrets_of_32_bytes_that_cancel(running: Running) -> None:
    with psycopg.connect(running.conninfo(extra="min_protocol_version=3.2"), autocommit=True) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with ThreadPoolExecutor(1) as waiter:
            answer = waiter.submit(connection.execute, "SELECT pg_sleep(600)")
            while not answer.done():
                connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled):
                answer.result()


@pytest.mark.parametrize(
    ("minor", "options", "answer", "secret"),
    [
        (0, (), None, 4),
        (0, (b"_pq_.future",), NegotiateProtocolVersion(3 << 16, (b"_pq_.future",)), 4),
        (2, (), None, 32),
        (2, (b"_pq_.a", b"_pq_.b"), NegotiateProtocolVersion(3 << 16 | 2, (b"_pq_.a", b"_pq_.b")), 32),
        (3, (), NegotiateProtocolVersion(3 << 16 | 2, ()), 32),
        (9999, (b"_pq_.a",), NegotiateProtocolVersion(3 << 16 | 2, (b"_pq_.a",)), 32),
    ],
)
def test_the_newest_version_that_both_know_is_spoken(
    running: Running, minor: int, options: tuple[bytes, ...], answer: NegotiateProtocolVersion | None, secret: int
) -> None:
    with RawClient(running.port, minor=minor, options=options) as client:
        assert client.negotiated == answer
        assert len(client.key.secret) == secret
        client.send(Query(b"SELECT 1"))
        assert len(client.until_ready()) == 4


@pytest.mark.parametrize(
    "extra", ["sslmode=require", "channel_binding=require", "sslmode=require sslnegotiation=direct"]
)
def test_what_is_not_offered_fails_at_the_client(running: Running, extra: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(running.conninfo(extra=extra))


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        (LOGIN_LIMIT_BYTES + 1).to_bytes(4, "big"),
        b"GET / HTTP/1.1\r\n\r\n",
        Startup((2, 0), ()).encode(),
        Startup((3, 0), ()).encode(),
        Startup((3, 0), ((b"user", b"\xff"),)).encode(),
        EncryptionRequest(is_gss=False).encode() * 2,
        Startup((3, 0), ((b"user", b"ada"),)).encode() + Query(b"SELECT 1").encode(),
        Startup((3, 0), ((b"user", b"ada"),)).encode() * 2,
        Startup((3, 0), ((b"user", b"ada"),)).encode() + Credential(b"MD5\0\xff\xff\xff\xff").encode(),
        Startup((3, 0), ((b"user", b"ada"),)).encode() + b"p" + b"\x7f\xff\xff\xff",
    ],
)
def test_a_broken_login_is_told_once_and_ended(running: Running, data: bytes) -> None:
    with RawClient(running.port, user="") as client:
        client.send_bytes(data)
        client.socket.shutdown(socket.SHUT_WR)
        answer = b""
        while more := client.socket.recv(65536):
            answer += more
    assert b"SFATAL" in answer
    assert b"08P01" in answer or b"0A000" in answer


@pytest.mark.parametrize(
    "data",
    [
        Startup((3, 0), ((b"user", b"ada"),)).encode(),
        b"Q\xff\xff\xff\xff",
        b"Q" + (MESSAGE_LIMIT_BYTES + 1).to_bytes(4, "big"),
        b"Q\0\0\0\x05x",
        b"Z\0\0\0\x05I",
        Credential(b"again").encode(),
    ],
)
def test_a_broken_message_ends_the_session(running: Running, data: bytes) -> None:
    with RawClient(running.port) as client:
        client.send_bytes(data)
        (report,) = client.until_end()
    assert isinstance(report, Report)
    assert report.find_field(b"C") == b"08P01"
    with running.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_one_byte_at_a_time_works(running: Running) -> None:
    with RawClient(running.port) as client:
        for byte in Query(b"SELECT 1").encode():
            client.send_bytes(bytes([byte]))
        assert len(client.until_ready()) == 4
        client.send(Terminate())
        assert client.until_end() == []


def send_cancel(port: int, request: Cancel) -> None:
    with RawClient(port, user="") as client:
        client.send(request)
        assert client.until_end() == []


def test_a_cancel_request_needs_the_secret(running: Running) -> None:
    with RawClient(running.port) as client, ThreadPoolExecutor(1) as waiter:
        client.send(Query(b"SELECT pg_sleep(0.3)"))
        answer = waiter.submit(client.until_ready)
        while not answer.done():
            send_cancel(running.port, Cancel(client.key.process, bytes(4)))
        assert CommandComplete(b"SELECT 1") in answer.result()
        client.send(Query(b"SELECT pg_sleep(600)"))
        answer = waiter.submit(client.until_ready)
        while not answer.done():
            send_cancel(running.port, Cancel(client.key.process, client.key.secret))
        (report,) = [message for message in answer.result() if isinstance(message, Report)]
    assert report.find_field(b"C") == b"57014"


@pytest.mark.parametrize("statement_timeout_ms", [1000])
def test_a_statement_cannot_outlive_the_owners_timeout(running: Running) -> None:
    with running.connect(autocommit=True) as connection:
        connection.execute("SET statement_timeout = 0")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT pg_sleep(600)")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_stopping_tells_the_clients(running: Running) -> None:
    with RawClient(running.port) as client:
        running.run(running.endpoint.stop(grace_s=0.1))
        (report,) = client.until_end()
    assert isinstance(report, Report)
    assert report.find_field(b"C") == b"57P01"
