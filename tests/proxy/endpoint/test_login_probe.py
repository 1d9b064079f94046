"""Whether a login can begin: asked as a client would ask, of an endpoint that listens and of ones that only seem to."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from planner.policy.sections import ServerLimitsSection
from proxy.endpoint import login_probe
from proxy.endpoint.login_probe import check_login_begins, find_local_address
from tests.proxy.conftest import Running
from tests.worlds.house import eventually


def test_a_login_can_begin_and_nothing_is_left_of_the_attempt(running: Running) -> None:
    check_login_begins("127.0.0.1", running.port, over_tls=False)
    eventually(lambda: not running.endpoint.sessions)
    with running.connect() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_who_wants_tls_where_there_is_none_is_told(running: Running) -> None:
    with pytest.raises(ConnectionError, match="TLS is not offered"):
        check_login_begins("127.0.0.1", running.port, over_tls=True)


@pytest.mark.parametrize("limits", [ServerLimitsSection(connections=1)])
def test_an_endpoint_that_is_full_says_so_and_is_there(running: Running) -> None:
    with running.connect():
        check_login_begins("127.0.0.1", running.port, over_tls=False)


@pytest.mark.parametrize(
    ("over_tls", "answer"),
    [(False, b""), (False, b"?"), (True, b""), (True, b"S"), (True, b"N")],
    ids=["hangs up", "says nonsense", "hangs up on TLS", "agrees to TLS and goes", "has no TLS"],
)
def test_what_only_accepts_is_no_way_in(over_tls: bool, answer: bytes) -> None:
    def reply(client: socket.socket) -> None:
        client.recv(100)
        client.sendall(answer)

    with accepting(reply) as port, pytest.raises(OSError):  # noqa: PT011 - which one depends on the last step
        check_login_begins("127.0.0.1", port, over_tls=over_tls)


def test_what_never_answers_is_no_way_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_probe, "PROBE_TIMEOUT_S", 0.1)
    over = threading.Event()
    with accepting(lambda _: bool(over.wait())) as port:
        with pytest.raises(TimeoutError):
            check_login_begins("127.0.0.1", port, over_tls=False)
        over.set()


@pytest.mark.parametrize(("bound", "reached"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")])
def test_a_socket_that_listens_everywhere_is_reached_on_loopback(bound: str, reached: str) -> None:
    with socket.socket() as unconnected:  # bound, and never listening
        unconnected.bind((bound, 0))
        assert find_local_address(unconnected)[0] == reached


@contextmanager
def accepting(reply: Callable[[socket.socket], object]) -> Iterator[int]:
    """The port of a server that does so with its first client, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                reply(client)

        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield server.getsockname()[1]
        finally:
            serving.join()
