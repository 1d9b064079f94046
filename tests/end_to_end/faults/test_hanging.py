"""A source or a ledger that hangs instead of dying: what analysts are told while it still hangs, and what it costs.

Nothing here measures time: whoever is told is told while the cause still stands.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path

import httpx
import psycopg
import pytest
import sqlalchemy as sa

from planner.errors import KeyholeError
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Answer, Asked, read_bare_question
from proxy.report.budget import make_document
from proxy.sources import connecting
from tests.effort import PATIENCE_S
from tests.worlds import shop
from tests.worlds.house import House, eventually, hurried, locked, most_spent, new_database, opened, write_policy
from tests.worlds.served import Served, served
from tests.worlds.stopped import Partition, Server, locked_file, own_server, partition

COST = pytest.approx(0.0767, abs=1e-4)
FAILED, UNREACHABLE = "KH501: the source could not answer", "KH501: the source cannot be reached"
ABSENT = "KH502: the ledger is not available"
AT_ONCE = 6  # analysts: more than may be at the source for one of them
EXPLAIN = f"EXPLAIN {shop.BUSY}"
BUDGET = "SELECT * FROM keyhole.budget"
PLAN = "[('Question over"
LEDGER_MS = 1_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with own_server() as started:
        yield started


@pytest.fixture
def on_own_server(server: Server) -> Iterator[str]:
    with new_database(server.url) as url:
        yield url


@pytest.fixture(scope="module")
def keyhole(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A Keyhole over the server, with a ledger in a file."""
    with new_database(server.url) as url:
        shop.fill_postgres(url)
        directory = tmp_path_factory.mktemp("keyhole")
        policy = write_policy(directory, source=url, timeout_ms=2_000, ledger_timeout_ms=LEDGER_MS)
        with served(policy) as running:
            yield running


def told(connection: psycopg.Connection, statement: str) -> str:
    """The answer to a statement, or what is told instead."""
    try:
        return repr(connection.execute(statement.encode()).fetchall())
    except psycopg.Error as refusal:
        return str(refusal.diag.message_primary)


def ask(house: House, statement: str = shop.BUSY) -> str:
    with house.connect() as connection:
        return told(connection, statement)


def taken(house: House) -> float | None:
    """How many questions have a turn at the source."""
    return house.service.telemetry.registry.get_sample_value("keyhole_source_turns", {"state": "taken"})


@contextmanager
def several(keyhole: Served) -> Iterator[list[psycopg.Connection]]:
    """As many sessions as ask at once."""
    with ExitStack() as open_:
        yield [open_.enter_context(keyhole.connect()) for _ in range(AT_ONCE)]


def missing(keyhole: Served) -> list[str]:
    """What `/readyz` says is not there."""
    document = httpx.get(f"{keyhole.operator}/readyz", trust_env=False, timeout=PATIENCE_S).json()
    parts: list[str] = document["missing"]
    return parts


def test_a_source_that_stops_in_a_question_is_told_of_at_the_timeout_and_given_up(
    server: Server, on_own_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "GIVEN_UP_S", 1.0)
    shop.fill_postgres(on_own_server)
    with opened(write_policy(tmp_path, source=on_own_server)) as house, ThreadPoolExecutor() as analysts:
        with locked(on_own_server, "sales") as lock, hurried(house.service, limit_ms=1_000):
            waiting = analysts.submit(ask, house)
            lock.wait_for_somebody()
            with server.stopped():
                assert waiting.result() == FAILED
                assert house.most_spent("sales") == COST
                assert len(house.service.ledger.list_open_reservations()) == 1
                eventually(lambda: not taken(house))  # its connection was given up as dead
                assert ask(house) == UNREACHABLE
                assert ask(house, EXPLAIN).startswith(PLAN)
                assert house.most_spent("sales") == COST
        eventually(lambda: ask(house) == repr(shop.BUSY_STORES))
        assert house.most_spent("sales") == pytest.approx(2 * 0.0767, abs=2e-4)


def test_a_source_that_hangs_costs_nobody_anything_who_comes_then(server: Server, keyhole: Served) -> None:
    before = keyhole.events
    with keyhole.connect() as connection, ThreadPoolExecutor() as analysts:
        assert "source" not in missing(keyhole)
        with server.stopped(), several(keyhole) as connections:
            asked = [analysts.submit(told, one, shop.BUSY) for one in connections]
            assert {one.result() for one in asked} == {UNREACHABLE}
            assert told(connection, EXPLAIN).startswith(PLAN)
            eventually(lambda: missing(keyhole) == ["source"])
            assert keyhole.scrape()["keyhole_ready"][(("part", "source"),)] == 0
        assert keyhole.events == before
        eventually(lambda: told(connection, shop.BUSY) == repr(shop.BUSY_STORES))


def test_a_ledger_that_another_process_has_locked_can_be_read(keyhole: Served) -> None:
    with keyhole.connect() as connection, ThreadPoolExecutor() as analysts:
        first, other = (shop.BUSY.replace("1000", number) for number in ("1001", "1002"))
        eventually(lambda: told(connection, first) == repr(shop.BUSY_STORES))
        before = keyhole.events
        with locked_file(f"sqlite:///{keyhole.policy.parent}/keyhole.db"), several(keyhole) as connections:
            writing = [analysts.submit(told, one, other) for one in connections]
            for statement in (EXPLAIN, BUDGET, "SELECT * FROM keyhole.queries"):
                assert told(connection, statement).startswith("[(")
            assert told(connection, first) == repr(shop.BUSY_STORES)  # what its analyst paid is read again
            assert {one.result() for one in writing} == {ABSENT}
            eventually(lambda: missing(keyhole) == ["ledger"])
            assert keyhole.scrape()["keyhole_ready"][(("part", "ledger"),)] == 0
        assert keyhole.events == before
        assert told(connection, other) == repr(shop.BUSY_STORES)


def test_a_ledger_that_hangs_is_told_of_and_nothing_is_answered(
    server: Server, on_own_server: str, tmp_path: Path
) -> None:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb", ledger=on_own_server, ledger_timeout_ms=LEDGER_MS)
    other = shop.BUSY.replace("1000", "1001")
    with opened(policy) as house, ThreadPoolExecutor() as analysts:
        assert ask(house) == repr(shop.BUSY_STORES)
        with server.stopped():
            statements = (shop.BUSY, other, EXPLAIN, BUDGET, shop.BUSY, EXPLAIN)
            asked = [analysts.submit(ask, house, each) for each in statements]
            assert {one.result() for one in asked} == {ABSENT}
            assert ask(house, "SHOW keyhole.fnr") == "[('0.05',)]"
        eventually(lambda: ask(house) == repr(shop.BUSY_STORES))
        assert house.events == 2


def test_a_commit_that_is_never_confirmed_withholds_the_answer_until_it_is_known_to_be_paid(
    on_own_server: str, tmp_path: Path
) -> None:
    """The commit arrives, and the word that it is durable gets lost: once the ledger is back the answer is in store."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    with partition(on_own_server) as way:
        policy = write_policy(tmp_path, source="duckdb:///shop.duckdb", ledger=way.url, ledger_timeout_ms=LEDGER_MS)
        with Service.open(policy) as service:
            cut_once_an_answer_is_written(service, way)
            with pytest.raises(KeyholeError) as caught:
                answer(service)
            assert caught.value.code == "KH502"
    policy.write_text(policy.read_text(encoding="utf-8").replace(way.url, on_own_server), encoding="utf-8")
    with Service.open(policy) as service:
        assert service.ledger.verify_everything() == 2
        assert answer(service).is_reused
        assert service.ledger.verify_everything() == 2
        assert most_spent(make_document(service, None), "sales") == COST


def answer(service: Service) -> Answer:
    """The pipeline's answer to the question."""
    asked = Asked(
        question=read_bare_question(shop.BUSY, service.catalog),
        settings={},
        parameters={},
        analyst=service.find_analyst("ada"),
        today=date(2026, 1, 1),
        is_utc=True,
    )
    return pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)


def cut_once_an_answer_is_written(service: Service, way: Partition) -> None:
    """From the commit of the next answer on nothing is heard of the ledger."""

    def look(connection: sa.Connection, _: object, statement: str, *__: object) -> None:
        if statement.startswith("INSERT INTO answers"):
            sa.event.listen(connection, "commit", lambda _: way.cut())

    sa.event.listen(service.ledger._journal._store._engine, "before_cursor_execute", look)
