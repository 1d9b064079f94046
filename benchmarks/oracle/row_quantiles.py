"""Random comparisons of a group's mean with a quantile of all rows.

Keyhole reads the quantile off bins, so PostgreSQL is asked twice: with the rows around the quantile's rank, moved by a
bin's width down and up. Groups that pass with both have to pass here, and groups that pass with neither must not.
"""

import random
import re
from dataclasses import replace

import psycopg

from benchmarks.oracle.judging import Tally, parse_question
from benchmarks.oracle.row_spreads import RowSpread
from benchmarks.oracle.windows import Disagreed, decide_cells, fetch_keys
from benchmarks.oracle.worlds import KEYS, TABLES, Engines, Key
from planner.errors import KeyholeError
from planner.question.question import Question

_QUANTILES = (
    "percentile_cont({p}) WITHIN GROUP (ORDER BY {x})", "percentile_disc({p}) WITHIN GROUP (ORDER BY {x})",
    "percentile_cont({p}) WITHIN GROUP (ORDER BY {x} DESC)",
)  # fmt: skip
_QUANTILE = re.compile(r"percentile_(cont|disc)\(([\d.]+)\) WITHIN GROUP \(ORDER BY (.*?)( DESC)?\)")
_LIMITS = ("{s}", "{k} * {s}", "{k} * {s} - 0.63", "1.37 - {k} * {s}", "{s} / 2.0")
_CONDITIONS = ("{n} {o} {w}", "{w} {o} {n}", "NOT {n} {o} {w}", "{n} - {w} {o} 0.37", "2 * {n} {o} {w}")
_MEASURES = ("age", "cost", "weight", "fee", "2 * age + 1", "3 - age")
_SHARES = ("0.05", "0.25", "0.5", "0.5", "0.9", "0.333")
_ROWS = ("", "", "age > 1", "insured")
_ROUNDED = 0.5  # the grid of fees, to which the bounded rows are rounded


def draw_row_quantile(drawn: random.Random) -> RowSpread:
    """Return a random comparison of a group's mean with a multiple of a quantile of all rows."""
    keys, measure, factor = drawn.choice(KEYS), drawn.choice(_MEASURES), drawn.choice(("0.31", "0.73", "1.13", "1.91"))
    quantile = drawn.choice(_QUANTILES).format(p=drawn.choice(_SHARES), x=measure)
    return RowSpread(
        table=drawn.choice([one for one in TABLES if one.is_row_unit or one.row_cap is not None]),
        keys=keys,
        where=drawn.choice(_ROWS),
        other=drawn.choice(_ROWS),
        measure=measure,
        condition=drawn.choice(_CONDITIONS).format(n="{n}", o=drawn.choice((">", ">=", "<", "<=")), w="{w}"),
        limits=(("w", drawn.choice(_LIMITS).format(s=quantile, k=factor)),),
        shape=drawn.choice(("plain", "with", "derived", *(("alike", "alike") if len(keys) > 1 else ()))),
    )


def judge_row_quantile(statement: RowSpread, engines: Engines, tally: Tally) -> Disagreed[RowSpread] | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    try:
        question = parse_question(statement.sql, adds_guards=True)
    except KeyholeError as error:
        if error.code in ("KH900", "KH100"):
            raise
        tally.refused[error.code] += 1
        return None
    if question is None or not question.keys.size or not any(one.pair for one in question.functionals):
        tally.refused["none" if question is None else "constant"] += 1
        return None
    try:
        ends = [_find_truth(statement, question, engines, upper=upper) for upper in (False, True)]
    except psycopg.Error:
        tally.meaningless += 1
        return None
    certain, possible = ends[0] & ends[1], ends[0] | ends[1]
    tally.judged += 1
    for source in engines.sources:
        found = decide_cells(question, source, engines)
        if not certain <= found <= possible:
            return Disagreed(statement, source.dialect.name, frozenset(certain - found), frozenset(found - possible))
    return None


def _find_truth(statement: RowSpread, question: Question, engines: Engines, *, upper: bool) -> set[Key]:
    """Return the groups that pass with the row above or below the quantile's rank, moved by a bin's width."""
    pair = next(one.pair for one in question.functionals if one.pair)
    assert pair.quantile is not None
    scale = 2 if statement.measure.startswith("2") else 1
    moved = 2 * scale * float(pair.quantile.reach) + (_ROUNDED if statement.measure == "fee" else 0.0)

    def write_end(found: re.Match[str]) -> str:
        kind, share, value, descending = found[1], found[2], found[3], found[4]
        share = f"(1 - {share})" if descending else share
        rows = f"count({value})"
        rank = f"{share} * {rows}" if kind == "disc" else f"{share} * ({rows} - 1)"
        place = f"greatest(1, ceil({rank}))" if kind == "disc" else f"{'ceil' if upper else 'floor'}({rank}) + 1"
        if kind == "disc" and upper and value.startswith("3 - "):  # bins are those of the column, which falls
            place = f"least(floor({rank}) + 1, {rows})"
        read = f"(array_agg({value} ORDER BY {value}))[({place})::int]"
        return f"({read} {'+' if upper else '-'} {moved})"

    ((name, value),) = statement.limits
    limits = ((name, _QUANTILE.sub(write_end, value)),)
    return fetch_keys(replace(statement, limits=limits).write_truth(question), engines)
