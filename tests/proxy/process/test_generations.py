"""A reload with other tables: sessions of before go on, nothing is spent twice, and nothing is left behind."""

import os
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.check import check, refresh, wait_for_servers
from proxy.concurrency.lease import GivenUp, UsageCount
from proxy.open_policy.service import Service
from tests.effort import PATIENCE_S
from tests.proxy.process.test_workers import children
from tests.worlds import shop
from tests.worlds.house import (
    PASSWORD,
    VERIFIER,
    House,
    eventually,
    locked,
    new_database,
    opened,
    shop_in_duckdb,
    write_policy,
)
from tests.worlds.served import Served, served

TOKEN = "keyhole_token_of_ada_0123456789abcdef"
ADA = {"Authorization": f"Bearer {TOKEN}"}
RETURNS = """
[tables.returns]
privacy_unit = "row"
refresh = "explicit"

[tables.returns.columns.store]
key = { values = ["north", "south", "west"] }
"""
COPIED = "CREATE TABLE returns AS SELECT store FROM sales"
ASKED_OF_RETURNS = "SELECT store FROM returns GROUP BY store HAVING count(*) > 1000"
SHOWS_RETURNS = "SELECT count(*) FROM pg_tables WHERE tablename = 'returns'"
Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def shop_url(postgres_url: str) -> Iterator[str]:
    with new_database(postgres_url) as url:
        shop.fill_postgres(url, COPIED)
        yield url


@pytest.fixture
def policy(shop_url: str, tmp_path: Path) -> Path:
    path = write_policy(tmp_path, source=shop_url)
    digest = sha256(TOKEN.encode()).hexdigest()
    section = f'[analysts.ada]\npassword = "{VERIFIER}"\n'
    text = path.read_text(encoding="utf-8")
    assert section in text
    path.write_text(text.replace(section, f'{section}token_sha256 = "{digest}"\n'), encoding="utf-8")
    return path


class Keyhole:
    """A Keyhole whose shadows lie in a folder of their own."""

    def __init__(self, policy: Path, running: Served, folder: Path) -> None:
        self.policy = policy
        self.running = running
        self._folder = folder

    def connect(self) -> Connection:
        there = f"host=127.0.0.1 port={self.running.port} dbname=shop user=ada"
        return psycopg.connect(there, password=PASSWORD, autocommit=True)

    def ask(self, sql: str, key: str) -> httpx.Response:
        headers = {**ADA, "Idempotency-Key": key}
        where = f"{self.running.rest}/v1/question"
        return httpx.post(
            where, params={"page_size": 1}, json={"sql": sql}, headers=headers, trust_env=False, timeout=PATIENCE_S
        )

    def heard(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.running.read_log() if one["event"] == event]

    def reload(self, *, answers: int = 1, event: str = "policy reloaded") -> list[dict[str, Any]]:
        """Tell it to read its policy again; the lines that say so."""
        before = len(self.heard(event))
        self.running.process.send_signal(signal.SIGHUP)
        eventually(lambda: len(self.heard(event)) >= before + answers)
        return self.heard(event)[before:]

    def change(self, old: str, new: str, *, answers: int = 1) -> list[dict[str, Any]]:
        """Put another text into the policy, confirm what it pins, and have it taken."""
        text = self.policy.read_text(encoding="utf-8")
        assert old in text
        self.policy.write_text(text.replace(old, new), encoding="utf-8")
        check(self.policy, confirm=True)
        return self.reload(answers=answers)

    @property
    def shadows(self) -> int:
        """How many shadows run, or are being removed."""
        return len(list(self._folder.glob("*/shadow")))

    @property
    def descriptors(self) -> dict[int, int]:
        """How many descriptors every process that serves has open, but for the ledger's: SQLite keeps those of closed
        connections for the next ones."""
        serving = {self.running.process.pid, *children(self.running.process.pid)}
        return {process: sum("keyhole.db" not in name for name in names_of(process)) for process in serving}

    @property
    def events(self) -> int:
        """How many events the ledger has, which is read anew and found whole."""
        with Service.open(self.policy) as service:
            return service.ledger.verify_everything()

    @property
    def unfinished(self) -> int:
        """How many questions are reserved and not committed."""
        with Service.open(self.policy) as service:
            return len(service.ledger.read_page(analyst=None, before=None, limit=100, only_open=True).questions)


def names_of(process: int) -> list[str]:
    """What a process has open."""
    names = []
    for link in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            names.append(os.readlink(link))
    return names


@contextmanager
def serving(policy: Path, workers: int = 1) -> Iterator[Keyhole]:
    """A Keyhole while the block runs. It ends well, whatever generations there are, and leaves nothing."""
    with tempfile.TemporaryDirectory(prefix="kh") as folder:
        with served(policy, f"--workers={workers}", environment={"TMPDIR": folder}) as running:
            yield Keyhole(policy, running, Path(folder))
        assert not list(Path(folder).iterdir())


def test_sessions_of_before_go_on_and_ask_no_more(policy: Path, shop_url: str) -> None:
    with (
        serving(policy) as keyhole,
        ThreadPoolExecutor(1) as threads,
        locked(shop_url, "visits") as lock,
        keyhole.connect() as before,
        keyhole.connect() as asking,
    ):
        page = keyhole.ask(shop.BUSY, "first")
        assert (page.status_code, page.json()["keys"]) == (200, [["north"]])
        running = threads.submit(asking.execute, shop.WARDS)
        lock.wait_for_somebody()
        before.execute("BEGIN")
        before.execute(f"DECLARE stores CURSOR FOR {shop.BUSY}".encode())
        assert before.execute("FETCH 1 FROM stores").fetchall() == [("north",)]
        before.execute(f"PREPARE busy AS {shop.BUSY}".encode())
        spent = keyhole.events
        assert keyhole.unfinished == 1

        (reloaded,) = keyhole.change("[tables.visits]\n", f"{RETURNS}\n[tables.visits]\n")
        assert reloaded["generation"] == 2
        assert keyhole.shadows == 2

        assert before.execute("FETCH ALL FROM stores").fetchall() == [("south",)]
        assert before.execute(SHOWS_RETURNS).fetchone() == (0,)
        before.execute("COMMIT")
        for sql in (shop.BUSY, f"EXPLAIN {shop.BUSY}", "EXECUTE busy", "TABLE busy", "TABLE keyhole.budget"):
            with pytest.raises(psycopg.errors.AdminShutdown, match="KH411"):
                before.execute(sql.encode())
            assert before.execute("SELECT 1").fetchone() == (1,)
        assert keyhole.events == spent

        again = keyhole.ask(shop.BUSY, "first")
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.json() == page.json()
        cursor = {"cursor": page.json()["next"]}
        rest = httpx.get(
            f"{keyhole.running.rest}/v1/answer", params=cursor, headers=ADA, trust_env=False, timeout=PATIENCE_S
        )
        assert rest.json()["keys"] == [["south"]]
        assert keyhole.events == spent

        lock.release()
        assert running.result().fetchall() == shop.BUSY_WARDS
        assert keyhole.events == spent + 1  # it is committed
        with keyhole.connect() as after:
            assert after.execute(SHOWS_RETURNS).fetchone() == (1,)
            assert after.execute(ASKED_OF_RETURNS).fetchall() == [("north",), ("south",)]
            assert after.execute(shop.BUSY).fetchall() == shop.BUSY_STORES
        assert keyhole.events == spent + 5
        assert keyhole.unfinished == 0
        before.close()
        asking.close()
        eventually(lambda: keyhole.shadows == 1)
        eventually(lambda: len(keyhole.heard("generation ended")) == 1)
        assert [one["policy"] for one in keyhole.heard("starting")] == [policy.name]


def test_many_reloads_leave_nothing_and_end_the_oldest_sessions_alone(
    policy: Path, shop_url: str, postgres_url: str
) -> None:
    with (
        new_database(postgres_url) as elsewhere,
        serving(policy, workers=2) as keyhole,
        ExitStack() as sessions,
    ):
        shop.fill_postgres(elsewhere, COPIED, "DELETE FROM sales WHERE store = 'south'")
        descriptors = keyhole.descriptors
        first, second, third = [
            sessions.enter_context(keyhole.connect())
            for changed in (
                ("bounds = [0, 100]", "bounds = [0, 101]"),
                (shop_url, elsewhere),
                ("bounds = [0, 101]", "bounds = [0, 102]"),
            )
            if keyhole.change(*changed, answers=2)
        ]
        eventually(lambda: keyhole.shadows == 3)
        assert third.execute(shop.BUSY).fetchall() == [("north",)]
        ended = keyhole.change(elsewhere, shop_url, answers=2)
        assert sum(event["sessions_ended"] for event in ended) == 1
        with pytest.raises(psycopg.errors.AdminShutdown, match="administrator"):
            first.execute("SELECT 1")
        for session in (second, third):
            with pytest.raises(psycopg.errors.AdminShutdown, match="KH411"):
                session.execute(shop.BUSY)
            assert session.execute("SELECT 1").fetchone() == (1,)
        eventually(lambda: keyhole.shadows == 3)
        sessions.close()
        eventually(lambda: keyhole.shadows == 1)
        eventually(lambda: keyhole.descriptors == descriptors)


def test_workers_reload_beside_a_replaced_database_and_read_what_is_open(tmp_path: Path) -> None:
    """A new policy is no new data version: its generation reads the old database until the refresh."""
    policy = shop_in_duckdb(tmp_path)
    with serving(policy, workers=2) as keyhole:
        shop.fill_duckdb(tmp_path / "other.duckdb", "DELETE FROM sales WHERE store = 'north'")
        (tmp_path / "other.duckdb").replace(tmp_path / "shop.duckdb")
        text = policy.read_text(encoding="utf-8")
        policy.write_text(text.replace("bounds = [0, 100]", "bounds = [0, 101]"), encoding="utf-8")
        reloaded = keyhole.reload(answers=2)
        assert [line["generation"] for line in reloaded] == [2, 2]
        with keyhole.connect() as later:
            assert later.execute(shop.BUSY).fetchall() == shop.BUSY_STORES
            refresh(policy, "sales", "visits")
            said = wait_for_servers(policy, seconds=PATIENCE_S)
            assert "2 serving processes read the new data" in said
            assert later.execute(shop.BUSY).fetchall() == [("south",)]


def test_it_is_told_to_end_while_a_question_of_before_runs(policy: Path, shop_url: str) -> None:
    """The question has reserved: it is committed before the process ends."""
    with ThreadPoolExecutor(1) as threads, locked(shop_url, "visits") as lock:
        with serving(policy) as keyhole:
            asking = keyhole.connect()
            running = threads.submit(asking.execute, shop.WARDS)
            lock.wait_for_somebody()
            keyhole.change("[tables.visits]\n", f"{RETURNS}\n[tables.visits]\n")
            keyhole.running.process.send_signal(signal.SIGHUP)  # and once more at the very end
            lock.release()
        with suppress(psycopg.Error):
            assert running.result().fetchall() == shop.BUSY_WARDS
        asking.close()
    assert keyhole.events == 2


def test_what_waits_for_the_source_when_it_is_retired_costs_nothing(policy: Path) -> None:
    with opened(policy) as house, house.connect() as connection, ThreadPoolExecutor(1) as threads:
        with ExitStack() as turns:
            with suppress(KeyholeError):  # once all turns are taken
                for number in count():
                    turns.enter_context(house.service.source.take_turn(analyst=str(number), timeout_ms=1))
            answer = threads.submit(connection.execute, shop.BUSY)
            eventually(lambda: waiting(house) == 1)
            ended: list[str] = []
            house.service.retire(lambda: ended.append("unused"))
            assert ended == []
        with pytest.raises(psycopg.errors.AdminShutdown, match="KH411"):
            answer.result()
        assert house.events == 0
        eventually(lambda: ended == [])  # the session itself uses it
        assert connection.execute("SELECT 1").fetchone() == (1,)
        connection.close()
        eventually(lambda: ended == ["unused"])


def test_the_way_back_to_a_source_that_sessions_still_use_is_open(tmp_path: Path) -> None:
    """DuckDB opens a file once: whoever goes back to it shares it, and it is closed with the last who does."""
    for name in ("shop", "other"):
        shop.fill_duckdb(tmp_path / f"{name}.duckdb")
    path = write_policy(tmp_path, source="duckdb:///shop.duckdb")
    before = Policy.load(path)
    path.write_text(path.read_text(encoding="utf-8").replace("shop.duckdb", "other.duckdb"), encoding="utf-8")
    after = Policy.load(path)
    first = Service.from_policy(before)
    with first.open_successor(after) as second:
        with second.open_successor(before) as third, third.open_successor(after) as fourth:
            assert (third.source, fourth.source) == (first.source, second.source)
        shop.fill_duckdb(tmp_path / "new.duckdb")
        (tmp_path / "new.duckdb").replace(tmp_path / "shop.duckdb")
        with second.open_successor(before) as still:
            assert still.source is first.source  # which opens the new file when its version begins
        first.close()
        with second.open_successor(before) as fifth:
            assert fifth.source is not first.source
            assert fifth.source.list_relations()


def waiting(house: House) -> float | None:
    """How many questions wait for the source."""
    return house.service.telemetry.registry.get_sample_value("keyhole_source_turns", {"state": "waiting"})


def test_what_is_given_up_ends_once_when_nobody_uses_it() -> None:
    usage, ended = UsageCount(), list[str]()
    with usage.use():
        with usage.use():
            usage.give_up(lambda: ended.append("first"))
            usage.give_up(lambda: ended.append("second"))
            with pytest.raises(GivenUp), usage.use():
                pass
        assert (usage.is_given_up, ended) == (True, [])
    assert ended == ["first"]
    unused = UsageCount()
    unused.give_up(lambda: ended.append("at once"))
    assert ended == ["first", "at once"]
