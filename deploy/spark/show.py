"""`make demo-spark`: questions over ten million lines in parquet files, on Sail or on a Spark that runs.

Keyhole answers over Spark Connect. Beside each answer stands what DuckDB finds in the same files, exactly and within
the same bounds, which no analyst could see; and whether the engines agree on every integer.
"""

import argparse
import re
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console

from deploy.demo import build
from deploy.spark.lake import write_lake
from deploy.spark.sail_server import run_sail
from mechanisms.formula import Integers, relax_formula
from planner.catalog.key_space import format_value
from planner.functionals.per_key_offsets import subtract_offsets
from planner.question.plan import Plan
from proxy.cli.check import check
from proxy.cli.demo import (
    USER,
    DemoQuestion,
    describe_errors,
    evaluate_exactly,
    make_demo_console,
    read_questions,
    round_up_epsilon,
    time_step,
)
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.report.terminal import write_psql_table

QUESTIONS = Path(__file__).with_name("questions.toml")
ROWS = 10_000_000
_ROWS_SHOWN = 5  # of an answer beside the truth
_TIMEOUT_MS = 600_000  # whatever runs beside the demo
_MOST_EPSILON = 1000.0  # that a policy may give
_BUDGET = re.compile(r"(epsilon_per_(?:predicate|unit|query) = )([0-9.]+)")
_SIZE = re.compile(r"((?:count|sum)\([^)]*\)(?: FILTER \([^)]*\))? >=? )(\d+)")


def scale_questions(copies: int) -> tuple[DemoQuestion, ...]:
    """Return the questions of `questions.toml`, with group sizes multiplied by `copies`."""
    return tuple(
        replace(one, sql=_SIZE.sub(lambda found: f"{found[1]}{int(found[2]) * copies}", one.sql))
        for one in read_questions(QUESTIONS)
    )


def write_policy(path: Path, *, source: str, sales: str, countries: str, budget: int = 1) -> Path:
    """Write, check and pin the demo's policy for the given tables. Its budgets are multiplied by `budget`.

    Return its path.
    """
    text = (build.HERE / "keyhole.toml").read_text(encoding="utf-8")
    limits = f"[limits]\nstatement_timeout_ms = {_TIMEOUT_MS}\n\n"
    for old, new in (
        ('url = "duckdb:///retail.duckdb"', source),
        ("sqlite:///keyhole.db", f"sqlite:///{path.stem}.db"),
        ("[tables.sales]\n", f'{limits}[tables.sales]\nrelation = "{sales}"\n'),
        ("[tables.countries]\n", f'[tables.countries]\nrelation = "{countries}"\n'),
    ):
        assert old in text
        text = text.replace(old, new)
    text = _BUDGET.sub(lambda found: f"{found[1]}{min(_MOST_EPSILON, float(found[2]) * budget)}", text)
    path.write_text(text, encoding="utf-8")
    check(path, confirm=False)
    return path


def ask_all_questions(*, rows: int, url: str | None, engine: str) -> bool:
    """Ask all questions and print the answers. Return True if the engines agreed on every integer."""
    console = make_demo_console()
    console.print("[bold]Keyhole over Spark Connect[/]: questions over generated sale lines.")
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="keyhole-spark-")))
        with time_step(console, f"{rows:,} lines written to parquet files"):
            copies = write_lake(folder, rows=rows)
        if url is None:
            with time_step(console, "Sail started"):
                url, engine = running.enter_context(run_sail()), "sail"
        lines = f'url = "{url}"\nengine = "{engine}"' + ("\nskip_blocks = true" if engine == "sail" else "")
        with time_step(console, f"policies checked on {engine} and on DuckDB"):
            asked = write_policy(
                folder / "spark.toml",
                source=lines,
                sales=f"parquet.`{folder}/sales`",
                countries=f"{folder}/countries.parquet",
            )
            exact = write_policy(
                folder / "duckdb.toml",
                source='url = "duckdb://"',
                sales="sales/*.parquet",
                countries="countries.parquet",
            )
            on_spark = running.enter_context(Service.open(asked))
            on_duckdb = running.enter_context(Service.open(exact))
        agreed = [_ask_question(console, one, on_spark, on_duckdb) for one in scale_questions(copies)]
    return all(agreed)


def _ask_question(console: Console, question: DemoQuestion, on_spark: Service, on_duckdb: Service) -> bool:
    console.print()
    for line in question.sql.splitlines():
        console.print(f"   {line}", style="dim", markup=False, soft_wrap=True)
    asked = make_analyst_question(question, on_spark)
    plan = pipeline.plan_asked_question(on_spark, asked)
    started = time.perf_counter()
    answer = pipeline.answer(on_spark, plan, asked)
    taken = time.perf_counter() - started
    truth, taken_there = _read_exact_aggregates(
        on_duckdb, pipeline.plan_asked_question(on_duckdb, make_analyst_question(question, on_duckdb))
    )
    same = np.array_equal(_read_exact_aggregates(on_spark, plan)[0], truth)
    returned, names = set(answer.keys.keys), [column.name for column in plan.question.keys.columns]
    keys = [tuple(map(format_value, plan.question.keys.get_key(index))) for index in range(plan.question.keys.size)]
    shown = np.fromiter((key in returned for key in keys), np.bool_, len(keys))
    truly = evaluate_exactly(plan.minimised.formula, truth)
    engine = on_spark.source.dialect.name
    table = [
        (*key, "passes" if here else "", "passes" if there else "")
        for key, here, there in zip(keys, shown, truly, strict=True)
        if here or there
    ]
    for line in write_psql_table([*names, f"Keyhole on {engine}", "exactly, on DuckDB"], table[:_ROWS_SHOWN]):
        console.print(f"   {line}", markup=False, soft_wrap=True)
    console.print(
        f"   ({len(table):,} groups pass here or there, of {len(keys):,}; Keyhole on {engine} "
        f"{taken:.1f} s, DuckDB with the same bounding {taken_there:.1f} s)"
    )
    console.print(
        describe_errors(truly, evaluate_exactly(relax_formula(plan.minimised.formula), truth), shown, what="")
    )
    verdict = "[green]the same on both engines[/]" if same else "[red]NOT the same on both engines[/]"
    console.print(
        f"{truth.size:,} integers, {verdict}. At most {round_up_epsilon(plan.worst_case_epsilon)} epsilon a group."
    )
    return same


def make_analyst_question(question: DemoQuestion, service: Service) -> Asked:
    """Return the question as the demo's analyst asks it."""
    return Asked(
        question=read_bare_question(question.sql, service.catalog),
        settings={f"keyhole.{name}": value for name, value in question.settings.items()},
        parameters={},
        analyst=service.find_analyst(USER),
        today=datetime.now(UTC).date(),
        is_utc=True,
    )


def _read_exact_aggregates(service: Service, plan: Plan) -> tuple[Integers, float]:
    """Return the exact aggregates, which the demo may look at, and the seconds that reading them took."""
    started = time.perf_counter()
    with service.source.take_turn(analyst=USER, timeout_ms=_TIMEOUT_MS):
        found = service.source.read_aggregates(
            plan.rewritten,
            plan.question.keys,
            functionals=len(plan.question.computed_functionals),
            timeout_ms=_TIMEOUT_MS,
        ).values
    return subtract_offsets(plan.question, found), time.perf_counter() - started


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=ROWS)
    arguments.add_argument("--url", help="of a Spark Connect server that runs and can read this machine's files")
    arguments.add_argument("--engine", choices=("spark", "sail"), default="spark")
    given = arguments.parse_args()
    raise SystemExit(0 if ask_all_questions(rows=given.rows, url=given.url, engine=given.engine) else 1)
