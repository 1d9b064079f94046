"""Keyhole's own share of a question over Spark Connect: what passes beside the engine's work on the statement.

    python -m benchmarks.lake.own_share [--rows N] [--url sc://host:port --engine spark]

The demo's questions over generated lines in parquet files, on a Sail of its own or on a server that runs. A question's
time is that of the whole way, from its text to its answer: a session opened, set up and tried, types compared twice,
ledger, noise. The engine's is the time from sending the statement to having its rows; the share is the rest.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from deploy.spark.lake import write_lake
from deploy.spark.sail_server import run_sail
from deploy.spark.show import make_analyst_question, scale_questions, write_policy
from proxy.cli.demo import DemoQuestion
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.sources.spark.connection import SparkSession

REPEATS = 5
_ROWS = 3_000_000


@dataclass
class Stopwatch:
    """How long the engine worked on statements of questions, in seconds."""

    seconds: float = 0.0
    read: Callable[..., Any] = field(default=SparkSession.read)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Within it reads are timed, from outside: the product has no timing code."""
        watch = self

        def timed(session: SparkSession, sql: str, **given: Any) -> Any:
            parts = watch.read(session, sql, **given)
            while True:
                started = time.perf_counter()
                part = next(parts, None)
                if sql.startswith("WITH"):  # a question; what is asked about relations and settings is Keyhole's own
                    watch.seconds += time.perf_counter() - started
                if part is None:
                    return
                yield part

        with patch.object(SparkSession, "read", timed):
            yield


def measure(service: Service, asked: Sequence[DemoQuestion]) -> tuple[float, float]:
    """Seconds of a question and of the engine within it, each the median over questions of one form."""
    whole, engine = [], []
    for question in asked:
        watch = Stopwatch()
        wanted = make_analyst_question(replace(question, settings={**question.settings, "reuse": "off"}), service)
        with watch.run():
            started = time.perf_counter()
            pipeline.answer(service, pipeline.plan_asked_question(service, wanted), wanted)
            whole.append(time.perf_counter() - started)
        assert watch.seconds
        engine.append(watch.seconds)
    return statistics.median(whole), statistics.median(engine)


def main(*, rows: int, url: str | None, engine: str, repeats: int = REPEATS) -> list[float]:
    """Print a line for each question; the shares."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="keyhole-lake-")))
        copies = write_lake(folder, rows=rows)
        if url is None:
            url, engine = running.enter_context(run_sail()), "sail"
        policy = write_policy(
            folder / "keyhole.toml",
            source=f'url = "{url}"\nengine = "{engine}"\nskip_blocks = {str(engine == "sail").lower()}',
            sales=f"parquet.`{folder}/sales`",
            countries=f"{folder}/countries.parquet",
            budget=250,
        )
        service = running.enter_context(Service.open(policy))
        shares = []
        print(f"{rows:,} rows on {engine}, {repeats} times each")
        # thresholds of their own, so that no answer is one that was given
        for asked in zip(*(scale_questions(copies + one) for one in range(repeats)), strict=True):
            whole, there = measure(service, asked)
            shares.append(1 - there / whole)
            print(
                f"{1000 * whole:7.0f} ms, engine {1000 * there:7.0f} ms, own {1000 * (whole - there):5.0f} ms "
                f"{100 * shares[-1]:5.1f} %   {' '.join(asked[0].sql.split())[:60]}"
            )
        return shares


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=_ROWS)
    arguments.add_argument("--url")
    arguments.add_argument("--engine", choices=("spark", "sail"), default="spark")
    given = arguments.parse_args()
    main(rows=given.rows, url=given.url, engine=given.engine)
