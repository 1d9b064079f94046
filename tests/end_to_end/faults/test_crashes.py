"""Whatever is killed, and whenever: what was reserved stays spent, and what was not reserved costs nothing."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from accountant.ledger import Ledger
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.sources import postgres_source
from tests.children import forked
from tests.end_to_end.certainty import asked
from tests.worlds import shop
from tests.worlds.house import House, command, eventually, locked, most_spent, opened, write_policy

COMMAND = "from proxy.cli.script import run; run()"
COST = pytest.approx(0.0767, abs=1e-4)


@pytest.fixture
def policy(source_url: str, ledger_url: str, tmp_path: Path) -> Path:
    return write_policy(tmp_path, source=source_url, ledger=ledger_url)


@contextmanager
def asking(policy: Path) -> Iterator[subprocess.Popen[str]]:
    """`keyhole query` in a process of its own, killed with SIGKILL when the block ends, whatever it then does."""
    with running(policy, "query", shop.BUSY) as process:
        yield process


@contextmanager
def running(policy: Path, *command: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, killed likewise."""
    arguments = [sys.executable, "-c", COMMAND, *command, "--policy", str(policy), "--json"]
    with forked.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def held(ledger_url: str) -> Iterator[None]:
    """A ledger that nobody else can write to while the block runs."""
    if not ledger_url.startswith("sqlite"):
        with locked(ledger_url, "writer"):
            yield
        return
    holder = sqlite3.connect(ledger_url.removeprefix("sqlite:///"), isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    yield
    holder.close()


def test_killed_before_it_can_reserve_nothing_is_spent(policy: Path, source_url: str, ledger_url: str) -> None:
    with held(ledger_url), locked(source_url, "visits") as lock, asking(policy) as process:
        lock.wait_for_silence()
        assert process.poll() is None
    document = command("budget", policy)
    assert document["families"] == []
    assert document["open_reservations"] == 0


def test_killed_while_the_source_works_the_reservation_stays_spent(policy: Path, source_url: str) -> None:
    with locked(source_url, "sales") as lock, asking(policy) as process:
        lock.wait_for_somebody()
        assert process.poll() is None
    for _ in range(2):
        document = command("budget", policy)
        assert most_spent(document, "sales") == COST
        assert document["open_reservations"] == 1


def test_killed_before_it_can_commit_the_reservation_stays_spent(
    policy: Path, source_url: str, ledger_url: str
) -> None:
    with locked(source_url, "sales") as lock, asking(policy) as process:
        lock.wait_for_somebody()
        with held(ledger_url):
            lock.release()
            lock.wait_for_silence()
            assert process.poll() is None
            process.kill()
            process.wait()
    document = command("budget", policy)
    assert most_spent(document, "sales") == COST
    assert document["open_reservations"] == 1


def test_killed_after_it_committed_the_answer_is_stored_and_paid_once(policy: Path, ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as ledger, asking(policy):
        eventually(lambda: ledger.verify_everything() == 2)
    document = command("budget", policy)
    assert most_spent(document, "sales") == COST
    assert document["open_reservations"] == 0
    answer = command("query", policy, shop.BUSY)
    assert answer["reused"] is True
    assert answer["keys"] == [["north"], ["south"]]
    assert most_spent(command("budget", policy), "sales") == COST


@pytest.fixture
def brief(source_url: str, tmp_path: Path) -> Iterator[House]:
    """The shop, where the source may take a second for a question."""
    with opened(write_policy(tmp_path, source=source_url, timeout_ms=1000)) as house:
        yield house


def told(house: House, sql: str) -> dict[str, str | None]:
    """What a client is told about a failure."""
    with house.connect() as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(sql)
    diagnosis = caught.value.diag
    names = ("sqlstate", "message_primary", "message_detail", "message_hint", "statement_position", "context")
    return {name: getattr(diagnosis, name) for name in names}


def test_a_source_that_fails_says_one_thing_and_stays_paid(brief: House, source_url: str) -> None:
    """A time-out and a table that is gone: one generic refusal for both. A column that is gone is given back."""
    failures = []
    with locked(source_url, "sales"):
        failures.append(told(brief, shop.BUSY))
    paid = brief.most_spent("sales")
    assert paid == COST
    with psycopg.connect(source_url, autocommit=True) as owner:
        owner.execute("ALTER TABLE sales RENAME COLUMN store TO shop")
        gone = told(brief, shop.BUSY)
        assert (
            gone["message_primary"] == "KH501: the source no longer has a column or unique key that the question reads"
        )
        assert brief.most_spent("sales") == paid
        owner.execute("DROP TABLE sales")
        failures.append(told(brief, shop.BUSY))
    assert failures[0]["message_primary"] == "KH501: the source could not answer"
    assert failures == failures[:1] * 2
    assert brief.most_spent("sales") == pytest.approx(2 * paid)
    assert len(brief.service.ledger.list_open_reservations()) == 2


def test_a_source_that_cannot_be_reached_costs_nothing(
    brief: House, postgres_url: str, source_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_source, "_OPENING_S", 1.0)
    name = source_url.split("?")[0].rsplit("/", 1)[1]
    hang_up = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
        owner.execute(hang_up, [name])
        failure = told(brief, shop.BUSY)
        assert failure["message_primary"] == "KH501: the source cannot be reached"
        assert brief.events == 0
        owner.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())

    def answered() -> bool:
        try:
            with brief.connect() as connection:
                return connection.execute(shop.BUSY).fetchall() == shop.BUSY_STORES
        except psycopg.Error:
            return False

    eventually(answered)
    assert brief.most_spent("sales") == COST


def test_connections_that_the_source_dropped_are_not_an_outage(
    policy: Path, postgres_url: str, source_url: str
) -> None:
    """A restart of the source between two questions costs no analyst anything."""
    name = source_url.split("?")[0].rsplit("/", 1)[1]
    with Service.open(policy) as service:
        question = asked(service, shop.BUSY)
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        keys = pipeline.answer(service, pipeline.plan_asked_question(service, question), question).keys
        assert list(keys.keys) == shop.BUSY_STORES
        assert service.ledger.verify_everything() == 2


PAID = ("--epsilon", "0.5", "--yes", "--why", "a test")
BOUNDS = ("bounds", "sales", "--column", "quantity", *PAID)
ROC = ("diagnose", "roc", "sales", "--score", "amount", "--outcome", "quantity > 1", "--by", "store", *PAID)
COLUMNS = ("--public", "store", "--sensitive", "month", "--out", "made")
PUBLISHED = ("publish", "sales", *COLUMNS, *PAID)
PERTURBED = ("publish", "sales", *COLUMNS, "--method", "perturbed", "--not-differentially-private", *PAID[2:])


@pytest.mark.parametrize("release", [BOUNDS, ROC, PUBLISHED], ids=["bounds", "roc", "published"])
def test_a_release_that_is_killed_while_the_source_works_stays_spent(
    policy: Path, source_url: str, release: tuple[str, ...]
) -> None:
    with locked(source_url, "sales") as lock, running(policy, *release) as process:
        lock.wait_for_somebody()
        assert process.poll() is None
    document = command("budget", policy)
    assert most_spent(document, "sales") == 0.5
    assert document["open_reservations"] == 1


def test_a_release_that_is_killed_before_it_can_reserve_costs_nothing(
    policy: Path, source_url: str, ledger_url: str
) -> None:
    with held(ledger_url), locked(source_url, "visits") as lock, running(policy, *ROC) as process:
        lock.wait_for_silence()
        assert process.poll() is None
    document = command("budget", policy)
    assert document["families"] == []
    assert document["open_reservations"] == 0


def test_a_release_that_is_killed_before_it_can_commit_stays_spent(
    policy: Path, source_url: str, ledger_url: str
) -> None:
    with locked(source_url, "sales") as lock, running(policy, *ROC) as process:
        lock.wait_for_somebody()
        with held(ledger_url):
            lock.release()
            lock.wait_for_silence()
            assert process.poll() is None
            process.kill()
            process.wait()
    document = command("budget", policy)
    assert most_spent(document, "sales") == 0.5
    assert document["open_reservations"] == 1


def test_a_release_that_is_killed_after_it_committed_is_told_again_and_paid_once(policy: Path, ledger_url: str) -> None:
    with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as ledger, running(policy, *ROC):
        eventually(lambda: ledger.verify_everything() == 2)
    told = command(ROC[0], policy, *ROC[1:])
    assert told["paid_before"]
    assert len(told["groups"]) > 1
    document = command("budget", policy)
    assert most_spent(document, "sales") == 0.5
    assert document["open_reservations"] == 0


def test_a_table_that_is_killed_after_it_committed_is_written_again_and_paid_once(
    policy: Path, ledger_url: str
) -> None:
    with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as ledger, running(policy, *PUBLISHED):
        eventually(lambda: ledger.verify_everything() == 2)
    told = command(PUBLISHED[0], policy, *PUBLISHED[1:])
    assert told["paid_before"]
    assert (policy.parent / told["file"]).exists()
    document = command("budget", policy)
    assert most_spent(document, "sales") == 0.5
    assert document["open_reservations"] == 0


def test_rows_that_nobody_budgets_are_no_file_before_they_are_in_the_ledger(
    policy: Path, source_url: str, ledger_url: str
) -> None:
    """Killed while the source works, and when the event cannot be written; then made, once."""
    folder = policy.parent / "releases"
    with locked(source_url, "sales") as lock, running(policy, *PERTURBED) as process:
        lock.wait_for_somebody()
        assert process.poll() is None
    with locked(source_url, "sales") as lock, running(policy, *PERTURBED) as process:
        lock.wait_for_somebody()
        with held(ledger_url):
            lock.release()
            eventually((folder / ".made.csv.draft").exists)
            assert process.poll() is None
            process.kill()
            process.wait()
    assert not (folder / "made.csv").exists()
    assert command("budget", policy)["published"] == []
    told = command(PERTURBED[0], policy, *PERTURBED[1:])
    assert not told["paid_before"]
    (published,) = command("budget", policy)["published"]
    assert published["sha256"] == told["sha256"]
    assert sorted(one.name for one in folder.iterdir()) == [".lock", "made.csv", "made.csv.txt"]


def test_rows_that_nobody_budgets_are_one_file_for_two_at_once(policy: Path, source_url: str) -> None:
    with locked(source_url, "sales") as lock, running(policy, *PERTURBED) as one, running(policy, *PERTURBED) as other:
        lock.wait_for_somebody()
        lock.release()
        outputs = [json.loads(process.communicate()[0]) for process in (one, other)]
    assert len({output["sha256"] for output in outputs}) == 1
    assert sorted(output["paid_before"] for output in outputs) == [False, True]
    assert len(command("budget", policy)["published"]) == 1
