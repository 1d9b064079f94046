"""REST against clients that break HTTP's rules, or keep them very slowly: real sockets, bytes by hand."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.responses import StreamingResponse

from planner.policy.file import Policy
from planner.policy.sections import RestSection
from proxy.open_policy.service import Service
from proxy.rest import uvicorn_server as rest_server
from proxy.rest.middleware import MOST_HEADERS
from tests.effort import PATIENCE_S
from tests.in_turn import in_turn
from tests.worlds.house import eventually
from tests.worlds.rest_house import TOKEN, UNHURRIED, exchange, own_house, read_all, request, served
from tests.worlds.wards import QUESTION, install

MUCH = 1 << 30
BODY = json.dumps({"sql": QUESTION.format(1500)}).encode()
JSON_HEADER = b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with own_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


@pytest.fixture(scope="module")
def port(service: Service) -> Iterator[int]:
    with served(service, UNHURRIED.model_copy(update={"receive_timeout_ms": 700})) as taken:
        yield taken


def statuses(came: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([0-9]{3}) ", came)]


def spent(service: Service) -> int:
    return service.ledger.verify_everything()


@in_turn(
    "framing",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length : 5\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Host: elsewhere\r\n",
        b"Folded: a\r\n b\x00\r\n",
        b"Name\x00: a\r\n",
    ],
)
def test_two_readings_of_where_a_request_ends_are_no_request(port: int, service: Service, framing: bytes) -> None:
    before = spent(service)
    smuggled = request("POST", "/v1/question", more=JSON_HEADER + b"Content-Length: %d\r\n" % len(BODY), body=BODY)
    came = exchange(port, request("POST", "/v1/question", more=JSON_HEADER + framing, body=b"0\r\n\r\n" + smuggled))
    (status,) = statuses(came)
    assert 400 <= status < 502
    assert b"KH408" in came
    assert spent(service) == before


LENGTH = b"%x" % len(BODY)
GET = f"GET /v1/budget HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
CHUNKED = JSON_HEADER + b"Transfer-Encoding: chunked\r\n"


@in_turn(
    "sent",
    [
        GET + b"X-A: b\r\n c\r\n\r\n",
        GET + b"X-A: b\r\n\tc\r\n\r\n",
        GET + b"X-A: b\nX-B: c\r\n\r\n",
        GET + b"\n",
        GET.replace(b"1.1\r\n", b"1.1\n") + b"\r\n",
        GET.replace(b"\r\n", b"\n") + b"\n",
        GET + b"X-A: b\rX-B: c\r\n\r\n",
        b"\n" + GET + b"\r\n",
        request("POST", "/v1/explain", more=JSON_HEADER + b"Content-Length: %d\r\n" % len(BODY) * 2, body=BODY),
        request(
            "POST", "/v1/explain", more=JSON_HEADER + b"content-length: %d, %d\r\n" % (len(BODY), len(BODY)), body=BODY
        ),
        request("POST", "/v1/explain", more=CHUNKED, body=b"").replace(b"1.1", b"1.0", 1)
        + LENGTH
        + b"\r\n"
        + BODY
        + b"\r\n0\r\n\r\n",
        *(
            request("POST", "/v1/explain", more=CHUNKED, body=body)
            for body in (
                LENGTH + b";a=b\r\n" + BODY + b"\r\n0\r\n\r\n",
                LENGTH + b";a\nb\r\n" + BODY + b"\r\n0\r\n\r\n",
                LENGTH + b" \r\n" + BODY + b"\r\n0\r\n\r\n",
                LENGTH + b"\n" + BODY + b"\n0\n\n",
                b"0x" + LENGTH + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
                b"0" * 30 + LENGTH + b"\r\n" + BODY + b"\r\n0\r\n\r\n",
                LENGTH + b"\r\n" + BODY + b"\n0\r\n\r\n",
                LENGTH + b"\r\n" + BODY + b"\r\n0\n\r\n",
                LENGTH + b"\r\n" + BODY + b"\r\n0\r\n\n",
                LENGTH + b"\r\n" + BODY + b"\r\n0\r\nX-T: a\r\n\r\n",
                LENGTH + b"\r\n" + BODY + b"\r\n0\r\nContent-Length: 5\r\n\r\n",
            )
        ),
    ],
)
def test_what_another_reader_could_take_for_other_lines_is_no_request(port: int, sent: bytes) -> None:
    """It is refused at once, and what comes after it is not read."""
    came = exchange(port, sent + GET + b"\r\n")
    assert statuses(came) == [400]
    assert b"KH408" in came


@pytest.mark.parametrize("at_a_time", [5, 10_000])
def test_chunks_that_are_plain_are_read_in_whatever_pieces_they_come(port: int, at_a_time: int) -> None:
    chunks = b"".join(b"%x\r\n%c\r\n" % (1, byte) for byte in BODY) + b"0\r\n\r\n"
    sent = request("POST", "/v1/explain", more=CHUNKED, body=chunks)
    with closing(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(sent), at_a_time):
            connection.sendall(sent[start : start + at_a_time])
        assert statuses(read_all(connection)) == [200]


def test_a_length_beside_chunks_is_refused_and_nothing_after_it_is_read(port: int, service: Service) -> None:
    more = JSON_HEADER + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    before = spent(service)
    came = exchange(port, request("POST", "/v1/question", more=more, body=chunked + request(), close=False))
    assert statuses(came) == [400]
    assert spent(service) == before


@in_turn(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS where none is spoken
        b"\x00\x00\x00\x08\x04\xd2\x16\x2f",  # PostgreSQL's SSLRequest
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_and_the_connection_ends(port: int, sent: bytes) -> None:
    came = exchange(port, sent + b"\r\n\r\n")
    assert statuses(came)[0] in (400, 505)
    assert b"application/problem+json" in came
    assert b"uvicorn" not in came.lower()


@in_turn(
    ("target", "status"),
    [
        ("http://elsewhere.example/v1/budget", 404),
        ("//v1/budget", 404),
        ("/v1/budget/", 404),
        ("/v1/../v1/budget", 404),
        ("/v1/%2e%2e/v1/budget", 404),
        ("/v1//budget", 404),
        ("/static-offline-docs/../../../pyproject.toml", 404),
        ("/static-offline-docs/%2e%2e/%2e%2e/core.py", 404),
        ("/static-offline-docs/..%2f..%2fcore.py", 404),
        ("/static-offline-docs/%00", 404),
        ("/v1/budget%00", 404),
        ("/v1/budget?%ff=%00", 200),
        ("*", 404),
    ],
)
def test_odd_addresses_lead_nowhere(port: int, target: str, status: int) -> None:
    came = exchange(port, request(target=target))
    assert statuses(came) == [status]
    assert b"location" not in came.lower()


def test_no_header_of_the_client_comes_back_in_a_header(port: int) -> None:
    came = exchange(port, request(target="/v1/tables", more=b"X-Request-Id: a\xe4;b\r\nX-Forwarded-Host: evil\r\n"))
    assert b"evil" not in came
    assert b"a\xe4;b" not in came
    came = exchange(port, request(more=b"X-Request-Id: report-17_a.b\r\n"))
    assert b"\r\nx-request-id: report-17_a.b\r\n" in came


def test_no_banner_and_nothing_is_stored(port: int) -> None:
    head = exchange(port, request()).partition(b"\r\n\r\n")[0].lower()
    assert b"\r\nserver:" not in head
    for header in (b"cache-control: no-store", b"x-content-type-options: nosniff", b"frame-ancestors 'none'"):
        assert header in head
    assert b"access-control" not in head


def test_http_1_0_is_answered_and_closed(port: int) -> None:
    came = exchange(port, f"GET /v1/budget HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
    assert b" 200 " in came.partition(b"\r\n")[0]
    assert b"transfer-encoding" not in came.lower()


def test_head_has_headers_alone_and_options_says_what_may_be_sent(port: int) -> None:
    head, _, body = exchange(port, request("HEAD")).partition(b"\r\n\r\n")
    assert (statuses(head), body) == ([200], b"")
    for target, allowed in (("/v1/question", b"POST"), ("/v1/budget", b"GET")):
        came = exchange(port, request("OPTIONS", target))
        assert statuses(came) == [204]
        assert b"allow: " + allowed in came
    assert statuses(exchange(port, request("OPTIONS", "/v1/tables"))) == [404]
    assert statuses(exchange(port, request("TRACE", "/v1/budget"))) == [405]


@pytest.mark.parametrize(
    "more",
    [
        b"X-Long: " + b"x" * 20_000 + b"\r\n",
        b"".join(b"X-%d: y\r\n" % number for number in range(MOST_HEADERS)),
    ],
)
def test_large_heads_are_refused(port: int, more: bytes) -> None:
    assert statuses(exchange(port, request(more=more))) == [431]


@pytest.mark.parametrize("name", ["Authorization", "Content-Type", "Idempotency-Key"])
def test_a_header_that_says_two_things_is_refused(port: int, name: str) -> None:
    more = f"{name}: Bearer {TOKEN}\r\n{name}: Bearer other\r\n".encode()
    assert statuses(exchange(port, request(more=more))) == [400]


def test_a_head_that_never_ends_is_cut_off(port: int) -> None:
    assert exchange(port, b"GET /v1/budget HTTP/1.1\r\nHost: a\r\nX-Slow: ") == b""
    assert exchange(port, b"") == b""


def test_a_slow_second_request_is_cut_off_too(port: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)) as connection:
        connection.sendall(request(close=False) + b"GET /v1/bud")
        assert statuses(read_all(connection)) == [200]


def test_a_body_that_never_ends_is_told_so(port: int) -> None:
    more = JSON_HEADER + b"Content-Length: 1000\r\n"
    came = exchange(port, request("POST", "/v1/explain", more=more, body=b'{"sql": ', close=False))
    assert statuses(came) == [408]
    assert b"\r\nconnection: close\r\n" in came.lower()


def test_who_sends_a_large_body_before_reading_is_told_so(service: Service) -> None:
    """50 megabytes, by a client that looks for an answer once all of them are sent, however slow the machine is."""
    more = JSON_HEADER + b"Content-Length: 50000000\r\n"
    body = b" " * 50_000_000
    with served(service, UNHURRIED.model_copy(update={"receive_timeout_ms": 1000 * PATIENCE_S})) as port:
        came = exchange(port, request("POST", "/v1/question", more=more, body=body, close=False))
    assert statuses(came) == [413]


def test_nobody_without_a_token_is_asked_for_a_body(port: int) -> None:
    head = b"POST /v1/question HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    came = exchange(port, head)
    assert statuses(came) == [401]


def test_a_client_that_does_not_read_is_cut_off(service: Service) -> None:
    limits = UNHURRIED.model_copy(update={"send_timeout_ms": 300})
    with served(service, limits) as port, closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect(("127.0.0.1", port))
        connection.sendall(request(target="/static-offline-docs/swagger-ui-bundle.js", close=False) * 20)
        connection.settimeout(0.05)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            write_for_ever(connection)


def test_who_has_no_token_occupies_nobodys_place(service: Service) -> None:
    """One request at a time is served; strangers leave bodies unfinished, and a page unread that they asked for."""
    script = b"GET /static-offline-docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: a\r\n\r\n" * 8
    unfinished = b"POST /v1/question HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx"
    limits = UNHURRIED.model_copy(update={"concurrent_requests": 1})
    with served(service, limits) as port, ExitStack() as strangers:
        for sent in (unfinished, unfinished, script):
            stranger = strangers.enter_context(closing(socket.socket()))
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stranger.settimeout(PATIENCE_S)
            stranger.connect(("127.0.0.1", port))
            stranger.sendall(sent)
        assert stranger.recv(1) == b"H"
        assert statuses(exchange(port, request())) == [200]


def test_no_reader_keeps_a_server_that_ends() -> None:
    """An answer without end, read all the time: it is cut off."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 65536
            await asyncio.sleep(0)

    async def read() -> int:
        listening, taken = socket.create_server(("127.0.0.1", 0)), 0
        limits = UNHURRIED.model_copy(update={"send_timeout_ms": 100})
        server = uvicorn.Server(rest_server.make_config(StreamingResponse(endless()), limits))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")
        server.should_exit = True
        with suppress(ConnectionResetError):
            while taken < MUCH and (piece := await reader.read(65536)):
                taken += len(piece)
        writer.transport.abort()
        await serving
        return taken

    assert asyncio.run(read()) < MUCH


def write_for_ever(connection: socket.socket) -> None:
    """Reads nothing; writing shows when the other side has gone."""
    while True:
        with suppress(TimeoutError):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")


def test_connections_beyond_the_most_are_closed(service: Service) -> None:
    with served(service, UNHURRIED.model_copy(update={"connections": 4})) as port:
        first = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) for _ in range(2)]
        try:
            for connection in first:
                connection.sendall(request(close=False))
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            third = b""
            with suppress(ConnectionResetError, BrokenPipeError):
                third = exchange(port, request())
            assert third == b""  # one address may hold half of them
        finally:
            for connection in first:
                connection.close()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE_S) as client:
            eventually(lambda: healthy(client))


def test_heads_that_never_end_keep_nobody_out(service: Service) -> None:
    """Of one's own address, and of all that there may be: who has sent one already stays."""
    hours = {"receive_timeout_ms": 86_400_000, "keep_alive_s": 3600}
    limits = UNHURRIED.model_copy(update={"connections": 8, **hours})
    with ExitStack() as kept, served(service, limits) as port:

        def connected(address: str) -> socket.socket:
            sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S, source_address=(address, 0))
            return kept.enter_context(sock)

        known = connected("127.0.0.1")
        known.sendall(request(close=False))
        assert known.recv(65536).startswith(b"HTTP/1.1 200")
        for address in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            silent = [connected(address) for _ in range(50)]
            for sock in silent[::2]:
                with suppress(OSError):
                    sock.sendall(b"GET / HTTP/1.1\r\nHost: ")
            assert statuses(exchange(port, request())) == [200]
            assert all(read_all(sock) == b"" for sock in silent[:-8])
        known.sendall(request())
        assert statuses(read_all(known)) == [200]


def healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize(("trusted", "told"), [((), 429), (("127.0.0.1",), 401)])
def test_only_a_trusted_proxy_tells_another_address(service: Service, trusted: tuple[str, ...], told: int) -> None:
    limits = RestSection(failed_logins_per_minute=2, trusted_proxies=trusted)
    with (
        served(service, limits) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE_S) as client,
    ):
        answers = [
            client.get("/v1/budget", headers={"X-Forwarded-For": f"192.0.2.{number}"}).status_code
            for number in range(6)
        ]
    assert answers == [401, 401, told, told, told, told]


def test_a_policy_says_which_limits_hold(tmp_path: Path) -> None:
    path = install(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(
        f'{text}\n[server.rest]\nconnections = 3\norigins = ["https://lab.example.org"]\n', encoding="utf-8"
    )
    assert Policy.load(path).server.rest.connections == 3
