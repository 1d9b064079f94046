"""Random comparisons of groups with totals and means over other rows than the question's WHERE leaves.

For PostgreSQL the groups are a list with every group of the question, where a group without rows has 0. A total over
rows is the sum over the list of the groups by the total's own WHERE.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.oracle.judging import Tally, write_literal
from benchmarks.oracle.windows import Disagreed, fetch_keys, judge_cells, list_sizes
from benchmarks.oracle.worlds import CATALOG, LEVELS, MONTHS, TABLES, WARDS, Engines, Key, name_bounded
from planner.catalog.catalog import Table
from planner.extract.outer_query import Asking
from planner.question.question import Question
from planner.statements.classify import classify

_KEYS = (("month",), ("ward",), ("level",), ("ward", "level"), ("month", "ward"))
_SIZES = (
    "count(*)", "count(age)", "sum(age)", "sum(cost)", "sum(fee)", "count(*) FILTER (WHERE insured)",
    "sum(cost) FILTER (WHERE age > 3 OR insured)",
)  # fmt: skip
_UNITS = ("count(DISTINCT person)", "count(DISTINCT person) FILTER (WHERE insured)")
_ROWS = (
    "age > 1", "insured", "NOT insured", "cost > 0 OR insured", "kind = 'a'", "weight IS NULL", "age BETWEEN 1 AND 4",
    "(age > 2 AND cost < 2)", "kind IN ('a', 'b')",
)  # fmt: skip
_BY_KEY = {
    "month": ("month >= '2026-02-01'", "month <> '2026-02-01'"),
    "level": ("level <> 2", "level < 7", "level BETWEEN 2 AND 6", "NOT (level = 1 OR level > 6)"),
    "ward": ("ward IN ('A', 'empty')", "ward <> 'A'", "NOT ward = 'o''hare'", "ward NOT IN ('B')"),
}
_CONDITIONS = (
    "{n} {o} {q} * {v}", "{n} {o} {q} * {v}", "{n} - {v} {o} {c}", "{n} {o} {q} * {v} OR {n} {o} {v} + {c}",
    "NOT ({n} {o} {q} * {v})", "{n} BETWEEN {q} * {v} AND {v} + {c}", "100.0 * {n} / nullif({v}, 0) {s} 40",
)  # fmt: skip
_MEAN_CONDITIONS = ("{n} {o} {m} * {v}", "NOT ({n} {o} {m} * {v})", "{n} - {v} {o} 0.37")
_DOMAINS: Mapping[str, Sequence[Any]] = {"month": MONTHS, "level": LEVELS, "ward": WARDS}
_EXACT = ("0.1", "0.25", "0.5", "1.2")
_ROUNDED = ("0.31", "0.73", "1.13", "1.91")  # PostgreSQL rounds means: there must be few ties
_IN_HAVING = (
    "SELECT {keys} FROM {t} WHERE {own} GROUP BY {keys} HAVING {condition:({rows})}",
    "SELECT {keys} FROM {t} AS t WHERE {own} GROUP BY {keys} HAVING {condition:(SELECT v FROM ({rows}) z)}",
    "WITH z AS ({rows}) SELECT {keys} FROM {t}, z WHERE {own} GROUP BY {keys}, z.v HAVING {condition:z.v}",
    "SELECT {keys} FROM {t} CROSS JOIN ({rows}) z WHERE {own} GROUP BY {keys}, z.v HAVING {condition:max(z.v)}",
)
_GROUPED = "SELECT {keys}, {size} AS n FROM {t} WHERE {own} GROUP BY {keys}"
_OF_GROUPS = (
    "SELECT {keys} FROM {t} WHERE {own} GROUP BY {keys} HAVING {condition:(SELECT avg(m) FROM ({groups}) g)}",
    "WITH g AS ({groups}) SELECT {keys} FROM {t} WHERE {own} GROUP BY {keys} HAVING {condition:(SELECT avg(m) FROM g)}",
    "SELECT {keys} FROM {t} CROSS JOIN (SELECT avg(m) AS v FROM ({groups}) g) z WHERE {own} GROUP BY {keys}, z.v "
    "HAVING {condition:z.v}",
    f"WITH s AS ({_GROUPED}), g AS ({{groups}}) SELECT {{keys}} FROM s WHERE {{condition:(SELECT avg(m) FROM g)}}",
    f"WITH s AS ({_GROUPED}), z AS (SELECT avg(m) AS v FROM ({{groups}}) g) SELECT {{keys}} FROM s, z "
    "WHERE {condition:z.v}",
)
_AROUND = (
    f"SELECT {{keys}} FROM ({_GROUPED}) s WHERE {{condition:({{rows}})}}",
    f"WITH s AS ({_GROUPED}) SELECT {{keys}} FROM s WHERE {{condition:({{rows}})}}",
)


@dataclass(frozen=True, slots=True)
class OtherRowsStatement:
    """A comparison of the size `own` of rows of `where` with a total of `size` over rows of `other`.

    `text` has the statement with {condition:...} for the comparison, whose part after the colon is read as the total.
    The condition `chosen` on a key chooses groups. It stands in HAVING if it `is_in_having`, else in WHERE.
    With `kind` "mean" the total is the mean over groups, with "part" it is over the groups alike in the first key.
    """

    table: Table
    keys: tuple[str, ...]
    where: str
    other: str
    own: str
    size: str
    condition: str
    text: str
    kind: str = "all"
    mean: str = ""
    chosen: str = ""
    is_in_having: bool = False

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        before, _, total = self.text.removesuffix("}").partition("{condition:")
        filtered = [f"({self.other})"] if self.other else []
        if self.kind == "part":
            filtered.append(f"z.{self.keys[0]} = {self.table.name}.{self.keys[0]}")
        kept = f" WHERE {' AND '.join(filtered)}" if filtered else ""
        called = f"{self.table.name} z" if self.kind == "part" else self.table.name
        names = {
            "keys": ", ".join(self.keys),
            "t": self.table.name,
            "own": self.where + (f" AND {self.chosen}" if self.chosen and not self.is_in_having else ""),
            "size": self.own,
            "rows": f"SELECT {self.size} AS v FROM {called}{kept}",
            "groups": f"SELECT {', '.join(self.keys)}, {self.size} AS m FROM {self.table.name}{kept} "
            f"GROUP BY {', '.join(self.keys)}",
        }
        own = "n" if "AS n " in before else self.own
        condition = self.condition.format(n=own, v=total.format(**names))
        if self.chosen and self.is_in_having:
            condition = f"{self.chosen} AND ({condition})"
        return before.format(**names) + condition

    @property
    def compares_means(self) -> bool:
        """True if both sides are means of rows."""
        return bool(self.mean)


def draw_other_rows(drawn: random.Random) -> OtherRowsStatement:
    """Return a random comparison with a total over other rows."""
    keys = drawn.choice(_KEYS)
    table = drawn.choice(TABLES)
    free = [text for key, texts in _BY_KEY.items() if key not in keys for text in texts]
    chosen = drawn.sample([*_ROWS, *free], k=drawn.choice((1, 1, 2)))
    shared = chosen[:1] if drawn.random() < 0.3 else []
    other = [*shared, *drawn.sample(_ROWS, k=drawn.choice((0, 0, 1)))]
    kind = drawn.choice(("all", "all", "mean", *(["part"] if len(keys) > 1 else [])))
    means = kind != "mean" and drawn.random() < 0.25
    size = drawn.choice(_SIZES)
    own = size if drawn.random() < 0.6 else drawn.choice(_SIZES)
    column = drawn.choice(("age", "cost", "fee"))
    if kind != "mean" and table.unit == ("person",) and drawn.random() < 0.4:
        means, size = False, drawn.choice(_UNITS)
        own = size if drawn.random() < 0.6 else drawn.choice((*_SIZES, *_UNITS))
    if means:
        own = size = f"avg({column})"
    texts = {"all": (*_IN_HAVING, *_AROUND), "mean": _OF_GROUPS, "part": _IN_HAVING[:1]}[kind]
    condition = drawn.choice(_MEAN_CONDITIONS if means else _CONDITIONS)
    text = drawn.choice(texts)
    chooses = kind != "part" and drawn.random() < 0.3
    return OtherRowsStatement(
        table=table,
        keys=keys,
        where=" AND ".join(f"({one})" if " OR " in one and (len(chosen) > 1 or chooses) else one for one in chosen),
        other=" AND ".join(f"({one})" if " OR " in one else one for one in other),
        own=own,
        size=size,
        condition=condition.replace("{o}", drawn.choice((">", ">=", "<", "<=")))
        .replace("{s}", drawn.choice("><"))
        .replace("{q}", drawn.choice(_EXACT if kind != "mean" else _ROUNDED))
        .replace("{c}", str(drawn.randint(-5, 9)))
        .replace("{m}", drawn.choice(_ROUNDED)),
        text=text,
        kind=kind,
        chosen=drawn.choice(_BY_KEY[drawn.choice(keys)]) if chooses else "",
        is_in_having="HAVING {condition" in text and drawn.random() < 0.5,
        mean=column if means else "",
    )


def judge_other_rows(
    statement: OtherRowsStatement, engines: Engines, tally: Tally
) -> Disagreed[OtherRowsStatement] | None:
    """Return where a source disagrees with PostgreSQL; None where both agree, or there is nothing to judge.

    The text around the question is asked about all groups: it must leave those that are chosen.
    """
    judged = tally.judged
    found = judge_cells(statement, engines, tally, _find_truth)
    if found is not None or tally.judged == judged:
        return found
    keys = ", ".join(statement.keys)
    every = f"(SELECT * FROM (VALUES {_list_groups(statement)}) AS d ({keys}))"
    around = _read_text_around(statement.sql)
    left = fetch_keys("".join(part if isinstance(part, str) else every for part in around), engines)
    held = fetch_keys(f"SELECT {keys} FROM {every} d WHERE {statement.chosen or 'true'}", engines)
    missing, surplus = frozenset(held - left), frozenset(left - held)
    return Disagreed(statement, "the text around", missing, surplus) if missing or surplus else None


def _read_text_around(sql: str) -> tuple[str | int, ...]:
    """Return the text around a question, with an integer where its answer stands."""
    asking = classify(sql, CATALOG)
    assert isinstance(asking, Asking)
    return asking.outer


def _list_groups(statement: OtherRowsStatement) -> str:
    groups = itertools.product(*(_DOMAINS[key] for key in statement.keys))
    return ", ".join("(" + ", ".join(map(write_literal, group)) + ")" for group in groups)


def _find_truth(statement: OtherRowsStatement, question: Question, engines: Engines) -> set[Key]:
    mean, keys = statement.mean, ", ".join(statement.keys)
    own = {"n": statement.own if mean else f"coalesce({statement.own}, 0)"}
    size = (
        {"total": f"coalesce(sum({mean}), 0)", "rows": f"count({mean})"}
        if mean
        else {"m": f"coalesce({statement.size}, 0)"}
    )
    total = "sum(total) / nullif(sum(rows), 0)" if mean else "avg(m)" if statement.kind == "mean" else "sum(m)"
    sizes = list_sizes(statement.table, statement.keys, statement.where, own, question)
    others = list_sizes(statement.table, statement.keys, statement.other, size, question)
    part = f" WHERE z.{statement.keys[0]} = s.{statement.keys[0]}" if statement.kind == "part" else ""
    read = f"SELECT {total} FROM ({others}) z{part}"
    if statement.size in _UNITS:
        read = _count_units(statement, question)
    condition = statement.condition.format(n="s.n", v=f"({read})")
    return fetch_keys(f"SELECT {keys} FROM ({sizes}) s WHERE {condition}", engines)


def _count_units(statement: OtherRowsStatement, question: Question) -> str:
    """Return SQL for the number of units with bounded rows in any listed group, beside the group `s` of a statement."""
    listed = [question.keys.get_key(place) for place in range(question.keys.size)]
    values = ", ".join("(" + ", ".join(map(write_literal, key)) + ")" for key in listed)
    tests = [f"z.{key} = d.d_{key}" for key in statement.keys]
    tests += [f"({statement.other})"] if statement.other else []
    tests += [f"z.{statement.keys[0]} = s.{statement.keys[0]}"] if statement.kind == "part" else []
    bounded = f"SELECT * FROM {name_bounded(statement.table, statement.keys)}"
    return (
        f"SELECT {statement.size} FROM ({bounded}) z, "
        f"(VALUES {values}) AS d ({', '.join(f'd_{key}' for key in statement.keys)}) WHERE {' AND '.join(tests)}"
    )
