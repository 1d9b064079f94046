"""Clients that end their sending through TLS before they have heard the answers."""

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from proxy.wire.backend import DataRow
from proxy.wire.frontend import Query
from tests.effort import PATIENCE_S
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.proxy.raw_client import RawClient
from tests.proxy.security.tls.sockets import client_context, encrypted
from tests.worlds.countries import QUESTION
from tests.worlds.house import eventually

ROWS = 30_000
LONG = b"SELECT repeat('x', 1000) FROM generate_series(1, %d)" % ROWS


def say_good_bye(client: ssl.SSLSocket) -> None:
    """Send close_notify and wait for none."""
    client.setblocking(False)
    with pytest.raises(ssl.SSLWantReadError):
        client.unwrap()
    client.settimeout(PATIENCE_S)


def end_sending(client: ssl.SSLSocket) -> None:
    """End the connection below, and keep TLS for reading."""
    socket.socket.shutdown(client, socket.SHUT_WR)


def do_both(client: ssl.SSLSocket) -> None:
    say_good_bye(client)
    end_sending(client)


ENDS = pytest.mark.parametrize("end", [say_good_bye, end_sending, do_both])


@ENDS
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_answers_come_after_the_end_of_what_is_sent(
    running: Running, directory: Path, end: Callable[[ssl.SSLSocket], None], version: ssl.TLSVersion
) -> None:
    context = client_context(directory)
    context.minimum_version = context.maximum_version = version
    running.asker.gate = threading.Event()  # nothing is told before the end is
    with RawClient(running.port, encrypted=encrypted(context)) as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        client.send(Query(QUESTION.encode() + b"; " + LONG))
        end(client.socket)
        running.asker.gate.set()
        told = client.until_ready()
        with suppress(ssl.SSLZeroReturnError):
            assert client.socket.recv(1) == b""
    assert sum(isinstance(one, DataRow) for one in told) == len(COUNTRIES) + ROWS
    eventually(lambda: not running.endpoint.connections)


@ENDS
def test_a_question_goes_on_while_its_client_listens_and_not_when_it_has_gone(
    running: Running, directory: Path, end: Callable[[ssl.SSLSocket], None]
) -> None:
    running.asker.gate = threading.Event()
    keys = encrypted(client_context(directory))
    with RawClient(running.port, encrypted=keys) as client, RawClient(running.port, encrypted=keys) as leaving:
        for one in (client, leaving):
            assert isinstance(one.socket, ssl.SSLSocket)
            one.send(Query(QUESTION.encode()))
            end(one.socket)
        if end is not say_good_bye:  # which tells nothing to the system below
            eventually(lambda: all(one.stream.was_probed for one in running.endpoint.sessions))
        leaving.socket.close()
        eventually(lambda: len(running.endpoint.sessions) == 1)
        running.asker.gate.set()
        told = [one.values for one in client.until_ready() if isinstance(one, DataRow)]
    assert told == [(country.encode(),) for country in COUNTRIES]
    eventually(lambda: not running.endpoint.connections)
