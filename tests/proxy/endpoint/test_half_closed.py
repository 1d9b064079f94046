"""Clients that end their sending, or say good-bye, before they have heard the answers."""

import socket
import threading

import pytest

from proxy.wire.backend import CommandComplete, DataRow, ReadyForQuery
from proxy.wire.frontend import Bind, Execute, FrontendMessage, Parse, Query, Sync, Terminate
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION
from tests.worlds.house import eventually

ROWS = 30_000
LONG = b"SELECT repeat('x', 1000) FROM generate_series(1, %d)" % ROWS


def batch(sql: bytes) -> tuple[FrontendMessage, ...]:
    return Parse(b"", sql), Bind(b"", b"", (), (), ()), Execute(b"", 0), Sync()


@pytest.mark.parametrize("asked", [(Query(LONG),), batch(LONG), (Query(LONG), Terminate())])
def test_what_was_asked_for_before_the_end_is_answered_in_full(
    running: Running, asked: tuple[FrontendMessage, ...]
) -> None:
    with RawClient(running.port) as client:
        client.send(*asked)
        client.socket.shutdown(socket.SHUT_WR)
        told = client.until_end()
    assert sum(isinstance(one, DataRow) for one in told) == ROWS
    assert told[-2:] == [CommandComplete(b"SELECT %d" % ROWS), ReadyForQuery(b"I")]
    eventually(lambda: not running.endpoint.connections)


@pytest.mark.parametrize("asked", [(Query(QUESTION.encode()),), batch(QUESTION.encode())])
def test_a_question_goes_on_while_its_client_listens(running: Running, asked: tuple[FrontendMessage, ...]) -> None:
    running.asker.gate = threading.Event()
    with RawClient(running.port) as client:
        client.send(*asked, Query(b"SELECT 7"))
        client.socket.shutdown(socket.SHUT_WR)
        (one,) = running.endpoint.sessions
        eventually(lambda: one.stream.was_probed)
        running.asker.gate.set()
        told = client.until_end()
    assert [one.values for one in told if isinstance(one, DataRow)] == [
        *((country.encode(),) for country in COUNTRIES),
        (b"7",),
    ]
    eventually(lambda: not running.endpoint.connections)


@pytest.mark.parametrize("asked", [(Query(QUESTION.encode()),), (Query(b"SELECT pg_sleep(600)"),)])
@pytest.mark.parametrize("ends_before", [False, True])
def test_what_is_under_way_ends_when_its_client_has_gone(
    running: Running, asked: tuple[FrontendMessage, ...], ends_before: bool
) -> None:
    running.asker.gate = threading.Event()
    with RawClient(running.port) as client:
        client.send(*asked)
        if ends_before:
            (one,) = running.endpoint.sessions
            client.socket.shutdown(socket.SHUT_WR)
            eventually(lambda: one.stream.was_probed)
    eventually(lambda: not running.endpoint.connections)
    running.asker.gate.set()


def test_who_said_nothing_more_is_let_go_at_once(running: Running) -> None:
    with RawClient(running.port) as client:
        client.socket.shutdown(socket.SHUT_WR)
        assert client.until_end() == []
    with RawClient(running.port) as client:
        client.send(Parse(b"", b"SELECT 1"), Bind(b"", b"", (), (), ()))
        client.socket.shutdown(socket.SHUT_WR)
        client.until_end()
    eventually(lambda: not running.endpoint.connections)
