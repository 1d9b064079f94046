"""A question that its client cancels: told at once, free before the reservation, finished and kept after it."""

import asyncio
import select
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from planner.errors import KeyholeError
from proxy.concurrency.cancellable_work import QuestionWork
from proxy.wire.backend import DataRow, ReadyForQuery, Report
from proxy.wire.frontend import Bind, Cancel, Execute, Parse, Query, Sync
from tests.effort import PATIENCE_S
from tests.proxy.conftest import Running
from tests.proxy.in_test_asker import COUNTRIES
from tests.proxy.raw_client import RawClient
from tests.worlds.countries import QUESTION

SIMPLE = (Query(QUESTION.encode()),)
EXTENDED = (Parse(b"", QUESTION.encode()), Bind(b"", b"", (), (), ()), Execute(b"", 0), Sync())
SEVERAL = (Query(f"SELECT 1; {QUESTION}; SELECT 2".encode()),)


def cancel(running: Running, client: RawClient) -> None:
    with RawClient(running.port, user="") as canceller:
        canceller.send(Cancel(client.key.process, client.key.secret))
        assert canceller.until_end() == []


@pytest.mark.parametrize("messages", [SIMPLE, EXTENDED, SEVERAL])
@pytest.mark.parametrize(("before", "status"), [(b"SELECT 1", b"I"), (b"BEGIN", b"E")])
def test_the_client_is_told_while_the_work_goes_on(
    running: Running, messages: tuple[Query], before: bytes, status: bytes
) -> None:
    running.asker.gate = threading.Event()
    with RawClient(running.port) as client:
        client.send(Query(before))
        client.until_ready()
        client.send(*messages)
        assert running.asker.begun.acquire(timeout=PATIENCE_S)
        cancel(running, client)
        *_, report, ready = client.until_ready()
        assert isinstance(report, Report)
        assert report.find_field(b"C") == b"57014"
        assert b"canceling statement due to user request" in (report.find_field(b"M") or b"")
        assert ready == ReadyForQuery(status)
        client.send(Query(b"ROLLBACK"), Query(b"SELECT 7"))
        client.until_ready()
        assert DataRow((b"7",)) in client.until_ready()
        assert running.asker.released == 0
        running.asker.gate.set()


def test_the_next_question_waits_for_the_one_that_was_left(running: Running) -> None:
    """Or the same question would be paid twice."""
    running.asker.gate = threading.Event()
    with RawClient(running.port) as client, RawClient(running.port) as other:
        for _ in range(3):
            client.send(*SIMPLE)
            while len(running.asker.asked) == 0:
                pass
            running.asker.asked.clear()
            cancel(running, client)
            assert any(isinstance(message, Report) for message in client.until_ready())
        assert sum(running.asker.begun.acquire(blocking=False) for _ in range(3)) <= 1
        other.send(*SIMPLE)
        client.send(*SIMPLE)
        running.asker.gate.set()
        for one in (client, other):
            assert sum(isinstance(message, DataRow) for message in one.until_ready()) == len(COUNTRIES)


SLOW = "EXECUTE p(20 + length(pg_sleep(%s)::text))"


def prepare(client: RawClient) -> None:
    client.send(Query(f"PREPARE p (int) AS {QUESTION.replace('20', '$1')}".encode()))
    client.until_ready()


def test_a_question_can_be_cancelled_while_the_shadow_reads_what_it_asks(running: Running) -> None:
    with RawClient(running.port) as client:
        prepare(client)
        client.send(Query((SLOW % 20).encode()))
        while not select.select([client.socket], [], [], 0)[0]:
            cancel(running, client)
        (report,) = [message for message in client.until_ready() if isinstance(message, Report)]
        assert report.find_field(b"C") == b"57014"
        assert running.asker.asked == []
        client.send(*SIMPLE)
        assert sum(isinstance(message, DataRow) for message in client.until_ready()) == len(COUNTRIES)


def test_a_question_withdrawn_between_two_pieces_of_work_does_no_more() -> None:
    done: list[int] = []

    async def ask() -> str:
        work = QuestionWork(workers)
        assert not work.withdraw()
        with work.register_question() as withdrawn:
            await work.run(partial(done.append, 1))
            assert not work.withdraw()  # nobody waits for work: so the shadow is asked to stop too
            assert withdrawn.is_set()
            with pytest.raises(KeyholeError) as caught:
                await work.run(partial(done.append, 2))
        with work.register_question():
            await work.run(partial(done.append, 3))
        return caught.value.code

    with ThreadPoolExecutor(1) as workers:
        assert asyncio.run(ask()) == "KH409"
    assert done == [1, 3]


def test_only_the_right_secret_cancels_and_twice_is_once(running: Running) -> None:
    running.asker.gate = threading.Event()
    with RawClient(running.port) as client, RawClient(running.port) as gone:
        pass
    with RawClient(running.port) as client, RawClient(running.port) as other:
        client.send(*SIMPLE)
        assert running.asker.begun.acquire(timeout=PATIENCE_S)
        wrong = bytes(byte ^ 1 for byte in client.key.secret)
        for process, secret in (
            (client.key.process, wrong),
            (client.key.process, other.key.secret),
            (other.key.process, client.key.secret),
            (gone.key.process, gone.key.secret),
            (client.key.process, client.key.secret + b"x"),
        ):
            with RawClient(running.port, user="") as canceller:
                canceller.send(Cancel(process, secret))
                assert canceller.until_end() == []
        assert not select.select([client.socket], [], [], 0)[0]
        cancel(running, client)
        cancel(running, client)
        running.asker.gate.set()
        assert sum(isinstance(message, Report) for message in client.until_ready()) == 1
        client.send(Query(b"SELECT 7"))
        assert DataRow((b"7",)) in client.until_ready()


def test_a_cancel_without_a_question_harms_nothing(running: Running) -> None:
    with RawClient(running.port) as client:
        cancel(running, client)
        client.send(*SIMPLE)
        kinds = [type(message) for message in client.until_ready()]
        assert kinds.count(DataRow) in (0, len(COUNTRIES))  # a late signal may still reach the statement
        client.send(*SIMPLE)
        assert sum(isinstance(message, DataRow) for message in client.until_ready()) == len(COUNTRIES)
