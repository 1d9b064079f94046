"""LISTEN for monitors, on the wire: when a notification comes, in which order, and when none does.

What PostgreSQL does itself is tried on the shadow, which is one: the same statements, notified by its owner.
"""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from planner.errors import KeyholeError
from proxy.endpoint.server import Endpoint
from proxy.monitors.notifications import AlertHub
from proxy.session.listening import MOST_PAYLOAD_BYTES, encode_payload
from proxy.session.port import SessionBacking
from proxy.shadow.address import ShadowAddress
from proxy.wire.backend import CommandComplete, NotificationResponse, ReadyForQuery
from proxy.wire.frontend import Bind, Execute, Parse, Query, Sync
from tests.effort import PATIENCE_S
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import FixedAsker
from tests.proxy.in_test_desk import BEGAN, InTestDesk, alert
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import endpoint_catalog

_EVERY_S = 0.01


@pytest.fixture
def desk() -> InTestDesk:
    return InTestDesk()


@pytest.fixture
def hub(desk: InTestDesk) -> AlertHub:
    return AlertHub(desk, every_s=_EVERY_S)


@pytest.fixture
def loop(hub: AlertHub) -> Iterator[asyncio.AbstractEventLoop]:
    """The hub's, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
        asyncio.run_coroutine_threadsafe(hub.close(), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def listening(shadow: ShadowAddress, hub: AlertHub, loop: asyncio.AbstractEventLoop) -> Iterator[Running]:
    asker = FixedAsker()
    endpoint = Endpoint(SessionBacking(endpoint_catalog(), asker, shadow), hub=hub)
    running = Running(endpoint, asker, loop)
    running.run(endpoint.start("127.0.0.1", 0))
    yield running
    running.run(endpoint.stop(grace_s=1.0))


def heard(connection: psycopg.Connection[Any], count: int) -> list[tuple[int, str]]:
    """The looks and countries of the next notifications."""
    found = []
    for told in connection.notifies(timeout=PATIENCE_S, stop_after=count):
        assert told.channel == "keyhole_crowded"
        document = json.loads(told.payload)
        found.append((document["look"], document["key"]["country"]))
    return found


def wait_until_known(running: Running, hub: AlertHub, listeners: int) -> None:
    """Until so many sessions are known to listen."""

    async def wait() -> None:
        while len(hub) != listeners:
            await asyncio.sleep(0.001)

    running.run(asyncio.wait_for(wait(), PATIENCE_S))


def test_a_notification_says_what_was_alerted_in_the_order_of_looks(listening: Running, desk: InTestDesk) -> None:
    desk.look(1, "Spain")  # before anybody listened
    with listening.connect(autocommit=True) as ada:
        ada.execute("LISTEN keyhole_crowded")
        desk.look(2, "France")
        (first,) = ada.notifies(timeout=PATIENCE_S, stop_after=1)
        assert json.loads(first.payload) == {
            "monitor": "crowded",
            "key": {"country": "France"},
            "window": BEGAN.isoformat(),
            "alerted_at": "2026-01-05T02:00:00+00:00",
            "look": 2,
        }
        desk.look(3, "Sweden", "Côte d'Ivoire")
        assert heard(ada, 2) == [(3, "Sweden"), (3, "Côte d'Ivoire")]


def test_the_session_goes_on_while_it_listens(listening: Running, desk: InTestDesk) -> None:
    with listening.connect(autocommit=True) as ada:
        ada.execute("LISTEN keyhole_crowded")
        for number in range(1, 30):
            desk.look(number, "Spain")
            assert ada.execute("SELECT %s::int", [number]).fetchone() == (number,)
        assert heard(ada, 29) == [(number, "Spain") for number in range(1, 30)]


@pytest.mark.parametrize(
    ("statements", "listens"),
    [
        (["LISTEN keyhole_crowded"], True),
        (["LISTEN Keyhole_CROWDED"], True),
        (['LISTEN "Keyhole_crowded"'], False),
        (["LISTEN crowded"], False),
        (["LISTEN keyhole_busy"], False),
        (["BEGIN", "LISTEN keyhole_crowded", "COMMIT"], True),
        (["BEGIN", "LISTEN keyhole_crowded", "ROLLBACK"], False),
        (["BEGIN", "SAVEPOINT s", "LISTEN keyhole_crowded", "ROLLBACK TO s", "COMMIT"], False),
        (["BEGIN", "SAVEPOINT s", "LISTEN keyhole_crowded", "RELEASE s", "COMMIT"], True),
        (["LISTEN keyhole_crowded", "UNLISTEN keyhole_crowded"], False),
        (["LISTEN keyhole_crowded", "UNLISTEN *"], False),
        (["LISTEN keyhole_crowded", "DISCARD ALL"], False),
        (["LISTEN keyhole_crowded", "UNLISTEN other"], True),
        (["LISTEN keyhole_crowded", "BEGIN", "UNLISTEN *", "ROLLBACK"], True),
        (["SELECT 1; LISTEN keyhole_crowded; SELECT 2"], True),
        (["LISTEN keyhole_crowded; SELECT 1/0"], False),
        (["LISTEN keyhole_crowded", "LISTEN keyhole_crowded"], True),
        (["LISTEN keyhole_crowded", "UNLISTEN *", "LISTEN keyhole_crowded"], True),
        (["LISTEN keyhole_crowded", "SELECT country FROM sales GROUP BY country HAVING count(*) > 20"], True),
        (["BEGIN", "LISTEN keyhole_crowded", "SELECT * FROM busy", "COMMIT"], True),
    ],
)
def test_a_session_listens_as_postgresql_has_it(
    listening: Running, hub: AlertHub, desk: InTestDesk, shadow: ShadowAddress, statements: list[str], listens: bool
) -> None:
    """Whether it does is the same in PostgreSQL itself; and that no notification came is seen at the next one."""
    direct = psycopg.connect(shadow.make_conninfo(user="ada", database="retail"), autocommit=True)
    with listening.connect(autocommit=True) as ada, direct:
        for connection in (ada, direct):
            for statement in statements:
                try:
                    connection.execute(statement.encode())
                except errors.DivisionByZero:
                    pass
                except errors.InsufficientPrivilege:
                    assert connection is direct  # the question is Keyhole's to answer
        if "SELECT" not in statements[-1] and "busy" not in str(statements):
            channels = {channel for (channel,) in direct.execute("SELECT pg_listening_channels()").fetchall()}
            assert ("keyhole_crowded" in channels) is listens
        ada.execute("SELECT 1")
        wait_until_known(listening, hub, int(listens))
        desk.look(1, "Spain")
        if not listens:
            ada.execute("LISTEN keyhole_crowded")
            desk.look(2, "France")
        assert heard(ada, 1) == ([(1, "Spain")] if listens else [(2, "France")])


def test_nothing_comes_within_a_transaction(listening: Running, hub: AlertHub, desk: InTestDesk) -> None:
    with RawClient(listening.port) as ada:
        ada.send(Query(b"LISTEN keyhole_crowded"))
        ada.until_ready()
        wait_until_known(listening, hub, 1)
        ada.send(Query(b"BEGIN"))
        ada.until_ready()
        desk.look(1, "Spain")
        seen = desk.readings
        while desk.readings < seen + 3:  # the hub has told the session meanwhile
            pass
        for statement in (b"SELECT 1", b"SELECT 1/0", b"SELECT 1"):
            ada.send(Query(statement))
            assert not any(isinstance(told, NotificationResponse) for told in ada.until_ready())
        ada.send(Query(b"ROLLBACK"))
        *_, command, told, ready = ada.until_ready()
        assert command == CommandComplete(b"ROLLBACK")
        assert told == NotificationResponse(0, b"keyhole_crowded", encode_payload(alert(1, "Spain")))
        assert ready == ReadyForQuery(b"I")


def test_a_batch_that_is_not_ended_is_not_broken_into(listening: Running, hub: AlertHub, desk: InTestDesk) -> None:
    with RawClient(listening.port) as ada:
        ada.send(Query(b"LISTEN keyhole_crowded"))
        ada.until_ready()
        wait_until_known(listening, hub, 1)
        ada.send(Parse(b"", b"SELECT 1"), Bind(b"", b"", (), (), ()))
        desk.look(1, "Spain")
        seen = desk.readings
        while desk.readings < seen + 3:
            pass
        ada.send(Execute(b"", 0), Sync())
        kinds = [type(message).__name__ for message in ada.until_ready()]
        assert kinds == [
            "EmptyMessage",
            "EmptyMessage",
            "DataRow",
            "CommandComplete",
            "NotificationResponse",
            "ReadyForQuery",
        ]


def test_what_is_unlistened_is_not_told_any_more(listening: Running, desk: InTestDesk) -> None:
    with listening.connect(autocommit=True) as ada:
        ada.execute("LISTEN keyhole_crowded")
        ada.execute("BEGIN")
        desk.look(1, "Spain")
        ada.execute("UNLISTEN *")
        ada.execute("COMMIT")
        ada.execute("LISTEN keyhole_crowded")
        desk.look(2, "France")
        assert heard(ada, 1) == [(2, "France")]


def test_whoever_may_not_read_a_monitor_listens_to_nothing(listening: Running, hub: AlertHub, desk: InTestDesk) -> None:
    bobs = psycopg.connect(listening.conninfo("bob"), autocommit=True)
    with listening.connect(autocommit=True) as ada, bobs as bob:
        told = [bob.execute(f"LISTEN {name}".encode()).statusmessage for name in ("keyhole_crowded", "keyhole_nothing")]
        assert told == ["LISTEN", "LISTEN"]
        ada.execute("LISTEN keyhole_crowded")
        wait_until_known(listening, hub, 1)
        desk.look(1, "Spain")
        assert heard(ada, 1) == [(1, "Spain")]
        assert list(bob.notifies(timeout=0)) == []


def test_a_monitor_that_does_not_fit_the_cap_is_refused_at_once(listening: Running, desk: InTestDesk) -> None:
    desk.refusal = KeyholeError("KH306", "the cap is reached")
    with listening.connect(autocommit=True) as ada:
        for prepare in (False, True):
            with pytest.raises(psycopg.Error, match="KH306: the cap is reached"):
                ada.execute("LISTEN keyhole_crowded", prepare=prepare)
        assert ada.execute("SELECT count(*) FROM pg_listening_channels()").fetchone() == (0,)


def test_a_monitor_that_may_not_be_read_any_more_says_so_once(
    listening: Running, hub: AlertHub, desk: InTestDesk
) -> None:
    said: list[str] = []
    with listening.connect(autocommit=True) as ada:
        ada.add_notice_handler(lambda diagnostic: said.append(str(diagnostic.message_primary)))
        ada.execute("LISTEN keyhole_crowded")
        wait_until_known(listening, hub, 1)
        desk.refusal = KeyholeError("KH306", "the cap is reached")
        wait_until_known(listening, hub, 0)
        ada.execute("SELECT 1")
    assert said == ["KH306: the cap is reached"]


def test_a_session_that_ends_waits_for_nothing_more(listening: Running, hub: AlertHub) -> None:
    with listening.connect(autocommit=True) as ada:
        ada.execute("LISTEN keyhole_crowded")
        wait_until_known(listening, hub, 1)
    wait_until_known(listening, hub, 0)


def test_the_ledger_is_asked_by_one_for_all_and_only_while_somebody_listens(
    listening: Running, hub: AlertHub, desk: InTestDesk
) -> None:
    assert desk.readings == 0
    connections = [listening.connect(autocommit=True) for _ in range(5)]
    for connection in connections:
        connection.execute("LISTEN keyhole_crowded")
    wait_until_known(listening, hub, 5)
    desk.look(1, "Spain")
    assert [heard(connection, 1) for connection in connections] == [[(1, "Spain")]] * 5
    for connection in connections:
        connection.close()
    wait_until_known(listening, hub, 0)
    listening.run(asyncio.sleep(3 * _EVERY_S))
    seen = desk.readings
    listening.run(asyncio.sleep(5 * _EVERY_S))
    assert desk.readings == seen


def test_keyholes_own_question_changes_nothing_for_the_client(listening: Running) -> None:
    """It asks for channels beside what the client prepared, named, and set."""
    with listening.connect(autocommit=True) as ada:
        ada.execute("SET datestyle = 'German'")
        ada.execute("PREPARE p AS SELECT 7")
        ada.execute("LISTEN keyhole_crowded")
        assert ada.execute("EXECUTE p").fetchone() == (7,)
        assert ada.execute("SHOW datestyle").fetchone() == ("German, DMY",)
        ada.execute("BEGIN")
        ada.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        assert ada.execute("SHOW transaction_isolation").fetchone() == ("serializable",)


def test_a_payload_is_ascii_and_never_too_long() -> None:
    assert json.loads(encode_payload(alert(1, "Côte d'Ivoire")))["key"] == {"country": "Côte d'Ivoire"}
    assert encode_payload(alert(1, "Côte d'Ivoire")).isascii()
    long = encode_payload(alert(1, "é" * 2000))
    assert len(long) <= MOST_PAYLOAD_BYTES
    assert json.loads(long)["key"] is None
    assert json.loads(long)["look"] == 1
