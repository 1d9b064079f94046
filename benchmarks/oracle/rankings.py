"""Random rankings, judged: the order of the exact integers against PostgreSQL's order of the values of every group."""

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import psycopg

from benchmarks.oracle.judging import Tally, compute_values, parse_question
from benchmarks.oracle.statements import Branch, Statement, draw_aggregate, draw_having, draw_restriction, draw_where
from benchmarks.oracle.worlds import KEYS, TABLES, Engines, Key
from mechanisms.formula import Integers
from planner.errors import KeyholeError
from planner.lower.scan import rewrite

_FACTORS = ("", "", "", "2 * ", "-", "0.5 * ", "-3 * ")


@dataclass(frozen=True, slots=True)
class RandomRanking:
    """A ranking by a sum of aggregates with factors; `question` has what is said of keys, rows and groups."""

    question: Statement
    summands: tuple[tuple[str, str], ...]
    constant: str
    way: str

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        (only,) = self.question.branches
        by = " + ".join(f"{factor}{one}" for factor, one in self.summands) + self.constant
        return f"SELECT {', '.join(self.question.keys)} {self.question.write_grouped(only)} ORDER BY {by} {self.way}"

    @property
    def value(self) -> str:
        """What PostgreSQL computes of one group, in which what has no values counts as 0."""
        return " + ".join(f"{factor}coalesce({one}, 0)" for factor, one in self.summands) + self.constant


def draw_ranking(drawn: random.Random) -> RandomRanking:
    """A random ranking by one to three aggregates."""
    table, keys = drawn.choice(TABLES), drawn.choice(KEYS)
    only = Branch(
        draw_restriction(drawn, keys), draw_where(drawn, keys), draw_having(drawn) if drawn.random() < 0.2 else ""
    )
    count = drawn.choice((1, 1, 2, 3))
    summands = tuple((drawn.choice(_FACTORS), draw_aggregate(drawn)) for _ in range(count))
    if drawn.random() < 0.1:
        summands = (("", "count(DISTINCT person)"),)
    way = drawn.choice(("", "ASC", "DESC", "DESC NULLS LAST", "DESC LIMIT 3", "FETCH FIRST 2 ROWS ONLY"))
    return RandomRanking(Statement(table, keys, (only,), ()), summands, drawn.choice(("", "", " + 3", " - 0.5")), way)


def judge_ranking(asked_for: RandomRanking, engines: Engines, tally: Tally) -> str | None:
    """Both sources on the order of any two groups, with rows and without; None where they agree with PostgreSQL, or
    where there is nothing to judge."""
    try:
        question = parse_question(asked_for.sql)
    except KeyholeError as error:
        if error.code in ("KH900", "KH100", "KH106"):
            raise
        tally.refused[error.code] += 1
        return None
    assert question is not None
    assert question.ranked is not None, asked_for.sql
    (only,) = asked_for.question.branches
    try:
        wanted = compute_values(asked_for.question, only, asked_for.value, engines)
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    keys = [question.keys.get_key(place) for place in range(question.keys.size)]
    sign = 1 if question.ranked.descending is ("DESC" in asked_for.way) else -1
    for source in engines.sources:
        there = replace(
            question,
            table=replace(question.table, relation=engines.relations[source.dialect.name]),
            functionals=question.computed_functionals,
            ranked=None,
        )
        found = source.read_aggregates(
            rewrite(there, dialect=source.dialect), question.keys, functionals=len(there.functionals), timeout_ms=60_000
        ).values[-1]
        wrong = _find_parted(keys, sign * found, wanted)
        if wrong is not None:
            return f"{source.dialect.name}: {wrong}"
    return None


def _find_parted(keys: list[Key], found: Integers, wanted: dict[Key, Fraction]) -> str | None:
    """Two keys that stand otherwise by the integers than by PostgreSQL's values; None where all pairs agree."""
    order = sorted(range(len(keys)), key=lambda place: (int(found[place]), wanted[keys[place]]))
    for one, other in pairwise(order):
        by_found, by_wanted = int(found[other]) - int(found[one]), wanted[keys[other]] - wanted[keys[one]]
        if (by_found > 0) != (by_wanted > 0) or by_wanted < 0:
            return f"{keys[one]} {found[one]} {wanted[keys[one]]}, {keys[other]} {found[other]} {wanted[keys[other]]}"
    return None
