"""REST over TLS: who gets in, who is cut off, and who cannot keep others out."""

import asyncio
import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.policy.sections import RestSection
from proxy.open_policy.service import Service
from proxy.process.addresses import open_sockets
from proxy.process.generations import Generation, Generations
from proxy.process.single import serve_process
from proxy.security.tls import Tls
from proxy.shadow.address import ShadowAddress
from tests.effort import PATIENCE_S, examples
from tests.proxy.certificates import Authority, tls_in
from tests.proxy.security.tls.sockets import Handshake, client_context, connected, read_to_end
from tests.worlds.rest_house import TOKEN, UNHURRIED, own_house, request, served

ALERT = b"\x15"
PAGE = "/static-offline-docs/swagger-ui-bundle.js"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with own_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    """The server's certificate and the authority's."""
    directory = tmp_path_factory.mktemp("certificates")
    authority.identity.write(directory, "authority")
    authority.issue("keyhole").write(directory, "server")
    return directory


@pytest.fixture(scope="module")
def tls(directory: Path) -> Tls:
    return tls_in(directory, 'client_ca = "authority.crt"')


@pytest.fixture(scope="module")
def port(service: Service, tls: Tls) -> Iterator[int]:
    with served(service, UNHURRIED, tls=tls) as taken:
        yield taken


def encrypted(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    return context.wrap_socket(connected(port), server_hostname="127.0.0.1")


def asked(sock: socket.socket, sent: bytes) -> bytes:
    with closing(sock):
        sock.sendall(sent)
        return read_to_end(sock)


def works(port: int, directory: Path) -> bool:
    return asked(encrypted(port, client_context(directory)), request()).startswith(b"HTTP/1.1 200 ")


# --- who gets in


@pytest.mark.parametrize("alpn", [None, "http/1.1", "h2"])
def test_http_is_spoken_inside_tls_and_nobody_is_asked_for_a_certificate(
    port: int, directory: Path, alpn: str | None
) -> None:
    with encrypted(port, client_context(directory, alpn=alpn)) as sock:
        sock.sendall(request())
        assert sock.recv(15) == b"HTTP/1.1 200 OK"
        assert sock.selected_alpn_protocol() == (None if alpn == "h2" else alpn)
        assert sock.compression() is None


def test_pages_know_that_they_came_through_tls(port: int, directory: Path) -> None:
    context = client_context(directory)
    with httpx.Client(
        base_url=f"https://127.0.0.1:{port}", verify=context, trust_env=False, timeout=PATIENCE_S
    ) as client:
        for _ in range(3):
            assert client.get("/v1/budget", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/api/docs").status_code == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_request_in_one_packet_with_the_end_of_the_handshake_is_answered(
    port: int, directory: Path, version: ssl.TLSVersion
) -> None:
    context = client_context(directory)
    context.minimum_version = context.maximum_version = version
    handshake, sent = Handshake(context), b""
    with connected(port) as sock:
        sock.sendall(handshake.step())
        while handshake.session.version() is None:
            sent = handshake.step(sock.recv(65536))
            if handshake.session.version() is None:
                sock.sendall(sent)
        assert handshake.ask(sock, request(), before=sent).startswith(b"HTTP/1.1 200 ")


def test_a_renewed_certificate_is_shown_and_a_broken_one_never(service: Service, tmp_path: Path) -> None:
    authority = Authority.new()
    authority.identity.write(tmp_path, "authority")
    authority.issue("keyhole").write(tmp_path, "server")

    def shown(port: int) -> bytes | None:
        with encrypted(port, client_context(tmp_path)) as sock:
            return sock.getpeercert(binary_form=True)

    with served(service, UNHURRIED, tls=tls_in(tmp_path)) as port:
        first = shown(port)
        with encrypted(port, client_context(tmp_path)) as open_before:
            authority.issue("keyhole").write(tmp_path, "server")
            second = shown(port)
            assert second != first
            (tmp_path / "server.crt").write_bytes(b"nonsense")
            assert shown(port) == second
            (tmp_path / "server.key").unlink()
            assert shown(port) == second
            open_before.sendall(request())
            assert open_before.recv(15) == b"HTTP/1.1 200 OK"


def test_sessions_of_tls_1_2_are_not_resumed(port: int, directory: Path) -> None:
    context = client_context(directory)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with encrypted(port, context) as first:
        first.sendall(request())
        read_to_end(first)
        session = first.session
    with context.wrap_socket(connected(port), server_hostname="127.0.0.1", session=session) as second:
        assert not second.session_reused


# --- who is cut off


@pytest.mark.parametrize(
    "sent",
    [request(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\0\0\0\x08\x04\xd2\x16\x2f", b"\x16\x03\x01\xff\xff" * 9],
)
def test_in_the_clear_nothing_is_answered(port: int, directory: Path, sent: bytes) -> None:
    with connected(port) as sock:
        with suppress(OSError):
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_WR)
        answer = read_to_end(sock)
    assert answer == b"" or answer.startswith(ALERT)
    assert works(port, directory)


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=200), as_record=st.booleans())
def test_any_bytes_in_the_place_of_a_handshake_end_it(port: int, data: bytes, as_record: bool) -> None:
    if as_record:
        data = b"\x16\x03\x01" + len(data).to_bytes(2, "big") + data
    with connected(port) as sock:
        with suppress(OSError):
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        answer = read_to_end(sock)
    assert answer == b"" or answer.startswith(ALERT)


def test_a_client_who_came_for_postgresql_is_cut_off(port: int, directory: Path) -> None:
    with connected(port) as sock:
        handshake = Handshake(client_context(directory, alpn="postgresql"))
        sock.sendall(handshake.step())
        with pytest.raises((ssl.SSLError, ConnectionError)):
            handshake.ask_after_finishing(sock, request())


def test_nothing_older_than_1_2_is_spoken(port: int, directory: Path) -> None:
    context = client_context(directory)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        encrypted(port, context)


def test_a_client_who_leaves_anywhere_in_the_handshake_leaves_rest_at_work(port: int, directory: Path) -> None:
    hello = Handshake(client_context(directory)).step()
    for sent in (b"", hello[:1], hello[:-1], hello):
        with connected(port) as sock:
            sock.sendall(sent)
    encrypted(port, client_context(directory)).close()
    assert works(port, directory)


@pytest.mark.parametrize("begun", [False, True])
def test_a_handshake_has_the_time_of_a_head(service: Service, tls: Tls, directory: Path, begun: bool) -> None:
    limits = UNHURRIED.model_copy(update={"receive_timeout_ms": 200})
    hello = Handshake(client_context(directory)).step()
    with served(service, limits, tls=tls) as port, connected(port) as sock:
        sock.sendall(hello[:100] if begun else b"")
        assert read_to_end(sock) == b""


def test_a_head_and_an_answer_have_their_time_inside_tls(service: Service, tls: Tls, directory: Path) -> None:
    limits = UNHURRIED.model_copy(update={"receive_timeout_ms": 2000, "send_timeout_ms": 2000})
    with served(service, limits, tls=tls) as port:
        with encrypted(port, client_context(directory)) as silent:
            assert read_to_end(silent) == b""
        with encrypted(port, client_context(directory)) as deaf:
            deaf.sendall(request(target=PAGE, close=False) * 20)
            deaf.settimeout(0.05)
            with pytest.raises((ConnectionError, ssl.SSLEOFError)):
                write_for_ever(deaf)


def write_for_ever(sock: socket.socket) -> None:
    """Reads nothing; writing shows when the other side has gone."""
    while True:
        with suppress(TimeoutError, ssl.SSLWantWriteError):
            sock.sendall(request(close=False))


# --- who cannot keep others out


def test_handshakes_that_never_end_keep_nobody_out(service: Service, tls: Tls, directory: Path) -> None:
    hello = Handshake(client_context(directory)).step()
    limits = UNHURRIED.model_copy(update={"connections": 4, "receive_timeout_ms": 86_400_000})
    with ExitStack() as kept, served(service, limits, tls=tls) as port:
        silent = [kept.enter_context(connected(port)) for _ in range(200)]
        for sock in silent[::2]:
            with suppress(OSError):
                sock.sendall(hello[:100])
        for _ in range(3):
            assert works(port, directory)
        assert all(read_to_end(sock) == b"" for sock in silent[:-4])


def test_connections_beyond_the_most_are_closed(service: Service, tls: Tls, directory: Path) -> None:
    with served(service, UNHURRIED.model_copy(update={"connections": 4}), tls=tls) as port, ExitStack() as kept:
        for _ in range(2):
            sock = kept.enter_context(encrypted(port, client_context(directory)))
            sock.sendall(request(close=False))
            assert sock.recv(15) == b"HTTP/1.1 200 OK"
        came = b""
        with suppress(ConnectionError, ssl.SSLEOFError):
            came = asked(encrypted(port, client_context(directory)), request())
        assert came == b""  # one address may hold half of them


def test_a_client_that_says_no_good_bye_is_not_waited_for(service: Service, tls: Tls, directory: Path) -> None:
    """Keeping a connection ends with the server's good-bye and the connection, whatever the client does about it."""
    limits = UNHURRIED.model_copy(update={"keep_alive_s": 1, "send_timeout_ms": 86_400_000})
    handshake = Handshake(client_context(directory))
    with served(service, limits, tls=tls) as port, connected(port) as sock:
        sock.sendall(handshake.step())
        handshake.finish(sock)
        assert handshake.ask(sock, request(close=False)).startswith(b"HTTP/1.1 200 ")
        read_to_end(sock)


@pytest.mark.parametrize("close", [True, False])
def test_a_slow_reader_gets_the_whole_of_a_long_answer(port: int, directory: Path, close: bool) -> None:
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plain.settimeout(PATIENCE_S)
        plain.connect(("127.0.0.1", port))
        with client_context(directory).wrap_socket(plain, server_hostname="127.0.0.1") as sock:
            sock.sendall(request(target=PAGE, close=close))
            answer = http.client.HTTPResponse(sock)
            answer.begin()
            assert len(answer.read()) == int(answer.headers["content-length"]) > 1_000_000


# --- both endpoints


@pytest.mark.parametrize(("more", "scheme"), [((), "https"), (("[server.rest]", "tls = false"), "http")])
def test_one_certificate_is_for_both_unless_a_proxy_speaks_tls_for_rest(
    tmp_path: Path, shadow: ShadowAddress, directory: Path, more: tuple[str, ...], scheme: str
) -> None:
    async def serve(service: Service) -> int:
        with open_sockets(host="127.0.0.1", port=0, rest_port=0) as accepting:
            async with (
                Generations(Generation.lend(service, shadow)) as generations,
                serve_process(generations, accepting=accepting, tls=tls_in(directory, *more), rest=RestSection()) as up,
                httpx.AsyncClient(verify=client_context(directory), trust_env=False, timeout=PATIENCE_S) as client,
            ):
                assert up.addresses.rest == f"{scheme}://127.0.0.1:{up.addresses.rest_port}"
                return (await client.get(f"{up.addresses.rest}/healthz")).status_code

    with own_house(tmp_path) as service:
        assert asyncio.run(serve(service)) == 200
