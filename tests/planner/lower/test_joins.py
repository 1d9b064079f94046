"""Private tables joined on their unit, on real engines: the integers of an independent computation, and what one unit
changes of them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from hashlib import md5
from itertools import product
from random import Random
from typing import Any, TypeAlias

import duckdb
import psycopg
import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Grouping
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.functionals.cells import find_cell_reach
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.condition import evaluate
from planner.question.plan import Plan
from planner.question.question import Functional, Measure
from planner.question.unit_groups import count_unit_groups
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.effort import rounds
from tests.planner.asked import TODAY
from tests.rows_at_once import insert
from tests.worlds.stays import LABS, PATIENTS, STAYS, people

Row: TypeAlias = dict[str, Any]
Data: TypeAlias = dict[str, list[Row]]
Answer: TypeAlias = dict[tuple[str, ...], tuple[int, ...]]

CATALOG = replace(
    people(),
    tables=(
        replace(STAYS, rows_per_unit=2, groups_per_unit=2),
        replace(PATIENTS, rows_per_unit=2, groups_per_unit=1),
        replace(LABS, rows_per_unit=1),
    ),
)
TYPES = {
    "stays": {
        "stay_id": "bigint",
        "patient_id": "integer",
        "ward": "text",
        "arrived": "timestamp",
        "age": "integer",
        "cost": "numeric(10,2)",
        "height": "double precision",
        "insured": "boolean",
    },
    "patients": {"patient_id": "integer", "sex": "text", "born": "date", "ward": "text", "weight": "integer"},
    "labs": {"person": "bigint", "kind": "text"},
}
_JOINED = "FROM stays s JOIN patients p ON p.patient_id = s.patient_id"
QUESTIONS = (
    f"SELECT s.ward {_JOINED} WHERE p.sex = 'f' GROUP BY s.ward HAVING count(*) > 100 AND sum(cost) > 7000",
    f"SELECT s.ward, sex {_JOINED} WHERE age > 40 GROUP BY s.ward, sex HAVING count(*) > 50 OR sum(weight) > 9000",
    f"SELECT p.ward {_JOINED} AND s.insured GROUP BY p.ward"
    " HAVING count(*) FILTER (WHERE s.ward = 'A') > 50 OR count(DISTINCT p.patient_id) > 90",
    f"SELECT year {_JOINED} GROUP BY year HAVING avg(age) > 50 AND count(*) FILTER (WHERE s.ward <> 'A') > 40",
    f"SELECT s.ward {_JOINED} JOIN labs l ON l.person = p.patient_id WHERE s.ward IN ('A', 'C')"
    " GROUP BY s.ward HAVING count(*) FILTER (WHERE kind = 'blood' AND sex = 'm') > 60 OR sum(age) > 7000",
    f"SELECT floor, sex {_JOINED} JOIN wards w ON w.name = s.ward GROUP BY floor, sex HAVING count(*) > 100",
)
DEAR = (  # conditions of one table are computed before the join; Spark may skip them for a row, and is not asked
    f"SELECT s.ward {_JOINED} WHERE s.ward NOT LIKE '%B%' OR sex LIKE '%f%' AND age < 90 GROUP BY s.ward"
    " HAVING count(*) FILTER (WHERE NOT (p.ward LIKE '%B%' AND s.insured AND (age > 40 OR weight > 70))) > 100",
    f"SELECT p.ward {_JOINED} JOIN labs l ON l.person = p.patient_id WHERE kind LIKE '%oo%' OR NOT (sex LIKE '%f%' AND"
    " NOT s.insured) GROUP BY p.ward HAVING count(*) FILTER (WHERE p.patient_id < 3 AND (born IS NULL OR age > 50)) > 9"
    " OR count(CASE WHEN s.ward LIKE '%A%' AND sex = 'f' THEN 1 END) > 500",
    f"SELECT floor, sex {_JOINED} JOIN wards w ON w.name = s.ward "
    "WHERE NOT (year < 1900 AND floor > 5 AND s.ward LIKE '%B%') GROUP BY floor, sex HAVING count(*) > 100",
)


def _planned(sql: str, dialect: Dialect, catalog: Catalog = CATALOG) -> Plan:
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    wanted = read_accuracy({}, catalog.defaults)
    return plan_question(
        bind_question(statement.questions[0], catalog, accuracy=wanted, parameters={}, today=TODAY), dialect=dialect
    )


@cache
def _plan_all(dialect: Dialect) -> list[Plan]:
    """The questions that a source of the dialect answers."""
    if dialect.row_fence is None:
        for sql in DEAR:
            with pytest.raises(KeyholeError, match="KH214"):
                _planned(sql, dialect)
    return [_planned(sql, dialect) for sql in (*QUESTIONS, *(DEAR if dialect.row_fence is not None else ()))]


@dataclass(frozen=True, slots=True)
class Engine:
    """A connection that holds the three tables."""

    dialect: Dialect
    run: Callable[[str], list[tuple[Any, ...]]]
    insert: Callable[[str, list[tuple[Any, ...]]], None]

    def load(self, data: Data) -> None:
        for name, rows in data.items():
            self.run(f"DELETE FROM {name}")
            self.insert(name, [tuple(row[column] for column in TYPES[name]) for row in rows])

    def answer(self, made: Plan, sql: str | None = None) -> Answer:
        width, domain = len(made.question.keys.names), list(product(*made.question.keys.values))
        found = {tuple(map(str, row[:width])): row[width:] for row in self.run(sql or made.rewritten.sql)}
        nothing = (0,) * len(made.question.functionals)
        texts = [tuple(map(str, key)) for key in domain]
        return {key: tuple(int(value or 0) for value in found.get(key, nothing)) for key in texts}


def create_tables(run: Callable[[str], object], *, kind: str) -> None:
    """The tables without rows."""
    for name, columns in TYPES.items():
        run(f"CREATE {kind} {name} ({', '.join(f'{column} {type_}' for column, type_ in columns.items())})")


@pytest.fixture(params=["duckdb", "postgres"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    if request.param == "duckdb":
        with duckdb.connect() as connection:
            create_tables(connection.execute, kind="TABLE")

            yield Engine(DUCKDB, lambda sql: connection.execute(sql).fetchall(), partial(insert, connection))
        return
    with psycopg.connect(request.getfixturevalue("postgres_url")) as server:

        def run(sql: str) -> list[tuple[Any, ...]]:
            cursor = server.execute(sql.encode())
            return [] if cursor.description is None else cursor.fetchall()

        def insert_there(name: str, rows: list[tuple[Any, ...]]) -> None:
            marks = ", ".join(["%s"] * len(TYPES[name]))
            server.cursor().executemany(f"INSERT INTO {name} VALUES ({marks})".encode(), rows)

        create_tables(run, kind="TEMPORARY TABLE")
        yield Engine(POSTGRES, run, insert_there)
        server.rollback()


def _data(random: Random) -> Data:
    """Few units with rows in both, one or neither table; NULLs, values outside domains and bounds among them."""

    def unit() -> int | None:
        return random.choice([1, 1, 1, 2, 2, 3, None])

    stays = [
        {
            "stay_id": i,
            "patient_id": unit(),
            "ward": random.choice(["A", "B", "C", "Z", None]),
            "arrived": datetime(2026, 1, random.randint(1, 12), 5),
            "age": random.choice([-5, 30, 41, 80, 200, None]),
            "cost": random.choice([Decimal("0.5"), Decimal(30), Decimal(499), Decimal(900), None]),
            "height": 1.5,
            "insured": random.choice([True, False, None]),
        }
        for i in range(random.randint(0, 14))
    ]
    patients = [
        {
            "patient_id": unit(),
            "sex": random.choice(["f", "m", None]),
            "born": random.choice([datetime(y, 5, 1).date() for y in (1960, 1980, 1990, 2000)]),
            "ward": random.choice(["A", "B", None]),
            "weight": random.choice([-1, 60, 90, 400, None]),
        }
        for _ in range(random.randint(0, 6))
    ]
    labs = [{"person": unit(), "kind": random.choice(["blood", "urine"])} for _ in range(random.randint(0, 5))]
    return {"stays": stays, "patients": patients, "labs": labs}


def _derived(row: Row, table: str) -> Row:
    more = {"stays": lambda: {"day": row["arrived"].date()}, "patients": lambda: {"year": row["born"].year}}
    return {f"{table}.{name}": value for name, value in (row | more.get(table, dict)()).items()}


def _joined(made: Plan, data: Data) -> list[Row]:
    """The joined rows, by the names of the joined table's columns."""
    rows: list[Row] = [{}]
    members = made.question.table.members
    for member in members:
        (unit,) = member.table.unit
        rows = [
            before | {named: flat[f"{member.table.name}.{stored}"] for stored, named in member.columns}
            for before in rows
            for row in data[member.table.name]
            if row[unit] is not None and before.get("patient_id", row[unit]) == row[unit]
            for flat in [_derived(row, member.table.name)]
        ]
    floors = {row[0]: row[1] for row in CATALOG.public_tables[0].rows}
    return [row | {"floor": floors.get(row["stays.ward"])} if "stays.ward" in row else row for row in rows]


def _canonical(value: object) -> str:
    return f"{len(value)}:{value}" if isinstance(value, str) else str(value)


def _expected(made: Plan, data: Data) -> Answer:
    question = made.question
    table, names = question.table, question.keys.names
    rows = [
        row
        for row in _joined(made, data)
        if all(row[name] in (column.domain or ()) for name, column in zip(names, question.keys.columns, strict=True))
    ]
    groups: Mapping[int, dict[tuple[Any, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[row["patient_id"]][tuple(row[name] for name in names)].append(row)

    def drawn(unit: int, key: tuple[Any, ...]) -> str:
        parts = sorted([("patient_id", unit), *zip(names, key, strict=True)])
        return md5("|".join([table.seed, *(_canonical(value) for _, value in parts)]).encode()).hexdigest()

    sums: dict[tuple[str, ...], list[int]] = {
        tuple(map(str, key)): [0] * len(question.functionals) for key in product(*question.keys.values)
    }
    for unit, keys in groups.items():
        for key in sorted(keys, key=lambda key: drawn(unit, key))[: table.groups_per_unit]:
            kept = [row for row in keys[key] if evaluate(question.where, row) is True]
            for i, functional in enumerate(question.functionals):
                if tuple(map(str, key)) in sums:
                    sums[tuple(map(str, key))][i] += _total(functional, kept, made)
    return {key: tuple(found) for key, found in sums.items()}


def _total(functional: Functional, rows: Sequence[Row], made: Plan) -> int:
    total, met = 0, False
    for row, term in product(rows, functional.terms):
        value = None if term.column is None else row[term.column]
        if evaluate(term.condition, row) is not True or (term.column is not None and value is None):
            continue
        met = True
        steps = 1
        if term.column is not None and term.power:
            column = made.question.table.get_column(term.column)
            assert column.bounds is not None
            assert column.grid is not None
            steps = int(min(max(Decimal(value or 0), column.bounds[0]), column.bounds[1]) / column.grid)
        total += term.coefficient * steps**term.power
    if functional.measure is Measure.UNITS:
        return int(met)
    low, high = functional.unit_range or (total, total)
    return min(max(total, low), high)


def _draws(number: int, *, quick: int) -> list[Data]:
    """So many sets of tables; at quick the fullest few of them and the emptiest."""
    random = Random(20260101)
    drawn = [_data(random) for _ in range(number)]
    drawn.sort(key=lambda data: len(data["stays"]) * len(data["patients"]) * (1 + len(data["labs"])))
    return [drawn[0], *drawn[1 - rounds(number, quick=quick) :]]


def test_the_integers_are_those_of_an_independent_computation(engine: Engine) -> None:
    """60 random sets of tables, 3 at quick, every question; some answers are not zero: there is what to compare."""
    made = _plan_all(engine.dialect)
    alive = [0] * len(made)
    sets = _draws(60, quick=3)
    for data in sets:
        engine.load(data)
        for i, one in enumerate(made):
            found = engine.answer(one)
            assert found == _expected(one, data), one.rewritten.sql
            alive[i] += any(any(values) for values in found.values())
    assert min(alive) >= len(sets) // 6


def test_one_unit_changes_no_more_than_the_sensitivities_and_its_groups(engine: Engine) -> None:
    """Taken from either table or from all, on 25 random sets of tables, 3 at quick; some changes are the largest. The
    same rows of the tables that a question joins are asked about once."""
    made = _plan_all(engine.dialect)
    known: dict[tuple[int, str], Answer] = {}

    def answer(i: int, held: Data) -> Answer:
        read = str([held[member.table.name] for member in made[i].question.table.members])
        if (i, read) not in known:
            known[i, read] = engine.answer(made[i])
        return known[i, read]

    reached = set()
    for data in _draws(25, quick=3):
        engine.load(data)
        before = [answer(i, data) for i in range(len(made))]
        for unit, without in product((1, 2), (("stays",), ("patients",), ("stays", "patients", "labs"))):
            fewer = {
                name: [r for r in rows if name not in without or r.get("patient_id", r.get("person")) != unit]
                for name, rows in data.items()
            }
            engine.load(fewer)
            for i, one in enumerate(made):
                after = answer(i, fewer)
                changed = {key for key, values in after.items() if values != before[i][key]}
                assert len(changed) <= count_unit_groups(one.question)
                for f, functional in enumerate(one.question.functionals):
                    most = max(abs(after[key][f] - before[i][key][f]) for key in after)
                    assert most <= functional.sensitivity
                    if most == functional.sensitivity:
                        reached.add((i, f))
    assert len(reached) >= 3


def test_where_a_key_is_fixed_cells_of_other_values_change_what_is_charged_to_them(engine: Engine) -> None:
    """A join reads one stay of a unit, of whatever day. So a cell of another day takes the place of one that counts: it
    moves a group by no more than the unit is charged for, on 40 random sets of tables, 5 at quick."""
    declared = replace(STAYS, groupings=(Grouping(("ward", "day"), None, 1, ()),), joined_rows=1)
    catalog = replace(CATALOG, tables=(declared, replace(PATIENTS, joined_rows=2)))
    where = "WHERE arrived >= '2026-01-02' AND arrived < '2026-01-08'"
    sql = f"SELECT s.ward {_JOINED} {where} GROUP BY s.ward HAVING count(*) > 100"
    made = _planned(sql, engine.dialect, catalog)
    (functional,) = made.question.functionals
    assert [key.name for key in made.question.table.fixed] == ["day"]
    assert functional.sensitivity == 6 * 2  # a stay in each of six days and two patients' rows, where 20 may be
    assert find_cell_reach(made.question).reaches_other_groups
    moved = 0
    for data in _draws(40, quick=5):
        engine.load(data)
        before = engine.answer(made)
        for unit in (1, 2, 3):
            kept = [row for row in data["stays"] if row["patient_id"] != unit or 2 <= row["arrived"].day < 8]
            engine.load({"stays": kept})
            after = engine.answer(made)
            changed = [abs(after[key][0] - before[key][0]) for key in after if after[key] != before[key]]
            assert len(changed) <= count_unit_groups(made.question)
            assert max(changed, default=0) <= functional.sensitivity
            moved += bool(changed)
    assert moved


def test_a_rollup_of_the_joined_rows_gives_the_same_integers(engine: Engine) -> None:
    """Of the questions that have one; 20 random sets of tables, 3 at quick."""
    made = [one for one in _plan_all(engine.dialect) if one.rewritten.rollup is not None]
    assert len(made) >= 4
    for data in _draws(20, quick=3):
        engine.load(data)
        for one in made:
            rollup = one.rewritten.rollup
            assert rollup is not None
            engine.run(f"CREATE TEMPORARY TABLE kept AS {rollup.build}")
            rolled = engine.answer(one, f"WITH rolled AS (SELECT * FROM kept),\n{rollup.sql}")
            engine.run("DROP TABLE kept")
            assert rolled == engine.answer(one)
