"""What very many keys cost: `python -m benchmarks.many_keys`.

One table in DuckDB with so many rows for each key, a key of integers or two, rows as privacy units. Each question has
thresholds of its own; the first one, for which the texts and places of the values are computed, is not counted. Beside
it the same text, sent to the engine. Planning and everything else, on the clock and of the processor; and the most
memory that the process of either has held.
"""

import argparse
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TypeVar

import duckdb

from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from proxy.pipeline.messages import Asked, read_bare_question

POLICY = """\
[source]
url = "duckdb:///keys.duckdb"
[ledger]
url = "sqlite:///keyhole.db"
[limits]
max_keys = {keys}
statement_timeout_ms = 600_000
[budget]
epsilon_per_predicate = 400
epsilon_per_query = 100
[tables.lines]
privacy_unit = "row"
refresh = "static"
[tables.lines.columns.place]
key = {{ range = [1, {places}] }}
[tables.lines.columns.product]
key = {{ range = [1, {products}] }}
[tables.lines.columns.amount]
bounds = [0, 10]
"""
QUESTION = "SELECT {keys} FROM lines GROUP BY {keys} HAVING count(*) > {more} AND sum(amount) > {more}"
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Measured:
    """Median seconds by stage, on the clock and of the processor: plain, planned, answered, and answered from store;
    how many keys the last answer has; and the most bytes that either process held."""

    seconds: dict[str, tuple[float, float]]
    returned: int
    plain_bytes: int
    own_bytes: int


def measure(directory: Path, *, places: int, products: int, rows: int, repeats: int, more: int) -> Measured:
    """Ask the engine, and then Keyhole, each in a process of its own: for groups with more than `more` rows at first,
    and a row more each time."""
    keys = "place, product" if products > 1 else "place"
    texts = [QUESTION.format(keys=keys, more=more + number) for number in range(repeats + 1)]
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(keys=places * products, places=places, products=products), encoding="utf-8")
    run_in_process(lay_out, directory, places, products, rows)
    plain, plain_bytes = run_in_process(_ask_engine, directory, texts)
    taken, returned, own_bytes = run_in_process(_ask_keyhole, path, texts)
    found = {"plain": plain, **taken}
    medians = {
        name: (median(clock for clock, _ in all_), median(cpu for _, cpu in all_)) for name, all_ in found.items()
    }
    return Measured(medians, returned, plain_bytes, own_bytes)


def run_in_process(work: Callable[..., _Result], *given: object) -> _Result:
    """What `work` returns, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(work, *given).result()


def lay_out(directory: Path, places: int, products: int, rows: int) -> None:
    """Make the table, and check the policy beside it."""
    with duckdb.connect(str(directory / "keys.duckdb")) as owner:
        owner.execute("SET enable_progress_bar = false")
        owner.execute(
            f"CREATE TABLE lines AS SELECT CAST(1 + hash(i) % {places} AS integer) AS place, "
            f"CAST(1 + hash(i + 1) % {products} AS integer) AS product, (i % 7)::integer AS amount "
            f"FROM range({rows}) AS t(i)"
        )
    check(directory / "keyhole.toml", confirm=False)


def _ask_engine(directory: Path, texts: list[str]) -> tuple[list[tuple[float, float]], int]:
    with duckdb.connect(str(directory / "keys.duckdb"), read_only=True) as owner:
        owner.execute("SET enable_progress_bar = false")
        taken = [_time(partial(_fetch, owner, sql))[1] for sql in texts]
    return taken[1:], _read_most_bytes()


def _ask_keyhole(path: Path, texts: list[str]) -> tuple[dict[str, list[tuple[float, float]]], int, int]:
    taken: dict[str, list[tuple[float, float]]] = {"planned": [], "answered": [], "from store": []}
    returned = 0
    with Service.open(path) as service:
        for number, sql in enumerate(texts):
            asked = _ask(service, sql)
            plan, planned = _time(partial(stages.plan_asked_question, service, asked))
            answer, answered = _time(partial(stages.answer, service, plan, asked))
            returned = len(answer.keys.keys)
            del answer
            _, stored = _time(partial(stages.answer, service, plan, asked))
            if number > 0:
                for name, one in (("planned", planned), ("answered", answered), ("from store", stored)):
                    taken[name].append(one)
    return taken, returned, _read_most_bytes()


def _read_most_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _fetch(owner: duckdb.DuckDBPyConnection, sql: str) -> None:
    owner.execute(sql).fetchnumpy()


def _ask(service: Service, sql: str) -> Asked:
    return Asked(
        question=read_bare_question(sql, service.catalog),
        settings={"keyhole.tolerance": "50%", "keyhole.reuse": "off"},
        parameters={},
        analyst=service.find_analyst(None),
        today=datetime.now(UTC).date(),
    )


def _time(work: Callable[[], _Result]) -> tuple[_Result, tuple[float, float]]:
    started, used = perf_counter(), process_time()
    result = work()
    return result, (perf_counter() - started, process_time() - used)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=1_000_000, help="values of the first key")
    parser.add_argument("--products", type=int, default=1, help="values of the second key; 1 asks by the first alone")
    parser.add_argument("--rows", type=int, default=3, help="rows a key")
    parser.add_argument("--more", type=int, default=100, help="of how many rows groups are wanted")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    keys = given.places * given.products
    with TemporaryDirectory() as directory:
        found = measure(
            Path(directory),
            places=given.places,
            products=given.products,
            rows=given.rows * keys,
            repeats=given.repeats,
            more=given.more,
        )
    base = found.seconds["plain"]
    for name, (clock, used) in found.seconds.items():
        beside = f"{clock / base[0]:5.1f} x on the clock, {used / base[1]:5.1f} x of the processor"
        print(f"{name:10}  {clock:6.2f} s  processor {used:6.2f} s  {beside}")
    print(f"{keys:,} keys, {found.returned:,} in the last answer")
    print(f"the most memory: {found.own_bytes / 1e9:.2f} GB, of the plain query {found.plain_bytes / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
