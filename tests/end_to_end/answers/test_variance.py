"""Variances on both sources against PostgreSQL's own, at their error rates' worst case, and through the endpoint."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

import duckdb
import psycopg
import pytest
from scipy.stats import binom

from benchmarks.oracle.judging import find_held_keys as truth_of
from benchmarks.oracle.statements import Branch, Statement
from benchmarks.oracle.worlds import CATALOG, KEYS, TABLES, Engines, Key, draw_rows, open_engines
from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.scan import rewrite
from planner.question.plan import Rewritten
from planner.question.question import Question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.cli.check import check
from proxy.pipeline import stages as pipeline
from tests.effort import rounds
from tests.end_to_end.certainty import asked, truth
from tests.seeded_noise import SeededNoise
from tests.worlds.house import VERIFIER, House, opened

WORLDS = rounds(4, quick=1)
STATEMENTS = rounds(45, quick=12)
FILTERS = ("", "", " FILTER (WHERE insured)", " FILTER (WHERE age > 2 OR age IS NULL)", " FILTER (WHERE cost <= 1.5)")
FUNCTIONS = ("var_pop", "variance", "var_samp", "stddev", "stddev_pop", "stddev_samp")
ARGUMENTS = ("age", "weight", "cost", "height", "fee", "2 * cost", "1 - age", "age::numeric")
MIN_ROWS = 4


@dataclass(frozen=True)
class Asked:
    """A HAVING on a variance, the same with its threshold moved by the tolerance, and whether groups are small."""

    having: str
    moved: str
    small: str
    tolerance: str


def drawn(random_: random.Random) -> Asked:
    function, argument, filter_ = (random_.choice(values) for values in (FUNCTIONS, ARGUMENTS, FILTERS))
    operator = random_.choice(["<", "<=", ">", ">="])
    t = random_.choice([random_.uniform(0.05, 3), random_.uniform(0.05, 9), -0.5, 0.25])
    t = round(t, 4)
    percent = random_.choice([30, 50, 80, 100])
    edge = t * (1 - percent / 100 if operator in (">", ">=") else 1 + percent / 100)
    call = f"{function}({argument}){filter_}"
    guard = f"count({argument}){filter_} >= 2"
    moved = f"{call} {operator} {edge:.12f} AND {guard}"
    if random_.random() < 0.2:
        call = f"-0.5 * {call}"
        operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[operator]
        t = -0.5 * t
    having = f"{call} {operator} {t} AND {guard}"
    if random_.random() < 0.15:
        flipped = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[operator]
        having = f"NOT {call} {flipped} {t} AND {guard}"
    return Asked(having, moved, f"count({argument}){filter_} < {MIN_ROWS}", f"count=0, {percent}%")


@pytest.fixture(scope="module")
def judges(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    with open_engines(postgres_url, tmp_path_factory.mktemp("variance")) as opened_:
        yield opened_


def question_of(sql: str, tolerance: str) -> Question | None:
    """None where it needs too many centres."""
    statement = classify(sql, CATALOG)
    assert isinstance(statement, Asking)
    wanted = read_accuracy({"keyhole.tolerance": tolerance, "keyhole.min_rows": str(MIN_ROWS)}, CATALOG.defaults)
    (only,) = statement.questions
    try:
        return bind_question(only, CATALOG, accuracy=wanted, parameters={}, today=date(2026, 6, 15))
    except KeyholeError as error:
        if error.code != "KH211":
            raise
        return None


def true_keys(having: str, table: Table, keys: tuple[str, ...], judges: Engines) -> set[Key]:
    """The keys for which PostgreSQL says true, over the bounded rows."""
    branch = Branch(having=having, where="", restriction="")
    return truth_of(Statement(table=table, keys=keys, branches=(branch,), operations=()), branch, judges)


def literal_holds(values: Integers, relaxed: bool, cut: Cut) -> Booleans:
    return (cut.relax() if relaxed else cut).evaluate(values[cut.functional])


def returned_by(question: Question, judges: Engines, *, relaxed: bool) -> Iterator[set[Key]]:
    """By source, and by rollup where there is one, the keys for which the literals hold."""
    keys = [question.keys.get_key(i) for i in range(question.keys.size)]
    for source in judges.sources:
        there = replace(question, table=replace(question.table, relation=judges.relations[source.dialect.name]))
        plain = rewrite(there, dialect=source.dialect)
        ways = [plain.sql]
        if plain.rollup is not None:
            ways.append(f"WITH rolled AS (\n{plain.rollup.build}\n),\n{plain.rollup.sql}")
        for sql in ways:
            found = source.read_aggregates(
                Rewritten(dialect=source.dialect.name, sql=sql),
                question.keys,
                functionals=len(question.functionals),
                timeout_ms=60_000,
            ).values
            held = evaluate_formula(question.formula, partial(literal_holds, found, relaxed), keys=len(keys))
            yield {key for key, one in zip(keys, held, strict=True) if one}


def test_no_group_that_qualifies_is_missed_and_none_beyond_the_tolerance_is_returned(judges: Engines) -> None:
    """180 random statements on four tables, 12 at quick: row units, clipped totals and capped rows, also from rollups.

    Without noise, so a false alarm is impossible.
    """
    random_ = random.Random(20260711)
    judged = 0
    for _ in range(WORLDS):
        judges.load(draw_rows(random_))
        for _ in range(STATEMENTS):
            table, keys, one = random_.choice(TABLES), random_.choice(KEYS), drawn(random_)
            names = ", ".join(keys)
            sql = f"SELECT {names} FROM {table.name} GROUP BY {names} HAVING {one.having}"
            question = question_of(sql, one.tolerance)
            if question is None or not question.functionals:
                continue
            judged += 1
            qualify = true_keys(one.having, table, keys, judges)
            allowed = true_keys(f"({one.moved}) IS TRUE OR {one.small}", table, keys, judges)
            for found in returned_by(question, judges, relaxed=False):
                assert qualify <= found, sql
            for found in returned_by(question, judges, relaxed=True):
                assert found <= allowed, sql
    assert judged >= 8 * WORLDS


def test_what_is_taken_away_errs_to_the_other_side(judges: Engines) -> None:
    """60 random EXCEPTs, 4 at quick: keys that stay are never missed, keys beyond the tolerance are not kept.

    Without noise, so a false alarm is impossible.
    """
    random_ = random.Random(20260712)
    judged = 0
    pairs = rounds(60, quick=4)
    for number in range(pairs):
        if number % 30 == 0:
            judges.load(draw_rows(random_))
        table, keys = random_.choice(TABLES), random_.choice(KEYS)
        names = ", ".join(keys)
        function, column = random_.choice(FUNCTIONS), random_.choice(["age", "cost", "fee"])
        operator, t = random_.choice(["<", "<=", ">", ">="]), round(random_.uniform(0.3, 3), 3)
        # what stays when `above` is taken away lies below, with the tolerance above it
        edge = t * (1.5 if operator in (">", ">=") else 0.5)
        call, guard = f"{function}({column})", f"count({column}) >= 2"
        question = question_of(
            f"SELECT {names} FROM {table.name} GROUP BY {names} HAVING count(*) >= 1 EXCEPT "
            f"SELECT {names} FROM {table.name} GROUP BY {names} HAVING {call} {operator} {t} AND {guard}",
            "count=0, 50%",
        )
        if question is None or not question.functionals:
            continue
        judged += 1
        stays = true_keys(f"count(*) >= 1 AND ({call} {operator} {t} AND {guard}) IS NOT TRUE", table, keys, judges)
        allowed = true_keys(
            f"count(*) >= 1 AND (({call} {operator} {edge:.9f} AND {guard}) IS NOT TRUE "
            f"OR count({column}) < {MIN_ROWS})",
            table,
            keys,
            judges,
        )
        for found in returned_by(question, judges, relaxed=False):
            assert stays <= found, (call, operator, t)
        for found in returned_by(question, judges, relaxed=True):
            assert found <= allowed, (call, operator, t)
    assert judged >= pairs // 2


BUCKETS = rounds(4_000, quick=1_000)
FALSE_ALARM = 1e-9
ROWS = 40
POLICY = f"""\
[source]
url = "duckdb:///edge.duckdb"

[accuracy]
fnr = 0.05
fpr = 0.10
tolerance = "count=10, 50%"
min_rows = {ROWS}

[budget]
epsilon_per_predicate = 900
epsilon_per_query = 900
epsilon_per_unit = 900

[tables.edge]
privacy_unit = "row"
refresh = "static"

[tables.edge.columns.bucket]
key = {{ range = [1, {BUCKETS}] }}

[tables.edge.columns.place]

[tables.edge.columns.x]
bounds = [0, 10]
grid = 0.5

[tables.stays]
privacy_unit = "row"
refresh = "static"

[tables.stays.columns.ward]
key = {{ values = ["mixed", "alike"] }}

[tables.stays.columns.days]
bounds = [0, 30]

[analysts.ada]
password = "{VERIFIER}"
"""
# By place, the values in every group, each with how often: variances just beyond 9, and at 9 moved by the tolerance.
PLACES = {
    "above 9": ((2, 20), (8, 19), (9, 1)),
    "below 9": ((2, 20), (8, 19), (7, 1)),
    "2.25": ((3.5, 20), (6.5, 20)),
    "2.25 at the edge": ((0, 20), (3, 20)),
    "20.25": ((0.5, 20), (9.5, 20)),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    directory: Path = tmp_path_factory.mktemp("spread")
    with duckdb.connect(str(directory / "edge.duckdb")) as connection:
        connection.execute("CREATE TABLE edge (bucket integer, place text, x numeric(4,1))")
        for place, values in PLACES.items():
            for value, times in values:
                source = f"FROM range(1, {BUCKETS + 1}) AS b(b), range({times}) AS r(r)"
                connection.execute(f"INSERT INTO edge SELECT b, '{place}', {value} {source}")
        connection.execute("CREATE TABLE stays (ward text, days integer)")
        connection.execute("INSERT INTO stays SELECT 'mixed', 30 * (i % 2) FROM range(20000) AS i(i)")
        connection.execute("INSERT INTO stays SELECT 'alike', 12 + i % 3 FROM range(20000) AS i(i)")
    path = directory / "keyhole.toml"
    path.write_text(POLICY, encoding="utf-8")
    check(path, confirm=False)
    with opened(path) as house:
        yield house


@pytest.mark.parametrize("mechanism", ["progressive", "keyhole"])
@pytest.mark.parametrize(
    ("having", "qualifies", "fails"),
    [
        ("stddev_pop(x) > 3", "above 9", ("2.25", "2.25 at the edge")),
        ("stddev_pop(x) < 3", "below 9", ("20.25",)),
    ],
)
def test_the_promised_rates_hold_at_the_worst_case(
    house: House, mechanism: str, having: str, qualifies: str, fails: tuple[str, ...]
) -> None:
    """4,000 groups each way, 1,000 at quick; a false alarm has a probability of at most 1e-9 per comparison.

    Rates of .08 missed and .139 wrong are seen with a probability of .95; at quick .113 and .182.
    """
    service = house.service

    def returned(place: str, seed: int) -> float:
        service.noise = SeededNoise(seed)
        sql = f"SELECT bucket FROM edge WHERE place = '{place}' GROUP BY bucket HAVING {having}"
        question = asked(service, sql, mechanism=mechanism)
        return (
            len(pipeline.answer(service, pipeline.plan_asked_question(service, question), question).keys.keys) / BUCKETS
        )

    def at_most(rate: float) -> float:
        return float(binom.isf(FALSE_ALARM, BUCKETS, rate)) / BUCKETS

    seed = 1 + sum(map(ord, mechanism + having))
    assert 1 - returned(qualifies, seed) <= at_most(0.05)
    for number, place in enumerate(fails):
        assert returned(place, seed + 1 + number) <= at_most(0.10)


ANSWERED = [
    ("stddev_pop(days) > 8", ["mixed"]),
    ("NOT stddev_pop(days) <= 8", ["mixed"]),
    ("var_pop(days) < 100", ["alike"]),
    ("stddev(days) > 8 AND count(days) >= 1000", ["mixed"]),
    ("variance(days) <= 100 AND count(days) >= 1000", ["alike"]),
    ("stddev_pop(days) > 8 OR avg(days) < 5", ["mixed"]),
    ("stddev_pop(days) FILTER (WHERE days < 20) > 2", []),
    ("avg(days) FILTER (WHERE days > 5) > 2.5 * avg(days) FILTER (WHERE days <= 20)", ["mixed"]),
    ("avg(days) FILTER (WHERE days > 13) < avg(days) FILTER (WHERE days <= 13) + 9", ["alike"]),
]


@pytest.mark.parametrize(("having", "wards"), ANSWERED, ids=[having for having, _ in ANSWERED])
def test_the_true_keys_are_returned(house: House, having: str, wards: list[str]) -> None:
    """Insists that any other answer has a probability below 1e-9, then asks through the endpoint."""
    sql = f"SELECT ward FROM stays GROUP BY ward HAVING {having}"
    settings = {"min_rows": "1000", "mechanism": "keyhole"}
    assert sorted(str(ward) for (ward,) in truth(house.service, sql, **settings)) == wards
    with house.connect() as connection:
        for name, value in settings.items():
            connection.execute(f"SET keyhole.{name} = '{value}'".encode())
        assert sorted(ward for (ward,) in connection.execute(sql.encode()).fetchall()) == wards


def test_explain_says_what_it_takes_and_refusals_what_would_do(house: House) -> None:
    with house.connect() as connection:
        sql = "EXPLAIN SELECT ward FROM stays GROUP BY ward HAVING stddev_pop(days) > 8"
        text = "\n".join(line for (line,) in connection.execute(sql).fetchall())
        assert "stddev_pop(days) > 8 is tested by" in text
        assert "it may err between 4 and 8 for groups of at least 40 values" in text
        for code, having in (
            ("KH206", "(stddev(days) > 8) IS NOT TRUE"),
            ("KH208", "var_pop(days) > avg(days)"),
            ("KH211", "var_pop(days) > 0.01"),
        ):
            with pytest.raises(psycopg.Error, match=code):
                connection.execute(f"SELECT ward FROM stays GROUP BY ward HAVING {having}".encode())
