"""Attacks by time: a file is replaced while Keyhole serves, with a refresh and without one."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from proxy.cli.check import check, refresh, wait_for_servers
from proxy.open_policy.service import Service
from tests.effort import PATIENCE_S
from tests.worlds import shop
from tests.worlds.house import House, check_once, new_database, opened, shop_policy, write_policy

OTHERS = [("east",), ("west",)]
MOVED = "CASE store WHEN 'north' THEN 'east' WHEN 'south' THEN 'west' ELSE store END"


@dataclass(frozen=True)
class World:
    """A shop whose sales lie in files, and what puts a file with other stores in their place."""

    policy: Path
    replace: Callable[[], None]


def _write(path: Path, suffix: str, sql: str) -> None:
    with duckdb.connect() as owner:
        owner.execute(f"COPY ({sql}) TO '{path}' (FORMAT {suffix.removeprefix('.')})")


def ask(house: House) -> list[Any]:
    with house.connect() as connection:
        return connection.execute(shop.BUSY).fetchall()


@pytest.fixture(params=["duckdb", ".parquet", "*.parquet", ".csv"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    if request.param == "duckdb":

        def replace_database() -> None:
            shop.fill_duckdb(tmp_path / "next.duckdb", f"UPDATE sales SET store = {MOVED}")
            (tmp_path / "next.duckdb").replace(tmp_path / "shop.duckdb")

        return World(write_policy(tmp_path, source="duckdb:///shop.duckdb"), replace_database)
    suffix = request.param.removeprefix("*")
    with duckdb.connect(str(tmp_path / "shop.duckdb"), read_only=True) as owner:
        owner.execute(f"COPY sales TO '{tmp_path}/sales{suffix}' (FORMAT {suffix.removeprefix('.')})")

    def replace_file() -> None:
        file = f"{tmp_path}/sales{suffix}"
        _write(tmp_path / "next", suffix, f"SELECT * REPLACE ({MOVED} AS store) FROM '{file}'")
        (tmp_path / "next").replace(file)

    path, text = tmp_path / "keyhole.toml", shop_policy(source="duckdb:///shop.duckdb")
    relation = f'[tables.sales]\nrelation = "sales{request.param.replace(".parquet", "").replace(".csv", "")}{suffix}"'
    path.write_text(text.replace("[tables.sales]", relation, 1), encoding="utf-8")
    check_once(path)
    return World(path, replace_file)


def test_a_refresh_is_read_by_a_running_server_without_a_stop(world: World) -> None:
    with opened(world.policy) as house:
        assert ask(house) == shop.BUSY_STORES
        world.replace()
        new = refresh(world.policy, "sales", "visits")
        assert "1 serving process reads the new data" in wait_for_servers(world.policy, seconds=PATIENCE_S)
        assert ask(house) == OTHERS
        assert house.service.ledger.read_history()[-1].charge.family.version == new


def make_alike(held: Path) -> tuple[Path, Path]:
    """Return a checked policy's database and one with other rows, of one size and one time that stands for none."""
    before, after = held.with_name("shop.duckdb"), held.with_name("next.duckdb")
    shop.fill_duckdb(after, f"UPDATE sales SET store = {MOVED}")
    size = max(before.stat().st_size, after.stat().st_size)
    for file in (before, after):
        os.truncate(file, size)
        os.utime(file, ns=(0, 0))
    check(held, confirm=True)
    return before, after


def test_a_database_of_the_same_size_and_time_is_another_once_it_was_refreshed(held: Path) -> None:
    """Archives and image builds give every file one time, and databases of alike content are of one size."""
    before, after = make_alike(held)
    with opened(held) as house:
        assert ask(house) == shop.BUSY_STORES
        after.replace(before)
        refresh(held, "sales", "visits")
        assert "1 serving process reads the new data" in wait_for_servers(held, seconds=PATIENCE_S)
        assert ask(house) == OTHERS


def test_a_file_of_the_same_size_and_stand_in_time_is_another_after_a_restart(held: Path) -> None:
    """Nobody said refresh: the time that all files of an image have does not make them one."""
    before, after = make_alike(held)
    with Service.open(held) as service:
        assert service.follow_versions() == ()
    with Service.open(held) as service:
        assert service.follow_versions() == ()
    after.replace(before)
    with Service.open(held) as service:
        assert service.follow_versions() == ("sales", "visits")
        refresh(held, "sales", "visits")
        assert service.follow_versions() == ()


def test_a_table_of_postgresql_that_was_swapped_is_read_after_a_refresh(postgres_url: str, tmp_path: Path) -> None:
    """Other rows under the name, by rename under a running server: neither the old table nor its rollup answers."""

    def wards(house: House, question: str) -> list[Any]:
        with house.connect() as connection:
            return connection.execute(question).fetchall()

    fewer = shop.WARDS.replace("20000", "19000")
    with new_database(postgres_url) as url:
        shop.fill_postgres(url)
        policy = write_policy(tmp_path, source=url)
        with opened(policy) as house, psycopg.connect(url) as owner:
            assert wards(house, shop.WARDS) == shop.BUSY_WARDS
            house.service.source.wait_for_rollups()
            assert house.service.source.count_rollups()["ready"]
            owner.execute("CREATE TABLE next AS SELECT * FROM visits WHERE ward <> 'A'")
            owner.execute("ALTER TABLE visits RENAME TO former; ALTER TABLE next RENAME TO visits")
            new = refresh(policy, "visits")
            owner.commit()
            assert "1 serving process reads the new data" in wait_for_servers(policy, seconds=PATIENCE_S)
            for question in (shop.WARDS, fewer):  # by a scan, and from a rollup
                assert wards(house, question) == [("B",)]
                house.service.source.wait_for_rollups()
            assert house.service.ledger.read_history()[-1].charge.family.version == new
        with opened(policy) as house:
            assert wards(house, fewer) == [("B",)]


def test_new_rows_are_never_read_under_the_old_version(world: World) -> None:
    """A server that has the old database open answers from it. Whoever would read the new file is refused unspent."""
    with opened(world.policy) as house:
        assert ask(house) == shop.BUSY_STORES
    world.replace()
    with opened(world.policy) as house, house.connect() as connection:
        before = house.events
        with pytest.raises(psycopg.Error, match="KH501") as refused:
            connection.execute("SELECT store FROM sales GROUP BY store HAVING sum(amount) > 30000")
        assert "Nothing was spent" in str(refused.value.diag.message_detail)
        assert house.events == before
        refresh(world.policy, "sales", "visits")
        assert ask(house) == OTHERS


@pytest.fixture
def held(tmp_path: Path) -> Path:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    return write_policy(tmp_path, source="duckdb:///shop.duckdb")


def test_a_table_of_a_replaced_database_waits_for_its_own_refresh(held: Path) -> None:
    """One file, two tables: a new version of one does not let the other's new rows be read under its old version."""
    with opened(held) as house, house.connect() as connection:
        shop.fill_duckdb(held.with_name("next.duckdb"))
        held.with_name("next.duckdb").replace(held.with_name("shop.duckdb"))
        refresh(held, "sales")
        assert "visits are refused" in wait_for_servers(held, seconds=PATIENCE_S)
        assert ask(house) == shop.BUSY_STORES
        with pytest.raises(psycopg.Error, match="KH501"):
            connection.execute("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 500")
        refresh(held, "visits")
        assert "refused" not in wait_for_servers(held, seconds=PATIENCE_S)
        connection.execute("SELECT ward FROM visits GROUP BY ward HAVING count(*) > 500")


def test_the_first_reader_of_a_version_decides_for_all_processes(held: Path) -> None:
    """Nobody pinned the files of the version: a process that starts after the file was replaced does not read it."""
    text = held.read_text(encoding="utf-8").replace('refresh = "explicit"', 'refresh = "static"')
    held.write_text(text, encoding="utf-8")
    with Service.open(held) as service:
        assert service.follow_versions() == ()
        shop.fill_duckdb(held.with_name("next.duckdb"))
        held.with_name("next.duckdb").replace(held.with_name("shop.duckdb"))
        with Service.open(held) as other, opened(held) as house, house.connect() as connection:
            assert other.follow_versions() == ("sales", "visits")
            assert service.follow_versions() == ()
            with pytest.raises(psycopg.Error, match="KH501"):
                connection.execute("SELECT store FROM sales GROUP BY store HAVING count(*) > 1500")
