"""What a question makes Keyhole do, by counts that no busy machine changes, beside the kept ones of `work_counts.toml`.

`python -m tests.proxy.pipeline.test_work_counts` writes down the counts of a version: of one that makes a question
cheaper, or that does more on purpose. Calls are those of functions of this repository alone. Comprehensions and lambdas
are left out, which Python 3.12 counts in another way than 3.11.
"""

import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from types import FrameType
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
import sqlalchemy as sa

from accountant.store.journal import Journal
from benchmarks.workload import ANALYST, PASSWORD, write_duckdb_policy
from mechanisms.keyhole.progressive import Progressive
from planner.parser import tree
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import messages
from proxy.pipeline.answering import StatementAnswerer
from proxy.pipeline.messages import Request
from proxy.shadow.relay import ShadowRelay
from proxy.sources.duckdb_source import DuckDBSource
from tests.seeded_noise import SeededNoise
from tests.worlds.house import House, opened

KEPT = Path(__file__).with_name("work_counts.toml")
REPOSITORY = str(Path(__file__).resolve().parents[3])
OWN = tuple(f"{REPOSITORY}/{name}/" for name in ("accountant", "mechanisms", "planner", "proxy"))
KEEP_IF_MEANT = "if that is meant, write it down: python -m tests.proxy.pipeline.test_work_counts"
TOLERATED = 0.05  # of calls: another version of a library may ask a class of ours once more or less
_ATOMS = (
    "SELECT shop, day FROM lines {where}GROUP BY shop, day HAVING count(*) > {} "
    "AND (sum(quantity) > {} OR count(*) FILTER (WHERE online) > {})"
)
_SHARE = "SELECT shop, day FROM lines GROUP BY shop, day HAVING count(*) > 0.1 / {} * (SELECT count(*) FROM lines) + {}"

Counts = dict[str, int]


def list_questions() -> Iterator[tuple[str, str]]:
    """The kinds of questions, each in the order in which it is asked: what warms up first, then what is counted."""
    for kind, numbers in (("warm", (27, 197, 15)), ("warm", (28, 198, 16)), ("new", (29, 199, 17))):
        yield kind, _ATOMS.format(*numbers, where="")
    yield "other rows", _ATOMS.format(29, 199, 17, where="WHERE quantity > 1 ")
    yield "again", _ATOMS.format(29, 199, 17, where="")
    for kind, number in (("warm", 7), ("warm", 8), ("share of the total", 9)):
        yield kind, _SHARE.format(50, number)


@contextmanager
def counting(service_engine: sa.Engine) -> Iterator[Counter[str]]:
    """Count what is done inside the block, by its name."""
    counted: Counter[str] = Counter()

    def wrap(
        stack: ExitStack, owner: Any, name: str, what: str, matters: Callable[..., bool] = lambda *_: True
    ) -> None:
        original = getattr(owner, name)

        def call(*given: Any, **named: Any) -> Any:
            counted[what] += matters(*given)
            return original(*given, **named)

        stack.enter_context(patch.object(owner, name, call))

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        counted["ledger statements"] += not statement.startswith("PRAGMA")

    with ExitStack() as stack:
        wrap(stack, Journal, "begin_read", "ledger reads")
        wrap(stack, Journal, "begin_log_read", "ledger reads")
        wrap(stack, Journal, "begin_write", "ledger writes")
        wrap(stack, DuckDBSource, "read_aggregates", "source reads")
        wrap(stack, tree, "_parse_tree", "parses")
        wrap(stack, messages, "bind_question", "bindings")
        wrap(stack, Progressive, "calibrate", "calibrations")
        wrap(stack, ShadowRelay, "settle", "shadow round trips", lambda relay: not relay.answers.is_settled)
        sa.event.listen(service_engine, "before_cursor_execute", note)
        stack.callback(sa.event.remove, service_engine, "before_cursor_execute", note)
        yield counted


@contextmanager
def counting_calls(counted: Counter[str]) -> Iterator[None]:
    """Count the calls of the repository's functions in this thread."""

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OWN) and frame.f_code.co_name[0] != "<":
            counted["calls"] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def count_pipeline(policy: Path) -> dict[str, Counts]:
    """What each kind of question makes the pipeline do, between the parts that speak to the client and the shadow.

    Nothing is served beside it, as whatever looks at the ledger meanwhile would be counted.
    """
    with Service.open(policy) as service:
        return _count_pipeline(service)


def _count_pipeline(service: Service) -> dict[str, Counts]:
    answerer = StatementAnswerer(service, None)  # type: ignore[arg-type]

    def ask(sql: str) -> None:
        answerer.read_statements(sql)
        asked = Request(statement=sql, settings={"keyhole.reuse": "off"}, parameters={}, analyst=ANALYST, is_utc=True)
        answerer.release(answerer.prepare(asked), withdrawn=Event())

    found: dict[str, Counts] = {}
    with patch.object(service, "noise", SeededNoise(1)):
        for kind, sql in list_questions():
            with counting(service.ledger._journal._store._engine) as counted, counting_calls(counted):
                ask(sql)
            found[kind] = dict(sorted(counted.items()))
    del found["warm"]
    return found


def count_session(policy: Path) -> dict[str, Counts]:
    """What each kind of question makes a session do, with other numbers than those that `count_pipeline` asks for."""
    with opened(policy) as house:
        return _count_session(house)


def _count_session(house: House) -> dict[str, Counts]:
    found: dict[str, Counts] = {}
    address = f"host={house.addresses.host} port={house.addresses.port} dbname={house.addresses.database}"
    with psycopg.connect(f"{address} user={ANALYST} password={PASSWORD}", autocommit=True) as connection:
        connection.execute("SET keyhole.reuse = off")
        for kind, sql in list_questions():
            with counting(house.service.ledger._journal._store._engine) as counted:
                connection.execute(sql.replace("+ 9", "+ 12").replace("count(*) > 2", "count(*) > 3").encode())
            found[kind] = {"shadow round trips": counted["shadow round trips"], "source reads": counted["source reads"]}
    del found["warm"]
    return found


def make_policy(directory: Path) -> Path:
    policy, _ = write_duckdb_policy(directory, rows=20_000)
    check(policy, confirm=False)
    return policy


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_policy(tmp_path_factory.mktemp("lines"))


def test_a_question_makes_the_pipeline_do_what_it_is_known_to_do(policy: Path) -> None:
    kept = tomllib.loads(KEPT.read_text(encoding="utf-8"))["pipeline"]
    found = count_pipeline(policy)
    assert found.keys() == kept.keys()
    for kind, counts in found.items():
        calls, known = counts.pop("calls"), kept[kind].pop("calls")
        assert counts == kept[kind], f"{kind}: {KEEP_IF_MEANT}"
        told = f"{kind}: {calls} calls of functions instead of {known}: {KEEP_IF_MEANT}"
        assert abs(calls - known) <= TOLERATED * known, told


def test_a_question_makes_a_session_ask_the_shadow_as_often_as_it_is_known_to_do(policy: Path) -> None:
    assert count_session(policy) == tomllib.loads(KEPT.read_text(encoding="utf-8"))["session"], KEEP_IF_MEANT


def main() -> None:
    """Write the counts of this version."""
    lines = ["# what a question makes Keyhole do; written by test_work_counts.py"]
    with TemporaryDirectory(prefix="keyhole-") as folder:
        policy = make_policy(Path(folder))
        for part, found in (("pipeline", count_pipeline(policy)), ("session", count_session(policy))):
            for kind, counts in found.items():
                lines += ["", f'[{part}."{kind}"]', *(f'"{what}" = {count}' for what, count in counts.items())]
    KEPT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
