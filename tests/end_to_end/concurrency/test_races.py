from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import psycopg
import pytest

from accountant.charges import Cells, Charge, Family, Spent
from accountant.ledger import Ledger
from accountant.limits import Limits
from planner.errors import KeyholeError
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from tests.end_to_end.certainty import asked
from tests.worlds import shop
from tests.worlds.house import House, locked, opened, write_policy

QUESTIONS = tuple(shop.BUSY.replace("sales", f"sales WHERE quantity > {-1 - number}") for number in range(8))


@pytest.fixture
def tight(source_url: str, ledger_url: str, tmp_path: Path) -> Iterator[House]:
    """A question of `QUESTIONS` costs 0.0767 epsilon, two of them fit."""
    with opened(write_policy(tmp_path, source=source_url, ledger=ledger_url, per_predicate=0.16)) as house:
        yield house


def through(connection: psycopg.Connection[tuple[str]], sql: str) -> str:
    """How a question ends through a connection."""
    try:
        return "answered" if connection.execute(sql).fetchall() == shop.BUSY_STORES else "wrong"
    except psycopg.Error as error:
        return str(error.diag.message_primary)[:5]


def inside(service: Service, sql: str) -> str:
    """How a question ends in another service, as in another process over the same ledger."""
    question = asked(service, sql)
    try:
        keys = pipeline.answer(service, pipeline.plan_asked_question(service, question), question).keys.keys
    except KeyholeError as error:
        return error.code
    return "answered" if list(keys) == shop.BUSY_STORES else "wrong"


def test_concurrent_questions_never_overspend_and_waste_nothing(tight: House) -> None:
    """The last of a budget goes to exactly as many as fit, over connections, threads and services."""
    with ExitStack() as stack, ThreadPoolExecutor(len(QUESTIONS)) as threads:
        connections = [stack.enter_context(tight.connect()) for _ in QUESTIONS[::2]]
        other = stack.enter_context(Service.open(tight.policy))
        together = Barrier(len(QUESTIONS))

        def ask(number: int) -> str:
            together.wait()
            sql = QUESTIONS[number]
            return inside(other, sql) if number % 2 else through(connections[number // 2], sql)

        outcomes = sorted(threads.map(ask, range(len(QUESTIONS))))
    assert outcomes == ["KH301"] * 6 + ["answered"] * 2
    assert tight.most_spent("sales") == pytest.approx(2 * 0.0767, abs=1e-3)
    assert tight.events == 4


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_what_a_running_question_reserved_is_not_there_for_another(tight: House, source_url: str) -> None:
    with ThreadPoolExecutor(2) as threads, ExitStack() as stack:
        slow = [stack.enter_context(tight.connect()) for _ in range(2)]
        late = stack.enter_context(tight.connect())
        lock = stack.enter_context(locked(source_url, "sales"))
        running = [threads.submit(through, *one) for one in zip(slow, QUESTIONS[:2], strict=True)]
        lock.wait_for_somebody(2)
        assert through(late, QUESTIONS[2]) == "KH301"
        lock.release()
        assert [one.result() for one in running] == ["answered"] * 2
    assert tight.events == 4


def test_an_auditor_never_sees_half_of_what_another_process_writes(ledger_url: str) -> None:
    """The auditor reads the whole ledger again and again while questions are reserved and committed beside it."""
    wide = Limits(
        per_predicate_nano=10**12,
        per_unit_nano=None,
        per_query_nano=None,
        analyst_per_predicate_nano=None,
        analyst_per_unit_nano=None,
        separates_analysts=False,
    )
    family = Family("sales", "row", ("store",), "", "v", frozenset())
    cells = Cells((("store", ("north", "south")),))

    def write() -> None:
        with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as ledger:
            for number in range(60):
                charge = Charge(f"question {number}", "ada", family, cells, 10, 0, shared=True)
                ledger.commit(ledger.reserve(charge, wide), Spent.from_uniform(9, unit_epsilon_nano=0), b"keys")

    with Ledger.open(ledger_url, clock=lambda: datetime.now(UTC)) as auditor, ThreadPoolExecutor(1) as threads:
        writing = threads.submit(write)
        seen = []
        while not writing.done():
            seen.append(auditor.verify_everything())
        writing.result()
        assert seen == sorted(seen)
        assert auditor.verify_everything() == 120
