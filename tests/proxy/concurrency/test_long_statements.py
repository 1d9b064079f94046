"""Very long texts are read one at a time in a process, whether they come over PostgreSQL or over REST."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import httpx
import psycopg
import pytest

from proxy.cli import check as checking
from proxy.concurrency import fair_queue
from proxy.concurrency.fair_queue import VERY_LONG_BYTES, FairTurns, read_very_long_alone
from proxy.open_policy.service import Service
from proxy.process.addresses import Addresses
from proxy.process.serve import serve_in_background
from tests.effort import PATIENCE_S
from tests.worlds.wards import PASSWORD, QUESTION, TOKENS, install

SHORT = QUESTION.format(1500)
LONG = f"{SHORT} /* {'x' * VERY_LONG_BYTES} */"
FEW_CHARACTERS = LONG.replace("xxx", "\N{SNOWMAN}")


class Noted(FairTurns):
    """FairTurns that tell who comes for one."""

    def __init__(self) -> None:
        super().__init__(1)
        self.came: SimpleQueue[str] = SimpleQueue()

    @contextmanager
    def take_turn(self, analyst: str, *, timeout_ms: int) -> Iterator[bool]:
        self.came.put(analyst)
        with super().take_turn(analyst, timeout_ms=timeout_ms) as has_turn:
            yield has_turn


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    path: Path = install(tmp_path_factory.mktemp("wards"))
    checking.check(path, confirm=False)
    with Service.open(path) as service, serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as there:
        yield there


def over_rest(there: Addresses, path: str, sql: str) -> None:
    url = f"http://{there.host}:{there.rest_port}/v1/{path}"
    headers = {"Authorization": f"Bearer {TOKENS['ada']}"}
    body: dict[str, object] = {"questions": [{"sql": sql}]} if path == "plan" else {"sql": sql}
    httpx.post(url, json=body, headers=headers, timeout=PATIENCE_S).raise_for_status()


def over_postgresql(there: Addresses, sql: str) -> None:
    info = f"host={there.host} port={there.port} dbname={there.database} user=cy password={PASSWORD}"
    with psycopg.connect(info, autocommit=True) as connection:
        connection.execute(sql.encode())


ASKING: dict[str, tuple[str, Callable[[Addresses, str], None]]] = {
    "explained over REST": ("ada", lambda there, sql: over_rest(there, "explain", sql)),
    "planned over REST": ("ada", lambda there, sql: over_rest(there, "plan", sql)),
    "asked over REST": ("ada", lambda there, sql: over_rest(there, "question", sql)),
    "over PostgreSQL": ("cy", over_postgresql),
}


@pytest.mark.parametrize("sql", [LONG, FEW_CHARACTERS], ids=["long", "long in bytes"])
@pytest.mark.parametrize(("analyst", "asks"), ASKING.values(), ids=ASKING.keys())
def test_a_very_long_text_waits_for_another_and_a_short_one_does_not(
    addresses: Addresses,
    monkeypatch: pytest.MonkeyPatch,
    analyst: str,
    asks: Callable[[Addresses, str], None],
    sql: str,
) -> None:
    turns = Noted()
    monkeypatch.setattr(fair_queue, "_LONG_TEXTS", turns)
    answered = threading.Event()

    def ask() -> None:
        asks(addresses, sql)
        answered.set()

    asking = threading.Thread(target=ask)
    with read_very_long_alone(LONG, analyst="bob"):
        assert turns.came.get() == "bob"
        asking.start()
        assert turns.came.get(timeout=PATIENCE_S) == analyst
        asks(addresses, SHORT)
        assert not answered.is_set()
    asking.join()
    assert answered.is_set()


def test_everybody_has_a_turn_and_only_one() -> None:
    at_work, most = 0, 0
    counting = threading.Lock()

    def read(analyst: str) -> None:
        nonlocal at_work, most
        for _ in range(50):
            with read_very_long_alone(LONG, analyst=analyst):
                with counting:
                    at_work += 1
                    most = max(most, at_work)
                with counting:
                    at_work -= 1

    threads = [threading.Thread(target=read, args=(f"{number % 3}",)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (at_work, most) == (0, 1)
