"""Random comparisons of groups with other groups: what the integers say, and what PostgreSQL's windows say.

Each statement compares a size of a group with a window over groups: totals, means, neighbours, moving frames, of all
groups or within parts. It is decided without noise on each source's own sums of cells. PostgreSQL computes the same
windows over the bounded rows of every group that the question lists, where a group without rows has 0.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import psycopg

from benchmarks.oracle.judging import Tally, parse_question, write_literal
from benchmarks.oracle.worlds import KEYS, TABLES, Engines, Key, name_bounded
from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.protocol import CommonSums
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.functionals.cell_readings import list_cell_sums, reads_cells
from planner.lower.scan import rewrite
from planner.question.question import Measure, Question
from proxy.sources.protocol import Source

_CALENDARS = ("month", "level")
_SIZES = (
    "count(*)", "count(age)", "sum(age)", "sum(cost)", "sum(weight)", "sum(fee)", "count(*) FILTER (WHERE insured)",
    "sum(cost) FILTER (WHERE age > 3)",
)  # fmt: skip
_UNITS = ("count(DISTINCT person)", "count(DISTINCT person) FILTER (WHERE insured)")
_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "ROWS 1 PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING", "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", "",
    "ROWS BETWEEN 6 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 13 PRECEDING AND 1 PRECEDING",
)  # fmt: skip
_RANGES = {
    "month": (
        "RANGE BETWEEN interval '1 month' PRECEDING AND CURRENT ROW", "RANGE interval '28 days' PRECEDING",
        "RANGE BETWEEN interval '31 days' PRECEDING AND '1 day'::interval PRECEDING",
        "RANGE BETWEEN CURRENT ROW AND interval '30 days 23:59' FOLLOWING",
        "RANGE BETWEEN UNBOUNDED PRECEDING AND interval '1 month' FOLLOWING",
        "RANGE BETWEEN interval '2 mons' PRECEDING AND interval '1 mon' PRECEDING",
        "RANGE BETWEEN interval '1 month' FOLLOWING AND UNBOUNDED FOLLOWING",
    ),
    "level": (
        "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW", "RANGE 5 PRECEDING", "RANGE BETWEEN 6 PRECEDING AND 1 PRECEDING",
        "RANGE BETWEEN CURRENT ROW AND 4 + 1 FOLLOWING", "RANGE UNBOUNDED PRECEDING",
        "RANGE BETWEEN 1 FOLLOWING AND 5 FOLLOWING",
    ),
}  # fmt: skip
_SPELLED = (
    "extract(year FROM month)|extract(month FROM month)", "to_char(month, 'YYYY-MM')", "month::timestamp",
    "extract(year FROM month)|month", "to_char(month, 'IYYY-IW')", "extract(month FROM month)",
)  # fmt: skip
_KEPT = {"month": "month >= '2026-02-01'", "level": "level <> 2", "ward": "ward IN ('A', 'empty')"}
_CONDITIONS = (
    "n {o} {q} * w", "n {o} {q} * w", "n - w {o} {c}", "n {o} w + {c}", "w {o} {c}", "n {o} {q} * w AND w {o} {c}",
    "n {o} {q} * w OR n {o} w", "NOT (n {o} {q} * w)", "n BETWEEN {q} * w AND w + {c}", "n / nullif(w, 0) {s} {q}",
    "n / nullif(w, 0) {s} {q} AND w > {c}", "(n - w) / nullif(w, 0) {o} {q} AND w >= 2",
    "100.0 * n / nullif(w, 0) {s} 40", "n + w {o} {c}", "2 * n - 3 * w {o} {c}", "abs(n - w) {s} 2",
    "n / nullif(w, 0) - 1 {s} {q}", "round(100.0 * n / nullif(w, 0), 1) < 40",
    "100 * (1 - n / nullif(w, 0)) {s} {c}.5",
    "n - coalesce(w, 0) {o} {c}", "coalesce(n - w, 0) {o} {c}", "n > coalesce(w, {c})",
    "w IS NOT NULL AND n {o} w", "w IS NULL OR n {o} {q} * w",
)  # fmt: skip
_MEAN_CONDITIONS = (
    "n {o} {q} * w", "n - w {o} {c}", "n {o} w + {c}", "w {o} n", "NOT (n {o} {q} * w)", "2 * n - w {o} {c}",
    "n BETWEEN {q} * w AND w + {c}", "n {o} {q} * w AND n {o} w - {c}", "n {o} {q} * w OR n - w {o} {c}",
)  # fmt: skip
_AVERAGED = ("age", "cost", "weight", "fee")
_DIVISORS = ("age", "weight", "fee")  # which are never negative
_NUMBERS = ("0.1", "0.25", "0.5", "1", "1.2", "2")
_MEAN_NUMBERS = ("0.31", "0.73", "1", "1.13", "1.91")  # PostgreSQL rounds quotients: there must be few ties
_MEAN_CONSTANTS = ("-1.37", "-0.37", "0.37", "1.37")


@dataclass(frozen=True, slots=True)
class WindowStatement:
    """A comparison of the size `own` with a `window` over groups, in which {size} stands for the size it reads.

    With `mean` both are means of that column: {size} stands for a group's mean, {total} and {rows} for what it divides.
    With a `divisor` they are ratios of sums instead, and {rows} is the sum of that column.
    The window runs over the groups that `kept` leaves. `shape` says how it is spelled.
    """

    table: Table
    keys: tuple[str, ...]
    where: str
    own: str
    size: str
    window: str
    condition: str
    mean: str = ""
    divisor: str = ""
    kept: str = ""
    shape: str = "plain"

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        keys, where = ", ".join(self.keys), f" WHERE {self.where}" if self.where else ""
        having, kept = (f" {word} {self.kept}" if self.kept else "" for word in ("HAVING", "WHERE"))
        window, clause = self.window, ""
        if self.shape.startswith("named"):
            window, clause = _name_window(window, in_parts=self.shape == "named in parts")
        source = f"FROM {self.table.name}{where} GROUP BY {keys}"
        if self.shape == "two levels":
            groups = f"SELECT {keys}, {self.own} AS n, {self.size} AS m {source}"
            over = f"SELECT {keys}, n, {window.format(size='m')} AS w FROM g{kept}"
            return f"WITH g AS ({groups}) SELECT {keys} FROM ({over}) q WHERE {self.condition}"
        rows = f"sum({self.divisor})" if self.divisor else f"count({self.mean})"
        window = window.format(size=self.size, total=f"sum({self.mean})", rows=rows)
        over = f"SELECT {keys}, {self.own} AS n, {window} AS w {source}{having}{clause}"
        return f"SELECT {keys} FROM ({over}) q WHERE {self.condition}"

    @property
    def compares_means(self) -> bool:
        """True if both sides are means of rows."""
        return bool(self.mean)


def _name_window(window: str, *, in_parts: bool) -> tuple[str, str]:
    """Return a call with a window that a WINDOW clause defines, and the clause."""
    call, _, spec = window.removesuffix(")").partition(" OVER (")
    base, order, rest = spec.partition("ORDER BY ")
    if in_parts and base and order:
        return f"{call} OVER (p {order}{rest})", f" WINDOW p AS ({base})"
    return f"{call} OVER w", f" WINDOW p AS ({base}), w AS (p {order}{rest})"


class CellStatement(Protocol):
    """A comparison with other groups."""

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""

    @property
    def compares_means(self) -> bool:
        """True for means of rows, beside which Keyhole adds counts."""


Asked = TypeVar("Asked", bound=CellStatement)


@dataclass(frozen=True, slots=True)
class Disagreed(Generic[Asked]):
    """Keys on which one source's integers and PostgreSQL differ."""

    statement: Asked
    source: str
    missing: frozenset[Key]
    surplus: frozenset[Key]


def window_statement(drawn: random.Random) -> WindowStatement:
    """Return a random comparison with other groups, some of units that are in a list or in none."""
    keys = drawn.choice(KEYS)
    calendars = [key for key in keys if key in _CALENDARS]
    others = [key for key in keys if key not in calendars]
    kinds = ["whole", "part"] if others and len(keys) > 1 else ["whole"]
    kind = drawn.choice([*kinds, *(["ordered", "ordered", "frame", "frame"] if calendars else [])])
    table = drawn.choice(TABLES)
    sizes = (*_SIZES, *_UNITS) if table.unit == ("person",) else _SIZES
    size = drawn.choice(sizes)
    condition = drawn.choice(_CONDITIONS)
    if "/" in condition and size.startswith("count"):
        size = "sum(age)"  # a quotient of integers is cut off, and refused
    where = drawn.choice(("", "", "age > 1", "insured", "month >= '2026-02-01'", "level <> 2"))
    if table.unit == ("person",) and drawn.random() < 0.25:
        word = drawn.choice(("IN", "NOT IN"))
        listed = drawn.choice(("age > 4", "insured", "ward = 'A'", "level = 2 AND age < 6"))
        where = f"person {word} (SELECT person FROM {table.name} WHERE person IS NOT NULL AND {listed})"
    if drawn.random() < 0.3:
        return _mean_statement(drawn, table, keys, where, _window(drawn, kind, calendars, others))
    window = _window(drawn, kind, calendars, others)
    if window.startswith(("sum(", "avg(")) and drawn.random() < 0.25:
        window = drawn.choice(("max", "min")) + window[3:]
    return WindowStatement(
        shape=drawn.choice(("plain", "plain", "two levels", "two levels", "named", "named in parts")),
        kept=_KEPT[drawn.choice(keys)] if drawn.random() < 0.3 else "",
        table=table,
        keys=keys,
        where=where,
        own=size if drawn.random() < 0.6 else drawn.choice(sizes),
        size=size,
        window=window,
        condition=condition.format(
            o=drawn.choice((">", ">=", "<", "<=")),
            s=drawn.choice("><"),
            q=drawn.choice(_NUMBERS),
            c=drawn.randint(-5, 9),
        ),
    )


def _mean_statement(
    drawn: random.Random, table: Table, keys: tuple[str, ...], where: str, window: str
) -> WindowStatement:
    """Return a random comparison of a group's mean with the mean of other groups' rows."""
    column = drawn.choice(_AVERAGED)
    divisor = drawn.choice([one for one in _DIVISORS if one != column]) if drawn.random() < 0.4 else ""
    mean = f"sum({column}) / nullif(sum({divisor}), 0)" if divisor else f"avg({column})"
    call, over = window.split("({size}", 1)
    averages = call == "avg" and not divisor and "ORDER" not in over and drawn.random() < 0.6
    if call in ("sum", "avg") and not averages:
        over = over.removeprefix(")")
        window = f"sum({{total}}){over} / nullif(sum({{rows}}){over}, 0)"
    condition = drawn.choice(_MEAN_CONDITIONS)
    return WindowStatement(
        table=table,
        keys=keys,
        where=where,
        own=mean,
        size=mean,
        window=window,
        condition=condition.format(
            o=drawn.choice((">", ">=", "<", "<=")), q=drawn.choice(_MEAN_NUMBERS), c=drawn.choice(_MEAN_CONSTANTS)
        ),
        mean=column,
        divisor=divisor,
    )


def _window(drawn: random.Random, kind: str, calendars: list[str], others: list[str]) -> str:
    part = f"PARTITION BY {', '.join(others)} " if others else ""
    if kind == "whole":
        return f"{drawn.choice(('sum', 'avg'))}({{size}}) OVER ()"
    if kind == "part":
        return f"{drawn.choice(('sum', 'avg'))}({{size}}) OVER (PARTITION BY {drawn.choice([*others, *calendars])})"
    falling = " DESC" if drawn.random() < 0.2 else ""
    by = "date_trunc('week', month)" if calendars[0] == "month" and drawn.random() < 0.2 else calendars[0]
    if kind == "ordered" and calendars[0] == "month" and drawn.random() < 0.3:
        by = drawn.choice(_SPELLED).replace("|", f"{falling}, ")
    order = f"{part}ORDER BY {by}{falling}"
    if kind == "ordered":
        call = drawn.choice(
            (
                "lag({size})", "lag({size}, 2)", "lead({size})", "lag({size}, 1, 0)", "lead({size}, 2, 3)",
                "lag({size}, 1, {size})", "first_value({size})", "last_value({size})",
            )
        )  # fmt: skip
        return f"{call} OVER ({order})"
    call = drawn.choice(("sum", "avg", "sum", "avg", "first_value", "last_value"))
    if drawn.random() < 0.5:
        if call in ("sum", "avg") and others and drawn.random() < 0.3:
            order = order.removeprefix(part)  # level groups are in one frame
        return f"{call}({{size}}) OVER ({order} {drawn.choice(_RANGES[calendars[0]])})"
    return f"{call}({{size}}) OVER ({order} {drawn.choice(_FRAMES)})"


def judge_window(statement: WindowStatement, engines: Engines, tally: Tally) -> Disagreed[WindowStatement] | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    return judge_cells(statement, engines, tally, _truth)


def judge_cells(
    statement: Asked, engines: Engines, tally: Tally, find_truth: Callable[[Asked, Question, Engines], set[Key]]
) -> Disagreed[Asked] | None:
    """Return where a source disagrees with what `find_truth` finds of a statement; None without a disagreement."""
    try:
        question = parse_question(statement.sql, adds_guards=statement.compares_means)
    except KeyholeError as error:
        if error.code in ("KH900", "KH100"):
            raise
        tally.refused[error.code] += 1
        return None
    if question is None or not question.keys.size or not reads_cells(question):
        tally.refused["none" if question is None else "constant"] += 1
        return None
    try:
        held = find_truth(statement, question, engines)
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    for source in engines.sources:
        found = decide_cells(question, source, engines)
        if found != held:
            name = source.dialect.name
            return Disagreed(statement, name, frozenset(held - found), frozenset(found - held))
    return None


def decide_cells(question: Question, source: Source, engines: Engines) -> set[Key]:
    """Return the groups for which a question holds on the exact sums of a source."""
    _, common = list_cell_sums(question)
    values = compute_cell_sums(question, source, engines)
    keys = question.keys.size
    compares_means = any(one.pair for one in question.functionals)

    _check_reach(question, common, values)

    def test_literal(cut: Cut) -> Booleans:
        if question.functionals[cut.functional].pair is None and compares_means:
            return np.ones(keys, dtype=np.bool_)  # a count that Keyhole added
        return evaluate_literal(common, cut, values)

    held = evaluate_formula(question.formula, test_literal, keys=keys)
    return {question.keys.get_key(place) for place, truth in enumerate(held) if truth}


def compute_cell_sums(question: Question, source: Source, engines: Engines) -> Integers:
    """Return the exact sums of all cells that a question's functionals are read off."""
    sums, _ = list_cell_sums(question)
    relation = engines.relations[source.dialect.name]
    there = replace(question, table=_read_from(question.table, relation), functionals=sums)
    rewritten = rewrite(there, dialect=source.dialect)
    return source.read_aggregates(rewritten, question.keys, functionals=len(sums), timeout_ms=60_000).values


def _read_from(table: Table, relation: str) -> Table:
    """Return a table of which the rows, and those that its lists of units read, are in a relation."""
    lists = (
        tuple(replace(one, table=replace(one.table, relation=relation)) for one in clause) for clause in table.lists
    )
    return replace(table, relation=relation, lists=tuple(lists))


def _check_reach(question: Question, common: CommonSums, sums: Integers) -> None:
    """Raise if a mean of a group is farther from 0 than its noise was planned for. No row bounds a ratio of sums."""
    for one, pair, places in zip(question.functionals, common.means, common.readings, strict=False):
        if pair is not None and one.cell_reads[1].summed.measure is Measure.ROWS:
            (total, _), (rows, _), (other_total, _), (other_rows, _), *_ = (*places, *places[:2])
            assert (abs(sums[total]) <= pair.largest_mean * sums[rows]).all()
            if pair.quantile is not None:
                continue
            assert (abs(sums[other_total]) <= pair.largest_other_mean * sums[other_rows]).all()


def _truth(statement: WindowStatement, question: Question, engines: Engines) -> set[Key]:
    """Return the groups of the question for which PostgreSQL says that the comparison holds."""
    keys = ", ".join(statement.keys)
    mean = statement.mean
    missing = "NULL" if mean else "0"
    own, size = (_count_none(one, statement) for one in (statement.own, statement.size))
    values = {"n": f"coalesce({own}, {missing})", "m": f"coalesce({size}, {missing})"}
    if mean:
        rows = f"coalesce(sum({statement.divisor}), 0)" if statement.divisor else f"count({mean})"
        values |= {"total": f"coalesce(sum({mean}), 0)", "rows": rows}
    sizes = list_sizes(statement.table, statement.keys, statement.where, values, question)
    window = statement.window.format(size="m", total="total", rows="rows")
    kept = f" WHERE {statement.kept}" if statement.kept else ""
    windows = f"SELECT {keys}, n, {window} AS w FROM ({sizes}) s{kept}"
    return fetch_keys(f"SELECT {keys} FROM ({windows}) q WHERE {statement.condition}", engines)


def _count_none(size: str, statement: WindowStatement) -> str:
    """Return a ratio in which a sum over no values is 0."""
    divided = f"sum({statement.mean}) /"
    return size.replace(divided, f"coalesce(sum({statement.mean}), 0) /") if statement.divisor else size


def list_sizes(table: Table, keys: Sequence[str], where: str, sizes: Mapping[str, str], question: Question) -> str:
    """Return SQL for named sizes of every group that a question lists, over bounded rows."""
    listed = [question.keys.get_key(place) for place in range(question.keys.size)]
    values = ", ".join("(" + ", ".join(map(write_literal, key)) + ")" for key in listed)
    ours = " AND ".join(f"v.{name} = d.{name}" for name in keys)
    filtered = f" AND ({where.replace(f'FROM {table.name}', 'FROM oracle_visits')})" if where else ""
    computed = ", ".join(f"({size})::numeric AS {name}" for name, size in sizes.items())
    return (
        f"SELECT {', '.join(f'd.{name}' for name in keys)}, h.* FROM (VALUES {values}) AS d ({', '.join(keys)}), "
        f"LATERAL (SELECT {computed} FROM {name_bounded(table, tuple(keys))} v WHERE {ours}{filtered}) h"
    )


def fetch_keys(sql: str, engines: Engines) -> set[Key]:
    """Return the rows of a query to PostgreSQL."""
    with engines.truth.cursor() as cursor:
        cursor.execute(sql.encode())
        return set(cursor.fetchall())
