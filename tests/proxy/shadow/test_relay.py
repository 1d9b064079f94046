"""What a relay sends and hands on, against a server on a socket that plays the shadow."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from planner.errors import KeyholeError
from proxy.security.violation import ProtocolViolation
from proxy.shadow.address import ShadowAddress
from proxy.shadow.answers import AnswerEnd, ExpectedAnswer
from proxy.shadow.link import ShadowLoginRefused
from proxy.shadow.relay import ShadowRelay
from proxy.wire.backend import AUTH_OK, Authentication, CommandComplete, DataRow, ReadyForQuery, Report
from proxy.wire.client import ANSWER_LIMIT_BYTES
from proxy.wire.frontend import Flush, Query
from tests.effort import PATIENCE_S

LOGGED_IN = Authentication(AUTH_OK).encode() + ReadyForQuery(b"I").encode()
ANSWER = CommandComplete(b"SELECT 1").encode() + ReadyForQuery(b"I").encode()
FULL = Report("E", ((b"S", b"FATAL"), (b"C", b"53300"), (b"M", b"too many"))).encode()


@dataclass
class Shadow:
    """`login` is said at once and then, if `hangs_up`, nothing more."""

    address: ShadowAddress
    login: bytes = LOGGED_IN
    hangs_up: bool = False
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    here: asyncio.Event = field(default_factory=asyncio.Event)

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        startup = await reader.readexactly(4)
        await reader.readexactly(int.from_bytes(startup, "big") - 4)
        writer.write(self.login)
        if self.hangs_up:
            writer.close()
        self.reader, self.writer = reader, writer
        self.here.set()

    async def received(self, size: int) -> bytes:
        assert self.reader is not None
        return await self.reader.readexactly(size)

    def say(self, data: bytes) -> None:
        assert self.writer is not None
        self.writer.write(data)


@dataclass
class Client:
    """The client's end of its socket, which reads nothing by itself, and Keyhole's."""

    end: socket.socket
    writer: asyncio.StreamWriter

    async def received(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = await asyncio.get_running_loop().sock_recv(self.end, size - len(found))
            assert piece
            found += piece
        return found


@asynccontextmanager
async def playing(directory: Path, login: bytes = LOGGED_IN, *, hangs_up: bool = False) -> AsyncIterator[Shadow]:
    shadow = Shadow(ShadowAddress(directory=directory, port=1), login, hangs_up)
    async with asyncio.timeout(PATIENCE_S), await asyncio.start_unix_server(shadow.attend, shadow.address.socket):
        try:
            yield shadow
        finally:
            if shadow.writer is not None:
                shadow.writer.close()


@asynccontextmanager
async def connected() -> AsyncIterator[Client]:
    theirs, ours = socket.socketpair()
    theirs.setblocking(False)
    _, writer = await asyncio.open_unix_connection(sock=ours)
    try:
        yield Client(theirs, writer)
    finally:
        writer.transport.abort()
        theirs.close()


@asynccontextmanager
async def relaying(shadow: Shadow) -> AsyncIterator[tuple[ShadowRelay, Client]]:
    async with connected() as client:
        relay = await ShadowRelay.open(shadow.address, {"user": "ada"}, client.writer)
        await shadow.here.wait()
        try:
            yield relay, client
        finally:
            await relay.end()


def query(number: int) -> bytes:
    return Query(b"SELECT %d" % number).encode()


@pytest.mark.anyio
async def test_what_is_gathered_arrives_in_order_without_anybody_waiting(tmp_path: Path) -> None:
    async with playing(tmp_path) as shadow, relaying(shadow) as (relay, _):
        sent = b""
        for number, gathers in enumerate((True, True, False, False, True, False, True)):
            relay.gathers = gathers
            relay.send(query(number), ExpectedAnswer(AnswerEnd.QUERY))
            sent += query(number)
        assert await shadow.received(len(sent)) == sent


@pytest.mark.anyio
async def test_whoever_waits_has_sent_what_was_gathered_before_the_flush(tmp_path: Path) -> None:
    async with playing(tmp_path) as shadow, relaying(shadow) as (relay, client):
        pump = asyncio.create_task(relay.forward_answers())
        relay.gathers = True

        async def ask() -> None:
            relay.send(query(1), ExpectedAnswer(AnswerEnd.QUERY))
            await relay.settle()

        settling = asyncio.create_task(ask())
        sent = query(1) + Flush().encode()
        assert await shadow.received(len(sent)) == sent
        assert not settling.done()
        shadow.say(ANSWER)
        await settling
        assert await client.received(len(ANSWER)) == ANSWER
        assert not pump.done()
        pump.cancel()


@pytest.mark.anyio
async def test_nothing_is_read_from_the_shadow_while_the_client_reads_nothing(tmp_path: Path) -> None:
    rows = DataRow((b"x" * 1000,)).encode() * 64
    async with playing(tmp_path) as shadow, relaying(shadow) as (relay, client):
        assert shadow.writer is not None
        pump = asyncio.create_task(relay.forward_answers())
        relay.send(query(1), ExpectedAnswer(AnswerEnd.QUERY))
        sent = 0
        while shadow.writer.transport.get_write_buffer_size() < 4 << 20:
            shadow.say(rows)
            sent += len(rows)
            await asyncio.sleep(0)
            assert relay.unread_bytes < 1 << 20
            assert sent < 64 << 20
        shadow.say(ANSWER)
        found = await client.received(sent + len(ANSWER))
        assert found == rows * (sent // len(rows)) + ANSWER
        await relay.settle()
        pump.cancel()


@pytest.mark.anyio
async def test_a_client_that_is_gone_ends_the_relay_of_a_long_answer(tmp_path: Path) -> None:
    async with playing(tmp_path) as shadow, relaying(shadow) as (relay, client):
        relay.send(query(1), ExpectedAnswer(AnswerEnd.QUERY))
        client.end.close()
        shadow.say(DataRow((b"x" * 1000,)).encode() * 5000)
        with pytest.raises(ConnectionError):
            await relay.forward_answers()


@pytest.mark.anyio
async def test_an_answer_before_the_shadow_goes_is_handed_on_and_then_nobody_waits(tmp_path: Path) -> None:
    async with playing(tmp_path) as shadow, relaying(shadow) as (relay, client):
        pump = asyncio.create_task(relay.forward_answers())
        relay.send(query(1), ExpectedAnswer(AnswerEnd.QUERY))
        settling = asyncio.create_task(relay.settle())
        await shadow.received(len(query(1)))
        shadow.say(FULL)
        assert shadow.writer is not None
        shadow.writer.close()
        await pump
        assert await client.received(len(FULL)) == FULL
        with pytest.raises(ConnectionResetError):
            await settling


@pytest.mark.anyio
async def test_a_frame_longer_than_any_answer_ends_the_relay(tmp_path: Path) -> None:
    async with playing(tmp_path) as shadow, relaying(shadow) as (relay, _):
        relay.send(query(1), ExpectedAnswer(AnswerEnd.QUERY))
        shadow.say(b"D" + (ANSWER_LIMIT_BYTES + 1).to_bytes(4, "big"))
        with pytest.raises(ProtocolViolation):
            await relay.forward_answers()


@pytest.mark.anyio
async def test_a_refusal_counts_although_the_shadow_hangs_up_with_it(tmp_path: Path) -> None:
    async with playing(tmp_path, FULL, hangs_up=True) as shadow, connected() as client:
        with pytest.raises(ShadowLoginRefused) as refused:
            await ShadowRelay.open(shadow.address, {"user": "ada"}, client.writer)
        assert refused.value.report.encode() == FULL


@pytest.mark.anyio
@pytest.mark.parametrize("login", [b"", LOGGED_IN[:3], Authentication(AUTH_OK).encode()])
async def test_a_shadow_that_hangs_up_during_the_login_is_gone(tmp_path: Path, login: bytes) -> None:
    async with playing(tmp_path, login, hangs_up=True) as shadow, connected() as client:
        with pytest.raises(KeyholeError, match="KH406"):
            await ShadowRelay.open(shadow.address, {"user": "ada"}, client.writer)
