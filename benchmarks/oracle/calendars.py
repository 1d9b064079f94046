"""Random questions with a calendar that is joined from the left: PostgreSQL reads the text as it stands.

Its tables are the bounded rows. An empty period is a group for it, too. So nothing is counted as 0 for it that is NULL,
and where WHERE speaks of rows the conditions are such that no group without rows meets them.
"""

import random
from dataclasses import dataclass

import psycopg

from benchmarks.oracle.judging import Tally, list_decided, parse_question
from benchmarks.oracle.windows import Disagreed, decide_cells, fetch_keys
from benchmarks.oracle.worlds import TABLES, Engines, name_bounded
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.functionals.cell_readings import reads_cells

_MONTHS = (
    "generate_series(DATE '2026-01-01', DATE '2026-03-01', interval '1 month') AS c(d)",
    "generate_series('2026-01-01'::timestamp, '2026-02-20', '1 month') AS c(d)",
    "generate_series(timestamp '2026-02-01', timestamp '2026-03-01', interval '1 month') c(d)",
    "(SELECT generate_series(DATE '2026-01-01', DATE '2026-03-01', interval '1 month')::date AS d) c",
    "(SELECT g::date AS d FROM generate_series(DATE '2026-01-01', DATE '2026-03-31', interval '2 months') AS g) AS c",
    "(SELECT DISTINCT date_trunc('month', g)::date FROM generate_series(DATE '2026-01-09', '2026-03-02', '7 days') g) "
    "c(d)",
)  # fmt: skip
_LINKS = (
    "v.month = c.d", "c.d = v.month", "date_trunc('month', v.seen) = c.d", "v.month = c.d::date",
    "v.seen >= c.d AND v.seen < c.d + interval '1 month'", "(c.d = date_trunc('month', v.seen)::date)",
)  # fmt: skip
_LISTS = {
    "level": (
        ("generate_series(1, 2) AS l(x)", "v.level = l.x"), ("(VALUES (1), (7)) AS l(x)", "v.level = l.x"),
        ("generate_series(1, 7, 6) l(x)", "l.x = v.level"),
    ),
    "ward": (
        ("(VALUES ('A'), ('empty'), ('B')) AS l(x)", "v.ward = l.x"), ("(VALUES ('o''hare')) l(x)", "l.x = v.ward"),
    ),
}  # fmt: skip
_SIZES = (
    "count(v.id)", "count(v.age)", "count(v.seen) FILTER (WHERE v.insured)", "coalesce(sum(v.age), 0)",
    "sum(CASE WHEN v.insured THEN 1 ELSE 0 END)", "coalesce(sum(v.cost), 0)", "sum(coalesce(v.age, 0))",
    "coalesce(sum(v.age) FILTER (WHERE v.age > 2), 0)", "count(DISTINCT v.person)",
)  # fmt: skip
_ALONE = ("count(*)", "sum(v.age)", "count(1)")
_FURTHER = ("", "", "", " AND v.insured", " AND v.age > 2", " AND v.seen >= '2026-02-01'", " AND v.kind IS NULL")
_WINDOWS = (
    "lag(n) OVER ({part}ORDER BY {by})", "sum(n) OVER ({part}ORDER BY {by} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "avg(n) OVER ()", "lead(n, 1, 0) OVER ({part}ORDER BY {by})", "sum(n) OVER ({part}ORDER BY {by})", "max(n) OVER ()",
)  # fmt: skip
_CONDITIONS = ("n {o} w", "n {o} 2 * w", "n - w {o} {c}", "w {o} {c}", "n {o} {c} AND n {o} w", "n > 1.5 * w")
_KEPT = {
    "c.d": (
        "c.d > '2026-01-15'",
        "extract(month FROM c.d) <> 2",
        "c.d < DATE '2025-01-01'",
        "to_char(c.d, 'MM') = '03'",
    ),
    "l.x": ("l.x IS NOT NULL", "l.x IN {some}"),
}
_GROUPED = ("count(*)", "count(age)", "sum(age)", "sum(cost)")


@dataclass(frozen=True, slots=True)
class CalendarStatement:
    """A statement whose `text` has {table} in the place of the private table."""

    table: Table
    keys: tuple[str, ...]
    text: str

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        return self.text.replace("{table}", self.table.name)

    @property
    def compares_means(self) -> bool:
        """False: the sizes are counts and sums."""
        return False


def draw_calendar(drawn: random.Random) -> CalendarStatement:
    """Return a random question with a calendar."""
    table = drawn.choice(TABLES)
    other = drawn.choice(("", "", "level", "ward"))
    sources, links, shown, grouped = [drawn.choice(_MONTHS)], [drawn.choice(_LINKS)], ["c.d::date AS d"], ["c.d"]
    if other:
        source, link = drawn.choice(_LISTS[other])
        for parts, part in ((sources, source), (links, link), (shown, "l.x"), (grouped, "l.x")):
            parts.append(part)
    keys = ("month", other) if other == "ward" else ("month",)
    if other == "level":
        keys, sources, links, shown, grouped = ("level",), sources[1:], links[1:], shown[1:], grouped[1:]
    names = [one.rpartition(".")[2].split(" ")[-1] for one in shown]
    drawn.shuffle(links)
    if drawn.random() < 0.25:
        return _draw_beside_groups(drawn, table, keys, sources, names)
    on = " AND ".join(links) + drawn.choice(_FURTHER)
    kept = drawn.choice(_KEPT[grouped[0]]) if drawn.random() < 0.2 else ""
    kept = kept.replace("{some}", "(1)" if other == "level" else "('A', 'B')")
    from_ = f"{' CROSS JOIN '.join(sources)} LEFT JOIN {{table}} v ON {on}"
    condition = drawn.choice(_CONDITIONS).format(o=drawn.choice((">", ">=", "<", "<=")), c=drawn.randint(-1, 6))
    size = drawn.choice(_SIZES)
    columns = ", ".join(names)
    if drawn.random() < 0.4:
        operator, number = drawn.choice((">", ">=", "<", "<=")), drawn.randint(0, 6)
        threshold, is_above = f"{size} {operator} {number}", operator.startswith(">") and number > 0
        if drawn.random() < 0.4:
            threshold, is_above = f"{drawn.choice(_ALONE)} {drawn.choice(('>', '>='))} {drawn.randint(2, 5)}", True
        elif drawn.random() < 0.2:
            threshold, is_above = f"count(*) {drawn.choice(('<', '<=', '='))} {drawn.randint(2, 5)}", False
        where = ""
        if is_above:
            where = drawn.choice(("", " WHERE v.age > 1", " WHERE v.insured AND v.age IS NOT NULL"))
        return CalendarStatement(
            table,
            keys,
            f"SELECT {', '.join(shown)} FROM {from_}{where} GROUP BY {', '.join(grouped)} HAVING {threshold}",
        )
    part = f"PARTITION BY {names[1]} " if len(names) > 1 else ""
    window = drawn.choice(_WINDOWS).format(part=part, by=names[0])
    from_ += f" WHERE {kept}" if kept else ""
    groups = f"SELECT {', '.join(shown)}, {size} AS n FROM {from_} GROUP BY {', '.join(grouped)}"
    if drawn.random() < 0.5:
        windows = f"SELECT {columns}, n, {window} AS w FROM m"
        text = f"WITH m AS ({groups}) SELECT {columns} FROM ({windows}) q WHERE {condition}"
    else:
        part = f"PARTITION BY {grouped[1]} " if len(names) > 1 else ""
        window = drawn.choice(_WINDOWS).format(part=part, by=grouped[0]).replace("(n", f"({size}")
        text = f"SELECT {columns} FROM ({groups.replace(' AS n ', f' AS n, {window} AS w ')}) q WHERE {condition}"
    return CalendarStatement(table, keys, text)


def _draw_beside_groups(
    drawn: random.Random, table: Table, keys: tuple[str, ...], sources: list[str], names: list[str]
) -> CalendarStatement:
    """Return a question about a grouped query that is joined to the calendar."""
    columns = {"d": "c.d", "x": "l.x"}
    listed = [columns[name] for name in names]
    size = "coalesce(p.n, 0)"
    on = " AND ".join(f"p.{key} = {column}" for key, column in zip(keys, listed, strict=True))
    where = drawn.choice(("", " WHERE age > 1", " WHERE insured"))
    grouped = (
        f"(SELECT {', '.join(keys)}, {drawn.choice(_GROUPED)} AS n FROM {{table}}{where} GROUP BY {', '.join(keys)}) p"
    )
    from_ = f"{' CROSS JOIN '.join(sources)} LEFT JOIN {grouped} ON {on}"
    shown = ", ".join(f"{one}::date AS d" if one == "c.d" else one for one in listed)
    condition = drawn.choice(_CONDITIONS).format(o=drawn.choice((">", ">=", "<", "<=")), c=drawn.randint(-1, 6))
    if drawn.random() < 0.4:
        compared = f"{size} {drawn.choice(('>', '>=', '<', '<='))} {drawn.randint(0, 6)}"
        return CalendarStatement(table, keys, f"SELECT {shown} FROM {from_} WHERE {compared}")
    part = f"PARTITION BY {listed[1]} " if len(names) > 1 else ""
    window = drawn.choice(_WINDOWS).format(part=part, by=listed[0]).replace("(n", f"({size}")
    inner = f"SELECT {shown}, {size} AS n, {window} AS w FROM {from_}"
    return CalendarStatement(table, keys, f"SELECT {', '.join(names)} FROM ({inner}) q WHERE {condition}")


def judge_calendar(statement: CalendarStatement, engines: Engines, tally: Tally) -> Disagreed[CalendarStatement] | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge."""
    try:
        question = parse_question(statement.sql)
    except KeyholeError as error:
        if error.code in ("KH900", "KH100"):
            raise
        tally.refused[error.code] += 1
        return None
    if question is None or not question.keys.size or question.ranked is not None:
        tally.refused["none"] += 1
        return None
    try:
        held = fetch_keys(statement.text.replace("{table}", name_bounded(statement.table, statement.keys)), engines)
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    if reads_cells(question):
        decided = [(source.dialect.name, decide_cells(question, source, engines)) for source in engines.sources]
    else:
        decided = list(list_decided(question, question.formula, engines))
    for name, found in decided:
        if found != held:
            return Disagreed(statement, name, frozenset(held - found), frozenset(found - held))
    return None
