"""Whoever uses up memory, files, processor time, sleep or places stops himself, and nobody else."""

import asyncio
import select
import socket
import tracemalloc
from contextlib import ExitStack, suppress
from itertools import pairwise

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import KeyholeError
from planner.parser import lexer
from planner.policy.sections import ServerLimitsSection
from proxy.concurrency.fair_queue import VERY_LONG_BYTES, read_very_long_alone
from proxy.endpoint.connection_limits import choose_sessions_to_end
from proxy.pipeline.text_cache import SHORT_CHARACTERS, cache_by_text
from proxy.wire.backend import CommandComplete, Report
from proxy.wire.frames import LOGIN_LIMIT_BYTES
from proxy.wire.frontend import Close, Flush, Parse, Query, Startup, Sync
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION
from tests.worlds.house import eventually

MEMORY_BOMBS = (
    "SELECT repeat('x', 1000000000)",
    "SELECT length(repeat('x', 500000000) || 'x')",
    "WITH RECURSIVE r AS (SELECT 'x'::text v UNION ALL SELECT v || v FROM r) SELECT max(length(v)) FROM r",
    "SELECT array_length(array_fill(1, ARRAY[134217000]), 1)",
    "SELECT ('[' || repeat('1,', 80000000) || '1]')::jsonb",
    "SELECT to_tsvector(repeat('a b c ', 60000000))",
)
MEMORY = b"53200"


def sqlstate(client: RawClient) -> bytes | None:
    """The SQLSTATE of what was just sent; None if all went well."""
    reports = [message for message in client.until_ready() if isinstance(message, Report) and message.kind == "E"]
    return reports[0].find_field(b"C") if reports else None


def final_report(client: RawClient) -> tuple[bytes | None, bytes | None] | None:
    """Severity and SQLSTATE of the last report before the server hung up, or reset what was still being sent."""
    told: list[Report] = []
    with suppress(ConnectionError):
        while (message := client.next()) is not None:
            told += [message] if isinstance(message, Report) else []
    return (told[-1].find_field(b"S"), told[-1].find_field(b"C")) if told else None


@pytest.mark.parametrize("bomb", MEMORY_BOMBS)
def test_a_memory_bomb_is_an_error_of_its_statement_alone(running: Running, bomb: str) -> None:
    mine = "SELECT pg_backend_pid()"
    with running.connect(autocommit=True) as neighbour, running.connect(autocommit=True) as hostile:
        before = [one.execute(mine.encode()).fetchone() for one in (neighbour, hostile)]
        with pytest.raises(psycopg.errors.OutOfMemory):
            hostile.execute(bomb.encode())
        assert [one.execute(mine.encode()).fetchone() for one in (neighbour, hostile)] == before


@pytest.mark.parametrize("limits", [ServerLimitsSection(shadow_memory_mb=64)])
def test_the_largest_session_of_who_takes_most_ends_when_all_take_too_much(running: Running) -> None:
    text = b"x" * 1_000_000
    with RawClient(running.port, "bob") as bob, RawClient(running.port) as small, RawClient(running.port) as large:
        for number in range(8):
            small.send(Query(b"PREPARE p%d AS SELECT '%s'" % (number, text)))
            assert sqlstate(small) is None
        with suppress(ConnectionError):  # ended in the middle of sending
            for number in range(30):
                large.send(Query(b"PREPARE p%d AS SELECT '%s'" % (number, text)))
        assert final_report(large) == (b"FATAL", MEMORY)
        for client in (bob, small):
            client.send(Query(b"SELECT 1"))
            assert sqlstate(client) is None


@pytest.mark.parametrize("limits", [ServerLimitsSection(shadow_memory_mb=64)])
def test_temporary_files_count_like_memory(running: Running) -> None:
    with RawClient(running.port, "bob") as bob, RawClient(running.port) as client:
        client.send(Query(b"DECLARE c CURSOR WITH HOLD FOR SELECT repeat('x', 1000) FROM generate_series(1, 90000)"))
        assert final_report(client) == (b"FATAL", MEMORY)
        bob.send(Query(b"SELECT 1"))
        assert sqlstate(bob) is None


@pytest.mark.parametrize("limits", [ServerLimitsSection(shadow_memory_mb=64)])
def test_messages_that_are_never_ended_count_like_memory(running: Running) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(running.port)) for _ in range(8)]
        for client in clients:
            with suppress(ConnectionError):  # ended in the middle of sending
                client.send_bytes(b"Q" + (16_000_000).to_bytes(4, "big") + b" " * 12_000_000)
        eventually(lambda: len(running.endpoint.sessions) <= 5)
        with running.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert len(running.endpoint.sessions) >= 4


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), max_size=12), st.integers(0, 100))
def test_no_more_go_than_have_to_and_never_who_takes_little(sessions: list[tuple[str, int]], most: int) -> None:
    used = {number: amount for number, (_, amount) in enumerate(sessions)}
    owners = {number: owner for number, (owner, _) in enumerate(sessions)}
    gone = choose_sessions_to_end(used, owners, most=most)
    stay = used.keys() - set(gone)
    assert sum(used[one] for one in stay) <= most
    if gone:
        assert sum(used[one] for one in stay) + used[gone[-1]] > most
    fair = most / max(1, len(set(owners.values())))
    for owner in set(owners.values()):
        if sum(amount for one, amount in used.items() if owners[one] == owner) <= fair:
            assert not any(owners[one] == owner for one in gone)


@pytest.mark.parametrize("limits", [ServerLimitsSection(connections=4, connections_per_analyst=3)])
@pytest.mark.parametrize("bomb", [b"SELECT pg_sleep(60)", b"SELECT count(*) FROM generate_series(1, 1000000000000)"])
def test_an_analyst_at_his_limit_in_sleep_or_at_work_leaves_the_others_their_places(
    running: Running, bomb: bytes
) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(running.port)) for _ in range(3)]
        for client in clients:
            client.send(Query(bomb))
        for _ in range(3):
            with psycopg.connect(running.conninfo(user="bob"), autocommit=True) as bob:
                assert bob.execute("SELECT 1").fetchone() == (1,)
            eventually(lambda: len(running.endpoint.sessions) == 3)
        assert select.select([client.socket for client in clients], [], [], 0)[0] == []


def test_a_storm_of_tiny_messages_lets_everybody_have_a_turn(running: Running) -> None:
    """Messages that need no wait are handled a few at a time: between two turns of the loop, never a whole read."""
    with RawClient(running.port) as client:
        (one,) = running.endpoint.sessions
        left: list[int] = []

        async def look() -> None:
            while True:
                left.append(one.stream.connection.buffered)
                await asyncio.sleep(0)

        looking = asyncio.run_coroutine_threadsafe(look(), running.loop)
        client.send_bytes(Flush().encode() * 60_000 + Query(b"SELECT 1").encode())
        assert CommandComplete(b"SELECT 1") in client.until_ready()
        looking.cancel()
    assert max(left) > 10_000
    assert max(before - after for before, after in pairwise(left)) < 5_000


def test_a_login_may_be_as_long_as_the_limit_and_no_longer(running: Running) -> None:
    def startup(length: int) -> bytes:
        user = (b"user", b"ada"), (b"database", b"retail")
        bare = len(Startup((3, 0), (*user, (b"application_name", b""))).encode())
        return Startup((3, 0), (*user, (b"application_name", b"x" * (length - bare)))).encode()

    assert len(startup(LOGIN_LIMIT_BYTES)) == LOGIN_LIMIT_BYTES
    with RawClient(running.port, user="") as client:
        client.send_bytes(startup(LOGIN_LIMIT_BYTES))
        assert client.socket.recv(1) == b"R"
    with RawClient(running.port, user="") as client:
        client.send_bytes(startup(LOGIN_LIMIT_BYTES + 1))
        assert isinstance(client.until_end()[-1], Report)


def test_a_text_has_so_many_tokens_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexer, "MOST_TOKENS", 1000)
    assert len(lexer.read_tokens("x " * 1000 + "'" + "long " * 1000 + "'")) == 1001
    with pytest.raises(KeyholeError, match=r"KH100.*more than"):
        lexer.read_tokens("x " * 1002)


def nested(depth: int) -> str:
    return "/*" * depth + "*/" * depth + "SELECT 1"


def test_comments_stand_in_one_another_so_deep_and_no_deeper() -> None:
    assert len(lexer.read_tokens(nested(lexer.DEEPEST_COMMENT))) == 2
    assert len(lexer.read_tokens(nested(1) * 1000)) == 2000
    with pytest.raises(lexer.NestedTooDeep, match="KH100"):
        lexer.read_tokens(nested(lexer.DEEPEST_COMMENT + 1))


@pytest.mark.parametrize("prepared", [False, True])
def test_comments_that_would_hold_the_shadow_never_reach_it(running: Running, prepared: bool) -> None:
    """It would have said first what it has against the text: its lexer takes the square of the depth for that."""
    wrong = nested(lexer.DEEPEST_COMMENT + 1).replace("SELECT", "SELEC")
    with running.connect(autocommit=True) as connection:
        with pytest.raises(psycopg.errors.SyntaxError, match="KH100: comments stand in one another"):
            connection.execute(wrong.encode(), prepare=prepared)
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_of_long_texts_only_the_last_are_remembered() -> None:
    asked: list[str] = []

    @cache_by_text(3)
    def length(text: str) -> int:
        asked.append(text)
        return len(text)

    short, long = ["a", "b", "c"], [str(number) * (SHORT_CHARACTERS + 1) for number in range(5)]
    for text in (*short, *long, *reversed(long[1:]), *short):
        length(text)
    assert asked == [*short, *long]
    length(long[0])
    assert len(asked) == 9


def test_what_a_client_that_has_gone_sent_waits_for_no_turn(running: Running) -> None:
    long = Query(b"SELECT 1 /* %b */" % (b"x" * 4_000_000))
    with read_very_long_alone("x" * 2 * VERY_LONG_BYTES, analyst="bob"):
        for _ in range(6):
            with RawClient(running.port) as client:
                client.send(long)
        eventually(lambda: not running.endpoint.sessions)


@pytest.mark.parametrize("sent", [b"x", "\N{GRINNING FACE}".encode()], ids=["narrow", "wide"])
def test_a_text_that_waits_for_its_turn_is_held_once(running: Running, sent: bytes) -> None:
    """Neither its frame nor its characters are held beside it."""
    long = b"SELECT 1 /* %b%b */" % (sent, b"x" * 4_000_000)
    tracemalloc.start()
    try:
        with read_very_long_alone("x" * 2 * VERY_LONG_BYTES, analyst="bob"), ExitStack() as stack:
            clients = [stack.enter_context(RawClient(running.port)) for _ in range(5)]
            before, frame = tracemalloc.get_traced_memory()[0], Query(long).encode()
            for client in clients:
                client.send_bytes(frame)
            eventually(lambda: all(one.stream.held_bytes >= len(frame) for one in running.endpoint.sessions))
            eventually(lambda: tracemalloc.get_traced_memory()[0] - before < 7 * len(frame))
        for client in clients:
            client.socket.close()
        # how much is held now depends on how many had their turn before they went: the last texts read are remembered
        eventually(lambda: not running.endpoint.sessions)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("limits", [ServerLimitsSection(shadow_memory_mb=200)])
def test_rows_that_nobody_reads_count_like_memory(running: Running) -> None:
    with ExitStack() as stack:
        for _ in range(10):
            client = stack.enter_context(RawClient(running.port))
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.send(Query(b"SELECT repeat('x', 25000000)"))
            assert client.socket.recv(1)
        eventually(lambda: len(running.endpoint.sessions) < 10)
        with running.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_prepared_questions_and_their_parameters_count_as_often_as_they_are_held(running: Running) -> None:
    long, size = QUESTION.encode() + b" /* %b */" % (b"x" * 1_000_000), 1_000_000
    with RawClient(running.port) as client:
        (one,) = running.endpoint.sessions
        for number in range(3):
            client.send(Parse(b"q%d" % number, long), Sync())
            assert sqlstate(client) is None
            assert one.session.held_bytes >= size * (number + 1)
        for number in range(3):
            client.send(Close(b"S", b"q%d" % number), Sync())
            assert sqlstate(client) is None
        assert one.session.held_bytes < size
