"""What a key column of very many values costs: `python -m benchmarks.many_keys`.

One table in DuckDB with three rows for each value, a key of integers, rows as privacy units. Each question has
thresholds of its own; the first one, for which the texts and places of the values are computed, is not counted. Beside
it the same text, sent to the engine. Planning and everything else, on the clock and of the processor.
"""

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import TypeVar

import duckdb

from proxy.cli.check import check
from proxy.pipeline import stages
from proxy.pipeline.messages import Asked, bare_question
from proxy.service.service import Service

POLICY = """\
[source]
url = "duckdb:///keys.duckdb"
[ledger]
url = "sqlite:///keyhole.db"
[limits]
max_keys = {keys}
[budget]
epsilon_per_predicate = 400
epsilon_per_query = 100
[tables.lines]
privacy_unit = "row"
refresh = "static"
[tables.lines.columns.place]
key = {{ range = [1, {keys}] }}
[tables.lines.columns.amount]
bounds = [0, 10]
"""
QUESTION = "SELECT place FROM lines GROUP BY place HAVING count(*) > {0} AND sum(amount) > {0}"
_Result = TypeVar("_Result")


def measure(directory: Path, *, keys: int, repeats: int) -> dict[str, tuple[float, float]]:
    """Median seconds by stage, on the clock and of the processor: plain, planned, answered, and answered from store."""
    with duckdb.connect(str(directory / "keys.duckdb")) as owner:
        rows = f"SELECT 1 + i % {keys} AS place, (i % 7)::integer AS amount FROM range({3 * keys}) AS t(i)"
        owner.execute(f"CREATE TABLE lines AS {rows}")
        plain = [_time(partial(_fetch, owner, QUESTION.format(number)))[1] for number in range(repeats)]
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(keys=keys), encoding="utf-8")
    check(path, confirm=False)
    taken: dict[str, list[tuple[float, float]]] = {"plain": plain, "planned": [], "answered": [], "from store": []}
    with Service.open(path) as service:
        for threshold in range(100, 101 + repeats):
            asked = _ask(service, QUESTION.format(threshold))
            plan, planned = _time(partial(stages.prepare, service, asked))
            _, answered = _time(partial(stages.answer, service, plan, asked))
            _, stored = _time(partial(stages.answer, service, plan, asked))
            if threshold > 100:
                for name, one in (("planned", planned), ("answered", answered), ("from store", stored)):
                    taken[name].append(one)
    return {name: (median(clock for clock, _ in all_), median(cpu for _, cpu in all_)) for name, all_ in taken.items()}


def _fetch(owner: duckdb.DuckDBPyConnection, sql: str) -> None:
    owner.execute(sql).fetchnumpy()


def _ask(service: Service, sql: str) -> Asked:
    return Asked(
        question=bare_question(sql, service.catalog),
        settings={"keyhole.tolerance": "50%", "keyhole.reuse": "off"},
        parameters={},
        analyst=service.analyst(None),
        today=datetime.now(UTC).date(),
    )


def _time(work: Callable[[], _Result]) -> tuple[_Result, tuple[float, float]]:
    started, used = perf_counter(), process_time()
    result = work()
    return result, (perf_counter() - started, process_time() - used)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    with TemporaryDirectory() as directory:
        found = measure(Path(directory), keys=given.keys, repeats=given.repeats)
    base = found["plain"][1]
    for name, (clock, used) in found.items():
        print(f"{name:10}  {clock:6.2f} s  processor {used:6.2f} s  {used / base:5.1f} x the plain query")


if __name__ == "__main__":
    main()
