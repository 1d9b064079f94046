"""Logins through TLS, as libpq makes them."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from proxy.endpoint.login_probe import check_login_begins
from proxy.wire import backend
from proxy.wire.frontend import EncryptionRequest, Startup
from tests.effort import rounds
from tests.proxy.conftest import Running
from tests.proxy.security.tls.clients import conninfo, reports, works
from tests.proxy.security.tls.sockets import SSL_REQUEST, client_context, connected, read_to_end
from tests.worlds.countries import PASSWORD

ALERT = b"\x15"
STARTUP = Startup((3, 0), ((b"user", b"ada"), (b"database", b"retail"))).encode()


@pytest.mark.parametrize(
    "extra",
    [
        "",
        "channel_binding=require",
        "channel_binding=disable",
        "require_auth=scram-sha-256 channel_binding=require",
        "sslnegotiation=direct channel_binding=require",
        "ssl_min_protocol_version=TLSv1.3",
        "ssl_max_protocol_version=TLSv1.2 channel_binding=require",
        "min_protocol_version=3.2",
    ],
)
def test_libpq_verifies_the_server_and_binds_its_login_to_it(running: Running, directory: Path, extra: str) -> None:
    with psycopg.connect(conninfo(running, directory, extra)) as connection:
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT current_user").fetchone() == ("ada",)


def test_that_a_login_can_begin_is_seen_from_here(running: Running) -> None:
    check_login_begins("127.0.0.1", running.port, over_tls=True)


def test_gss_is_answered_no_and_tls_comes_after_it(running: Running, directory: Path) -> None:
    with connected(running.port) as sock:
        sock.sendall(EncryptionRequest(is_gss=True).encode())
        assert sock.recv(10) == b"N"
        sock.sendall(SSL_REQUEST)
        assert sock.recv(10) == b"S"
        with client_context(directory).wrap_socket(sock, server_hostname="127.0.0.1") as wrapped:
            assert wrapped.version() in ("TLSv1.2", "TLSv1.3")


@pytest.mark.parametrize("extra", ["sslmode=disable", "sslmode=disable channel_binding=require"])
def test_a_login_in_the_clear_is_refused_where_tls_is_required(running: Running, extra: str) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(running.conninfo(extra=extra))
    assert "channel binding" in str(caught.value) or "KH407" in str(caught.value)


def test_the_refusal_in_the_clear_comes_before_anything_about_the_user(running: Running) -> None:
    with connected(running.port) as sock:
        sock.sendall(Startup((3, 0), ((b"user", b"nobody"), (b"unheard_of", b"x"))).encode())
        (report,) = reports(read_to_end(sock))
    assert isinstance(report, backend.Report)
    assert report.find_field(b"C") == b"28000"
    assert (report.find_field(b"M") or b"").startswith(b"KH407")


@pytest.mark.parametrize("more", [("require = false",)])
def test_where_tls_is_not_required_both_get_in_but_binding_needs_tls(running: Running, directory: Path) -> None:
    with psycopg.connect(running.conninfo(extra="sslmode=disable")) as connection:
        assert not connection.pgconn.ssl_in_use
    assert works(running, directory)
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(running.conninfo(extra="sslmode=disable channel_binding=require"))


@pytest.mark.parametrize(("user", "password"), [("ada", "wrong"), ("nobody", PASSWORD)])
@pytest.mark.parametrize("extra", ["channel_binding=require", "channel_binding=disable"])
def test_a_wrong_password_and_an_unknown_user_look_the_same(
    running: Running, directory: Path, user: str, password: str, extra: str
) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(conninfo(running, directory, extra, user=user, password=password))
    assert f'KH401: password authentication failed for user "{user}"' in str(caught.value)


def test_a_cancel_through_tls_works(running: Running, directory: Path) -> None:
    with psycopg.connect(conninfo(running, directory), autocommit=True) as connection, ThreadPoolExecutor(1) as waiter:
        answer = waiter.submit(connection.execute, "SELECT pg_sleep(600)")
        while not answer.done():
            connection.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            answer.result()


def test_large_answers_come_whole(running: Running, directory: Path) -> None:
    with psycopg.connect(conninfo(running, directory)) as connection:
        rows = connection.execute("SELECT repeat('x', 1000) FROM generate_series(1, 20000)").fetchall()
    assert len(rows) == 20_000
    assert set(rows) == {("x" * 1000,)}


def test_hundreds_of_logins_by_every_way_in(running: Running, directory: Path) -> None:
    ways = ("channel_binding=require", "sslnegotiation=direct", "ssl_max_protocol_version=TLSv1.2")

    def log_in(number: int) -> bool:
        with psycopg.connect(conninfo(running, directory, ways[number % 3])) as connection:
            return connection.execute("SELECT %s::int", (number,)).fetchone() == (number,)

    with ThreadPoolExecutor(20) as batch:
        assert all(batch.map(log_in, range(rounds(300, quick=100))))
