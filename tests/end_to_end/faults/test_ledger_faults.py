"""What analysts are told, and what it costs, when the ledger or the source goes away at each step of a question."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from proxy.report.ledger_files import backup_sqlite
from tests.accountant.outage import outage
from tests.effort import PATIENCE_S
from tests.worlds import shop
from tests.worlds.house import House, eventually, hurried, locked, new_database, opened, write_policy
from tests.worlds.served import served

COST = pytest.approx(0.0767, abs=1e-4)
ABSENT = "KH502: the ledger is not available"


def name_of(url: str) -> str:
    return url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]


@pytest.fixture
def postgres_ledger(postgres_url: str) -> Iterator[str]:
    with new_database(postgres_url) as url:
        yield url


@pytest.fixture
def house(source_url: str, postgres_ledger: str, tmp_path: Path) -> Iterator[House]:
    policy = write_policy(tmp_path, source=source_url, ledger=postgres_ledger, timeout_ms=1000 * PATIENCE_S)
    with opened(policy) as served:
        yield served


def ask(house: House) -> str:
    """The answer to a question, or what is told instead."""
    with house.connect() as connection:
        try:
            return repr(connection.execute(shop.BUSY).fetchall())
        except psycopg.Error as refusal:
            return str(refusal.diag.message_primary)


def test_a_ledger_that_is_gone_costs_nothing_and_lets_nothing_through(
    house: House, postgres_url: str, postgres_ledger: str
) -> None:
    with outage(postgres_url, name_of(postgres_ledger)):
        assert ask(house) == ABSENT
    assert house.events == 0
    assert ask(house) == repr(shop.BUSY_STORES)
    with outage(postgres_url, name_of(postgres_ledger)):
        assert ask(house) == ABSENT  # a stored answer as well: who may read it is the ledger's to say
    assert ask(house) == repr(shop.BUSY_STORES)
    assert house.events == 2
    assert house.most_spent("sales") == COST


def test_a_ledger_that_goes_while_the_source_works_withholds_the_answer(
    house: House, source_url: str, postgres_url: str, postgres_ledger: str
) -> None:
    with ThreadPoolExecutor() as analysts:
        with locked(source_url, "sales") as lock:
            waiting = analysts.submit(ask, house)
            lock.wait_for_somebody()
            with outage(postgres_url, name_of(postgres_ledger)):
                lock.release()
                assert waiting.result() == ABSENT
        (orphan,) = house.service.ledger.list_open_reservations()
        assert house.most_spent("sales") == COST
        assert ask(house) == repr(shop.BUSY_STORES)  # a run of its own, with noise of its own
        assert house.most_spent("sales") == pytest.approx(2 * 0.0767, abs=2e-4)
        assert [one.id for one in house.service.ledger.list_open_reservations()] == [orphan.id]


def test_a_source_that_dies_in_the_middle_of_a_question_stays_paid(
    house: House, source_url: str, postgres_url: str
) -> None:
    with ThreadPoolExecutor() as analysts, locked(source_url, "sales") as lock, hurried(house.service, limit_ms=5_000):
        waiting = analysts.submit(ask, house)
        lock.wait_for_somebody()
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = %s AND wait_event_type = 'Lock'",
                [name_of(source_url)],
            )
        assert waiting.result() == "KH501: the source could not answer"
    assert len(house.service.ledger.list_open_reservations()) == 1
    assert house.most_spent("sales") == COST
    assert ask(house) == repr(shop.BUSY_STORES)


def test_a_ledger_that_is_deleted_or_replaced_under_serve_answers_nothing_more(source_url: str, tmp_path: Path) -> None:
    """What the attack was: hours of answers into a file that nobody would ever open again, and a fresh budget later."""
    policy, file = write_policy(tmp_path, source=source_url), tmp_path / "keyhole.db"
    with served(policy) as keyhole:

        def told(sql: str) -> str:
            with keyhole.connect() as connection:
                try:
                    return repr(connection.execute(sql).fetchall())
                except psycopg.Error as refusal:
                    return str(refusal.diag.message_primary)

        def is_ready() -> bool:
            return httpx.get(f"{keyhole.operator}/readyz", trust_env=False, timeout=PATIENCE_S).status_code == 200

        assert told(shop.BUSY) == repr(shop.BUSY_STORES)
        backup_sqlite(f"sqlite:///{file}", tmp_path / "old")
        assert told(shop.BUSY.replace("1000", "900")) != ABSENT
        file.rename(tmp_path / "away")
        for sql in (shop.BUSY, shop.BUSY.replace("1000", "800"), "SELECT * FROM keyhole.budget"):
            assert told(sql) == ABSENT
        eventually(lambda: not is_ready())
        shutil.copy(tmp_path / "old", file)
        assert told(shop.BUSY) == ABSENT
        (tmp_path / "away").rename(file)
        eventually(is_ready)
        assert told(shop.BUSY) == repr(shop.BUSY_STORES)
        assert keyhole.events == 4
        why = [line["why"] for line in keyhole.read_log() if line["event"] == "the ledger failed"]
        assert why == [
            f"keyhole.db was {how} under a running process, which does not write into {what}"
            for how, what in (("deleted or moved away", "it any more"), ("replaced by another file", "the old one"))
        ]
