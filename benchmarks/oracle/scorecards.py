"""Random scorecards, judged: what the integers say of every predicate, and what PostgreSQL says of every group."""

import random
from dataclasses import dataclass

import psycopg

from benchmarks.oracle.judging import Tally, asked, decided_by, held_in
from benchmarks.oracle.statements import Branch, Statement, having, restriction, where
from benchmarks.oracle.worlds import KEYS, TABLES, Engines
from planner.errors import KeyholeError

_AROUND = (
    "{}",
    "({})::int",
    "CASE WHEN {} THEN 'yes' ELSE 'no' END",
    "coalesce({}, false)",
    "({}) AND {key} IS NOT NULL",
)


@dataclass(frozen=True, slots=True)
class RandomScorecard:
    """A question with predicates, each in some expression; `question` has its HAVING, "" for none."""

    question: Statement
    predicates: tuple[str, ...]
    shown: tuple[str, ...]

    @property
    def sql(self) -> str:
        """As it is asked."""
        (only,) = self.question.branches
        names = ", ".join(self.question.keys)
        kept = " AND ".join(f"({part})" for part in (only.restriction, only.where) if part)
        where_ = f" WHERE {kept}" if kept else ""
        having_ = f" HAVING {only.having}" if only.having else ""
        shown = ", ".join((names, *self.shown))
        return f"SELECT {shown} FROM {self.question.table.name}{where_} GROUP BY {names}{having_}"


def scorecard(drawn: random.Random) -> RandomScorecard:
    """A random scorecard of one to three predicates."""
    table, keys = drawn.choice(TABLES), drawn.choice(KEYS)
    only = Branch(restriction(drawn, keys), where(drawn, keys), having(drawn) if drawn.random() < 0.3 else "")
    predicates = tuple(having(drawn) for _ in range(drawn.choice((1, 1, 2, 3))))
    shown = tuple(drawn.choice(_AROUND).format(one, key=keys[0]) for one in predicates)
    return RandomScorecard(Statement(table, keys, (only,), ()), predicates, shown)


def judge_scorecard(card: RandomScorecard, engines: Engines, tally: Tally) -> str | None:
    """Both sources on every predicate of a scorecard; None where they agree with PostgreSQL, in groups with rows and
    without, or where there is nothing to judge."""
    try:
        question = asked(card.sql)
    except KeyholeError as error:
        if error.code in ("KH900", "KH100", "KH106"):
            raise
        tally.refused[error.code] += 1
        return None
    assert question is not None
    (only,) = card.question.branches
    distinct = tuple(dict.fromkeys(card.predicates))
    assert len(question.predicates) == len(distinct), card.sql
    try:
        held = [held_in(card.question, Branch(only.restriction, only.where, one), engines) for one in distinct]
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    for number, wanted in enumerate(held):
        for name, found in decided_by(question, question.predicates[number], engines):
            if found != wanted:
                return f"{name}, predicate {number + 1}: misses {wanted - found}, adds {found - wanted}"
    return None
