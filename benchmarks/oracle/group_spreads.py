"""Random comparisons with the spread of groups: standard scores, and a mean plus so many standard deviations.

PostgreSQL rounds roots and quotients. So the numbers that they are compared with are such that few groups meet one
exactly.
"""

import random

from benchmarks.oracle.windows import WindowStatement
from benchmarks.oracle.worlds import KEYS, TABLES

_SIZES = ("count(*)", "count(age)", "sum(age)", "sum(cost)", "sum(fee)", "count(*) FILTER (WHERE insured)")
_SPREADS = ("stddev({size})", "stddev_samp({size})", "stddev_pop({size})")
_SCORES = (
    "(n - {mean}) / nullif({spread}, 0)", "({mean} - n) / nullif({spread}, 0)",
    "(2 * n - 2 * {mean}) / nullif({spread}, 0)", "(n - {mean}) / nullif({spread}, 0) + 0.1",
)  # fmt: skip
_SCORE_CONDITIONS = (
    "w {o} {q}", "abs(w) {o} {q}", "NOT (w {o} {q})", "w BETWEEN -{q} AND {q}", "(w {o} {q}) IS NOT TRUE", "w {o} -{q}",
    "round(w, 1) {s} {q}", "w {o} {q} OR n {o} 3",
)  # fmt: skip
_LIMITS = ("{mean} + {q} * {spread}", "{mean} - {q} * {spread}", "{q} * {spread}", "{spread}")
_LIMIT_CONDITIONS = (
    "n {o} w", "n - w {o} 1.03", "NOT (n {o} w)", "n BETWEEN w - 0.77 AND 3.01 * w", "n {o} 0.57 * w", "w {o} 1.37",
)  # fmt: skip
_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING", "",
    "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", "ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING",
)  # fmt: skip
_NUMBERS = ("0.31", "0.73", "1.13", "1.91")


def draw_group_spread(drawn: random.Random) -> WindowStatement:
    """Return a random comparison of a group with the mean and the standard deviation of groups."""
    keys = drawn.choice(KEYS)
    size = drawn.choice(_SIZES)
    over = _draw_groups(drawn, keys)
    spread, number = f"{drawn.choice(_SPREADS)} OVER ({over})", drawn.choice(_NUMBERS)
    is_score = drawn.random() < 0.6
    written = drawn.choice(_SCORES if is_score else _LIMITS)
    condition = drawn.choice(_SCORE_CONDITIONS if is_score else _LIMIT_CONDITIONS)
    window = written.replace("n -", "{size} -").replace("- n", "- {size}").replace("* n", "* {size}")
    return WindowStatement(
        table=drawn.choice(TABLES),
        keys=keys,
        where=drawn.choice(("", "", "age > 1", "insured", "month >= '2026-02-01'", "level <> 2")),
        own=size,
        size=size,
        window=window.replace("{mean}", f"avg({{size}}) OVER ({over})")
        .replace("{spread}", spread)
        .replace("{q}", number),
        condition=condition.format(
            o=drawn.choice((">", ">=", "<", "<=")), s=drawn.choice("><"), q=drawn.choice(_NUMBERS)
        ),
        shape=drawn.choice(("plain", "two levels")),
    )


def _draw_groups(drawn: random.Random, keys: tuple[str, ...]) -> str:
    """Return what stands between the parentheses of OVER."""
    calendars = [key for key in keys if key in ("month", "level")]
    others = [key for key in keys if key not in calendars]
    part = f"PARTITION BY {', '.join(others)}" if others and len(keys) > 1 else ""
    if calendars and drawn.random() < 0.4:
        return f"{part} ORDER BY {calendars[0]} {drawn.choice(_FRAMES)}".strip()
    return part if drawn.random() < 0.5 else ""
