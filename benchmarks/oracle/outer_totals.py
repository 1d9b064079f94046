"""Random comparisons with totals and statistics around groups: what the integers say, and what PostgreSQL says.

For PostgreSQL the grouped query is one that has every group which the question lists, where a group without rows has 0.
A total over rows is the sum over those groups.
"""

import random
import re

from benchmarks.oracle.grouped_statement import GroupedStatement
from benchmarks.oracle.judging import Tally
from benchmarks.oracle.windows import Disagreed, fetch_keys, judge_cells
from benchmarks.oracle.worlds import TABLES, Engines, Key
from planner.question.question import Question

_KEYS = (("month",), ("ward",), ("ward", "level"), ("month", "ward"))
_SIZES = ("count(*)", "sum(age)", "sum(cost)", "count(age)", "sum(fee)", "count(*) FILTER (WHERE insured)")
_CONDITIONS = (
    "n {o} {q} * {v}",
    "n {o} {q} * {v}",
    "n - {v} {o} {c}",
    "n {o} {q} * {v} OR m {o} {c}",
    "m {o} {v} + {c}",
    "n {o} greatest({q} * {v}, {c})",
    "NOT n {o} least({v}, {c})",
)
_CALLS = (
    "avg({})", "sum({})", "avg({})", "sum({})", "max({})", "min({})", "stddev({})", "stddev_pop({})", "stddev_samp({})",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY {})", "percentile_cont(0.9) WITHIN GROUP (ORDER BY {})",
    "percentile_disc(0.25) WITHIN GROUP (ORDER BY {})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {})",
    "(percentile_cont(ARRAY[0.25, 0.9, 0.5]) WITHIN GROUP (ORDER BY {}))[2]", "sqrt(variance({}))", "sqrt(var_pop({}))",
    "1.0 * sum({}) / count(*)",
)  # fmt: skip
_CONT, _DISC = (f"percentile_{kind}({{}}) WITHIN GROUP (ORDER BY {{{{}}}})" for kind in ("cont", "disc"))
_QUANTILES = (
    (_CONT.format("0.25"), _CONT.format("0.75")), (_DISC.format("0.25"), _DISC.format("0.75")), ("min({})", "max({})"),
    (_CONT.format("0.125"), _DISC.format("0.9")), ("min({})", _CONT.format("0.5")),
)  # fmt: skip
_CALLED = re.compile(r"%\(([\w.]+)\)")
_OF_GROUPS = (
    "WITH s AS ({m}) SELECT {shown} FROM s WHERE {condition:(SELECT %(m) FROM s)}",
    "WITH s AS ({m}) SELECT {shown} FROM s WHERE {condition:(SELECT 2 * %(z.m) - 1 FROM s z)}",
    "WITH s AS ({m}), t AS (SELECT %(m) AS v FROM s) SELECT {shown} FROM s, t WHERE {condition:t.v}",
    "WITH s AS ({m}), t AS (SELECT %(m) AS v FROM s) SELECT {shown} FROM t CROSS JOIN s WHERE {condition:v}",
    "WITH s AS ({m}) SELECT {shown} FROM s LEFT JOIN (SELECT %(m) AS v FROM s) t ON true WHERE {condition:v}",
    "WITH s AS ({m}), t AS (SELECT %(m) AS v FROM s) SELECT {shown} FROM s WHERE {condition:(SELECT v FROM t)}",
    "WITH s AS ({m}), t AS (SELECT {low} AS a, {high} AS b FROM s) SELECT {shown} FROM s, t "
    "WHERE {condition:(t.b + 1.5 * (t.b - t.a))}",
    "WITH s AS ({m}), t AS (SELECT {high} - {low} AS v FROM s) SELECT {shown} FROM s, t WHERE {condition:v}",
    "WITH s AS ({m}), t AS (SELECT %(m) AS v FROM s), b AS (SELECT {shown}, s.n, s.m, t.v FROM s CROSS JOIN t) "
    "SELECT {shown} FROM b s WHERE {condition:v}",
)
_OF_A_WARD = (
    "WITH s AS ({m}) SELECT {shown} FROM s WHERE {condition:(SELECT %(z.m) FROM s z WHERE z.ward = s.ward)}",
    "WITH s AS ({m}) SELECT {shown} FROM s WHERE {condition:(SELECT 2 * %(z.m) FROM s z WHERE s.ward = z.ward)}",
)
_OF_ROWS = (
    "SELECT {shown} FROM ({m}) s WHERE {condition:({total})}",
    "SELECT {shown} FROM ({m}) s CROSS JOIN ({total}) t WHERE {condition:t.v}",
    "WITH t AS ({total}) SELECT {shown} FROM ({m}) s JOIN t ON true WHERE {condition:v}",
    "WITH s AS ({m}), t AS ({total}) SELECT {shown} FROM s WHERE {condition:(SELECT 2 * v FROM t)}",
    "WITH t AS ({total}), s AS ({m}) SELECT {shown} FROM t, s WHERE {condition:t.v}",
    "SELECT {shown} FROM ({m}) s CROSS JOIN LATERAL ({total}) t WHERE {condition:t.v}",
    "WITH s AS ({m}), b AS (SELECT {shown}, n, m, max(m) OVER () AS v FROM s) "
    "SELECT {shown} FROM b s WHERE {condition:v}",
)


def draw_outer_total(drawn: random.Random) -> GroupedStatement:
    """Return a random comparison of groups with a total or a statistic that stands around them."""
    keys = drawn.choice(_KEYS)
    of_parts = _OF_A_WARD if len(keys) > 1 else ()
    call = drawn.choice(_CALLS)
    text = _CALLED.sub(lambda found: call.format(found[1]), drawn.choice((*_OF_GROUPS, *_OF_ROWS, *of_parts)))
    low, high = drawn.choice(_QUANTILES)
    text = text.replace("{low}", low.format("m")).replace("{high}", high.format("m"))
    before, _, rest = text.partition("{condition:")
    read = rest.removesuffix("}")
    condition = drawn.choice(_CONDITIONS).format(
        o=drawn.choice((">", ">=", "<", "<=")), q=drawn.choice(("0.1", "0.5", "1.2")), c=drawn.randint(-5, 9), v=read
    )
    return GroupedStatement(
        table=drawn.choice(TABLES),
        keys=keys,
        where=drawn.choice(("", "", "age > 1", "month >= '2026-02-01'", "insured")),
        sizes=(drawn.choice(_SIZES), drawn.choice(_SIZES)),
        text=before.replace("{shown}", ", ".join(f"s.{key}" for key in keys)) + condition,
    )


def judge_outer_total(
    statement: GroupedStatement, engines: Engines, tally: Tally
) -> Disagreed[GroupedStatement] | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    return judge_cells(statement, engines, tally, _find_truth)


def _find_truth(statement: GroupedStatement, question: Question, engines: Engines) -> set[Key]:
    sizes = statement.list_sizes(question)
    total = f"SELECT sum(m) AS v FROM ({sizes}) z"
    return fetch_keys(statement.text.replace("{m}", sizes).replace("{total}", total), engines)
