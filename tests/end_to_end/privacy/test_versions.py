"""Attacks on the names under which data are charged: versions that change meanwhile."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from proxy.cli.check import refresh
from tests.worlds.house import House, locked, opened, write_policy

IN_THE_NORTH = "SELECT store FROM sales WHERE store = 'north' GROUP BY store HAVING count(*) > 3000"
IN_THE_SOUTH = "SELECT store FROM sales WHERE store = 'south' GROUP BY store HAVING count(*) > 5000"
CHANGED = "KH501: the data version changed while the question was answered"


@pytest.fixture
def moving(source_url: str, tmp_path: Path) -> Iterator[House]:
    """The shop on PostgreSQL, where a sale may move to another store."""
    path = write_policy(tmp_path, source=source_url)
    path.write_text(path.read_text(encoding="utf-8").replace('immutable = ["store"]\n', ""), encoding="utf-8")
    with opened(path) as house:
        yield house


@pytest.mark.parametrize("reuse", ["on", "off"])
def test_a_row_that_moves_while_a_question_is_under_way_is_not_read_where_it_is_not_charged(
    moving: House, source_url: str, reuse: str
) -> None:
    """Two stores of one version are charged apart, since a sale is in one of them. Sales that were read in the north
    and moved to the south before another question reads there would lose twice what the ledger writes down."""

    def ask(sql: str) -> list[Any]:
        with moving.connect() as connection:
            connection.execute(f"SET keyhole.reuse = {reuse}".encode())
            return connection.execute(sql.encode()).fetchall()

    assert ask(IN_THE_NORTH) == [("north",)]
    with ThreadPoolExecutor() as threads, locked(source_url, "sales") as lock:
        under_way = threads.submit(ask, IN_THE_SOUTH)
        lock.wait_for_somebody()
        new = refresh(moving.policy, "sales")
        lock.release("UPDATE sales SET store = 'south' WHERE store = 'north'")
        with pytest.raises(psycopg.Error, match=CHANGED):
            under_way.result()
    assert ask(IN_THE_SOUTH) == [("south",)]
    asked = moving.service.ledger.read_history()
    assert [one.status for one in asked] == ["committed", "open", "committed"]
    assert [one.charge.family.version == new for one in asked] == [False, False, True]


def test_a_load_that_holds_the_lock_while_the_version_changes_mixes_nothing(moving: House, source_url: str) -> None:
    """The order of docs/policy.md: who asked before the refresh is refused, and who asked after it reads the new data,
    though both waited for the same lock."""

    def ask(sql: str) -> list[Any]:
        with moving.connect() as connection:
            return connection.execute(sql.encode()).fetchall()

    with ThreadPoolExecutor() as threads, locked(source_url, "sales") as lock:
        before = threads.submit(ask, IN_THE_SOUTH)
        lock.wait_for_somebody()
        new = refresh(moving.policy, "sales")
        after = threads.submit(ask, IN_THE_SOUTH)
        lock.wait_for_somebody(2)
        lock.release("UPDATE sales SET store = 'south' WHERE store = 'north'")
        with pytest.raises(psycopg.Error, match=CHANGED):
            before.result()
        assert after.result() == [("south",)]
    (answered,) = [one for one in moving.service.ledger.read_history() if one.status == "committed"]
    assert answered.charge.family.version == new
