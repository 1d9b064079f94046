"""Random small tables and questions about them, the same on both engines."""

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from math import ceil, lcm
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import psycopg
from hypothesis import strategies as st

from mechanisms.formula import TRUE
from planner.bind.grouping_bounds import apply_grouping_bounds
from planner.catalog.catalog import Column, Derivation, FixedKey, Grouping, RowCap, SqlType, Table, Value
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.functionals.functional import find_unit_range
from planner.functionals.row_range import find_row_range
from planner.lower.dialects.dialect import Dialect
from planner.lower.scan import rewrite
from planner.plan.key_blocks import rewrite_blocks
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Like, Not, Or, Within
from planner.question.plan import Rewritten
from planner.question.products import make_product
from planner.question.question import Accuracy, Functional, Measure, Question, Term
from planner.question.unit_groups import count_split_groups
from proxy.sources.open import Source
from tests.effort import PATIENCE_S, rounds
from tests.proxy.sources.oracle import Row

NAMES = ("ann", "o'hare", "zoë|1:x", "", 'q"uote', "ANN", "a%_\\b")
MONTHS = (date(2025, 12, 1), date(2026, 1, 1), date(2026, 2, 1))
MOMENTS = (
    datetime(2025, 12, 31, 23, 59, 59, 999999),
    datetime(2026, 1, 1),
    datetime(2026, 1, 5, 7, 30, 0, 120),
    datetime(2026, 2, 28, 12),
    datetime(2024, 2, 29, 1),
    datetime(1, 1, 1),
    datetime(9999, 12, 31, 23, 0, 0, 500000),
)
TYPES = {
    "id": "integer",
    "person": "text",
    "code": "bigint",
    "ward": "text",
    "level": "integer",
    "visited": "timestamp",
    "born": "date",
    "flag": "boolean",
    "age": "integer",
    "big": "bigint",
    "amount": "numeric(12,2)",
    "long": "numeric(38,4)",
    "cost": "double precision",
}


def columns(
    *, age_grid: str = "1", amount_grid: str = "0.01", cost_grid: str = "0.1", long_grid: str = "0.5"
) -> tuple[Column, ...]:
    def measure(name: str, kind: SqlType, bounds: tuple[str, str], grid: str) -> Column:
        low, high = Decimal(bounds[0]), Decimal(bounds[1])
        return Column(
            name=name,
            sql_type=kind,
            declared=TYPES[name],
            bounds=(low, high),
            grid=Decimal(grid),
            per_unit=(2 * min(low, Decimal(0)), 2 * max(high, Decimal(0))),
        )

    def derived(name: str, kind: SqlType, function: str, part: str, base: str, domain: tuple[Value, ...]) -> Column:
        declared = {SqlType.TIMESTAMP: "timestamp without time zone"}.get(kind, kind.value)
        return Column(
            name=name, sql_type=kind, declared=declared, domain=domain, derivation=Derivation(function, part, base)
        )

    return (
        Column("id", SqlType.INTEGER, "integer"),
        Column("person", SqlType.TEXT, "text"),
        Column("code", SqlType.INTEGER, "bigint"),
        Column("ward", SqlType.TEXT, "text", domain=("north", "süd", "o'hare|2:")),
        Column("level", SqlType.INTEGER, "integer", domain=(1, 2, 5)),
        Column("visited", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("born", SqlType.DATE, "date", domain=(date(2026, 1, 1), date(2026, 1, 2), date(1900, 2, 28))),
        Column("flag", SqlType.BOOLEAN, "boolean", domain=(False, True)),
        measure("age", SqlType.INTEGER, ("0", "110"), age_grid),
        measure("big", SqlType.INTEGER, ("-1000", "1000000"), "1"),
        measure("amount", SqlType.NUMERIC, ("-10", "100.5"), amount_grid),
        measure("long", SqlType.NUMERIC, ("-10.25", "100"), long_grid),
        measure("cost", SqlType.DOUBLE, ("-5.5", "50"), cost_grid),
        derived("month", SqlType.DATE, "date_trunc", "month", "visited", MONTHS),
        derived("hour_of", SqlType.INTEGER, "extract", "hour", "visited", (0, 7, 12, 23)),
        derived("dow", SqlType.INTEGER, "extract", "dow", "born", (0, 1, 2, 3, 4, 5, 6)),
        derived("doy", SqlType.INTEGER, "extract", "doy", "visited", (1, 5, 60, 365)),
        derived("quarter", SqlType.INTEGER, "extract", "quarter", "visited", (1, 4)),
        derived("day", SqlType.DATE, "date", "", "visited", (date(2026, 1, 1), date(2026, 1, 5))),
        derived("hours", SqlType.TIMESTAMP, "date_trunc", "hour", "visited", (datetime(2026, 1, 5, 7),)),
        derived("week", SqlType.DATE, "date_trunc", "week", "born", (date(2025, 12, 29), date(2026, 1, 5))),
    )


MULTIPLIED = (("age", "amount"), ("big", "big"), ("amount", "long"), ("age", "cost", "long"))
PRODUCTS = tuple(" * ".join(names) for names in MULTIPLIED)


def with_multiplied(found: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns with some of their products: of every type, of a column with itself, and of three."""
    by_name = {column.name: column for column in found}
    return (*found, *(make_product([by_name[name] for name in names]) for names in MULTIPLIED))


UNITS = (("person",), ("code",), ("person", "code"), ("person", "month"), ("born",), ("visited", "flag"))


@lru_cache(maxsize=None, typed=True)
def sample(*values: Any) -> st.SearchStrategy[Any]:
    """`sampled_from`, the same one each time: to make a strategy takes longer than to draw from it."""
    return st.sampled_from(values)


@st.composite
def tables(draw: st.DrawFn, *, units: Iterable[tuple[str, ...]] = ((), *UNITS)) -> Table:
    unit: tuple[str, ...] = draw(sample(*units))
    cap = None
    if unit and draw(sample(True, False)):
        cap = RowCap(rows=draw(st.integers(1, 3)), unique="id")
    prunable = draw(sample(True, False))
    made = columns(
        age_grid=draw(sample("1", "10", "0.5", "2.5")),
        amount_grid=draw(sample("0.01", "0.001", "1", "0.25", "3")),
        cost_grid=draw(sample("0.1", "1", "0.5", "7")),
        long_grid=draw(sample("0.0001", "1", "0.3")),
    )
    return Table(
        name="visits",
        relation="visits",
        columns=with_multiplied(tuple(replace(column, prunable=prunable) for column in made)),
        unit=unit,
        groups_per_unit=draw(st.integers(1, 3)) if unit else 1,
        rows_per_unit=draw(st.integers(1, 3)) if unit and cap is None else None,
        row_cap=cap,
        refresh="static",
        seed=draw(sample("visits", "an'other")),
        groupings=tuple(draw(_few_groupings())) if unit else (),
    )


@cache
def _few_groupings() -> st.SearchStrategy[list[Grouping]]:
    """What an owner may declare of the groups of some keys: little, so that much is cut."""
    grouping = st.builds(
        Grouping,
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=2, unique=True).map(tuple),
        groups=st.one_of(st.none(), st.integers(1, 3)),
        rows=st.one_of(st.none(), st.integers(1, 3)),
        per_unit=st.sampled_from([(), (("age", (Decimal(0), Decimal(60))),)]),
    )
    return st.lists(grouping, max_size=2)


_FOUND: dict[str, tuple[Any, ...]] = {
    "person": (*NAMES[:3], None),
    "code": (1, -7, 2**62, None),
    "ward": ("north", "süd", "o'hare|2:", "elsewhere", None),
    "level": (1, 2, 3, 5, None),
    "visited": (*MOMENTS, None),
    "born": (date(2026, 1, 1), date(2026, 1, 5), date(1900, 2, 28), None),
    "flag": (True, False, None),
    "age": (0, 1, 5, 15, 44, 110, 111, -1, 2**31 - 1, -(2**31), None),
    "big": (0, 7, 2**63 - 1, -(2**63), 999_999, None),
    "amount": (*map(Decimal, ("0.00", "0.12", "0.13", "-0.50", "1.50", "100.50", "9999999999.99", "-11")), None),
    "long": (*map(Decimal, ("0.1500", "-0.1500", "2.5", "9" * 34 + ".9999", "-" + "9" * 34 + ".9999")), None),
    "cost": (0.0, 0.05, -0.05, 0.45, 3.5, 50.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), -0.0, None),
}


@cache
def _pools() -> dict[str, st.SearchStrategy[list[Any]]]:
    return {name: st.lists(st.sampled_from(values), min_size=1, max_size=3) for name, values in _FOUND.items()}


@st.composite
def rows(draw: st.DrawFn, *, most: int = 24) -> list[Row]:
    """Rows whose columns take few values each, so that units and keys repeat."""
    pools = {name: draw(pool) for name, pool in _pools().items()}
    row = st.fixed_dictionaries({name: st.sampled_from(pool) for name, pool in pools.items()})
    return [{"id": i, **one} for i, one in enumerate(draw(st.lists(row, min_size=most // 4, max_size=most)))]


def crowd(*, seed: int, size: int) -> list[Row]:
    """Many rows of few units in few keys, with every odd value."""
    chance = random.Random(seed)
    return [{"id": i, **{name: chance.choice(values) for name, values in _FOUND.items()}} for i in range(size)]


@cache
def conditions() -> st.SearchStrategy[Condition]:
    def compare(name: str, *values: Value) -> st.SearchStrategy[Condition]:
        operators = ["=", "<>", "<", "<=", ">", ">="]
        return st.builds(Compare, st.just(name), st.sampled_from(operators), st.sampled_from(values))

    leaves = st.one_of(
        compare("person", *NAMES),
        compare("age", 0, 15, 110, -(2**31), 2**31, 10**30),
        compare("big", 7, -(2**63), 2**63),
        compare("amount", Decimal("0.125"), Decimal("0.12"), Decimal("1e20"), Decimal(0)),
        compare("long", Decimal("0.15"), Decimal("0.00001"), Decimal("1e40"), Decimal("-1e40")),
        compare("cost", Decimal("0.45"), Decimal(0), Decimal("1e400")),
        compare("visited", *MOMENTS),
        compare("month", *MONTHS),
        compare("hour_of", 0, 7, 22),
        compare("born", date(2026, 1, 1)),
        compare("flag", True),
        st.builds(
            Within,
            st.just("person"),
            st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(lambda v: tuple(sorted(v))),
        ),
        st.sampled_from([Within("level", (1, 5)), Within("age", (10**12,)), Within("amount", (Decimal("0.125"),))]),
        st.builds(Like, st.just("person"), st.sampled_from(["%", "a%", "_%", "zo_|%", "a\\%\\_\\\\b", "%'%", "%N"])),
        st.sampled_from([IsNull("person"), IsNull("cost"), IsNull("month"), ALWAYS, Or(())]),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        ),
        max_leaves=4,
    )


def functional(
    table: Table, measure: Measure, column: str | None, condition: Condition, *, threshold: Fraction | None = None
) -> Functional:
    """A functional with the sensitivity and unit range of M2 and M6; a threshold makes the linear form of an AVG."""
    scale, offset, low, high = 1, 0, 0, 1
    unit_size = Decimal(1)
    if measure is Measure.TOTAL:
        assert column is not None
        declared = table.get_column(column)
        assert declared.bounds is not None
        assert declared.grid is not None
        unit_size = declared.grid
        grid = Fraction(declared.grid)
        low, high = (Fraction(bound) / grid for bound in declared.bounds)  # type: ignore[assignment]
        low, high = -ceil(-low), ceil(high)
        if threshold is not None:
            scale, offset = (threshold / grid).denominator, (threshold / grid).numerator
            low, high = scale * low - offset, scale * high - offset
    row_size = max(abs(low), abs(high))
    unit_range = None
    sensitivity = row_size
    if table.row_cap is not None:
        sensitivity = table.row_cap.rows * row_size
    elif not table.is_row_unit:
        assert table.rows_per_unit is not None
        unit_range = (low * table.rows_per_unit, high * table.rows_per_unit)
        sensitivity = max(abs(bound) for bound in unit_range)
    if measure is Measure.UNITS:
        sensitivity = 1
    if measure is Measure.VALUES and table.determines(table.get_column(column or "")):
        sensitivity, unit_range = 1, None if unit_range is None else (0, 1)
    terms = [Term(scale, column, condition, 1 if measure is Measure.TOTAL else 0)]
    if offset:
        terms.append(Term(-offset, column, condition, 0))
    return Functional(
        name=f"{measure}({column})",
        measure=measure,
        terms=tuple(terms),
        sensitivity=sensitivity,
        unit_range=unit_range,
        unit_size=unit_size,
        rows=1,
    )


def linear(table: Table, terms: Sequence[Term]) -> Functional:
    """A functional of any terms: each row adds all those whose condition it satisfies."""
    ranges: dict[str, tuple[int, int]] = {}
    for term in terms:
        if term.column is not None and term.power:
            column = table.get_column(term.column)
            assert column.bounds is not None
            assert column.grid is not None
            low, high = (Fraction(bound) / Fraction(column.grid) for bound in column.bounds)
            ranges[term.column] = (-ceil(-low), ceil(high))
    low_, high_ = find_row_range(terms, ranges=ranges, table=table)
    rows_ = 1
    if not table.is_row_unit:
        rows_ = table.row_cap.rows if table.row_cap is not None else table.rows_per_unit or 1
    clipped = not table.is_row_unit and table.row_cap is None
    return Functional(
        name="linear",
        measure=Measure.TOTAL,
        terms=tuple(terms),
        sensitivity=max(-low_, high_, 1) * rows_,
        unit_range=(low_ * rows_, high_ * rows_) if clipped else None,
        unit_size=Decimal(1),
        rows=1,
    )


def unit_sum(terms: Sequence[Term]) -> Functional:
    """Units that add the coefficients of all terms for which they have rows."""
    low, high = find_unit_range(terms)
    return Functional(
        name="units",
        measure=Measure.UNIT_SUM,
        terms=tuple(terms),
        sensitivity=max(-low, high, 1),
        unit_range=(low, high),
        unit_size=Decimal(1),
        rows=1,
    )


def divided_units(table: Table, condition: Condition, keys: tuple[str, ...]) -> Functional:
    """The units with rows of a condition, each divided over its groups of all values of some keys."""
    parts = lcm(*range(1, count_split_groups(table, keys) + 1))
    plain = functional(table, Measure.UNITS, None, condition)
    return replace(plain, measure=Measure.UNIT_PARTS, sensitivity=parts, unit_range=None, split_keys=keys)


def less_each_unit(plain: Functional, number: int, condition: Condition | None) -> Functional:
    """A sum of rows less a number for each unit with rows of a condition, or if None of that of all terms."""
    low, high = plain.unit_range or (-plain.sensitivity, plain.sensitivity)
    low, high = min(0, low - number, -number), max(0, high - number, -number)
    return replace(
        plain,
        measure=Measure.TOTAL,
        sensitivity=max(-low, high, 1),
        unit_range=(low, high),
        off_each_unit=number,
        off_condition=condition,
    )


@cache
def unit_terms() -> st.SearchStrategy[list[Term]]:
    """One to four numbers that a unit adds which has rows of a condition."""
    drawn = st.builds(Term, sample(1, -1, 2, -7, 100), st.none(), mostly_always(), st.just(0))
    return st.lists(drawn, min_size=1, max_size=4)


@cache
def terms() -> st.SearchStrategy[list[Term]]:
    """One to three terms, of counts and of values, under conditions of their own."""
    coefficients = st.sampled_from([1, -1, 3, -7, 1000])
    filters = st.one_of(st.just(ALWAYS), conditions())
    counts = st.builds(Term, coefficients, st.sampled_from([None, "cost", "age", "person"]), filters, st.just(0))
    values = st.builds(
        Term, coefficients, st.sampled_from(["age", "big", "amount", "long", "cost", *PRODUCTS]), filters, st.just(1)
    )
    return st.lists(st.one_of(counts, values), min_size=1, max_size=3)


def counted_values(table: Table) -> list[str]:
    """Columns whose different values can be counted: a double's have no text by which some could be drawn."""
    names = ["person", "ward", "age", "big", "amount", "long", "born", "flag", "visited", "month"]
    return names if table.row_cap is None and not table.is_row_unit else [*names, "cost"]


@cache
def mostly_always() -> st.SearchStrategy[Condition]:
    return st.one_of(st.just(ALWAYS), st.just(ALWAYS), conditions())


def functionals(table: Table, *, different: bool) -> st.SearchStrategy[Functional]:
    filters = mostly_always()
    measured = sample("age", "big", "amount", "long", "cost", *PRODUCTS)
    values = st.builds(functional, st.just(table), sample(Measure.VALUES), sample(*counted_values(table)), filters)
    return st.one_of(
        *([values] if different else []),
        st.builds(
            functional,
            st.just(table),
            sample(Measure.ROWS),
            sample(None, "cost", "person", "age", "amount", "month"),
            filters,
        ),
        st.builds(functional, st.just(table), sample(Measure.UNITS), sample(None), filters),
        st.builds(
            functional,
            st.just(table),
            sample(Measure.TOTAL),
            measured,
            filters,
            threshold=sample(None, None, Fraction(3), Fraction(-7, 2), Fraction(123456, 1000)),
        ),
        st.builds(linear, st.just(table), terms()),
        *([] if table.is_row_unit else [st.builds(unit_sum, unit_terms()), _less_each_unit(table)]),
    )


@st.composite
def _less_each_unit(draw: st.DrawFn, table: Table) -> Functional:
    found, condition = draw(terms()), draw(sample(None, ALWAYS))  # every row that adds is of a unit that counts
    if condition is None:
        found = [replace(term, condition=found[0].condition) for term in found]
    return less_each_unit(linear(table, found), draw(sample(3, -2, 500)), condition)


KEYS = ("ward", "level", "born", "flag", "month", "hour_of", "dow", "doy", "quarter", "day", "hours", "week")


@st.composite
def fixed_keys(draw: st.DrawFn, column: Column) -> FixedKey:
    """One value of a key to which WHERE fixes rows, or several of them."""
    domain = column.domain or ()
    values = draw(st.lists(st.sampled_from(domain), min_size=1, max_size=draw(sample(1, 1, 2)), unique=True))
    return FixedKey(column.name, tuple(value for value in domain if value in values))


@cache
def _names() -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(KEYS), max_size=2, unique=True)


@cache
def _domains(name: str, domain: tuple[Value, ...]) -> st.SearchStrategy[tuple[Value, ...]]:
    """All values of a key, or some. The name tells domains apart whose values are equal and have other types."""
    return st.one_of(st.just(domain), st.lists(st.sampled_from(domain), min_size=1, unique=True).map(tuple))


@cache
def _split_keys(names: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.sampled_from([names[:1], names]) if names else st.just(())


@st.composite
def questions(draw: st.DrawFn, *, units: Iterable[tuple[str, ...]] = ((), *UNITS), different: bool = True) -> Question:
    table = draw(tables(units=units))
    names = draw(_names())
    table = apply_grouping_bounds(table, [table.get_column(name) for name in names])
    keys = []
    for name in names:
        domain = table.get_column(name).domain
        assert domain is not None
        some = draw(_domains(name, domain))
        keys.append(tuple(value for value in domain if value in some))
    open_ = [
        column for column in map(table.get_column, KEYS) if column.name not in names and not table.determines(column)
    ]
    asked = draw(st.lists(functionals(table, different=different), min_size=1, max_size=4))
    if different and table.unit and draw(sample(False, False, True)):  # of neither are there rollups
        asked.append(divided_units(table, draw(mostly_always()), draw(_split_keys(tuple(names)))))
    fixes = table.unit and draw(sample(False, False, True))
    fixed = draw(st.lists(st.sampled_from(open_), min_size=1, max_size=2, unique=True)) if fixes else ()
    return Question(
        table=replace(table, fixed=tuple(draw(fixed_keys(column)) for column in fixed)),
        keys=KeySpace(columns=tuple(table.get_column(name) for name in names), values=tuple(keys)),
        where=draw(mostly_always()),
        functionals=tuple(asked),
        atoms=(),
        formula=TRUE,
        accuracy=Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=1, mechanism="keyhole"),
        warnings=(),
    )


@dataclass
class Engines:
    """Both sources over one folder and one server, loaded with the same rows again and again.

    `instead`: those that are asked in their place; a Spark reads DuckDB's files.
    """

    folder: Path
    duck: Source
    postgres: Source
    writer: psycopg.Connection[tuple[Any, ...]]
    instead: tuple[Source, ...] = ()
    _files: Any = field(default_factory=itertools.count)
    _files_writer: duckdb.DuckDBPyConnection = field(default_factory=duckdb.connect)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Those that are asked."""
        return self.instead or (self.duck, self.postgres)

    def load(self, found: Sequence[Row], *, postgres: str = "visits") -> dict[str, str]:
        """Write the rows to both engines; the relation by dialect."""
        tuples = [", ".join(_quoted(row[name]) for name in TYPES) for row in found]
        return self.load_sql(tuples, postgres=postgres)

    def load_sql(self, tuples: list[str], *, postgres: str = "visits") -> dict[str, str]:
        """Write rows given as SQL text of constants in the order of `TYPES`."""
        path = self.folder / f"visits{next(self._files)}.parquet"
        declared = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        values = ", ".join(f"({one})" for one in tuples)
        self._files_writer.execute(f"CREATE OR REPLACE TABLE visits ({declared})")
        if values:
            self._files_writer.execute(f"INSERT INTO visits VALUES {values}")
        self._files_writer.execute(f"COPY visits TO '{path}'")
        self.writer.execute(f"DROP TABLE IF EXISTS {postgres}; CREATE UNLOGGED TABLE {postgres} ({declared})")
        if values:
            self.writer.execute(f"INSERT INTO {postgres} VALUES {values}")
        return relations_of(path, postgres=f"public.{postgres}")

    def answers(self, question: Question, relations: dict[str, str]) -> list[npt.NDArray[np.int64]]:
        """What each engine says that does not refuse the question by its text, and DuckDB once more in some blocks of
        keys, where it can be asked so."""
        result = []
        for source in self.sources:
            if source.dialect.name not in relations:
                continue
            table = replace(question.table, relation=relations[source.dialect.name])
            rewritten = rewritten_for(replace(question, table=table), source.dialect)
            if rewritten is None:
                continue
            found = source.read_aggregates(
                rewritten, question.keys, functionals=len(question.functionals), timeout_ms=1000 * PATIENCE_S
            )
            result.append(found.values)
            if source is not self.duck:
                continue
            few = replace(source.dialect, keys_at_once=max(2, question.keys.size // rounds(5, quick=3)))
            if blocks := rewrite_blocks(replace(question, table=table), dialect=few):
                found = source.read_aggregates(
                    replace(rewritten, blocks=blocks),
                    question.keys,
                    functionals=len(question.functionals),
                    timeout_ms=1000 * PATIENCE_S,
                )
                result.append(found.values)
        return result


def relations_of(path: Path, *, postgres: str) -> dict[str, str]:
    """By dialect, the name of the rows that are in a file and in a table of PostgreSQL."""
    file = f"parquet.`{path}`"
    return {"duckdb": f"read_parquet('{path}')", "postgres": postgres, "spark": file, "sail": file}


def rewritten_for(question: Question, dialect: Dialect) -> Rewritten | None:
    """The question in an engine's SQL; None where that is a Spark's and one row could cost more than another."""
    try:
        return rewrite(question, dialect=dialect)
    except KeyholeError as error:
        if error.code != "KH214" or dialect.name not in ("spark", "sail"):
            raise
        return None


def _quoted(value: Any) -> str:
    """A value as a constant that takes the type of the column it is written to. A cast takes an engine as long as the
    rest."""
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def spelled(value: Any, kind: str) -> str:
    """A value as SQL text."""
    match value:
        case None:
            return f"CAST(NULL AS {kind})"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case float():
            return f"CAST('{value!r}' AS double precision)"
        case datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return f"CAST('{value}' AS {kind})"
