"""What ten thousand questions on a live table leave in memory: `python -m benchmarks.live_memory`.

Every question has a threshold of its own, and a data version of its own, as questions on a live table have: nothing is
asked twice. Resident memory of the process, which answers in the pipeline, without endpoint and shadow.
"""

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from proxy.pipeline.messages import Asked, read_bare_question

PLACES = 20
POLICY = """\
[source]
url = "duckdb:///live.duckdb"
[ledger]
url = "sqlite:///keyhole.db"
[budget]
epsilon_per_predicate = 1000
epsilon_per_query = 5
[tables.lines]
privacy_unit = "row"
refresh = "live"
[tables.lines.columns.place]
key = {{ values = [{places}] }}
"""
QUESTION = "SELECT place FROM lines GROUP BY place HAVING count(*) > {}"


def measure(directory: Path, *, questions: int, every: int) -> Iterator[tuple[int, float]]:
    """After how many questions how many megabytes are resident."""
    with duckdb.connect(str(directory / "live.duckdb")) as owner:
        owner.execute(f"CREATE TABLE lines AS SELECT 'p' || i % {PLACES} AS place FROM range(20000) AS t(i)")
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(places=", ".join(f'"p{i}"' for i in range(PLACES))), encoding="utf-8")
    check(path, confirm=False)
    with Service.open(path) as service:
        for number in range(1, questions + 1):
            asked = Asked(
                question=read_bare_question(QUESTION.format(2000 + number), service.catalog),
                settings={"keyhole.tolerance": "90%"},
                parameters={},
                analyst=service.find_analyst(None),
                today=datetime.now(UTC).date(),
            )
            stages.answer(service, stages.plan_asked_question(service, asked), asked)
            if number % every == 0:
                yield number, _read_resident_mb()


def _read_resident_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=10_000)
    given = parser.parse_args()
    with TemporaryDirectory() as directory:
        for number, resident_mb in measure(Path(directory), questions=given.questions, every=1000):
            print(f"{number:6,} questions  {resident_mb:6.1f} MB", flush=True)


if __name__ == "__main__":
    main()
