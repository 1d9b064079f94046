"""Random rankings beside comparisons with other groups, and by shares of totals: who stands where, and in which order.

Each question is decided and ranked without noise on each source's own sums. PostgreSQL then runs the text around keys
and places, as a session's shadow does. That is held against the statement over the sizes of every listed group. Groups
may be level, so the values of both answers are compared, in their order.
"""

import random
from dataclasses import dataclass, replace

import numpy as np
import psycopg

from benchmarks.oracle.judging import Tally, compute_exact_values, decide_literal
from benchmarks.oracle.scorecards import read_questions, run_around
from benchmarks.oracle.windows import compute_cell_sums, list_sizes
from benchmarks.oracle.worlds import TABLES, Engines, Key
from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.keyhole.taken_cells import find_unknown
from mechanisms.ranking.run import number_within_partition
from planner.catalog.catalog import Table
from planner.catalog.listed_values import format_values
from planner.extract.outer_query import Asking
from planner.functionals.cell_readings import list_cell_sums, reads_cells
from planner.lower.scan import rewrite
from planner.question.question import Question
from planner.rankings.mean_scores import compute_scores
from proxy.sources.protocol import Source

_KEYS = (("month",), ("level",), ("ward",), ("ward", "level"), ("month", "ward"))
_CALENDARS = ("month", "level")
_SIZES = (
    "count(*)",
    "sum(age)",
    "sum(cost)",
    "count(age)",
    "sum(fee)",
    "count(*) FILTER (WHERE insured)",
    "sum(weight)",
)
_SHARED = ("count(*)", "sum(fee)", "count(age)", "sum(weight)", "sum(age)")  # never negative
_BY_KEY = {
    "month": ("month >= '2026-02-01'", "month <> '2026-02-01'"),
    "level": ("level <> 2", "level BETWEEN 2 AND 6"),
    "ward": ("ward IN ('A', 'empty')", "ward <> 'A'"),
}
_CONDITIONS = ("n {o} {q} * w", "n {o} {q} * w", "n - w {o} {c}", "n {o} w + {c}", "n {o} {q} * w AND m > {c}")
_CUT = "ORDER BY {by} {way} LIMIT {k}"
_COMPARED = (
    "SELECT {keys} FROM ({w}) s WHERE {condition}{chosen} " + _CUT,
    "SELECT {keys} FROM ({w}) s WHERE {condition}{chosen} " + _CUT,
    "WITH s AS ({w}) SELECT {keys} FROM s WHERE {condition}{chosen} " + _CUT,
    "SELECT {keys}, rank() OVER (ORDER BY {by} {way}) AS place FROM ({w}) s WHERE {condition}{chosen} ORDER BY place",
    "SELECT {keys} FROM (SELECT {keys}, row_number() OVER (ORDER BY {by} {way}) AS place FROM ({w}) s "
    "WHERE {condition}{chosen}) q WHERE place <= {k} ORDER BY place",
)
_AROUND = (
    "WITH s AS ({m}) SELECT {keys} FROM s WHERE n {o} {q} * (SELECT avg(n) FROM s){chosen} " + _CUT,
    "WITH s AS ({m}) SELECT {keys} FROM s WHERE n {o} {q} * (SELECT sum(n) FROM s){chosen} " + _CUT,
)
_GROWTH = (
    "SELECT {keys} FROM ({w}) s ORDER BY {by} {way} LIMIT {k}",
    "SELECT {keys} FROM ({w}) s ORDER BY {by} {way} LIMIT {k}",
    "SELECT {keys} FROM ({w}) s WHERE {condition}{chosen} ORDER BY {by} {way} LIMIT {k}",
    "SELECT {keys}, row_number() OVER (ORDER BY {by} {way}) AS place FROM ({w}) s ORDER BY place",
    "SELECT {keys} FROM (SELECT {keys}, {by} AS growth FROM ({w}) s) q ORDER BY growth {way} LIMIT {k}",
)
_HAVING = "SELECT {keys} FROM {t} WHERE {rows} GROUP BY {keys} HAVING {own} {o} {q} * (SELECT {call} FROM {t}) "
_HAVING += "ORDER BY {other} {way} LIMIT {k}"
_SHARES = (
    "SELECT {keys} FROM ({m}) s ORDER BY n / nullif(sum(n) OVER (), 0) {way} LIMIT {k}",
    "WITH s AS ({m}) SELECT {keys} FROM s ORDER BY round(100 * n::numeric / (SELECT sum(n) FROM s z), 12) {way} "
    "LIMIT {k}",
    "SELECT {keys}, rank() OVER (ORDER BY share {way}) AS place FROM "
    "(SELECT {keys}, n / nullif(sum(n) OVER (), 0) AS share FROM ({m}) s) q ORDER BY place",
    "SELECT {keys} FROM (SELECT {keys}, n / nullif(sum(n) OVER (), 0) AS share FROM ({m}) s) q "
    "ORDER BY share {way} LIMIT {k}",
    "WITH s AS ({m}) SELECT {keys} FROM s ORDER BY n * 1.0 / (SELECT nullif(sum(n), 0) FROM s) {way} LIMIT {k}",
)


@dataclass(frozen=True, slots=True)
class RankedStatement:
    """A statement over a grouped query {m} with sizes `n` and `m`, ranked by `by`, which may read `window` as `w`.

    `text` is the statement. `meant` is what PostgreSQL is asked over a list of all groups, cut to `limit` of them.
    """

    table: Table
    keys: tuple[str, ...]
    where: str
    sizes: tuple[str, str]
    text: str
    meant: str
    by: str
    limit: str
    window: str

    @property
    def uncut(self) -> str:
        """The statement for PostgreSQL without its limit."""
        return self.meant.replace(f" LIMIT {self.limit}", "").replace(f" WHERE place <= {self.limit}", "")

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        rows = f"{self.table.name} WHERE {self.where}" if self.where else self.table.name
        keys, (own, other) = ", ".join(self.keys), self.sizes
        return self.text.replace("{m}", f"SELECT {keys}, {own} AS n, {other} AS m FROM {rows} GROUP BY {keys}")


def draw_ranked_comparison(drawn: random.Random) -> RankedStatement:
    """Return a random ranking beside a comparison with other groups, or by a share of a total."""
    keys, table = drawn.choice(_KEYS), drawn.choice(TABLES)
    kinds = ("compared", "compared", "compared", "around", "having", "share", "growth", "growth")
    kind = drawn.choice(kinds if any(key in _CALENDARS for key in keys) else kinds[:-2])
    where = drawn.choice(("", "", "age > 1", "insured"))
    sizes = (drawn.choice(_SIZES), drawn.choice(_SIZES))
    by, window = drawn.choice(("n", "m", "n + m", "n - 2 * m")), "0"
    named = {
        "keys": ", ".join(keys), "way": drawn.choice(("DESC", "DESC", "ASC")), "k": str(drawn.randint(1, 3)),
        "o": drawn.choice((">", ">=", "<")), "q": drawn.choice(("0.31", "0.73", "1.13")),
        "c": str(drawn.randint(-2, 4)),
        "t": table.name, "rows": where or "true", "own": sizes[0], "other": sizes[1],
        "chosen": f" AND {drawn.choice(_BY_KEY[drawn.choice(keys)])}" if drawn.random() < 0.4 else "",
    }  # fmt: skip
    if kind == "share":
        sizes, by = (drawn.choice(_SHARED), sizes[1]), "n"
        text = meant = drawn.choice(_SHARES)
    elif kind == "around":
        text = meant = drawn.choice(_AROUND)
    elif kind == "having":
        by = "m"
        text = _HAVING.replace("{rows}", named["rows"] + named["chosen"]).replace("{call}", sizes[0])
        meant = "WITH s AS ({m}) SELECT {keys} FROM s WHERE n {o} {q} * (SELECT sum(a) FROM ({all}) z){chosen} " + _CUT
    else:
        calendars = [key for key in keys if key in _CALENDARS]
        texts = _COMPARED
        others = [key for key in keys if key not in calendars]
        part = f"PARTITION BY {', '.join(others)} " if others else ""
        windows = ["sum(n) OVER ()", "avg(m) OVER ()"]
        if calendars:
            windows += [f"lag(n) OVER ({part}ORDER BY {calendars[0]})"] * 3
            windows += [f"avg(n) OVER ({part}ORDER BY {calendars[0]} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"]
        if kind == "growth":
            texts, by = _GROWTH, drawn.choice(("n - w", "n - w", "m - w", "n - 2 * w", "w", "w - n"))
            named["way"] = drawn.choice(("DESC", "ASC", "DESC NULLS LAST", "ASC NULLS FIRST"))
            order = f"{part}ORDER BY {calendars[0]}"
            windows = [f"lag(n) OVER ({order})", f"lead(n) OVER ({order})", f"lag(m, 2) OVER ({order})"]
            windows += [f"lag(n, 1, 0) OVER ({order})", f"sum(n) OVER ({order} ROWS 1 PRECEDING)"]
        window = drawn.choice(windows)
        text = drawn.choice(texts).replace("{condition}", drawn.choice(_CONDITIONS))
        text = meant = text.replace("{w}", f"SELECT {{keys}}, n, m, {window} AS w FROM ({{m}}) g")
    named["by"] = by
    for name, value in named.items():
        text, meant = text.replace(f"{{{name}}}", value), meant.replace(f"{{{name}}}", value)
    return RankedStatement(table, keys, where, sizes, text, meant, by, named["k"], window)


def judge_ranked_comparison(statement: RankedStatement, engines: Engines, tally: Tally) -> str | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    read = read_questions(statement.sql, tally)
    if read is None:
        return None
    asking, (question, *others) = read
    if others or question.ranked is None or not question.keys.size:
        tally.refused["no ranking"] += 1
        return None
    try:
        found = _find_disagreement(statement, asking, question, engines)
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    return found


def _find_disagreement(statement: RankedStatement, asking: Asking, question: Question, engines: Engines) -> str | None:
    sizes = _list(statement, statement.where, question)
    everywhere = list_sizes(statement.table, statement.keys, "", {"a": f"coalesce({statement.sizes[0]}, 0)"}, question)
    meant, uncut = (
        [row[: len(statement.keys)] for row in _fetch(text.replace("{m}", sizes).replace("{all}", everywhere), engines)]
        for text in (statement.meant, statement.uncut)
    )
    named = ", ".join(statement.keys)
    over = f"SELECT {named}, n, m, {statement.window} AS w FROM ({sizes}) g"
    values = {row[:-1]: row[-1] for row in _fetch(f"SELECT {named}, {statement.by} FROM ({over}) s", engines)}
    for source in engines.sources:
        rows, _ = run_around(asking, [release_exactly(question, source, engines)], engines)
        returned = [row[: len(statement.keys)] for row in rows]
        if [values[one] for one in returned] != [values[one] for one in meant] or not set(uncut).issuperset(returned):
            return f"{source.dialect.name}: {returned}, not {meant}"
    return None


def _list(statement: RankedStatement, where: str, question: Question) -> str:
    named = dict(zip("nm", (f"coalesce({size}, 0)" for size in statement.sizes), strict=True))
    return list_sizes(statement.table, statement.keys, where, named, question)


def _fetch(sql: str, engines: Engines) -> list[Key]:
    with engines.truth.cursor() as cursor:
        cursor.execute(sql.encode())
        return cursor.fetchall()


def release_exactly(question: Question, source: Source, engines: Engines) -> list[tuple[str | None, ...]]:
    """Return the columns of the answer without noise: keys, their places if they are ranked, and truths."""
    space, ranked, reads = question.keys, question.ranked, reads_cells(question)
    sums = compute_cell_sums(question, source, engines) if reads else _compute_own(question, source, engines)

    def test_literal(cut: Cut) -> Booleans:
        return evaluate_literal(list_cell_sums(question)[1], cut, sums) if reads else decide_literal(sums, cut)

    passed, *truths = (evaluate_formula(one, test_literal, keys=space.size) for one in question.formulas)
    unknown = (
        find_unknown(list_cell_sums(question)[1], question.predicates, test_literal, keys=space.size) if reads else ()
    )
    members = np.flatnonzero(passed)
    places = np.zeros(members.size, dtype=np.int64)
    if ranked is not None:
        values = _compute_ranked(question, source, engines)
        signed = -values if ranked.descending else values
        parted = space.number_values(ranked.partition) if ranked.partition else np.zeros(space.size, dtype=np.int64)
        members = members[np.lexsort((signed[members], parted[members]))]
        places = number_within_partition(parted[members])
        kept = places <= (space.size if ranked.most_returned is None else ranked.most_returned)
        members, places = members[kept], places[kept]

    def show(number: int, key: int) -> str | None:
        return None if unknown and unknown[number][key] else str(bool(truths[number][key])).lower()

    rows = [
        (
            *format_values(space.get_key(int(key))),
            *((str(place),) if ranked is not None else ()),
            *(show(number, int(key)) for number in range(len(truths))),
        )
        for key, place in zip(members, places, strict=True)
    ]
    width = len(space.columns) + (ranked is not None) + len(truths)
    return [tuple(row[column] for row in rows) for column in range(width)]


def _compute_own(question: Question, source: Source, engines: Engines) -> Integers:
    """Return the integers of the formula alone, which no other group is read for."""
    own = replace(question, ranked=None)
    if not own.functionals:
        return np.zeros((0, own.keys.size), dtype=np.int64)
    return compute_exact_values(own, source, engines)


def _compute_ranked(question: Question, source: Source, engines: Engines) -> Integers:
    relation = engines.relations[source.dialect.name]
    there = replace(
        question,
        table=replace(question.table, relation=relation),
        functionals=question.ranked.computed_functionals if question.ranked is not None else (),
        ranked=None,
    )
    read = source.read_aggregates(
        rewrite(there, dialect=source.dialect), question.keys, functionals=len(there.functionals), timeout_ms=60_000
    )
    assert question.ranked is not None
    return compute_scores(question.ranked, read.values)
