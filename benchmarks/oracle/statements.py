"""Random questions as analysts write them, over the tables of `benchmarks.oracle.worlds`."""

import random
from dataclasses import dataclass

from benchmarks.oracle.worlds import KEYS, TABLES
from planner.catalog.catalog import Table

_FILTERS = (
    "insured", "NOT insured", "insured IS NOT TRUE", "insured IS NULL", "age > 3 OR age IS NULL", "cost <= 1.5",
    "kind = 'a'", "kind IN ('a', '')", "kind NOT IN ('b', 'a%b')", "kind LIKE 'a%'", "kind NOT LIKE 'a\\%%'",
    "age BETWEEN 2 AND 5", "NOT (age BETWEEN 2 AND 5 AND insured)", "age NOT IN (1, 2)", "height > 0.25",
    "seen >= '2026-02-01'", "seen < timestamp '2026-02-14 12:00'", "month = '2026-02-01'", "ward = 'A'",
    "ward <> 'o''hare' OR level = 7", "person <= 3", "level IN (1, 2)", "cost = 1.5 OR age = 2",
    "(age > 1) IS UNKNOWN", "true", "NULL::boolean",
    "seen BETWEEN '2026-01-01' AND '2026-02-01'", "weight <> 2",
    "kind IS DISTINCT FROM 'a'", "age IS NOT DISTINCT FROM NULL",
)  # fmt: skip
_ROWS = (
    "age", "cost", "weight", "height", "fee", "age * 2", "-cost", "age + 1", "age - cost", "cost / 2", "cost + fee",
    "coalesce(age, 0)", "coalesce(cost, 1.5)", "coalesce(age, cost, 2)", "coalesce(fee, 0) * 2", "weight::numeric",
    "CASE WHEN insured THEN age END", "CASE WHEN insured THEN age ELSE 0 END", "CASE WHEN insured THEN fee END",
    "CASE WHEN age > 5 THEN 3 WHEN insured THEN cost ELSE age END", "CASE WHEN insured THEN 1 ELSE 0 END",
    "CASE WHEN insured THEN 1 END", "CASE insured WHEN true THEN 2 WHEN false THEN 1 END", "(age > 3)::int",
    "CASE kind WHEN 'a' THEN weight WHEN 'b' THEN -weight END", "CASE WHEN age IS NULL THEN 2 ELSE NULL END",
    "CASE WHEN cost > 1 THEN -cost ELSE age - 4 END", "insured::int", "1", "2.5",
    "CASE WHEN kind LIKE 'a%' THEN 1.0 ELSE 0 END", "age::numeric / 2", "100 * height",
    "age * cost", "cost * age * fee", "(age + 1) * cost * fee", "coalesce(age * cost, 1) * age", "age * 0 * cost + fee",
    "age * cost - weight",
)  # fmt: skip
_MEASURED = ("age", "cost", "weight", "height")
_KEY_CONDITIONS = {
    "ward": ("ward <> 'A'", "ward IN ('A', 'empty')", "ward LIKE 'o%'", "NOT ward = 'B'"),
    "level": ("level > 1", "level BETWEEN 2 AND 6", "level <> 2"),
    "month": ("month >= '2026-02-01'", "month < date '2026-03-01' - interval '1 day'", "month IN ('2026-01-01')"),
}
_OPERATIONS = ("UNION", "INTERSECT", "EXCEPT")


@dataclass(frozen=True, slots=True)
class Branch:
    """One question: what it says of keys, of rows and of groups."""

    restriction: str
    where: str
    having: str


@dataclass(frozen=True, slots=True)
class Statement:
    """Questions of one table by the same keys, joined from left to right by set operations in parentheses."""

    table: Table
    keys: tuple[str, ...]
    branches: tuple[Branch, ...]
    operations: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        made = self._write_question(self.branches[0])
        for operation, branch in zip(self.operations, self.branches[1:], strict=True):
            made = f"({made}) {operation} ({self._write_question(branch)})"
        return made

    def _write_question(self, branch: Branch) -> str:
        return f"SELECT {', '.join(self.keys)} {self.write_grouped(branch)}"

    def write_grouped(self, branch: Branch) -> str:
        """A question from FROM on."""
        kept = " AND ".join(f"({part})" for part in (branch.restriction, branch.where) if part)
        where = f" WHERE {kept}" if kept else ""
        having = f" HAVING {branch.having}" if branch.having else ""
        return f"FROM {self.table.name}{where} GROUP BY {', '.join(self.keys)}{having}"


def draw_statement(drawn: random.Random) -> Statement:
    """A random question, or a set operation between some."""
    table, keys = drawn.choice(TABLES), drawn.choice(KEYS)
    common = draw_restriction(drawn, keys)
    count = drawn.choice([1, 1, 1, 1, 1, 2, 3])
    branches = tuple(
        Branch(
            common if drawn.random() < 0.9 else draw_restriction(drawn, keys),
            draw_where(drawn, keys),
            draw_having(drawn),
        )
        for _ in range(count)
    )
    return Statement(table, keys, branches, tuple(drawn.choice(_OPERATIONS) for _ in range(count - 1)))


def draw_restriction(drawn: random.Random, keys: tuple[str, ...]) -> str:
    """A condition on keys, or none."""
    return drawn.choice(_KEY_CONDITIONS[drawn.choice(keys)]) if drawn.random() < 0.2 else ""


def draw_where(drawn: random.Random, keys: tuple[str, ...]) -> str:
    """A condition on rows; one on keys alone would restrict the keys instead."""
    if drawn.random() < 0.6:
        return ""
    parts = [drawn.choice(_FILTERS) for _ in range(drawn.randint(1, 2))]
    mixed = [f"({part} OR cost > 1)" if any(key in part for key in keys) else f"({part})" for part in parts]
    return drawn.choice([" AND ", " OR "]).join(mixed)


def draw_having(drawn: random.Random) -> str:
    """A formula, often with guards."""
    filters = (drawn.choice(_FILTERS),) if drawn.random() < 0.5 else _FILTERS
    made = _draw_formula(drawn, drawn.choice([0, 0, 0, 1, 1, 2]), filters)
    guards = drawn.choice(["", "", "count(*) >= 1", "count(age) >= 1", "count(*) > 0 AND count(cost) > 0"])
    if drawn.random() < 0.5:
        suffixes = ("", f" FILTER (WHERE {filters[0]})") if len(filters) == 1 else ("", " FILTER (WHERE insured)")
        counted = ("*", *drawn.sample((*_MEASURED, "fee", "insured", "kind"), 3))
        guards = " AND ".join(f"count({column}){suffix} >= 1" for suffix in suffixes for column in counted)
    return f"{guards} AND {made}" if guards else made


def _draw_formula(drawn: random.Random, depth: int, filters: tuple[str, ...]) -> str:
    if depth == 0:
        return _draw_atom(drawn, filters)
    parts = [_draw_formula(drawn, depth - 1, filters) for _ in range(drawn.randint(1, 3))]
    joined = f"({drawn.choice([' AND ', ' OR ']).join(parts)})"
    if drawn.random() < 0.3:
        return f"NOT {joined}"
    return f"({joined}) IS {drawn.choice(['TRUE', 'FALSE'])}" if drawn.random() < 0.05 else joined


def draw_compared_aggregate(drawn: random.Random) -> str:
    """A count, sum or mean to compare with numbers."""
    row, filter_ = drawn.choice(_ROWS), _draw_filter(drawn, _FILTERS)
    return drawn.choice(
        (_draw_filtered_aggregate(drawn, _FILTERS), f"avg({row}){filter_}", f"coalesce(sum({row}){filter_}, 0)")
    )


def _draw_filter(drawn: random.Random, filters: tuple[str, ...]) -> str:
    return f" FILTER (WHERE {drawn.choice(filters)})" if drawn.random() < 0.4 else ""


def _draw_number(drawn: random.Random) -> str:
    whole = str(drawn.randint(-2, 9))
    return drawn.choice([whole, f"{drawn.uniform(-2, 9):.2f}", str(drawn.randint(0, 4)), f"{whole}.5", f"'{whole}'"])


def _draw_filtered_aggregate(drawn: random.Random, filters: tuple[str, ...]) -> str:
    row, filter_ = drawn.choice(_ROWS), _draw_filter(drawn, filters)
    return drawn.choice([f"count(*){filter_}", f"count({row}){filter_}", f"sum({row}){filter_}", f"sum({row})"])


def draw_aggregate(drawn: random.Random) -> str:
    """An aggregate that adds up, often with a FILTER."""
    return _draw_filtered_aggregate(drawn, _FILTERS)


def _draw_atom(drawn: random.Random, filters: tuple[str, ...]) -> str:
    operator, t = drawn.choice(["=", "<>", "<", "<=", ">", ">="]), _draw_number(drawn)
    row, column, filter_ = drawn.choice(_ROWS), drawn.choice(_MEASURED), _draw_filter(drawn, filters)
    one, other = _draw_filtered_aggregate(drawn, filters), _draw_filtered_aggregate(drawn, filters)
    both = "FILTER (WHERE age IS NOT NULL AND cost IS NOT NULL)"
    share = drawn.choice(["0.25", "0.5", "0.75", "1", "0.125"])
    negated = drawn.choice(["", "", "NOT "])
    units, rows = f"count(DISTINCT person){filter_}", f"{drawn.choice(['', '1.0 * '])}count(*){filter_}"
    return drawn.choice(
        [
            f"{one} {operator} {t}",
            f"{one} {operator} {t}",
            f"{t} {operator} {one}",
            f"avg({row}){filter_} {operator} {t}",
            f"{t} {operator} 2 * avg({row}){filter_} - 1",
            f"{one} {operator} {drawn.choice(['2 * ', '0.5 * ', '-', ''])}{other}",
            f"{one} {drawn.choice('+-')} {other} {operator} {t}",
            f"coalesce(sum({row}){filter_}, 0) {operator} {drawn.choice([t, other])}",
            f"coalesce(avg({row}), {drawn.randint(-1, 3)}) {operator} {t}",
            f"1.0 * {one} / count(*) {operator} {t}",
            f"{one}::numeric / nullif(count(*){filter_}, 0) {operator} {t}",
            f"100.0 * count(*){filter_} / nullif(count(*), 0) {operator} {drawn.randint(0, 10) * 10}",
            f"{one} / nullif(count({column}){filter_}, 0)::numeric {operator} {t}",
            f"sum({row}){filter_} / sum(weight)::numeric {operator} {t}",
            f"avg({row}) - avg({row}) {operator} avg({row}) - {t}",
            f"avg(age) {both} {operator} avg(cost) {both} + {t}",
            f"{drawn.choice(['max', 'min'])}({column}){filter_} {operator} {t}",
            f"{t} {operator} {drawn.choice(['max', 'min'])}({column})",
            f"max(seen){filter_} {operator} '2026-02-01'",
            f"percentile_disc({share}) WITHIN GROUP (ORDER BY {column}){filter_} {operator} {t}",
            f"round(avg({column}){filter_}, {drawn.randint(0, 1)}) {operator} {t}",
            f"{drawn.choice(['floor', 'ceil', 'round'])}(sum(cost){filter_}) {operator} {t}",
            f"{drawn.choice(['floor', 'ceil', 'round'])}({one}::numeric) {operator} {drawn.randint(-2, 9)}",
            f"round(100.0 * count(*){filter_} / count(*)) {operator} {drawn.randint(0, 10) * 10}",
            f"avg({column}){filter_} {operator} avg({drawn.choice(_MEASURED)}) + {t}",
            f"{negated}bool_and(age > {drawn.randint(0, 5)}){filter_}",
            f"{drawn.choice(['bool_or', 'every'])}(insured){filter_} = {drawn.choice(['true', 'false'])}",
            f"{one} {negated}BETWEEN {t} AND {_draw_number(drawn)}",
            f"{one} {negated}IN ({t}, {_draw_number(drawn)}, {_draw_number(drawn)})",
            f"count(DISTINCT person){filter_} {operator} {t}",
            f"count(DISTINCT {drawn.choice(['kind', 'age', '(person, month)'])}){filter_} {operator} {t}",
            f"({one} {operator} {t}) = {drawn.choice(['true', 'false'])}",
            f"sum({row})::numeric / 2 {operator} {t}",
            f"count({row}){filter_}::int {operator} {t}",
            f"(sum({row}){filter_} / {units} {operator} {t} AND {units} >= 1)",
            f"({units} > {drawn.randint(0, 2)} AND {rows} / {units} {operator} {drawn.choice(['1', '2', '3', '-1'])})",
        ]
    )
