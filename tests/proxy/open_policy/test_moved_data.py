"""Data that move within a data version: the owner hears of it, analysts do not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg
import pytest
import structlog
from structlog.testing import capture_logs

from proxy.cli.check import check, refresh
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.moved_data import DataWatch
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from tests.effort import rounds
from tests.end_to_end.certainty import asked
from tests.worlds import shop
from tests.worlds.house import check_once, eventually, locked, new_database, shop_policy, write_policy

MOVES = (
    "INSERT INTO sales (id, store) VALUES (0, 'north')",
    "UPDATE sales SET store = 'south' WHERE id = 1",
    "DELETE FROM sales WHERE id = 1",
    "TRUNCATE sales",
)


@dataclass(frozen=True)
class World:
    """A shop in PostgreSQL, or one whose sales are a file, and how its sales are moved."""

    policy: Path
    move: Callable[[str], None]

    def warned(self, *, confirm: bool = False) -> list[str]:
        return [one for one in check(self.policy, confirm=confirm).warnings if "changed or rewritten" in one]


@pytest.fixture
def source_url(postgres_url: str) -> Iterator[str]:
    with new_database(postgres_url) as url:
        shop.fill_postgres(url)
        yield url


@pytest.fixture(params=["file", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "postgres":
        with new_database(request.getfixturevalue("postgres_url")) as url:
            shop.fill_postgres(url)

            def change(sql: str) -> None:
                with psycopg.connect(url) as owner:
                    owner.execute(sql.encode())

            yield World(write_policy(tmp_path, source=url), change)
        return
    shop.fill_duckdb(tmp_path / "shop.duckdb")

    def copy(sql: str) -> None:
        with duckdb.connect(str(tmp_path / "of_the_owner.duckdb")) as owner:
            owner.execute(f"CREATE OR REPLACE TABLE sales AS SELECT * FROM '{tmp_path / 'sales.parquet'}'")
            owner.execute(sql)
            owner.execute(f"COPY sales TO '{tmp_path / 'next.parquet'}'")
        (tmp_path / "next.parquet").replace(tmp_path / "sales.parquet")

    with duckdb.connect(str(tmp_path / "shop.duckdb")) as owner:
        owner.execute(f"COPY sales TO '{tmp_path / 'sales.parquet'}'")
    path, text = tmp_path / "keyhole.toml", shop_policy(source="duckdb:///shop.duckdb")
    path.write_text(text.replace("[tables.sales]", '[tables.sales]\nrelation = "sales.parquet"', 1), encoding="utf-8")
    check_once(path)
    yield World(path, copy)


def test_check_warns_until_the_version_is_another_one_or_the_owner_says_it_is_meant(world: World) -> None:
    assert world.warned() == []
    for move in MOVES[:: rounds(1, quick=len(MOVES) - 1)]:  # at quick the first and the last
        world.move(move)
        assert [one.partition(" ")[0] for one in world.warned()] == ["tables.sales"], move
        assert world.warned()  # and again
        refresh(world.policy, "sales")
        assert world.warned() == []
    world.move(MOVES[0])
    assert world.warned(confirm=True) == []
    assert world.warned() == []


def test_a_running_keyhole_says_so_once_and_answers_as_before(world: World) -> None:
    with Service.open(world.policy) as service:
        watch = DataWatch(Telemetry(log=structlog.get_logger()))

        def logged() -> list[object]:
            with capture_logs() as lines:
                watch.compare(service)
            return [line.get("table") for line in lines if line["event"] == "data moved within a version"]

        question = asked(service, shop.BUSY)
        plan = stages.plan_asked_question(service, question)
        first = stages.answer(service, plan, question)
        assert logged() == logged() == []
        assert watch.find_moved_tables(service.catalog) == {"sales": 0, "visits": 0}
        world.move(MOVES[1])
        found: list[object] = []

        def hears() -> bool:
            found.extend(logged())
            return bool(found)

        eventually(hears)
        assert found == ["sales"]
        assert logged() == []
        assert watch.find_moved_tables(service.catalog) == {"sales": 1, "visits": 0}
        again = stages.answer(service, plan, question)
        assert again.is_reused
        assert again.keys == first.keys
        refresh(world.policy, "sales")
        assert logged() == logged() == []
        assert watch.find_moved_tables(service.catalog) == {"sales": 0, "visits": 0}


def test_live_tables_have_nothing_to_move_within(world: World) -> None:
    world.policy.write_text(world.policy.read_text(encoding="utf-8").replace('"explicit"', '"live"'), encoding="utf-8")
    check(world.policy, confirm=True)
    world.move(MOVES[0])
    assert world.warned() == []
    with Service.open(world.policy) as service:
        watch = DataWatch(Telemetry())
        watch.compare(service)
        assert set(watch.find_moved_tables(service.catalog).values()) == {0}


def test_a_load_that_holds_its_lock_keeps_nobody_from_checking(source_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source=source_url)
    with locked(source_url, "sales") as lock:
        refresh(policy, "sales")
        assert not [one for one in check(policy, confirm=False).warnings if "changed or rewritten" in one]
        with Service.open(policy) as service:
            watch = DataWatch(Telemetry())
            watch.compare(service)
            assert set(watch.find_moved_tables(service.catalog).values()) == {0}
        lock.release("UPDATE sales SET store = 'south'")
    assert not [one for one in check(policy, confirm=False).warnings if "changed or rewritten" in one]
