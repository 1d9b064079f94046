"""Random set operations of questions of which some compare groups with others: who is in the answer.

Each question is decided without noise on each source's own sums. PostgreSQL then runs the text around the keys, as a
session's shadow does. That is held against the operation over the sizes of every listed group.
"""

import random
from dataclasses import dataclass

from benchmarks.oracle.judging import Tally
from benchmarks.oracle.ranked_comparisons import release_exactly
from benchmarks.oracle.scorecards import read_questions, run_around
from benchmarks.oracle.windows import fetch_keys, list_sizes
from benchmarks.oracle.worlds import TABLES, Engines
from planner.catalog.catalog import Table
from planner.question.question import Question

_KEYS = (("month",), ("level",), ("ward",), ("ward", "level"))
_SIZES = ("count(*)", "sum(age)", "sum(cost)", "count(age)", "sum(fee)", "count(*) FILTER (WHERE insured)")
_WHERE = ("", "", "age > 1", "insured", "month >= '2026-02-01'", "level <> 2", "ward <> 'A' AND insured")
_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT")
_GROUPED = "SELECT {keys}, {own} AS n, {other} AS m FROM {rows} GROUP BY {keys}"


@dataclass(frozen=True, slots=True)
class ComparedBranch:
    """A question over groups with the sizes `n` and `m`: `text` as asked, `meant` with the list {g} of all groups."""

    where: str
    sizes: tuple[str, str]
    text: str
    meant: str


@dataclass(frozen=True, slots=True)
class JoinedComparison:
    """Two questions of one table by the same keys, joined by a set operation."""

    table: Table
    keys: tuple[str, ...]
    branches: tuple[ComparedBranch, ComparedBranch]
    operation: str

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        return f" {self.operation} ".join(f"({self._write(branch)})" for branch in self.branches)

    def _write(self, branch: ComparedBranch) -> str:
        rows = f"{self.table.name} WHERE {branch.where}" if branch.where else self.table.name
        named = {"keys": ", ".join(self.keys), "own": branch.sizes[0], "other": branch.sizes[1], "rows": rows}
        return branch.text.replace("{g}", _GROUPED).format(**named)

    def write_meaning(self, questions: tuple[Question, Question]) -> str:
        """Return the operation over every group that each of its questions lists."""
        sides: list[str] = []
        for branch, question in zip(self.branches, questions, strict=True):
            named = dict(zip("nm", (f"coalesce({size}, 0)" for size in branch.sizes), strict=True))
            sizes = list_sizes(self.table, self.keys, branch.where, named, question)
            sides.append(branch.meant.replace("{keys}", ", ".join(self.keys)).replace("{g}", sizes))
        return f" {self.operation} ".join(f"({side})" for side in sides)


def draw_joined_comparison(drawn: random.Random) -> JoinedComparison:
    """Return a random set operation."""
    keys, where = drawn.choice(_KEYS), drawn.choice(_WHERE)
    other = where if drawn.random() < 0.6 else drawn.choice(_WHERE)
    branches = (_draw_branch(drawn, keys, where), _draw_branch(drawn, keys, other))
    return JoinedComparison(drawn.choice(TABLES), keys, branches, drawn.choice(_OPERATIONS))


def _draw_branch(drawn: random.Random, keys: tuple[str, ...], where: str) -> ComparedBranch:
    compared, number = drawn.choice((">", ">=", "<")), drawn.choice(("0.31", "0.73", "1.13"))
    calendar = next((key for key in keys if key in ("month", "level")), None)
    part = f"PARTITION BY {keys[0]} " if len(keys) > 1 else ""
    having = "SELECT {keys} FROM {rows} GROUP BY {keys} HAVING "
    around = "SELECT {keys} FROM ({g}) s WHERE "
    kind = drawn.choice(("total", "total", "mean", "plain", *(("lag",) if calendar else ())))
    if kind == "plain":
        said = f"{compared} {drawn.randint(0, 6)}"
        text, meant = having + f"{{own}} {said}", around + f"n {said}"
    elif kind == "total":
        text = having + f"{{own}} {compared} {number} * (SELECT {{other}} FROM {{rows}})"
        meant = around + f"n {compared} {number} * (SELECT sum(m) FROM ({{g}}) z)"
    elif kind == "mean":
        said = f"{compared} {number} * (SELECT avg(m) FROM ({{g}}) z)"
        text, meant = having + f"{{own}} {said}", around + f"n {said}"
    else:
        window = f"lag(m) OVER ({part}ORDER BY {calendar})"
        lagged = f"SELECT {{keys}}, n, {window} AS w FROM ({{g}}) s"
        text = meant = f"SELECT {{keys}} FROM ({lagged}) q WHERE n {compared} {number} * w"
    return ComparedBranch(where, (drawn.choice(_SIZES), drawn.choice(_SIZES)), text, meant)


def judge_joined_comparison(statement: JoinedComparison, engines: Engines, tally: Tally) -> str | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    read = read_questions(statement.sql, tally)
    if read is None:
        return None
    asking, questions = read
    if any(not one.keys.size for one in questions):
        tally.refused["no groups"] += 1
        return None
    tally.judged += 1
    tally.joined += len(questions) == 1
    wanted = fetch_keys(statement.write_meaning((questions[0], questions[-1])), engines)
    for source in engines.sources:
        relations = [release_exactly(one, source, engines) for one in questions]
        found = set(run_around(asking, relations, engines)[0])
        if found != wanted:
            return f"{source.dialect.name}: {found - wanted}, not {wanted - found}"
    return None
