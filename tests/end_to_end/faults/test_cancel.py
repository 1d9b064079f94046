"""A question that is cancelled (KH409): free before the reservation; paid, finished and kept after it."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest

from planner.errors import KeyholeError
from tests.worlds import shop
from tests.worlds.house import House, eventually, locked, notices, opened, write_policy

pytestmark = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)


def test_what_was_reserved_is_finished_without_its_client(source_url: str, ledger_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source=source_url, ledger=ledger_url)
    with opened(policy) as house, house.connect() as connection, ThreadPoolExecutor(1) as threads:
        with locked(source_url, "sales") as lock:
            answer = threads.submit(connection.execute, shop.BUSY)
            lock.wait_for_somebody()
            connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled, match="KH409"):
                answer.result()
            assert house.events == 1
            assert connection.execute("SELECT 1").fetchone() == (1,)
            again = threads.submit(connection.execute, shop.BUSY)
            heard = notices(connection)
            lock.release()
            assert again.result().fetchall() == shop.BUSY_STORES
        assert house.events == 2
        assert any("nothing is spent" in sentence for sentence in heard)


def test_what_waits_for_the_source_costs_nothing(source_url: str, ledger_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source=source_url, ledger=ledger_url)
    with opened(policy) as house, house.connect() as connection, ThreadPoolExecutor(1) as threads:
        with ExitStack() as turns:
            with suppress(KeyholeError):  # once all turns are taken
                for number in count():
                    turns.enter_context(house.service.source.take_turn(analyst=str(number), timeout_ms=1))
            answer = threads.submit(connection.execute, shop.BUSY)
            eventually(lambda: waiting(house) == 1)
            connection.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled, match="KH409"):
                answer.result()
        eventually(lambda: waiting(house) == 0)
        other = shop.BUSY.replace("sales", "sales WHERE quantity > -1")
        assert connection.execute(other).fetchall() == shop.BUSY_STORES
        assert house.events == 2  # the other question's alone


def waiting(house: House) -> float | None:
    """How many questions wait for the source."""
    return house.service.telemetry.registry.get_sample_value("keyhole_source_turns", {"state": "waiting"})
