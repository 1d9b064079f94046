"""Small random tables with every odd thing in them, their privacy units bounded by hand, loaded into real engines."""

import hashlib
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import duckdb
import psycopg

from planner.catalog.catalog import (
    Analyst,
    Budget,
    Catalog,
    Column,
    Defaults,
    Derivation,
    RowCap,
    SqlType,
    Table,
    Value,
)
from proxy.sources.open import Source, open_source

Row = dict[str, Any]
Key = tuple[Any, ...]
WARDS = ("A", "B", "o'hare", "empty")
LEVELS = (1, 2, 7)
MONTHS = (date(2026, 1, 1), date(2026, 2, 1), date(2026, 3, 1))
TYPES = {
    "id": "integer",
    "person": "integer",
    "ward": "text",
    "level": "integer",
    "seen": "timestamp",
    "age": "integer",
    "weight": "bigint",
    "cost": "numeric(8,1)",
    "height": "double precision",
    "fee": "numeric(8,2)",
    "insured": "boolean",
    "kind": "text",
}
KEYS = (("ward",), ("level",), ("month",), ("ward", "level"), ("month", "ward"))
_TRUTHS = (True, False)
_WIDE = (Decimal(-100_000), Decimal(100_000))


def _measure(name: str, kind: SqlType, low: str, high: str, grid: str) -> Column:
    bounds = (Decimal(low), Decimal(high))
    return Column(name, kind, TYPES[name], bounds=bounds, grid=Decimal(grid), per_unit=_WIDE)


_COLUMNS = (
    Column("id", SqlType.INTEGER, "integer"),
    Column("person", SqlType.INTEGER, "integer"),
    Column("ward", SqlType.TEXT, "text", domain=WARDS),
    Column("level", SqlType.INTEGER, "integer", domain=LEVELS),
    Column("seen", SqlType.TIMESTAMP, "timestamp without time zone"),
    Column("month", SqlType.DATE, "date", domain=MONTHS, derivation=Derivation("date_trunc", "month", "seen")),
    _measure("age", SqlType.INTEGER, "0", "10", "1"),
    _measure("weight", SqlType.INTEGER, "1", "5", "1"),
    _measure("cost", SqlType.NUMERIC, "-3", "5", "0.5"),
    _measure("height", SqlType.DOUBLE, "0", "3", "0.25"),
    _measure("fee", SqlType.NUMERIC, "0", "5", "0.5"),
    Column("insured", SqlType.BOOLEAN, "boolean"),
    Column("kind", SqlType.TEXT, "text"),
)
_ROW_UNIT = Table(
    name="visits",
    relation="visits",
    columns=_COLUMNS,
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="oracle",
)
TABLES = (
    _ROW_UNIT,
    replace(_ROW_UNIT, name="clipped", unit=("person",), groups_per_unit=2, rows_per_unit=1000),
    replace(_ROW_UNIT, name="capped", unit=("person",), groups_per_unit=2, row_cap=RowCap(rows=2, unique="id")),
    replace(_ROW_UNIT, name="monthly", unit=("person", "month"), row_cap=RowCap(rows=1, unique="id")),
)
CATALOG = Catalog(
    tables=TABLES,
    public_tables=(),
    stored_questions=(),
    analysts=(Analyst("demo", "SCRAM-SHA-256$4096:c2FsdA==$a:b", None, None, None),),
    defaults=Defaults(fnr=0.05, fpr=0.10, tolerance="0", min_rows=1, mechanism="keyhole"),
    budget=Budget(per_predicate=1e6, per_unit=1e6, per_query=1e6),
    database="oracle",
    max_keys=10_000,
    statement_timeout_ms=60_000,
    digest="0" * 64,
)


def draw_rows(drawn: random.Random) -> list[Row]:
    """Up to 60 rows: NULLs everywhere, ties, groups with one row, groups with none, keys outside the domain."""
    fill = drawn.choice([0.0, 0.1, 0.4])

    def some(*values: Any) -> Any:
        return None if drawn.random() < fill else drawn.choice(values)

    return [
        {
            "id": number,
            "person": some(1, 2, 3, 4, 5, 6),
            "ward": some(*WARDS[:3], "elsewhere"),
            "level": some(*LEVELS, 3),
            "seen": some(
                datetime(2026, 1, 31, 23, 59, 59), datetime(2026, 2, 1), datetime(2026, 2, 14, 12), datetime(2025, 1, 1)
            ),
            "age": some(*range(8)),
            "weight": some(1, 2, 2, 4),
            "cost": some(*(Decimal(n) / 2 for n in range(-4, 7))),
            "height": some(0.0, 0.25, 1.5, 1.5, 2.75),
            "fee": some(*map(Decimal, ("-7", "0", "0.25", "0.74", "1.5", "4.99", "1000"))),
            "insured": some(*_TRUTHS),
            "kind": some("a", "b", "a%b", ""),
        }
        for number in range(drawn.choice([0, 3, 12, 30, 60]))
    ]


def bound_rows(found: Sequence[Row], table: Table, keys: tuple[str, ...]) -> list[Row]:
    """The rows that count for groups by these keys, by the definition of bounding; clipped values as they count."""
    domains = {"ward": WARDS, "level": LEVELS, "month": MONTHS}
    units: dict[Key, dict[Key, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in found:
        read = row | {"month": None if row["seen"] is None else row["seen"].date().replace(day=1)}
        unit = tuple(read[name] for name in table.unit) or (row["id"],)
        if None not in unit and all(read[name] in domains[name] for name in keys):
            units[unit][tuple(read[name] for name in keys)].append(read)
    kept: list[Row] = []
    for unit, groups in units.items():
        chosen = list(groups)
        if table.unit:
            named = dict(zip(table.unit, unit, strict=True))
            chosen.sort(key=lambda key: _compute_digest(table, named | dict(zip(keys, key, strict=True))))
            chosen = chosen[: table.groups_per_unit]
        for key in chosen:
            group = groups[key]
            if table.row_cap is not None:
                group = sorted(group, key=lambda row: _compute_digest(table, {"id": row["id"]}))[: table.row_cap.rows]
            kept += [row | {"fee": _clip(row["fee"])} for row in group]
    return kept


def _compute_digest(table: Table, values: Mapping[str, Any]) -> str:
    texts = [f"{len(v)}:{v}" if isinstance(v, str) else str(v) for _, v in sorted(values.items())]
    return hashlib.md5("|".join([table.seed, *texts]).encode(), usedforsecurity=False).hexdigest()


def _clip(fee: Decimal | None) -> Decimal | None:
    if fee is None:
        return None
    steps = floor(Fraction(max(Decimal(0), min(Decimal(5), fee))) * 2 + Fraction(1, 2))
    return Decimal(steps) / 2


def list_domain(keys: tuple[str, ...]) -> list[Key]:
    """All keys, in order."""
    values: dict[str, tuple[Value, ...]] = {"ward": WARDS, "level": LEVELS, "month": MONTHS}
    return list(itertools.product(*(values[name] for name in keys)))


@dataclass
class Engines:
    """Both sources, and PostgreSQL to ask for the truth."""

    folder: Path
    sources: tuple[Source, ...]
    truth: psycopg.Connection[tuple[Any, ...]]
    relations: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def load(self, found: Sequence[Row]) -> None:
        """The rows into both sources, and the bounded rows of every unit and grouping where the truth is asked."""
        path = self.folder / f"visits{next(self._numbers)}.parquet"
        declared = ", ".join(f"{name} {kind}" for name, kind in TYPES.items())
        with duckdb.connect() as writer:
            writer.execute(f"CREATE TABLE visits ({declared})")
            _insert(writer.execute, "visits", found, TYPES)
            writer.execute(f"COPY visits TO '{path}'")
        with self.truth.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS oracle_visits; CREATE UNLOGGED TABLE oracle_visits ({declared})")
            _insert(cursor.execute, "oracle_visits", found, TYPES)
            types = TYPES | {"month": "date"}
            columns = ", ".join(f"{name} {kind}" for name, kind in types.items())
            for table, keys in itertools.product(TABLES, KEYS):
                name = name_bounded(table, keys)
                cursor.execute(f"DROP TABLE IF EXISTS {name}; CREATE TEMP TABLE {name} ({columns})")
                _insert(cursor.execute, name, bound_rows(found, table, keys), types)
        self.relations = {"duckdb": f"read_parquet('{path}')", "postgres": "public.oracle_visits"}


def name_bounded(table: Table, keys: tuple[str, ...]) -> str:
    """Where the bounded rows are."""
    return f"{table.name}_by_{'_'.join(keys)}"


def _insert(execute: Callable[[Any], object], name: str, found: Sequence[Row], types: Mapping[str, str]) -> None:
    if found:
        tuples = ("(" + ", ".join(_spell(row[column], kind) for column, kind in types.items()) + ")" for row in found)
        execute(f"INSERT INTO {name} VALUES {', '.join(tuples)}")


def _spell(value: Any, kind: str) -> str:
    text = str(value).replace("'", "''")
    return "NULL" if value is None else f"CAST('{text}' AS {kind})"


@contextmanager
def open_engines(postgres_url: str, folder: Path) -> Iterator[Engines]:
    """DuckDB over files in `folder`, and PostgreSQL as source and as judge."""
    sources = (open_source("duckdb://", directory=folder), open_source(postgres_url, directory=folder))
    try:
        with psycopg.connect(postgres_url, autocommit=True) as truth:
            yield Engines(folder, sources, truth)
            truth.execute("DROP TABLE IF EXISTS oracle_visits")
    finally:
        for source in sources:
            source.close()
