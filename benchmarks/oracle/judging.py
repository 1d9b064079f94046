"""One statement, judged: what the integers say on each source's own aggregates, and what PostgreSQL says."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import psycopg

from benchmarks.oracle.statements import Branch, Statement
from benchmarks.oracle.worlds import CATALOG, Engines, Key, list_domain, name_bounded
from mechanisms.formula import Booleans, Cut, Formula, Integers, evaluate_formula
from planner.bind.bind_question import bind_question
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.functionals.per_key_offsets import subtract_offsets
from planner.lower.scan import rewrite
from planner.plan.minimise import minimise
from planner.question.question import Question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.sources.protocol import Source

TODAY = date(2026, 6, 15)


@dataclass
class Tally:
    """How many statements were judged, were refused (by code), or mean nothing to PostgreSQL."""

    judged: int = 0
    joined: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    meaningless: int = 0


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Keys on which one source's integers and PostgreSQL differ."""

    statement: Statement
    source: str
    missing: frozenset[Key]
    surplus: frozenset[Key]


def judge(statement: Statement, engines: Engines, tally: Tally) -> Disagreement | None:
    """Both sources on one statement; None where they agree with PostgreSQL, or where there is nothing to judge."""
    try:
        question = parse_question(statement.sql)
    except KeyholeError as error:
        if error.code in ("KH900", "KH100"):
            raise
        tally.refused[error.code] += 1
        return None
    if question is None:
        tally.refused["several"] += 1
        return None
    try:
        held = _find_true_keys(statement, engines)
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    tally.joined += len(statement.branches) > 1
    for name, found in list_decided(question, question.formula, engines):
        if found != held:
            return Disagreement(statement, name, frozenset(held - found), frozenset(found - held))
    return None


def parse_question(sql: str, *, adds_guards: bool = False) -> Question | None:
    """The one question that the statement is, with no tolerance; None if it is several. Raises KH1xx, KH2xx.

    With `adds_guards` Keyhole may add counts beside comparisons, and the tolerance is the default.
    """
    statement = classify(sql, CATALOG)
    assert isinstance(statement, Asking)
    if len(statement.questions) != 1:
        return None
    settings: dict[str, str | None] = {} if adds_guards else {"keyhole.tolerance": "0", "keyhole.guard": "refuse"}
    wanted = read_accuracy(settings, CATALOG.defaults)
    return bind_question(statement.questions[0], CATALOG, accuracy=wanted, parameters={}, today=TODAY)


def list_decided(question: Question, formula: Formula, engines: Engines) -> Iterator[tuple[str, set[Key]]]:
    """By source and form, the keys for which one of the question's formulas holds on the exact integers."""
    keys = [question.keys.get_key(i) for i in range(question.keys.size)]
    formulas: dict[str, Formula] = {
        "as typed": formula,
        "minimised": minimise(formula).formula,
    }
    for source in engines.sources:
        compared = compute_exact_values(question, source, engines)
        for form, one in formulas.items():
            held = evaluate_formula(one, partial(decide_literal, compared), keys=len(keys))
            yield f"{source.dialect.name}, {form}", {key for key, truth in zip(keys, held, strict=True) if truth}


def compute_exact_values(question: Question, source: Source, engines: Engines) -> Integers:
    """The integers that a question compares, by functional and key, as a source computes them."""
    there = replace(question, table=replace(question.table, relation=engines.relations[source.dialect.name]))
    values = np.zeros((len(question.functionals), question.keys.size), dtype=np.int64)
    if values.size:
        rewritten = rewrite(there, dialect=source.dialect)
        values = source.read_aggregates(
            rewritten, question.keys, functionals=len(question.functionals), timeout_ms=60_000
        ).values
    return subtract_offsets(question, values)


def decide_literal(values: Integers, cut: Cut) -> Booleans:
    """Where a literal holds on these integers."""
    return cut.evaluate(values[cut.functional])


def _find_true_keys(statement: Statement, engines: Engines) -> set[Key]:
    held = find_held_keys(statement, statement.branches[0], engines)
    for operation, branch in zip(statement.operations, statement.branches[1:], strict=True):
        other = find_held_keys(statement, branch, engines)
        held = {"UNION": held | other, "INTERSECT": held & other, "EXCEPT": held - other}[operation]
    return held


def find_held_keys(statement: Statement, branch: Branch, engines: Engines) -> set[Key]:
    """The keys of the domain for which PostgreSQL says HAVING over their bounded rows, which may be none; there a ratio
    to COUNT(*) is NULL."""
    having = branch.having.replace("/ count(*)", "/ nullif(count(*), 0)")
    with engines.truth.cursor() as cursor:
        cursor.execute(_select_by_key(statement, branch, "true", f" HAVING {having}").encode())
        return {row[:-1] for row in cursor.fetchall()}


def compute_values(statement: Statement, branch: Branch, value: str, engines: Engines) -> dict[Key, Fraction]:
    """What PostgreSQL computes of every key's bounded rows, which may be none."""
    with engines.truth.cursor() as cursor:
        cursor.execute(_select_by_key(statement, branch, f"({value})::numeric", "").encode())
        return {row[:-1]: Fraction(row[-1]) for row in cursor.fetchall()}


def _select_by_key(statement: Statement, branch: Branch, value: str, having: str) -> str:
    """The keys of the domain with a value of their bounded rows."""
    keys, names = list_domain(statement.keys), statement.keys
    values = ", ".join("(" + ", ".join(map(write_literal, key)) + ")" for key in keys)
    ours = " AND ".join(f"v.{name} = d.{name}" for name in names)
    where = f" AND ({branch.where})" if branch.where else ""
    return (
        f"SELECT {', '.join(f'd.{name}' for name in names)}, h.value FROM (VALUES {values}) AS d ({', '.join(names)}), "
        f"LATERAL (SELECT {value} AS value FROM {name_bounded(statement.table, names)} v "
        f"WHERE {ours}{where}{having}) h WHERE {branch.restriction or 'true'}"
    )


def write_literal(value: Any) -> str:
    """A key's value as PostgreSQL reads it."""
    text = str(value).replace("'", "''")
    return f"date '{text}'" if isinstance(value, date) else text if isinstance(value, int) else f"'{text}'"
