"""HAVING against PostgreSQL, on random tables: `python -m benchmarks.oracle --statements 40000 --seed 1`.

Each statement is planned without tolerance, its integer formula is evaluated without noise on each source's own
aggregates, and PostgreSQL says what HAVING means over the key domain and the bounded rows. The first disagreement is
printed as a test, on as few rows as show it. PostgreSQL is the one that KEYHOLE_PG_DSN names, or an embedded one.
"""

import argparse
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pprint import pformat

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    track,
)

from benchmarks.oracle.judging import Disagreement, Tally, judge
from benchmarks.oracle.scorecards import draw_scorecard, judge_scorecard
from benchmarks.oracle.statements import draw_statement
from benchmarks.oracle.worlds import TABLES, Engines, Row, draw_rows, open_engines
from proxy.shadow.wheel import make_postgres_server

STATEMENTS_A_TABLE = 200


@contextmanager
def _start_postgres() -> Iterator[str]:
    given = os.environ.get("KEYHOLE_PG_DSN")
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        Path(folder).chmod(0o755)
        server = make_postgres_server(Path(folder) / "data", cleanup_mode="stop")
        server.start()
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def find_smallest(disagreement: Disagreement, found: Sequence[Row], judges: Engines) -> list[Row]:
    """Rows of which none can be left out without the disagreement going away."""
    kept = list(found)
    for row in found:
        fewer = [other for other in kept if other is not row]
        judges.load(fewer)
        if judge(disagreement.statement, judges, Tally()) is not None:
            kept = fewer
    return kept


def write_test(disagreement: Disagreement, found: Sequence[Row]) -> str:
    """The disagreement as a test for tests/end_to_end/answers/test_oracle.py."""
    asked = disagreement.statement
    body = [
        f"# {disagreement.source}: missing {sorted(map(str, disagreement.missing))}, "
        f"too many {sorted(map(str, disagreement.surplus))}",
        f"# {asked.sql}",
        "def test_disagreement(judges: Engines) -> None:",
        f"    judges.load({pformat(list(found), width=110, compact=True)})",
        f"    asked = Statement(TABLES[{TABLES.index(asked.table)}], {asked.keys!r}, {asked.branches!r},",
        f"                      {asked.operations!r})",
        "    assert judge(asked, judges, Tally()) is None",
    ]
    return "\n".join(body)


def _judge_scorecards(number: int, seed: int, console: Console, tally: Tally) -> int:
    """Judge random scorecards; 1 if there was a disagreement."""
    with (
        _start_postgres() as url,
        tempfile.TemporaryDirectory(prefix="keyhole-oracle-") as folder,
        open_engines(url, Path(folder)) as judges,
    ):
        drawn = random.Random(seed)
        for done in track(range(number), "scorecards", console=console):
            if done % STATEMENTS_A_TABLE == 0:
                judges.load(draw_rows(drawn))
            card = draw_scorecard(drawn)
            disagreement = judge_scorecard(card, judges, tally)
            if disagreement is not None:
                console.print(card.sql, disagreement, sep="\n", highlight=False, markup=False, soft_wrap=True)
                return 1
    refused = ", ".join(f"{code} {count:,}" for code, count in tally.refused.most_common())
    console.print(f"{tally.judged:,} scorecards judged on both sources; refused: {refused}; no disagreement")
    return 0


def main() -> int:
    """Judge the statements; 1 if there was a disagreement."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.oracle", description=__doc__)
    parser.add_argument("--statements", type=int, default=40_000)
    parser.add_argument("--scorecards", type=int, default=0, help="so many scorecards instead")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    console, tally = Console(), Tally()
    if given.scorecards:
        return _judge_scorecards(given.scorecards, given.seed, console, tally)
    columns = (TextColumn("statements"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    disagreement: Disagreement | None = None
    with (
        _start_postgres() as url,
        tempfile.TemporaryDirectory(prefix="keyhole-oracle-") as folder,
        open_engines(url, Path(folder)) as judges,
        Progress(*columns, console=console) as progress,
    ):
        task = progress.add_task("statements", total=given.statements)
        drawn, found = random.Random(given.seed), list[Row]()
        for number in range(given.statements):
            if number % STATEMENTS_A_TABLE == 0:
                found = draw_rows(drawn)
                judges.load(found)
            disagreement = judge(draw_statement(drawn), judges, tally)
            progress.advance(task)
            if disagreement is not None:
                found = find_smallest(disagreement, found, judges)
                break
    refused = ", ".join(f"{code} {count:,}" for code, count in tally.refused.most_common())
    console.print(
        f"{tally.judged:,} statements judged on both sources, {tally.joined:,} of them set operations; "
        f"refused: {refused}; without meaning to PostgreSQL: {tally.meaningless:,}",
        highlight=False,
    )
    if disagreement is not None:
        console.print(write_test(disagreement, found), highlight=False, markup=False, soft_wrap=True)
        return 1
    console.print("no disagreement", highlight=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
