"""Random comparisons of a group's mean with the mean and the standard deviation of all rows.

They are written as scalar subqueries, a WITH query, a cross join, scores, or a subquery over the rows alike in one key.
PostgreSQL computes the same over the bounded rows. It rounds roots and quotients. So the numbers beside them are such
that few groups meet one exactly.
"""

import random
from dataclasses import dataclass

from benchmarks.oracle.judging import Tally
from benchmarks.oracle.windows import Disagreed, fetch_keys, judge_cells, list_sizes
from benchmarks.oracle.worlds import KEYS, TABLES, Engines, Key, name_bounded
from planner.catalog.catalog import Table
from planner.question.question import Question

_SPREADS = ("stddev", "stddev_samp", "stddev_pop")
_LIMITS = (
    "{q} * avg({x}) + {k} * {s}({x})", "avg({x}) - {k} * {s}({x})", "{k} * {s}({x})", "{c} + {s}({x}) / 2",
    "avg({x}) - {c} * sqrt(var_pop({x}))",
)  # fmt: skip
_CONDITIONS = (
    "{n} {o} {w}", "{w} {o} {n}", "NOT {n} {o} {w}", "{n} - {w} {o} 0.37", "2 * {n} {o} {w}",
    "{n} {o} {q} * {w} + 0.13", "{n} BETWEEN {w} - 0.77 AND {q} * {w} + 0.41",
)  # fmt: skip
_SCORES = (
    "({n} - {m}) / nullif({d}, 0) > {k}", "({n} - {m}) / nullif({d}, 0) < -{k}",
    "({m} - {n}) / nullif({d}, 0) > {k}",
    "abs({n} - {m}) > {k} * {d}", "abs({n} - {m}) < {k} * {d} + 0.17",
)  # fmt: skip
_MEASURES = ("age", "cost", "weight", "fee", "2 * age + 1")
_NUMBERS = ("0.31", "0.73", "1.13", "1.91")
_ROWS = ("", "", "age > 1", "insured")


@dataclass(frozen=True, slots=True)
class RowSpread:
    """A `condition` on a group's mean `n` of `measure`, in which `limits` over all rows stand by their names."""

    table: Table
    keys: tuple[str, ...]
    where: str
    other: str
    measure: str
    condition: str
    limits: tuple[tuple[str, str], ...]
    shape: str

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        keys, table, own = ", ".join(f"a.{key}" for key in self.keys), self.table.name, f"avg({self.measure})"
        where = f" WHERE {self.where}" if self.where else ""
        if self.shape == "with":
            values = ", ".join(f"{value} AS {name}" for name, value in self.limits)
            named = {name: f"l.{name}" for name, _ in self.limits}
            grouped = ", ".join((keys, *named.values()))
            source = f"{table} a, l{where} GROUP BY {grouped} HAVING {self.condition.format(n=own, **named)}"
            return f"WITH l AS (SELECT {values} FROM {table}{self._rows()}) SELECT {keys} FROM {source}"
        named = {name: f"(SELECT {value} FROM {table} b{self._rows('b.', 'a.')})" for name, value in self.limits}
        if self.shape == "derived":
            named = {name: one.replace("a.", "q.") for name, one in named.items()}
            inside = f"SELECT {keys}, {own} AS n FROM {table} a{where} GROUP BY {keys}"
            condition = self.condition.format(n="n", **named)
            return f"SELECT {keys.replace('a.', 'q.')} FROM ({inside}) q WHERE {condition}"
        return f"SELECT {keys} FROM {table} a{where} GROUP BY {keys} HAVING {self.condition.format(n=own, **named)}"

    @property
    def compares_means(self) -> bool:
        """True, since counts are added beside every comparison."""
        return True

    def _rows(self, inner: str = "", outer: str = "") -> str:
        """Return the WHERE of the other rows."""
        alike = (f"{inner}{self.keys[0]} = {outer}{self.keys[0]}",) if self.shape == "alike" else ()
        parts = " AND ".join(one for one in (self.where, self.other, *alike) if one)
        return f" WHERE {parts}" if parts else ""

    def write_truth(self, question: Question) -> str:
        """Return the same of the bounded rows of all listed groups, for PostgreSQL."""
        sizes = list_sizes(self.table, self.keys, self.where, {"n": f"avg({self.measure})"}, question)
        rows = name_bounded(self.table, self.keys)
        named = {name: f"(SELECT {value} FROM {rows} b{self._rows('b.', 'a.')})" for name, value in self.limits}
        return f"SELECT {', '.join(self.keys)} FROM ({sizes}) a WHERE {self.condition.format(n='n', **named)}"


def draw_row_spread(drawn: random.Random) -> RowSpread:
    """Return a random comparison of a group's mean with the mean and the standard deviation of all rows."""
    keys, measure, spread = drawn.choice(KEYS), drawn.choice(_MEASURES), drawn.choice(_SPREADS)
    q, k, c = drawn.choice(_NUMBERS), drawn.choice(_NUMBERS), drawn.choice(("1.37", "-0.63"))
    where = drawn.choice(_ROWS)
    shapes = ["plain", "with", "derived", *(["alike", "alike"] if len(keys) > 1 else [])]
    is_score = drawn.random() < 0.4
    if is_score:
        condition = drawn.choice(_SCORES).format(n="{n}", m="{m}", d="{d}", k=k)
        limits: tuple[tuple[str, str], ...] = (("m", f"avg({measure})"), ("d", f"{spread}({measure})"))
    else:
        condition = drawn.choice(_CONDITIONS).format(n="{n}", o=drawn.choice((">", ">=", "<", "<=")), w="{w}", q=q)
        limits = (("w", drawn.choice(_LIMITS).format(x=measure, s=spread, q=q, k=k, c=c)),)
    return RowSpread(
        table=drawn.choice(TABLES),
        keys=keys,
        where=where,
        other="" if is_score and "/" in condition else drawn.choice(_ROWS),
        measure=measure,
        condition=condition,
        limits=limits,
        shape=drawn.choice(shapes),
    )


def judge_row_spread(statement: RowSpread, engines: Engines, tally: Tally) -> Disagreed[RowSpread] | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    return judge_cells(statement, engines, tally, _find_truth)


def _find_truth(statement: RowSpread, question: Question, engines: Engines) -> set[Key]:
    return fetch_keys(statement.write_truth(question), engines)
