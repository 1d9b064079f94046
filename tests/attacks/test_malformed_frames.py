"""Bytes that break the protocol, on a running endpoint: it says so, hangs up, forgets the client, and serves others."""

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from proxy.wire.backend import BackendMessage, CommandComplete, DataRow, ReadyForQuery, Report
from proxy.wire.frames import MESSAGE_LIMIT_BYTES, make_frame
from proxy.wire.frontend import Bind, Cancel, Copy, Credential, Execute, FunctionCall, Parse, Query, Startup, Sync
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION
from tests.worlds.house import eventually

STARTUP = Startup((3, 0), ((b"user", b"ada"), (b"database", b"retail"))).encode()
HUGE = b"\xff\xff\xff\xff"


def _startup(*parameters: bytes) -> bytes:
    body = b"\0\x03\0\0" + b"".join(parameter + b"\0" for parameter in (b"user", b"ada", *parameters)) + b"\0"
    return (len(body) + 4).to_bytes(4, "big") + body


BEFORE_LOGIN = {
    "a negative length": HUGE + b"\0\x03\0\0",
    "a length of nothing": b"\0\0\0\0",
    "a length below the header's": b"\0\0\0\x07\0\x03\0",
    "a startup packet over the limit": b"\0\0\x27\x11" + b"x" * 100,
    "no version known": b"\0\0\0\x09\0\x09\0\0\0",
    "a parameter without its NUL": b"\0\0\0\x0c\0\x03\0\0user",
    "a parameter without a value": b"\0\0\0\x0e\0\x03\0\0user\0\0",
    "no end of the parameters": STARTUP[:3] + bytes([STARTUP[3] - 1]) + STARTUP[4:-1],
    "bytes behind the end": STARTUP[:3] + bytes([STARTUP[3] + 3]) + STARTUP[4:] + b"abc",
    "no user": b"\0\0\0\x09\0\x03\0\0\0",
    "a setting in options": _startup(b"options", b"-c session_preload_libraries=x"),
    "a role in options": _startup(b"options", b"-c role=postgres"),
    "an option that is no setting": _startup(b"options", b"-f trace.sql"),
    "a role as a parameter": _startup(b"role", b"postgres"),
    "replication": _startup(b"replication", b"database"),
    "text that is not UTF-8": _startup(b"application_name", b"\xff\xfe"),
    "a statement": Query(b"SELECT 1").encode(),
    "a password first": Credential(b"open sesame").encode(),
    "a second startup packet": STARTUP * 2,
    "a statement behind the startup packet": STARTUP + Query(b"SELECT 1").encode(),
    "a password as such": STARTUP + Credential(b"open sesame\0").encode(),
    "an empty SASL response": STARTUP + Credential(b"").encode(),
    "an unknown mechanism": STARTUP + Credential(b"PLAIN\0\0\0\0\x05\0a\0b\0").encode(),
    "a SASL length too long": STARTUP + Credential(b"SCRAM-SHA-256\0\x7f\xff\xff\xffn,,n=,r=abc").encode(),
    "a SASL length below zero": STARTUP + Credential(b"SCRAM-SHA-256\0\xff\xff\xff\xf0n,,n=,r=abc").encode(),
    "SASL of noise": STARTUP + Credential(b"SCRAM-SHA-256\0\0\0\0\x04\xff\0\xfe\x80").encode(),
    "a final message at once": STARTUP + Credential(b"SCRAM-SHA-256\0\0\0\0\x0cc=biws,r=a,p").encode(),
    "a password over the limit": STARTUP + b"p\0\0\x27\x11",
    "a cancel request with a short secret": b"\0\0\0\x0f\x04\xd2\x16\x2e\0\0\0\x01abc",
    "a cancel request with a long secret": b"\0\0\x01\x11\x04\xd2\x16\x2e\0\0\0\x01" + b"x" * 261,
    "encryption asked for twice": b"\0\0\0\x08\x04\xd2\x16\x2f" * 2,
}
AFTER_LOGIN = {
    "a negative length": b"Q" + HUGE,
    "a length of nothing": b"Q\0\0\0\0",
    "a length below its own": b"Q\0\0\0\x03",
    "a byte over the limit": b"Q" + (MESSAGE_LIMIT_BYTES + 1).to_bytes(4, "big"),
    "an unknown type": b"\x01\0\0\0\x04",
    "a server's message": b"Z\0\0\0\x05I",
    "a second startup packet": STARTUP,
    "a password that nobody asked for": Credential(b"open sesame\0").encode(),
    "a statement without its NUL": b"Q\0\0\0\x0cSELECT 1",
    "a NUL inside a statement": make_frame("Q", b"SELECT 1\0; SELECT 2\0"),
    "an empty statement message": b"Q\0\0\0\x04",
    "an empty Parse": b"P\0\0\0\x04",
    "an empty Bind": b"B\0\0\0\x04",
    "Parse with fewer types than counted": make_frame("P", b"\0SELECT 1\0\0\x05\0\0\0\x17"),
    "Parse with more types than counted": make_frame("P", b"\0SELECT 1\0\0\0\0\0\0\x17"),
    "Bind with fewer values than counted": make_frame("B", b"\0\0\0\0\xff\xff\0\0\0\x011"),
    "Bind with a value longer than the message": make_frame("B", b"\0\0\0\0\0\x01\x7f\xff\xff\xff1\0\0"),
    "Bind with a length below -1": make_frame("B", b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
    "Bind with bytes behind its end": make_frame("B", b"\0\0\0\0\0\0\0\0extra"),
    "Describe of neither": make_frame("D", b"X\0"),
    "Close without a name": make_frame("C", b"S"),
    "Execute without a number": make_frame("E", b"\0\0"),
    "Sync with content": make_frame("S", b"x"),
}


def file_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def guarded(running: Running) -> Iterator[Running]:
    """The endpoint; in the end nobody is left, in it or in the shadow, nothing was asked, and others are served."""
    with running.connect(autocommit=True) as other:
        backends = "SELECT count(*) FROM pg_stat_activity WHERE usename IN ('ada', 'bob')"

        async def tasks() -> int:
            return len(asyncio.all_tasks())

        eventually(lambda: other.execute(backends).fetchone() == (1,))  # those of the test before may be ending
        held, files, threads = running.run(tasks()), file_descriptors(), threading.active_count()
        yield running
        assert other.execute("SELECT region FROM regions WHERE country = 'Spain'").fetchall() == [("Europe",)]
        eventually(lambda: running.endpoint.connections == len(running.endpoint.sessions) == 1)
        eventually(lambda: other.execute(backends).fetchone() == (1,))
        eventually(lambda: bool(running.run(tasks()) <= held))
        eventually(lambda: file_descriptors() <= files)
        assert threading.active_count() <= threads + 8  # the pool's own, which stay
    assert running.asker.released == 0
    with running.connect() as another:
        assert another.execute("SELECT 1").fetchone() == (1,)


def _refused(told: list[BackendMessage]) -> bool:
    """Whether the last word is an error that ends the connection, and not one of ours."""
    report = told[-1] if told else None
    return (
        isinstance(report, Report)
        and report.find_field(b"S") == b"FATAL"
        and report.find_field(b"C") in (b"08P01", b"0A000", b"28000", b"28P01", b"42501", b"22023")
    )


@pytest.mark.parametrize("data", BEFORE_LOGIN.values(), ids=BEFORE_LOGIN.keys())
def test_whoever_breaks_the_protocol_before_the_login_is_told_and_left(guarded: Running, data: bytes) -> None:
    with RawClient(guarded.port, user="") as client:
        client.send_bytes(data)
        if data.startswith(b"\0\0\0\x08"):
            assert client.socket.recv(1) in (b"N", b"E")
            return
        assert _refused(client.until_end())


@pytest.mark.parametrize("data", AFTER_LOGIN.values(), ids=AFTER_LOGIN.keys())
def test_whoever_breaks_the_protocol_in_a_session_is_told_and_left(guarded: Running, data: bytes) -> None:
    with RawClient(guarded.port) as client:
        client.send_bytes(Query(b"SELECT 1").encode() + data)
        told = client.until_end()
        assert any(isinstance(one, DataRow) for one in told) or _refused(told)
        assert _refused(told)


@pytest.mark.parametrize("count", [0, 1, 65_535])
def test_values_that_do_not_fit_the_statement_are_an_error_and_nothing_more(guarded: Running, count: int) -> None:
    question = QUESTION.replace("20", "$1::int + $2::int").encode()
    with RawClient(guarded.port) as client:
        for sql in (b"SELECT $1::int + $2::int", question):
            client.send(Parse(b"", sql), Bind(b"", b"", (), (b"1",) * count, ()), Execute(b"", 0), Sync())
            told = client.until_ready()
            assert [one.find_field(b"C") for one in told if isinstance(one, Report)] == [b"08P01"]
            client.send(Parse(b"", sql, (23,) * count), Sync())
            assert isinstance(client.until_ready()[-1], ReadyForQuery)
        client.send(Parse(b"", b"SELECT $1::text"), Bind(b"", b"", (1, 1, 0), (b"x",), ()), Execute(b"", 0), Sync())
        assert any(isinstance(one, Report) for one in client.until_ready())
        client.send(Query(b"SELECT 1"))
        assert CommandComplete(b"SELECT 1") in client.until_ready()


def test_messages_that_mean_nothing_here_are_harmless_in_any_number(guarded: Running) -> None:
    with RawClient(guarded.port) as client:
        client.send_bytes((Copy("d", b"x" * 100).encode() + Copy("c", b"").encode() + Copy("f", b"").encode()) * 20_000)
        client.send_bytes(FunctionCall(b"\0\0\0\x01").encode())
        assert any(isinstance(one, Report) for one in client.until_ready())
        client.send(Query(b"SELECT 1"))
        assert CommandComplete(b"SELECT 1") in client.until_ready()


def test_a_whole_session_byte_by_byte_is_a_session(guarded: Running) -> None:
    with RawClient(guarded.port) as client:
        client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        batch = (Parse(b"", b"SELECT 1"), Bind(b"", b"", (), (), ()), Execute(b"", 0), Sync())
        for byte in b"".join(message.encode() for message in batch):
            client.send_bytes(bytes([byte]))
        assert CommandComplete(b"SELECT 1") in client.until_ready()


def test_guessed_secrets_cancel_nobody(guarded: Running) -> None:
    with RawClient(guarded.port) as client:
        client.send(Query(b"SELECT pg_sleep(0.5)"))
        for number in range(50):
            secret = bytes([number]) * (4 + number % 3 * 14)
            with RawClient(guarded.port, user="") as guessing:
                guessing.send(Cancel(client.key.process + number % 2, secret))
                assert guessing.until_end() == []
        assert CommandComplete(b"SELECT 1") in client.until_ready()


def _half_close(client: RawClient) -> None:
    """It listens on for a moment, to an answer, to what it is told to see whether it is there, or to the end."""
    client.socket.shutdown(socket.SHUT_WR)
    client.socket.recv(1)
    client.socket.close()


def _reset(client: RawClient) -> None:
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


def _vanish(client: RawClient) -> None:
    client.socket.close()


LEFT_BEHIND = {
    "nothing": b"",
    "half a header": b"Q\0\0",
    "half a statement": b"Q\0\0\0\x20SELECT",
    "a long answer": Query(b"SELECT repeat('x', 1000) FROM generate_series(1, 100000)").encode(),
    "a sleep": Query(b"SELECT pg_sleep(600)").encode(),
    "an open transaction": Query(b"BEGIN; SELECT 1").encode(),
    "an open batch": Parse(b"", b"SELECT pg_sleep(600)").encode() + Bind(b"", b"", (), (), ()).encode() + b"E\0",
}


@pytest.mark.parametrize("leave", [_half_close, _reset, _vanish])
@pytest.mark.parametrize("data", LEFT_BEHIND.values(), ids=LEFT_BEHIND.keys())
def test_whoever_leaves_in_the_middle_leaves_nothing_behind(
    guarded: Running, data: bytes, leave: Callable[[RawClient], None]
) -> None:
    with RawClient(guarded.port) as client:
        client.send_bytes(data)
        leave(client)


def test_a_row_that_would_fill_the_memory_ends_its_session_alone(guarded: Running) -> None:
    with RawClient(guarded.port) as client:
        client.send(Query(b"SELECT repeat('x', 100000000)"))
        told = client.until_end()
        assert not any(isinstance(one, DataRow) for one in told)
        assert isinstance(told[-1], Report)
