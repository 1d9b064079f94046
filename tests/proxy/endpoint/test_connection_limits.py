"""What the endpoint holds at once (KH410), and that nobody keeps others out or makes it buffer without end."""

import asyncio
import select
import socket
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.policy.sections import ServerLimitsSection
from proxy.endpoint.connection_limits import ConnectedClient, Connections
from proxy.shadow.relay import MOST_UNANSWERED
from proxy.wire.backend import Authentication, DataRow, ReadyForQuery, Report
from proxy.wire.frames import MESSAGE_LIMIT_BYTES
from proxy.wire.frontend import Bind, Cancel, Close, EncryptionRequest, Execute, Parse, Query, Startup, Sync
from tests.effort import PATIENCE_S
from tests.proxy.conftest import Running
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import PASSWORD, QUESTION

FULL = b"sorry, too many clients already"


def only_report(client: RawClient) -> Report:
    (report,) = [message for message in client.until_end() if isinstance(message, Report)]
    return report


def startup(user: bytes) -> Startup:
    return Startup((3, 0), ((b"user", user), (b"database", b"retail")))


def connect_when_there_is_room(running: Running) -> psycopg.Connection[object]:
    """A connection that was closed makes room as soon as the endpoint has seen its end."""
    while True:
        try:
            return running.connect(autocommit=True)
        except psycopg.OperationalError as error:
            if "too many" not in str(error):
                raise


@pytest.mark.parametrize("limits", [ServerLimitsSection(connections=2)])
def test_one_session_too_many_is_told_before_its_password_is_looked_at(running: Running) -> None:
    with running.connect(), running.connect():
        with RawClient(running.port, user="") as third:
            third.send(startup(b"nobody"))
            report = only_report(third)
        assert (report.find_field(b"C"), report.find_field(b"M"), report.find_field(b"S")) == (b"53300", FULL, b"FATAL")
    with connect_when_there_is_room(running) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("limits", [ServerLimitsSection(connections_per_analyst=1)])
def test_an_analysts_limit_is_told_to_who_knows_the_password_alone(running: Running) -> None:
    with running.connect():
        with pytest.raises(psycopg.OperationalError, match="KH401"):
            psycopg.connect(running.conninfo(password="wrong"))
        with pytest.raises(psycopg.OperationalError, match='too many connections for role "ada"'):
            running.connect()
        with psycopg.connect(running.conninfo(user="bob")) as other:
            assert other.execute("SELECT 1").fetchone() == (1,)
    connect_when_there_is_room(running).close()


@pytest.mark.parametrize("limits", [ServerLimitsSection(connections=1)])
def test_cancelling_needs_no_free_session(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(b"SELECT pg_sleep(600)"))
        while not select.select([client.socket], [], [], 0)[0]:
            with RawClient(running.port, user="") as canceller:
                canceller.send(Cancel(client.key.process, client.key.secret))
                assert canceller.until_end() == []
        (report,) = [message for message in client.until_ready() if isinstance(message, Report)]
    assert report.find_field(b"C") == b"57014"


def first_told(clients: list[RawClient]) -> RawClient:
    """The first that hears something: which of them goes depends on whose bytes had come when somebody else did."""
    heard, _, _ = select.select([client.socket for client in clients], [], [], PATIENCE_S)
    return next(client for client in clients if client.socket in heard)


@pytest.mark.parametrize("limits", [ServerLimitsSection(unauthenticated=3)])
def test_who_does_not_log_in_makes_place_for_who_does(running: Running) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(RawClient(running.port, user="")) for _ in range(3)]
        for client in silent:
            client.send_bytes(b"\0\0\0")
        for _ in range(5):
            with running.connect() as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
        assert only_report(first_told(silent)).find_field(b"C") == b"53300"
        crowd = [stack.enter_context(RawClient(running.port, user="")) for _ in range(30)]
        assert only_report(crowd[0]).find_field(b"C") == b"53300"
        with running.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert running.endpoint.connections <= 3 + 2  # those, and sessions whose end was not seen yet


def crowd_from(running: Running, address: str, *, sends: bytes) -> list[socket.socket]:
    """So many connections of one address that some must make place; one of them has."""
    crowd = []
    for _ in range(30):
        one = socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE_S, source_address=(address, 0))
        one.sendall(sends)
        crowd.append(one)
    told = select.select(crowd, [], [], PATIENCE_S)[0][0]
    answer = b""
    while more := told.recv(1000):
        answer += more
    assert FULL in answer
    return crowd


@pytest.mark.skipif(sys.platform != "linux", reason="has no second address on loopback")
@pytest.mark.parametrize("limits", [ServerLimitsSection(unauthenticated=3)])
@pytest.mark.parametrize("sends", [b"", b"\0"])
def test_a_crowd_from_one_address_takes_no_place_of_another(running: Running, sends: bytes) -> None:
    """Even who has been there for longest, and said nothing yet, stays."""
    with RawClient(running.port, user="") as client, ExitStack() as crowd:
        for one in crowd_from(running, "127.0.0.2", sends=sends):
            crowd.enter_context(one)
        client.log_in("ada", PASSWORD)
        client.send(Query(b"SELECT 1"))
        assert len(client.until_ready()) == 4


@pytest.mark.parametrize("limits", [ServerLimitsSection(unauthenticated=3)])
def test_a_silent_crowd_ends_no_login_that_is_under_way_beside_it(running: Running) -> None:
    with RawClient(running.port, user="") as client, ExitStack() as crowd:
        client.send(EncryptionRequest(is_gss=False))
        assert client.socket.recv(1) == b"N"
        for one in crowd_from(running, "127.0.0.1", sends=b""):
            crowd.enter_context(one)
        client.log_in("ada", PASSWORD)
        client.send(Query(b"SELECT 1"))
        assert len(client.until_ready()) == 4


def test_a_burst_of_logins_from_one_address_all_get_in(running: Running) -> None:
    """By default as many as there may be sessions, all connected before the first says a word."""
    with ExitStack() as stack:
        burst = [
            stack.enter_context(RawClient(running.port, user="")) for _ in range(ServerLimitsSection().connections)
        ]
        for client in burst:
            client.send(Startup((3, 0), ((b"user", b"ada"), (b"database", b"retail"))))
        for client in burst:
            assert isinstance(client.next(), Authentication)


HOMES = ("192.0.2.1", "192.0.2.2", "::ffff:192.0.2.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1", "")


@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from(HOMES), st.booleans()), max_size=40))
def test_places_are_taken_from_the_network_that_has_most(most: int, coming: list[tuple[str, bool]]) -> None:
    async def come() -> None:
        connected = Connections(ServerLimitsSection(unauthenticated=most))
        inside: list[ConnectedClient] = []
        for address, speaks in coming:
            task = asyncio.create_task(asyncio.sleep(3600))
            client = connected.add(task, address=address)
            gone = [one for one in inside if one.is_displaced]
            assert len(gone) == (len(inside) == most)
            for one in gone:
                held = Counter(each.network for each in (*inside, client))
                assert held[one.network] == max(held[each.network] for each in inside)
                crowd = [each for each in inside if held[each.network] == held[one.network]]
                assert one is crowd[0] or not one.has_spoken
                before = crowd[: crowd.index(one)]
                assert all(each.has_spoken for each in before)
                inside.remove(one)
            inside.append(client)
            if speaks:
                client.note_byte()
        for one in connected.all:
            one.task.cancel()
        await asyncio.gather(*(one.task for one in connected.all), return_exceptions=True)

    asyncio.run(come())


@pytest.mark.parametrize(
    "statement",
    [
        b"SELECT repeat('x', 100000)",
        pytest.param(b"not_even_SQL" * 80, id="not even SQL"),  # the refusal is as long
        QUESTION.encode(),
        b"SELECT 1; SELECT repeat('x', 100000)",
    ],
)
def test_a_client_that_reads_nothing_is_not_read(running: Running, statement: bytes) -> None:
    """It may send without end: what Keyhole takes is bounded, and everything it took is answered in order."""
    most = 200_000_000  # what kernels buffer of short answers is a part of it
    data = memoryview(Query(statement + b" -- " + b"." * 1000).encode())
    with RawClient(running.port) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
        client.socket.setblocking(False)
        sent = 0
        while sent < most and select.select([], [client.socket], [], 1.0)[1]:
            sent += client.socket.send(data[sent % len(data) :])
        assert sent < most
        assert running.buffered_bytes() < 1_000_000
        client.socket.setblocking(True)
        client.socket.settimeout(PATIENCE_S)
        answered = 0
        while answered < min(sent // len(data), 20):
            answered += sum(isinstance(message, ReadyForQuery) for message in client.until_ready())


def test_answers_that_are_awaited_are_counted(running: Running) -> None:
    """However small the messages are that wait for an answer."""
    with RawClient(running.port) as client:
        client.send(Query(b"SELECT pg_sleep(600)"))
        client.send_bytes(Parse(b"", b"SELECT 1").encode() * (2 * MOST_UNANSWERED) + Sync().encode())
        (one,) = running.endpoint.sessions
        while one.relay.answers.waiting < MOST_UNANSWERED:
            pass
        assert {one.relay.answers.waiting for _ in range(10_000)} == {MOST_UNANSWERED}
        running.run(one.session.cancel())
        client.until_ready()
        assert len(client.until_ready()) == 2 * MOST_UNANSWERED + 1


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_an_announced_message_takes_no_memory_before_it_comes(running: Running) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(running.port)) for _ in range(20)]
        before = resident_bytes()
        for client in clients:
            client.send_bytes(b"Q" + MESSAGE_LIMIT_BYTES.to_bytes(4, "big") + b" " * 10_000)
        with running.connect() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert resident_bytes() - before < MESSAGE_LIMIT_BYTES


def code(client: RawClient) -> bytes | None:
    """The SQLSTATE of what was just sent; None if all went well."""
    reports = [message for message in client.until_ready() if isinstance(message, Report) and message.kind == "E"]
    return reports[0].find_field(b"C") if reports else None


@pytest.mark.parametrize("limits", [ServerLimitsSection(statements=3)])
def test_prepared_statements_are_counted_however_they_are_made(running: Running) -> None:
    with RawClient(running.port) as client:
        made = (
            (Parse(b"one", b"SELECT 1"), Sync()),
            (Query(b"PREPARE two AS SELECT 2"),),
            (Parse(b"three", QUESTION.encode()), Sync()),
        )
        for messages in made:
            client.send(*messages)
            assert code(client) is None
        for messages in (
            (Parse(b"four", b"SELECT 4"), Sync()),
            (Query(b"PREPARE four AS SELECT 4"),),
            (Query(b"SELECT 1; PREPARE four AS SELECT 4"),),
            (Parse(b"", b"PREPARE four AS SELECT 4"), Sync()),
        ):
            client.send(*messages)
            assert code(client) == b"54000"
        client.send(Parse(b"", b"SELECT 5"), Sync())
        assert code(client) is None
        client.send(Query(b"BEGIN; SELECT 1/0"))
        assert code(client) == b"22012"
        client.send(Parse(b"four", b"SELECT 4"), Sync())
        assert code(client) == b"25P02"
        client.send(Query(b"ROLLBACK"), Query(b"DEALLOCATE two"))
        assert (code(client), code(client)) == (None, None)
        client.send(Parse(b"four", b"SELECT 4"), Sync())
        assert code(client) is None
        for number in range(20):
            client.send(Close(b"S", b"four"), Parse(b"four", b"SELECT %d" % number), Sync())
            assert code(client) is None


@pytest.mark.parametrize("limits", [ServerLimitsSection(statements=3)])
def test_all_statements_that_one_text_prepares_are_counted(running: Running) -> None:
    with RawClient(running.port) as client:
        client.send(Query(b"; ".join(b"PREPARE p%d AS SELECT 1" % number for number in range(4))))
        assert code(client) == b"54000"
        client.send(Query(b"; ".join(b"PREPARE p%d AS SELECT 1" % number for number in range(3))))
        assert code(client) is None
        client.send(Query(b"DEALLOCATE ALL; PREPARE p AS SELECT 1"))  # what it would forget first does not count
        assert code(client) == b"54000"


@pytest.mark.parametrize("limits", [ServerLimitsSection(statements=3)])
def test_a_failed_transaction_is_no_way_around_the_count_and_can_be_ended(running: Running) -> None:
    with RawClient(running.port) as client:
        for number in range(3):
            client.send(Parse(b"s%d" % number, b"SELECT 1"), Sync())
            assert code(client) is None
        client.send(Query(b"BEGIN; SELECT 1/0"))
        assert code(client) == b"22012"
        codes = []
        for number in range(20):
            client.send(Parse(b"r%d" % number, b"ROLLBACK"), Sync())
            codes.append(code(client))
        assert codes == [None] * 3 + [b"54000"] * 17
        client.send(Bind(b"", b"r0", (), (), ()), Execute(b"", 0), Sync())
        assert code(client) is None
        client.send(Query(b"SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'r%'"))
        assert DataRow((b"3",)) in client.until_ready()


@pytest.mark.parametrize("limits", [ServerLimitsSection(portals=3)])
def test_cursors_are_counted(running: Running) -> None:
    with RawClient(running.port) as client:
        declare = b"DECLARE %b CURSOR WITH HOLD FOR SELECT 1"
        client.send(Query(b"; ".join(declare % name for name in (b"a", b"b", b"c", b"d"))))
        assert code(client) == b"54000"
        client.send(Query(b"; ".join(declare % name for name in (b"a", b"b"))))
        assert code(client) is None
        for name, expected in ((b"c", None), (b"d", b"54000"), (b"d", b"54000")):
            client.send(Parse(b"", declare % name), Bind(b"", b"", (), (), ()), Execute(b"", 0), Sync())
            assert code(client) == expected
        client.send(Query(b"CLOSE a"), Query(declare % b"d"))
        assert (code(client), code(client)) == (None, None)
        for _ in range(20):
            client.send(Query(b"BEGIN; DECLARE e CURSOR FOR SELECT 1; ROLLBACK; CLOSE d"), Query(declare % b"d"))
            assert (code(client), code(client)) == (b"54000", b"54000")
            client.send(Query(b"CLOSE d"), Query(b"BEGIN; DECLARE e CURSOR FOR SELECT 1; ROLLBACK"))
            assert (code(client), code(client)) == (None, None)
            client.send(Query(declare % b"d"))
            assert code(client) is None


def test_what_keyhole_prepares_for_itself_does_not_pile_up(running: Running) -> None:
    with RawClient(running.port) as client:
        for number in range(10):
            name = b"p%d" % number
            client.send(Query(b"PREPARE %b AS %b" % (name, QUESTION.encode())), Bind(b"", name, (), (), ()), Sync())
            client.send(Parse(b"q", QUESTION.encode()), Bind(b"", b"q", (), (), ()), Close(b"S", b"q"), Sync())
            client.send(Parse(name + b"x", QUESTION.encode()), Sync(), Query(b"DEALLOCATE ALL"))
            assert [code(client) for _ in range(5)] == [None] * 5
        for _ in range(10):
            client.send(Parse(b"", QUESTION.encode()), Sync(), Query(b"SELECT 1"))
            assert [code(client), code(client)] == [None] * 2
        client.send(Query(b"SELECT count(*) < 10 FROM pg_prepared_statements"))
        assert DataRow((b"t",)) in client.until_ready()


@pytest.mark.parametrize("limits", [ServerLimitsSection(portals=2)])
def test_named_portals_of_a_transaction_are_counted(running: Running) -> None:
    def bind(name: bytes) -> Bind:
        return Bind(name, b"", (), (), ())

    with RawClient(running.port) as client:
        parse = Parse(b"", b"SELECT 1")
        for _ in range(3):
            client.send(parse, bind(b"a"), bind(b"b"), bind(b""), Close(b"P", b"a"), bind(b"c"), Sync())
            assert code(client) is None
        client.send(parse, bind(b"a"), bind(b"b"), bind(b"c"), Sync())
        assert code(client) == b"54000"
        client.send(Query(b"BEGIN"), parse, bind(b"a"), Sync(), bind(b"b"), Sync(), bind(b"c"), Sync())
        assert [code(client) for _ in range(4)] == [None, None, None, b"54000"]


@pytest.mark.parametrize(
    ("limits", "statement", "sqlstate"),
    [
        (ServerLimitsSection(idle_timeout_s=3), b"SELECT 1", b"57P05"),
        (ServerLimitsSection(idle_in_transaction_timeout_s=3), b"BEGIN", b"25P03"),
    ],
)
def test_an_idle_session_is_ended(running: Running, statement: bytes, sqlstate: bytes) -> None:
    with RawClient(running.port) as client:
        client.send(Query(b"SELECT pg_sleep(4)"))
        assert code(client) is None
        client.send(Query(statement))
        assert code(client) is None
        report = only_report(client)
    assert (report.find_field(b"C"), report.find_field(b"S")) == (sqlstate, b"FATAL")
