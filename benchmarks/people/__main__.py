"""`make bench-people`: how many of 25 ordinary questions are answered within a preset's budget, and how truly.

Every question is asked once, in the order of its list, at the policy's defaults; one that is refused for want of budget
is asked once more with the settings that its hint proposes. Answers are held against the same SQL on the rows that have
a privacy unit, *before* bounding: recall is the share of the groups that qualify which were returned, precision the
share of those returned that qualify with the tolerance as slack.
"""

import re
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table as Grid

from accountant.model import NANO
from benchmarks.people.worlds import WORLDS, World
from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.pipeline import stages as pipeline
from proxy.pipeline.messages import Answer, Asked, bare_question
from proxy.service.service import OWNER, Service

ANSWERED, RECALL, PRECISION = 20, 0.9, 0.9  # what is wished for: of 25 questions, and of groups
_TODAY = date(2025, 6, 1)
_THRESHOLD = re.compile(r"\{(-?)([0-9.]+)\}")
_PROPOSED = re.compile(r"SET keyhole\.(\w+) = '?([^';]*)'?;?")

Keys = frozenset[tuple[str, ...]]


@dataclass(slots=True)
class Score:
    """What a world's questions came to, and what they cost one unit."""

    asked: int = 0
    answered: int = 0
    after_hint: int = 0
    qualify: int = 0
    found: int = 0
    returned: int = 0
    right: int = 0
    group_epsilon: float = 0.0
    unit_epsilon: float = 0.0
    refusals: Counter[str] = field(default_factory=Counter)
    poor: list[str] = field(default_factory=list)

    @property
    def recall(self) -> float:
        """Of the groups that qualify, the share that was returned."""
        return self.found / self.qualify if self.qualify else 1.0

    @property
    def precision(self) -> float:
        """Of the groups returned, the share that qualifies with the slack."""
        return self.right / self.returned if self.returned else 1.0

    @property
    def good(self) -> bool:
        """Whether it is as was wished for."""
        return self.answered >= ANSWERED and self.recall >= RECALL and self.precision >= PRECISION


def relax(question: str, slack: float) -> str:
    """The question with its thresholds moved outward by a part of each; as it is read where that is none."""

    def move(match: re.Match[str]) -> str:
        return f"{float(match[2]) * (1 + slack if match[1] else 1 - slack):.10g}" if slack else match[2]

    return _THRESHOLD.sub(move, question)


def score_world(world: World, directory: Path) -> Score:
    """Every question of a world, asked of a new ledger."""
    world.fill(directory)
    path = directory / "keyhole.toml"
    path.write_text(world.text, encoding="utf-8")
    check(path, confirm=False)
    answers: list[tuple[str, Answer, float]] = []
    score = Score(asked=len(world.questions))
    with Service.open(path) as service:
        for question in world.questions:
            found = _ask_twice(service, question, score)
            if found is not None:
                answers.append((question, *found))
        report = service.balances(None)
        score.unit_epsilon = (report.unit_spent_nano or 0) / NANO
        score.group_epsilon = max((max(one.lost_nano, default=0) for one in report.families), default=0) / NANO
    with duckdb.connect() as plain:
        plain.execute(f"ATTACH '{directory / world.database}' AS data (READ_ONLY)")
        plain.execute(_view(world))
        for question, answer, slack in answers:
            _compare(plain, question, answer, slack, score)
    return score


def _ask_twice(service: Service, question: str, score: Score) -> tuple[Answer, float] | None:
    """The answer, if need be with the settings that a refusal proposes, and the tolerance it had."""
    settings: dict[str, str | None] = {}
    for attempt in range(2):
        try:
            answer = _ask(service, relax(question, 0.0), settings)
        except KeyholeError as refusal:
            proposed = _PROPOSED.search(refusal.hint or "")
            if attempt or proposed is None:
                score.refusals[refusal.code] += 1
                return None
            settings[f"keyhole.{proposed[1]}"] = proposed[2]
        else:
            score.answered += 1
            score.after_hint += attempt
            tolerance = answer.plan.question.accuracy.tolerance
            return answer, float(tolerance.rstrip("%")) / 100
    raise AssertionError("the second refusal returns")


def _ask(service: Service, sql: str, settings: dict[str, str | None]) -> Answer:
    question = bare_question(sql, service.catalog)
    asked = Asked(question=question, settings=settings, parameters={}, analyst=OWNER, today=_TODAY, utc=True)
    return pipeline.answer(service, pipeline.prepare(service, asked), asked)


def _view(world: World) -> str:
    """The rows that have a privacy unit, with the columns that the policy derives, in the place of the table itself."""
    ((name, table),) = [one for one in tomllib.loads(world.text)["tables"].items() if "privacy_unit" in one[1]]
    derived = [
        f"CAST({column['expression']} AS {'bigint' if 'extract' in column['expression'] else 'date'}) AS {called}"
        for called, column in table["columns"].items()
        if "expression" in column
    ]
    unit = table["privacy_unit"]
    present = "" if unit == "row" else f" WHERE {unit} IS NOT NULL"
    return f"CREATE VIEW {name} AS SELECT *, {', '.join(derived)} FROM data.main.{name}{present}"


def _compare(plain: duckdb.DuckDBPyConnection, question: str, answer: Answer, slack: float, score: Score) -> None:
    true, tolerated = (_keys(plain, relax(question, part)) for part in (0.0, slack))
    returned = frozenset(answer.keys.keys)
    score.qualify += len(true)
    score.found += len(true & returned)
    score.returned += len(returned)
    score.right += len(returned & tolerated)
    missed, wrong = len(true - returned), len(returned - tolerated)
    if missed > 0.2 * len(true) or wrong > 0.2 * len(returned):
        score.poor.append(f"{relax(question, 0.0)}: {missed} of {len(true)} missed, {wrong} of {len(returned)} wrong")


def _keys(plain: duckdb.DuckDBPyConnection, sql: str) -> Keys:
    return frozenset(tuple(map(str, row)) for row in plain.execute(sql).fetchall())


def main() -> None:
    """Print the report."""
    grid = Grid(
        "data", "unit", "answered", "after a hint", "recall", "precision", "epsilon of a group", "of a unit", ""
    )
    poor: list[str] = []
    for world in WORLDS:
        with tempfile.TemporaryDirectory() as directory:
            score = score_world(world, Path(directory))
        grid.add_row(
            world.name,
            world.unit,
            f"{score.answered} of {score.asked}",
            str(score.after_hint),
            f"{score.recall:.2f}",
            f"{score.precision:.2f}",
            f"{score.group_epsilon:.2f}",
            f"{score.unit_epsilon:.2f}",
            "as wished" if score.good else "not as wished",
        )
        poor += [f"{world.name}: {line}" for line in score.poor]
        poor += [f"{world.name}: refused with {code}: {count}" for code, count in sorted(score.refusals.items())]
    Console(width=120).print(grid)
    print("\n".join(poor))


if __name__ == "__main__":
    main()
