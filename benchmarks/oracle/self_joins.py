"""Random joins of groups with other groups: what the integers say, and what PostgreSQL says of the text as it stands.

For PostgreSQL the grouped query is one that has every group which the question lists, where a group without rows has 0.
"""

import random
import re
from collections.abc import Sequence

from benchmarks.oracle.grouped_statement import GroupedStatement
from benchmarks.oracle.judging import Tally
from benchmarks.oracle.windows import Disagreed, fetch_keys, judge_cells
from benchmarks.oracle.worlds import TABLES, Engines, Key
from planner.question.question import Question

_KEYS = (("month",), ("level",), ("month", "ward"), ("ward", "level"))
_SIZES = ("count(*)", "sum(age)", "sum(cost)", "count(age)", "sum(fee)", "count(*) FILTER (WHERE insured)")
_LINKS = {
    "month": (
        "b.month = a.month - interval '1 month'", "b.month + interval '1 month' = a.month",
        "a.month = b.month + interval '2 months'", "b.month = a.month + '1 month'::interval",
        "a.month - interval '1 mon' = b.month", "b.month = a.month - interval '31 days'", "b.month = a.month - 31",
        "b.month = a.month - interval '1 year'", "(b.month) = (a.month - interval '1 month')",
        "a.month = b.month - interval '28 days'", "b.month = (a.month - interval '1 month')::date",
        "a.month::timestamp = b.month + interval '1 month'", "(b.month + interval '1 month')::date = a.month",
    ),
    "level": (
        "b.level = a.level - 1", "b.level + 1 = a.level", "a.level = b.level + 5", "b.level = a.level + 5",
        "b.level = a.level - 5", "b.level = a.level - 2 * 3", "b.level = -1 + a.level", "a.level - 6 = b.level",
    ),
}  # fmt: skip
_FIXED = {"month": ("DATE '2026-01-01'", "DATE '2026-02-01'", "'2026-03-01'::date"), "level": ("1", "2", "7")}
_CONDITIONS = (
    "a.n > {q} * b.n", "a.n > {q} * b.n", "a.n - b.n {o} {c}", "b.n {o} a.n + {c}", "a.n {o} b.m", "a.m {o} b.m + {c}",
    "a.n > {q} * b.n AND b.m {o} {c}", "a.n {o} b.n AND a.m {o} {c}", "NOT (a.n {o} {q} * b.n)",
    "a.n BETWEEN {q} * b.n AND b.n + {c}", "a.n + b.n {o} {c} OR a.n > b.m", "2 * a.n - 3 * b.n {o} {c}",
)  # fmt: skip
_SHAPES = (
    "WITH m AS ({m}) SELECT {shown} FROM m a JOIN m b ON {links} WHERE {condition}",
    "WITH m AS ({m}) SELECT {shown} FROM m b INNER JOIN m a ON ({links}) WHERE {condition}",
    "WITH m AS ({m}) SELECT {shown} FROM m a, m b WHERE {links} AND {condition}",
    "WITH m AS ({m}) SELECT {shown} FROM m AS a CROSS JOIN m AS b WHERE {condition} AND {links}",
    "WITH m AS ({m}) SELECT {shown} FROM m a JOIN m b ON {links} AND {condition}",
    "WITH m AS ({m}) SELECT {shown} FROM m a LEFT JOIN m b ON {links} WHERE {condition}",
    "SELECT {shown} FROM ({m}) a JOIN ({m}) b ON {links} WHERE {condition}",
    "SELECT {shown} FROM ({m}) b, ({m}) a WHERE {condition} AND {links}",
    "SELECT {shown} FROM ({m}) a LEFT JOIN ({m}) AS b ON {links} WHERE {condition}",
    "WITH c AS ({m}), p AS ({m}) SELECT {shown} FROM c a JOIN p b ON {links} WHERE {condition}",
)
_LOOKUPS = (
    "WITH m AS ({m}) SELECT {shown} FROM m a WHERE {condition}",
    "SELECT {shown} FROM ({m}) AS a WHERE {condition}",
)


def draw_self_join(drawn: random.Random) -> GroupedStatement:
    """Return a random comparison of groups with those that a join finds."""
    keys = drawn.choice(_KEYS)
    calendar = next(key for key in keys if key in _LINKS)
    links = [drawn.choice(_LINKS[calendar]), *(f"b.{key} = a.{key}" for key in keys if key != calendar)]
    is_fixed = drawn.random() < 0.1
    if is_fixed:
        own, other = drawn.sample(_FIXED[calendar], 2)
        links[:1] = [f"a.{calendar} = {own}", f"{other} = b.{calendar}"]
    drawn.shuffle(links)
    condition = drawn.choice(_CONDITIONS).format(
        o=drawn.choice((">", ">=", "<", "<=")), q=drawn.choice(("0.5", "1", "1.2", "2")), c=drawn.randint(-5, 9)
    )
    shown = ", ".join(f"a.{key}" for key in keys)
    if drawn.random() < 0.25 and not is_fixed:
        return _draw_lookup(drawn, keys, links, condition)
    text = drawn.choice(_SHAPES).replace("{links}", " AND ".join(links)).replace("{shown}", shown)
    is_alone = not text.endswith("WHERE {condition}") and " OR " in condition
    return GroupedStatement(
        table=drawn.choice(TABLES),
        keys=keys,
        where=drawn.choice(("", "", "age > 1", "month >= '2026-02-01'", "level <> 2")),
        sizes=(drawn.choice(_SIZES), drawn.choice(_SIZES)),
        text=text.replace("{condition}", f"({condition})" if is_alone else condition),
    )


def _draw_lookup(drawn: random.Random, keys: tuple[str, ...], links: Sequence[str], condition: str) -> GroupedStatement:
    """Return a comparison of groups with those that scalar subqueries look up."""
    text = drawn.choice(_LOOKUPS)
    read = "m b" if text.startswith("WITH") else "({m}) b"
    shown = "{{size}}" if drawn.random() < 0.5 else "b.{{size}}"
    found = f"(SELECT {shown} FROM {read} WHERE {' AND '.join(links)})".replace("{{size}}", "{size}")
    condition = re.sub(r"\bb\.([nm])\b", lambda named: found.replace("{size}", named[1]), condition)
    return GroupedStatement(
        table=drawn.choice(TABLES),
        keys=keys,
        where=drawn.choice(("", "", "age > 1", "level <> 2")),
        sizes=(drawn.choice(_SIZES), drawn.choice(_SIZES)),
        text=text.replace("{condition}", f"({condition})").replace("{shown}", ", ".join(f"a.{key}" for key in keys)),
    )


def judge_self_join(statement: GroupedStatement, engines: Engines, tally: Tally) -> Disagreed[GroupedStatement] | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    return judge_cells(statement, engines, tally, _find_truth)


def _find_truth(statement: GroupedStatement, question: Question, engines: Engines) -> set[Key]:
    return fetch_keys(statement.text.replace("{m}", statement.list_sizes(question)), engines)
