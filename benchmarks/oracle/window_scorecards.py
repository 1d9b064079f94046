"""Random predicates about other groups, in a select list: NULL where a neighbour is missing, as in PostgreSQL.

Each predicate is decided without noise on each source's own sums of cells. PostgreSQL then runs the text around keys
and truths, as a session's shadow does. That is held against the same statement over the sizes of every listed group.
"""

import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import psycopg

from benchmarks.oracle.judging import Tally
from benchmarks.oracle.scorecards import read_questions, run_around
from benchmarks.oracle.windows import WindowStatement, compute_cell_sums, list_sizes, window_statement
from benchmarks.oracle.worlds import Engines
from mechanisms.formula import Booleans, Cut, evaluate_formula
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.keyhole.taken_cells import find_unknown
from planner.catalog.listed_values import format_values
from planner.functionals.cell_readings import list_cell_sums, reads_cells
from planner.plan.minimise import minimise
from planner.question.question import Question
from proxy.sources.protocol import Source

_ITEMS = (
    "{p}", "NOT ({p})", "coalesce({p}, true)", "coalesce(NOT ({p}), {q})", "({p}) IS NULL", "({p}) IS NOT TRUE",
    "({p})::int", "({p}) AND ({q})", "({p}) OR ({q})", "({p}) = ({q})", "({p}) IS NOT NULL OR {q}",
    "CASE WHEN {p} THEN 1 WHEN NOT ({p}) THEN 2 ELSE 3 END", "CASE {p} WHEN true THEN 1 WHEN false THEN 0 END",
    "NOT ({p} AND {q})", "CASE WHEN NOT ({p}) THEN 'no' ELSE 'yes' END",
)  # fmt: skip
_OTHERS = (
    "n > 2", "n <= 3", "n < w + 1", "w > 1", "w >= n", "w IS NULL", "w IS NOT NULL", "n > NULL",
    "n > 0.73 * avg(n) OVER ()",
)  # fmt: skip
_AROUND = ("{card}", "{card}", "SELECT * FROM ({card}) z WHERE NOT c1", "SELECT * FROM ({card}) z WHERE c1 IS NULL")
_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class WindowScorecard:
    """The columns `items` over the sizes `n` and `w` of a statement's groups, inside the text `around`."""

    statement: WindowStatement
    items: tuple[str, ...]
    around: str

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        asked = self.statement
        keys, where = ", ".join(asked.keys), f" WHERE {asked.where}" if asked.where else ""
        window = asked.window.format(size=asked.size)
        sizes = f"SELECT {keys}, {asked.own} AS n, {window} AS w FROM {asked.table.name}{where} GROUP BY {keys}"
        return self._write(sizes)

    def write_meaning(self, question: Question) -> str:
        """Return the same statement over every group that a question lists, of which those without rows have 0."""
        asked = self.statement
        named = {"n": f"coalesce({asked.own}, 0)", "m": f"coalesce({asked.size}, 0)"}
        sizes = list_sizes(asked.table, asked.keys, asked.where, named, question)
        window = asked.window.format(size="m")
        return self._write(f"SELECT {', '.join(asked.keys)}, n, {window} AS w FROM ({sizes}) s")

    def _write(self, sizes: str) -> str:
        shown = ", ".join(f"{item} AS c{place}" for place, item in enumerate(self.items, start=1))
        return self.around.format(card=f"SELECT {', '.join(self.statement.keys)}, {shown} FROM ({sizes}) q")


def draw_window_scorecard(drawn: random.Random) -> WindowScorecard:
    """Return one or two random columns over a random comparison with other groups, in which no quotient is NULL."""
    while True:
        asked = window_statement(drawn)
        if not asked.mean and "/" not in asked.condition and not asked.kept:
            break
    around = drawn.choice(_AROUND)
    first = drawn.choice(_ITEMS[:3] if "c1" in around else _ITEMS)
    items = tuple(
        one.format(p=asked.condition, q=drawn.choice(_OTHERS))
        for one in (first, *(drawn.choice(_ITEMS) for _ in range(drawn.choice((0, 1)))))
    )
    return WindowScorecard(asked, items, around)


def judge_window_scorecard(card: WindowScorecard, engines: Engines, tally: Tally) -> str | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    read = read_questions(card.sql, tally)
    if read is None:
        return None
    asking, questions = read
    if len(questions) != 1 or not questions[0].keys.size or not reads_cells(questions[0]):
        tally.refused["constant"] += 1
        return None
    if questions[0].ranked is not None:
        tally.refused["ranked"] += 1  # compared with the largest or least group
        return None
    try:
        wanted = _fetch(card.write_meaning(questions[0]), engines)
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    for source in engines.sources:
        for form in ("as typed", "minimised"):
            relation = _release(questions[0], source, engines, form=form)
            found = Counter(run_around(asking, [relation], engines)[0])
            if found != wanted:
                return f"{source.dialect.name}, {form}: {found - wanted}, not {wanted - found}"
    return None


def _fetch(sql: str, engines: Engines) -> Counter[_Row]:
    with engines.truth.cursor() as cursor:
        cursor.execute(sql.encode())
        return Counter(cursor.fetchall())


def _release(question: Question, source: Source, engines: Engines, *, form: str) -> list[tuple[str | None, ...]]:
    """Return the columns of the answer without noise: keys, then truths, None for NULL."""
    space, common = question.keys, list_cell_sums(question)[1]
    values = compute_cell_sums(question, source, engines)

    def test_literal(cut: Cut) -> Booleans:
        return evaluate_literal(common, cut, values)

    formulas = [one if form == "as typed" else minimise(one).formula for one in question.predicates]
    truths = [evaluate_formula(one, test_literal, keys=space.size) for one in formulas]
    unknown = find_unknown(common, formulas, test_literal, keys=space.size)

    def show(number: int, place: int) -> str | None:
        if truths[number][place]:
            return "true"
        return None if question.null_predicates[number] or (unknown and unknown[number][place]) else "false"

    rows = [
        (*format_values(space.get_key(place)), *(show(number, place) for number in range(len(truths))))
        for place in range(space.size)
    ]
    return list(zip(*rows, strict=True))
