"""How a handshake may begin: sockets that break every rule of it."""

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from proxy.endpoint import server
from proxy.wire import backend
from proxy.wire.frontend import Cancel, EncryptionRequest, Query, Startup
from tests.effort import examples
from tests.proxy.conftest import Running
from tests.proxy.endpoint.test_login import send_cancel
from tests.proxy.raw_client import RawClient
from tests.proxy.security.tls.clients import reports, works
from tests.proxy.security.tls.sockets import (
    SSL_REQUEST,
    Handshake,
    agreed,
    client_context,
    connected,
    encrypted,
    read_to_end,
)

ALERT = b"\x15"
STARTUP = Startup((3, 0), ((b"user", b"ada"), (b"database", b"retail"))).encode()


def test_a_hello_that_does_not_wait_for_the_answer_is_served_or_refused_but_never_read_as_plaintext(
    running: Running, directory: Path
) -> None:
    context = client_context(directory)

    def connect(number: int) -> bool:
        handshake = Handshake(context)
        with connected(running.port) as sock:
            if number % 2:
                sock.sendall(SSL_REQUEST + handshake.step())
            else:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.sendall(SSL_REQUEST)
                sock.sendall(handshake.step())
            answer = sock.recv(1)
            if answer == b"S":
                handshake.finish(sock)
                return handshake.ask(sock, STARTUP)[:1] == b"R"
            (report,) = reports(answer + read_to_end(sock))
            return isinstance(report, backend.Report) and report.find_field(b"C") == b"08P01"

    with ThreadPoolExecutor(20) as batch:
        assert all(batch.map(connect, range(100)))
    assert works(running, directory)


@pytest.mark.parametrize("early", [STARTUP, SSL_REQUEST, b"\0", Query(b"SELECT 1").encode(), bytes(100_000)])
def test_plaintext_after_the_request_ends_the_connection_before_tls(running: Running, early: bytes) -> None:
    with connected(running.port) as sock:
        sock.sendall(SSL_REQUEST + early)
        (report,) = reports(read_to_end(sock))
    assert isinstance(report, backend.Report)
    assert report.find_field(b"C") == b"08P01"


@pytest.mark.parametrize("at_once", [True, False])
def test_plaintext_is_noticed_after_a_request_for_gss_too(running: Running, at_once: bool) -> None:
    gss = EncryptionRequest(is_gss=True).encode()
    with connected(running.port) as sock:
        if not at_once:
            sock.sendall(gss)
            assert sock.recv(10) == b"N"
        sock.sendall((gss if at_once else b"") + SSL_REQUEST + STARTUP)
        (report,) = reports(read_to_end(sock))
    assert isinstance(report, backend.Report)
    assert report.find_field(b"C") == b"08P01"


@pytest.mark.parametrize(
    "garbage", [STARTUP, b"\0" * 100, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 70_000]
)
def test_after_yes_nothing_is_written_in_the_clear(running: Running, directory: Path, garbage: bytes) -> None:
    with agreed(running.port) as sock:
        with suppress(OSError):
            sock.sendall(garbage)
        answer = read_to_end(sock)
    assert answer == b"" or answer.startswith(ALERT)
    assert b"FATAL" not in answer
    assert works(running, directory)


@pytest.mark.parametrize("direct", [True, False])
def test_one_byte_at_a_time_makes_a_handshake_too(running: Running, directory: Path, direct: bool) -> None:
    handshake = Handshake(client_context(directory, alpn="postgresql"))

    def dribble(data: bytes) -> None:
        for byte in data:
            sock.sendall(bytes([byte]))

    with connected(running.port) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not direct:
            dribble(SSL_REQUEST)
            assert sock.recv(1) == b"S"
        dribble(handshake.step())
        handshake.finish(sock)
        assert handshake.ask(sock, STARTUP)[:1] == b"R"


@pytest.mark.parametrize("alpn", [None, "http/1.1"])
def test_tls_without_a_request_must_say_that_it_is_for_postgresql(
    running: Running, directory: Path, alpn: str | None
) -> None:
    with connected(running.port) as sock:
        handshake = Handshake(client_context(directory, alpn=alpn))
        sock.sendall(handshake.step())
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake.ask_after_finishing(sock, STARTUP)


@pytest.mark.parametrize(("alpn", "heard"), [("postgresql", True), ("somebody's", True), ("http/1.1", False)])
def test_a_client_who_came_for_rest_is_cut_off_after_a_request_too(
    running: Running, directory: Path, alpn: str, heard: bool
) -> None:
    """Who stands in the middle can put an SSLRequest before the handshake of a client that wants HTTPS."""
    handshake = Handshake(client_context(directory, alpn=alpn))
    with agreed(running.port) as sock:
        sock.sendall(handshake.step())
        if heard:
            assert handshake.ask_after_finishing(sock, STARTUP)[:1] == b"R"
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                handshake.ask_after_finishing(sock, STARTUP)


@pytest.mark.parametrize("request_again", [SSL_REQUEST, EncryptionRequest(is_gss=True).encode()])
def test_inside_tls_no_encryption_is_negotiated(running: Running, directory: Path, request_again: bytes) -> None:
    with encrypted(client_context(directory))(connected(running.port)) as sock:
        sock.sendall(request_again)
        (report,) = reports(read_to_end(sock))
    assert isinstance(report, backend.Report)
    assert report.find_field(b"C") == b"08P01"


def test_the_protocols_own_rules_hold_inside_tls(running: Running, directory: Path) -> None:
    with RawClient(running.port, encrypted=encrypted(client_context(directory))) as client:
        client.send(Query(b"SELECT 1"))
        assert len(client.until_ready()) == 4
        client.send_bytes(b"Z\0\0\0\x05I")
        (report,) = client.until_end()
    assert isinstance(report, backend.Report)
    with RawClient(running.port, user="", encrypted=encrypted(client_context(directory))) as client:
        client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
        assert len(client.until_end()) == 1


def test_a_socket_that_breaks_off_anywhere_leaves_the_endpoint_at_work(running: Running, directory: Path) -> None:
    hello = Handshake(client_context(directory)).step()
    for sent in (b"", SSL_REQUEST[:3], SSL_REQUEST, hello[:1], hello[:5], hello[:-1], hello):
        connected(running.port).close()
        with connected(running.port) as sock:
            sock.sendall(sent)
        with agreed(running.port) as sock:
            sock.sendall(sent)
    with encrypted(client_context(directory))(connected(running.port)) as sock:
        sock.sendall(STARTUP[:7])
    assert works(running, directory)
    assert running.endpoint.sessions == () or works(running, directory)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=200), direct=st.booleans(), as_record=st.booleans())
def test_any_bytes_in_the_place_of_a_handshake_end_it(
    running: Running, directory: Path, data: bytes, direct: bool, as_record: bool
) -> None:
    if as_record or direct:
        data = b"\x16\x03\x01" + len(data).to_bytes(2, "big") + data
    with connected(running.port) if direct else agreed(running.port) as sock:
        with suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        answer = read_to_end(sock)
    assert b"FATAL" not in answer
    assert answer == b"" or answer.startswith(ALERT)


@pytest.mark.parametrize("sent", [b"", SSL_REQUEST[:4], b"\x16", b"\x16\x03\x01\x00\x50"])
@pytest.mark.parametrize("agreeing", [True, False])
def test_the_login_timeout_includes_the_handshake(
    monkeypatch: pytest.MonkeyPatch, running: Running, sent: bytes, agreeing: bool
) -> None:
    monkeypatch.setattr(server, "LOGIN_TIMEOUT_S", 0.3)
    with agreed(running.port) if agreeing else connected(running.port) as sock:
        sock.sendall(sent)
        answer = read_to_end(sock)
    spoken_in_the_clear = not agreeing and not sent.startswith(b"\x16")
    assert (b"too long" in answer) == spoken_in_the_clear


def test_stopping_tells_encrypted_clients(running: Running, directory: Path) -> None:
    with RawClient(running.port, encrypted=encrypted(client_context(directory))) as client:
        running.run(running.endpoint.stop(grace_s=0.1))
        (report,) = client.until_end()
    assert isinstance(report, backend.Report)
    assert report.find_field(b"C") == b"57P01"


def test_a_cancel_in_the_clear_is_taken_and_needs_the_secret(running: Running, directory: Path) -> None:
    with RawClient(running.port, encrypted=encrypted(client_context(directory))) as client:
        wrong, right = Cancel(client.key.process, bytes(4)), Cancel(client.key.process, client.key.secret)
        client.send(Query(b"SELECT pg_sleep(0.2)"))
        send_cancel(running.port, wrong)
        assert backend.CommandComplete(b"SELECT 1") in client.until_ready()
        client.send(Query(b"SELECT pg_sleep(600)"))
        with ThreadPoolExecutor(1) as waiter:
            answer = waiter.submit(client.until_ready)
            while not answer.done():
                send_cancel(running.port, right)
    (report,) = [message for message in answer.result() if isinstance(message, backend.Report)]
    assert report.find_field(b"C") == b"57014"
