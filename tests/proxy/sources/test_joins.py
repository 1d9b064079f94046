"""A question that joins public tables gives the integers of the real SQL join, on both engines."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from hashlib import sha256
from typing import Any
from unittest.mock import patch

import duckdb
import pytest
from hypothesis import HealthCheck, assume, given, reject
from hypothesis import strategies as st

from planner.bind.bind_question import bind_question
from planner.catalog import catalog as model
from planner.catalog.catalog import Catalog, Column, Lookup, PublicTable, RowCap, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.lower import joins
from planner.question.question import Accuracy, Question
from planner.statements.classify import Asking, classify
from tests.effort import examples
from tests.proxy.sources.worlds import Engines, relations_of, spelled
from tests.worlds.retail import retail

WARDS = ("A", "B", "c d", "o'hare", "zoë", "")
PRIVATE = {"id": "integer", "person": "integer", "ward": "text", "level": "integer", "day": "date", "age": "integer"}
PUBLIC = {
    "wards": {
        "name": "text",
        "hospital": "text",
        "beds": "integer",
        "weight": "numeric(6,2)",
        "factor": "double precision",
        "level": "integer",
        "open": "boolean",
    },
    "hospitals": {"hospital": "text", "city": "text", "founded": "date"},
    "levels": {"level": "bigint", "title": "text"},
    "rooms": {"ward": "text", "level": "integer"},
}
_KINDS = {
    "text": SqlType.TEXT,
    "integer": SqlType.INTEGER,
    "bigint": SqlType.INTEGER,
    "date": SqlType.DATE,
    "boolean": SqlType.BOOLEAN,
    "double precision": SqlType.DOUBLE,
    "numeric(6,2)": SqlType.NUMERIC,
}
VISITS = Table(
    name="visits",
    relation="visits",
    columns=(
        Column("id", SqlType.INTEGER, "integer"),
        Column("person", SqlType.INTEGER, "integer"),
        Column("ward", SqlType.TEXT, "text", domain=WARDS[:4]),
        Column("level", SqlType.INTEGER, "integer"),
        Column("day", SqlType.DATE, "date"),
        Column(
            "age",
            SqlType.INTEGER,
            "integer",
            bounds=(Decimal(0), Decimal(100)),
            grid=Decimal(1),
            per_unit=(Decimal(0), Decimal(10_000)),
        ),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="joins",
)
UNITS = (
    VISITS,
    replace(VISITS, unit=("person",), groups_per_unit=1000, rows_per_unit=100),
    replace(VISITS, unit=("person",), groups_per_unit=1000, row_cap=RowCap(rows=100, unique="id")),
)
FROM = (
    "FROM visits v JOIN wards w ON v.ward = w.name",
    "FROM visits v LEFT JOIN wards w ON w.name = v.ward",
    "FROM visits AS v, wards w WHERE w.name = v.ward",
    "FROM wards w JOIN visits v ON (v.ward = w.name)",
    "FROM visits v CROSS JOIN wards w WHERE v.ward = w.name",
    "FROM visits v INNER JOIN wards w ON v.ward = w.name AND w.open",
    "FROM visits v JOIN wards w ON v.ward = w.name JOIN hospitals h ON w.hospital = h.hospital",
    "FROM visits v LEFT JOIN wards w ON v.ward = w.name LEFT JOIN hospitals h USING (hospital)",
    "FROM visits v LEFT JOIN wards w ON v.ward = w.name JOIN hospitals h USING (hospital)",
    "FROM visits v JOIN wards w ON v.ward = w.name LEFT JOIN hospitals h ON h.hospital = w.hospital",
    "FROM hospitals h, wards w, visits v WHERE v.ward = w.name AND w.hospital = h.hospital",
    "FROM visits v JOIN wards w ON v.ward = w.name LEFT JOIN levels l ON l.level = v.level",
    "FROM rooms r JOIN visits v USING (level, ward) LEFT JOIN wards w ON w.name = v.ward",
)
KEYS = ("w.name", "w.hospital", "v.ward", "w.beds", "w.open", "w.level")
CITY = ("h.city", "h.founded", "h.hospital")
CONDITIONS = (
    "w.beds > 10",
    "w.hospital <> 'north'",
    "NOT (w.hospital = 'north' OR v.age > 50)",
    "w.name IS NULL",
    "w.hospital IS NULL OR v.level = 1",
    "w.open IS NOT TRUE",
    "w.name IN ('A', 'zoë')",
    "w.weight BETWEEN 0.5 AND 20.25",
    "w.factor > 0.1",
    "w.hospital LIKE 'n%' AND v.ward <> 'A'",
    "(w.beds > 5) IS NULL",
    "w.beds NOT IN (0, 5)",
    "v.ward = 'B'",
    "v.age > w.beds",
    "v.level = w.level OR w.weight * 2 < v.age - v.level",
    "v.age / w.factor > 30",
    "NOT (w.hospital || 'x' = v.ward) AND v.age <> w.level",
)
AGGREGATES = (
    "count(*)",
    "count(w.beds)",
    "count(*) FILTER (WHERE w.beds > 5 AND v.level = 1)",
    "count(*) FILTER (WHERE NOT (w.open AND v.age > 20))",
    "count(*) FILTER (WHERE w.name IS NULL)",
    "sum(w.beds)",
    "sum(w.weight)",
    "sum(w.beds) FILTER (WHERE w.hospital = 'north' OR v.age < 30)",
    "sum(v.age) FILTER (WHERE w.hospital = 'south')",
    "sum(v.age * w.beds)",
    "sum(w.weight * (100 - v.age)) FILTER (WHERE w.open)",
    "count(*) FILTER (WHERE v.age > w.weight)",
    "sum(abs(v.age - w.level))",
)


@dataclass(frozen=True)
class World:
    """Rows of the private and the public tables."""

    visits: Sequence[tuple[Any, ...]]
    public: Mapping[str, Sequence[tuple[Any, ...]]]


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(strategy, strategy, st.none())


_visits = st.lists(
    st.tuples(
        _maybe(st.integers(1, 4)),
        _maybe(st.sampled_from((*WARDS, "nowhere", "a"))),
        _maybe(st.integers(0, 3)),
        _maybe(st.dates(date(2026, 1, 1), date(2026, 1, 3))),
        _maybe(st.integers(0, 100)),
    ),
    max_size=40,
).map(lambda rows: [(number, *row) for number, row in enumerate(rows)])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    names = draw(st.lists(st.sampled_from(WARDS), unique=True))
    wards = [
        (
            name,
            draw(_maybe(st.sampled_from(("north", "south", "elsewhere")))),
            draw(_maybe(st.sampled_from((-3, 0, 5, 20, 2**31 - 1)))),
            draw(_maybe(st.sampled_from((Decimal("0.50"), Decimal("-1.25"), Decimal("9999.99"), Decimal(20))))),
            draw(_maybe(st.sampled_from((0.1, 2.5, -3.0)))),
            draw(_maybe(st.integers(0, 3))),
            draw(_maybe(st.booleans())),
        )
        for name in names
    ]
    hospitals = [
        (name, draw(_maybe(st.sampled_from(("Bonn", "Kiel")))), draw(_maybe(st.just(date(1900, 1, 1)))))
        for name in draw(st.lists(st.sampled_from(("north", "south", "west")), unique=True))
    ]
    levels = [(level, f"level {level % 2}") for level in draw(st.lists(st.integers(-1, 2), unique=True))]
    rooms = [(name, draw(_maybe(st.integers(0, 3)))) for name in names]
    return World(draw(_visits), {"wards": wards, "hospitals": hospitals, "levels": levels, "rooms": rooms})


def catalog(table: Table, public: Mapping[str, Sequence[tuple[Any, ...]]]) -> Catalog:
    """The tables as Keyhole knows them."""
    return replace(
        retail(),
        tables=(table,),
        stored_questions=(),
        public_tables=tuple(
            PublicTable(
                name=name,
                columns=tuple(Column(column, _KINDS[kind], kind) for column, kind in PUBLIC[name].items()),
                rows=tuple(tuple(_pinned(value) for value in row) for row in rows),
                digest=sha256(repr((name, rows)).encode()).hexdigest(),  # what is computed of equal ones is kept
            )
            for name, rows in public.items()
        ),
    )


def _pinned(value: Any) -> Value | None:
    return Decimal(str(value)) if isinstance(value, float) else value


def asked(sql: str, known: Catalog) -> Question:
    """The one question of a statement."""
    statement = classify(sql, known)
    assert isinstance(statement, Asking)
    accuracy = Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole")
    return bind_question(statement.questions[0], known, accuracy=accuracy, parameters={}, today=date(2026, 1, 1))


_files = itertools.count()


def load(engines: Engines, world: World) -> tuple[duckdb.DuckDBPyConnection, dict[str, str]]:
    """All tables in both engines for the real join, and the private relation by dialect for Keyhole."""
    tables = {"visits": (PRIVATE, world.visits)} | {name: (PUBLIC[name], rows) for name, rows in world.public.items()}
    truth = duckdb.connect()
    for name, (types, rows) in tables.items():
        declared = ", ".join(f"{column} {kind}" for column, kind in types.items())
        values = ", ".join(
            f"({', '.join(spelled(value, kind) for value, kind in zip(row, types.values(), strict=True))})"
            for row in rows
        )
        made = [f"CREATE TABLE {name} ({declared})"] + ([f"INSERT INTO {name} VALUES {values}"] if values else [])
        for statement in made:
            truth.execute(statement)
        engines.writer.execute(f"DROP TABLE IF EXISTS {name}; {'; '.join(made)}")
    path = engines.folder / f"joined{next(_files)}.parquet"
    truth.execute(f"COPY visits TO '{path}'")
    return truth, relations_of(path, postgres="public.visits")


@pytest.fixture
def joined_tables(engines: Engines) -> Iterator[Engines]:
    """The engines, without the public tables afterwards."""
    yield engines
    engines.writer.execute("DROP TABLE IF EXISTS visits, wards, hospitals, levels, rooms")


def _place(name: str, typed: Sequence[str]) -> int:
    """Where a key of the question stands among the typed ones, under its own name or that of what it is joined with."""
    joined = {"ward": "w.name", "hospital": "h.hospital"}
    known = [key for key in typed if name in (key, key.split(".")[1])] or [joined[name]]
    return list(typed).index(known[0])


def _key_value(row: tuple[Any, ...], column: Column, *, typed: Sequence[str], alone: Callable[[str], Column]) -> Any:
    """The value of a question's key in a row of the typed ones: of several public columns, the first value of what is
    joined that has the same in all of them. Of a typed key `alone` gives the column that it is by itself."""
    if not isinstance(column.derivation, Lookup) or not column.derivation.has_classes:
        return row[_place(column.name, typed)]
    names = column.name.split(", ")
    known = [alone(typed[_place(name, typed)]).derivation for name in names]
    lookups = [derived.pairs.value_map for derived in known if isinstance(derived, Lookup)]
    wanted = [_pinned(row[_place(name, typed)]) for name in names]
    alike = (
        to for value, to in column.derivation.pairs.value_map.items() if [one.get(value) for one in lookups] == wanted
    )
    return next(alike, None)


def _expected(
    rows: Sequence[tuple[Any, ...]], question: Question, *, typed: Sequence[str], alone: Callable[[str], Column]
) -> list[list[int]]:
    """The real join's aggregates in the question's integers, in the order of its keys; absent groups have zeros.

    Of the `typed` keys some are none of the question's: what is joined, or what is looked up by another.
    """
    keys = question.keys.columns
    found = {tuple(_key_value(row, key, typed=typed, alone=alone) for key in keys): row[len(typed) :] for row in rows}
    result = []
    for index, functional in enumerate(question.functionals):
        values = []
        for number in range(question.keys.size):
            value = found.get(question.keys.get_key(number), (None,) * len(question.functionals))[index]
            steps = Fraction(0) if value is None else Fraction(value) / Fraction(functional.unit_size)
            assert steps.denominator == 1
            values.append(int(steps))
        result.append(values)
    return result


_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@examples(120, suppress_health_check=_SLOW)
@given(
    world=worlds(),
    table=st.sampled_from(UNITS),
    source=st.sampled_from(FROM),
    large=st.booleans(),
    data=st.data(),
)
def test_the_integers_are_those_of_the_real_join(
    joined_tables: Engines, world: World, table: Table, source: str, large: bool, data: st.DataObject
) -> None:
    """Also where the public tables are taken as too large to be listed, and to stand in the statement."""
    names = KEYS + (CITY if "hospitals" in source else ()) + (("l.title",) if "levels" in source else ())
    keys = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    aggregates = data.draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3, unique=True))
    condition = data.draw(st.one_of(st.none(), st.sampled_from(CONDITIONS)))
    present = "" if table.is_row_unit else "v.person IS NOT NULL"
    conditions = [f"({part})" for part in (condition, present) if part]
    where = f" {'AND' if 'WHERE' in source else 'WHERE'} {' AND '.join(conditions)}" if conditions else ""
    group = f"{source}{where} GROUP BY {', '.join(keys)}"
    comparisons = " AND ".join(f"{one} > 1000003" for one in aggregates)
    known = catalog(table, world.public)
    with ExitStack() as patched:
        for module, name in ((model, "MOST_LISTED"), (joins, "MOST_SPELLED")) if large else ():
            patched.enter_context(patch.object(module, name, 0))
        try:
            question = asked(f"SELECT {', '.join(keys)} {group} HAVING {comparisons}", known)
        except KeyholeError as error:
            # a key for which the public data hold no value, or a sum that is never above 0
            assert error.code in {"KH202", "KH220"}  # noqa: PT017
            return
        if len(question.functionals) < len(aggregates):
            assert any("declared bounds decide it" in warning for warning in question.warnings)
            return
        classes = [key.derivation for key in question.keys.columns if isinstance(key.derivation, Lookup)]
        for base in (one.column for one in classes if one.has_classes):
            # classes are of the key's listed values: rows with a value that a public table alone has are in none
            listed = set(table.get_column(base).domain or ())
            assume(all(row[list(PRIVATE).index(base)] in {None, *listed} for row in world.visits))
        truth, relations = load(joined_tables, world)
        sql = f"SELECT {', '.join([*keys, *aggregates])} {group}"
        try:
            real = truth.execute(sql).fetchall()
        except duckdb.OutOfRangeException:  # a product of large integers, which fails in PostgreSQL, too
            reject()
        same = joined_tables.writer.execute(sql).fetchall()
        truth.close()

        @cache
        def alone(key: str) -> Column:
            return asked(f"SELECT {key} {source} GROUP BY {key} HAVING count(*) > 1000003", known).keys.columns[0]

        expected = _expected(real, question, typed=keys, alone=alone)
        assert expected == _expected(same, question, typed=keys, alone=alone)
        for answer in joined_tables.answers(question, relations):
            assert answer.tolist() == expected
