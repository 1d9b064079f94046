"""`make bench-people`: how many of an analyst's 40 questions of a month fit a preset's budget, and how truly.

Every question is asked once over the PostgreSQL endpoint, in the order of its list, at the policy's defaults. One that
is refused for want of budget is asked once more with the settings that its hint proposes. Answers with thresholds in
braces are held against the same SQL on the rows that have a privacy unit, *before* bounding: recall is the share of the
rows that qualify which were returned, precision the share of those returned that qualify with the tolerance as slack.
For comparisons with other groups, which have no number, the slack is the amount in the notice, put where `{-}` stands.
"""

import re
import tempfile
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
from rich.console import Console
from rich.table import Table as Grid

from accountant.charges import NANO
from benchmarks.people.worlds import WORLDS, Wish, World
from proxy.cli.check import check
from proxy.observe.logs import log_to_standard_error
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background

PREDICATES = ("scorecard", "trend")  # forms whose booleans are predicates, and no keys
ANSWERED, RECALL, PRECISION = 32, 0.9, 0.9  # what is wished for: of 40 questions, and of groups
_THRESHOLD = re.compile(r"\{(-?)([0-9.]+)\}")
_MARGIN = re.compile(r"\{([-+])\}")
_AMOUNT = re.compile(r" may err (?:where it is )?within ([0-9.]+)|OVER \([^=]*=([0-9.]+)")
_PROPOSED = re.compile(r"SET keyhole\.(\w+) = '?([^';]*)'?;?")

Row = tuple[Any, ...]
Facts = frozenset[tuple[str, ...]]


@dataclass(slots=True)
class FormScore:
    """The questions of one form: how many were asked and answered, and what they cost."""

    asked: int = 0
    answered: int = 0
    epsilon: float = 0.0


@dataclass(slots=True)
class Score:
    """The result of a world's questions, and their cost to one group and one unit."""

    answered: int = 0
    after_hint: int = 0
    qualify: int = 0
    found: int = 0
    returned: int = 0
    right: int = 0
    group_epsilon: float = 0.0
    unit_epsilon: float = 0.0
    forms: defaultdict[str, FormScore] = field(default_factory=lambda: defaultdict(FormScore))
    refusals: Counter[str] = field(default_factory=Counter)
    poor: list[str] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """The number of questions."""
        return sum(form.asked for form in self.forms.values())

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
        """Return True if all is as wished for."""
        return self.answered >= ANSWERED and self.recall >= RECALL and self.precision >= PRECISION


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: the question, its rows, and the tolerance that it had, as a part of thresholds and as an amount."""

    wish: Wish
    rows: list[Row]
    slack: float
    amount: float

    @property
    def has_truth(self) -> bool:
        """Return True if the question marks what its tolerance moves."""
        return bool(_THRESHOLD.search(self.wish.sql) or _MARGIN.search(self.wish.sql))


def relax(question: str, slack: float, amount: float = 0.0) -> str:
    """Move the question's thresholds outward by a part of each, and comparisons without one by an amount."""

    def move(match: re.Match[str]) -> str:
        return f"{float(match[2]) * (1 + slack if match[1] else 1 - slack):.10g}" if slack else match[2]

    margin = f" \\1 {amount:.10g}" if amount else ""
    return _MARGIN.sub(margin, _THRESHOLD.sub(move, question))


def score_world(world: World, directory: Path) -> Score:
    """Ask every question of a world, of a new ledger."""
    world.fill(directory)
    path = directory / "keyhole.toml"
    path.write_text(world.text, encoding="utf-8")
    check(path, confirm=False)
    score, answers = Score(), []
    with (
        Service.open(path) as service,
        serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
        psycopg.connect(
            f"host={addresses.host} port={addresses.port} dbname={addresses.database} user=demo password=demo",
            autocommit=True,
        ) as connection,
    ):
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        for wish in world.questions:
            before = _find_largest_losses(service)
            told = _ask_twice(connection, notices, wish, score)
            score.group_epsilon, score.unit_epsilon = _find_largest_losses(service)
            form = score.forms[wish.form]
            form.asked += 1
            form.answered += told is not None
            form.epsilon += max(score.group_epsilon - before[0], score.unit_epsilon - before[1])
            answers += [] if told is None else [told]
    with duckdb.connect() as plain:
        plain.execute(f"ATTACH '{directory / world.database}' AS data (READ_ONLY); SET integer_division = true")
        for view in _write_views(world):
            plain.execute(view)
        for told in answers:
            if told.has_truth:
                _compare(plain, told, score)
    return score


def _find_largest_losses(service: Service) -> tuple[float, float]:
    """Return what the most charged group and a unit have lost, in epsilon."""
    report = service.report_balances(None)
    group = max((max(one.lost_nano, default=0) for one in report.families), default=0)
    return group / NANO, (report.unit_spent_nano or 0) / NANO


def _ask_twice(connection: "psycopg.Connection[Row]", notices: list[str], wish: Wish, score: Score) -> Told | None:
    """Ask, and if the refusal proposes settings ask once more with them."""
    connection.execute("RESET ALL")
    for attempt in range(2):
        notices.clear()
        try:
            rows = connection.execute(relax(wish.sql, 0.0).encode()).fetchall()
        except psycopg.Error as refusal:
            proposed = _PROPOSED.search(refusal.diag.message_hint or "")
            if attempt or proposed is None:
                score.refusals[f"{wish.form}: {refusal.diag.message_primary}"] += 1
                return None
            connection.execute(f"SET keyhole.{proposed[1]} = '{proposed[2]}'".encode())
        else:
            score.answered += 1
            score.after_hint += attempt
            said = " ".join(notices)
            (tolerance,) = connection.execute("SHOW keyhole.tolerance").fetchone() or ("",)
            slack = max(map(float, re.findall(r"([\d.]+)%", tolerance)), default=0.0) / 100
            amount = _find_amount(said) or _find_amount(tolerance)
            assert amount or not _MARGIN.search(wish.sql), f"nothing says by how much it may err: {wish.sql}"
            return Told(wish, rows, slack, amount)
    raise AssertionError("the second refusal returns")


def _find_amount(text: str) -> float:
    """Return the largest amount by which a comparison with other groups may err, as a notice or the setting says it."""
    found = (float(noticed or put) for noticed, put in _AMOUNT.findall(text))
    return max(found, default=0.0)


def _write_views(world: World) -> list[str]:
    """Write a view of each table, with the columns that the policy derives; without rows that have no privacy unit."""
    views = []
    for name, table in tomllib.loads(world.text)["tables"].items():
        derived = [
            f", CAST({column['expression']} AS {'bigint' if 'extract' in column['expression'] else 'date'}) AS {called}"
            for called, column in table.get("columns", {}).items()
            if "expression" in column
        ]
        unit = table.get("privacy_unit", "row")
        present = "" if unit == "row" else f" WHERE {unit} IS NOT NULL"
        views.append(f"CREATE VIEW {name} AS SELECT *{''.join(derived)} FROM data.main.{name}{present}")
    return views


def _compare(plain: duckdb.DuckDBPyConnection, told: Told, score: Score) -> None:
    shown = [place for place, column in enumerate(zip(*told.rows, strict=True)) if set(column) != {None}]
    predicates = any(isinstance(value, bool) for row in told.rows for value in row) and told.wish.form in PREDICATES
    true, tolerated = (
        _list_facts(plain.execute(relax(told.wish.sql, part, amount)).fetchall(), shown, predicates=predicates)
        for part, amount in ((0.0, 0.0), (told.slack, told.amount))
    )
    returned = _list_facts(told.rows, shown, predicates=predicates)
    score.qualify += len(true)
    score.found += len(true & returned)
    score.returned += len(returned)
    score.right += len(returned & tolerated)
    missed, wrong = len(true - returned), len(returned - tolerated)
    if missed > 0.2 * len(true) or wrong > 0.2 * len(returned):
        question = relax(" ".join(told.wish.sql.split()), 0.0)
        score.poor.append(f"{question}: {missed} of {len(true)} missed, {wrong} of {len(returned)} wrong")


def _list_facts(rows: list[Row], shown: list[int], *, predicates: bool) -> Facts:
    """Return what rows say: each row itself, without the numbers that are not told; with predicates each truth."""
    facts = set()
    for row in rows:
        kept = [(place, row[place]) for place in shown] or list(enumerate(row))
        if predicates:
            keys = tuple(_write_key(value) for _, value in kept if not isinstance(value, bool))
            facts |= {(*keys, str(place)) for place, value in kept if value is True}
        else:
            facts.add(tuple(_write_key(value) for _, value in kept))
    return frozenset(facts)


def _write_key(value: object) -> str:
    """Write a key alike, whichever engine it comes from."""
    if isinstance(value, datetime):
        return str(value.date())
    return f"{value:.10g}" if isinstance(value, int | float | Decimal) else str(value)


def _print_forms(console: Console, scores: dict[str, Score]) -> None:
    """Print a table of forms: how many of each were answered, and its part of the epsilon that was spent."""
    grid = Grid("form", *(f"{name}: answered, epsilon" for name in scores))
    for form in sorted({form for score in scores.values() for form in score.forms}):
        parts = [score.forms[form] for score in scores.values()]
        grid.add_row(form, *(f"{part.answered} of {part.asked}, {part.epsilon:.2f}" for part in parts))
    console.print(grid)


def main() -> None:
    """Print the report."""
    log_to_standard_error("warning")
    console = Console(width=120)
    grid = Grid(
        "data", "unit", "answered", "after a hint", "recall", "precision", "epsilon of a group", "of a unit", ""
    )
    scores = {}
    for world in WORLDS:
        with tempfile.TemporaryDirectory() as directory:
            scores[world.name] = score = score_world(world, Path(directory))
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
    console.print(grid)
    _print_forms(console, scores)
    for name, score in scores.items():
        for line in [*score.poor, *(f"refused: {said}" for said in score.refusals)]:
            print(f"{name}: {line}")


if __name__ == "__main__":
    main()
