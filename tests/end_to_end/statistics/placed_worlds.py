"""Worlds whose groups stand where a comparison errs most, as rows in three engines."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import psycopg

from mechanisms.formula import Cut, Formula, Integers, list_literals
from mechanisms.keyhole.noisy_cells import evaluate_literal
from mechanisms.protocol import CommonSums
from planner.catalog.catalog import Catalog, Column, SqlType
from planner.question.condition import ALWAYS
from planner.question.question import Functional, Measure
from proxy.sources.open import Source, open_source
from tests.effort import PATIENCE_S
from tests.planner.functionals.one_table import make_visits_catalog

WARDS = tuple(f"ward {letter}" for letter in "abcdefgh")
MONTHS = tuple(date(2026, month, 1) for month in range(1, 11))
DOMAINS: dict[tuple[str, ...], tuple[tuple[Any, ...], ...]] = {
    ("ward",): (WARDS,),
    ("month",): (MONTHS,),
    ("ward", "month"): (WARDS[:4], MONTHS[:5]),
}
_TYPES = {
    "id": "bigint",
    "person": "bigint",
    "ward": "text",
    "month": "date",
    "amount": "integer",
    "urgent": "boolean",
}
_ROUNDS = 2  # over all groups: those of before move as the later ones are placed
_MOST_ROWS = 600  # of a group


@dataclass(frozen=True, slots=True)
class Bounds:
    """A policy's bounds of one privacy unit: its groups (0: the row is the unit), its rows, and the range of a value.

    With `capped` rows are chosen, else totals are clipped.
    """

    groups: int
    rows: int
    low: int
    high: int
    capped: bool = False


def draw_bounds(drawn: random.Random) -> Bounds:
    """Return random bounds."""
    low, high = drawn.choice(((0, 10), (0, 6), (-4, 10), (-3, 3), (2, 9)))
    return Bounds(drawn.choice((0, 0, 1, 4, 52)), drawn.choice((1, 2, 3)), low, high, capped=drawn.random() < 0.3)


def make_catalog(bounds: Bounds, keys: tuple[str, ...]) -> Catalog:
    """Return a policy of one table `visits` with these bounds, whose keys list the groups of one question."""
    listed = dict(zip(keys, DOMAINS[keys], strict=True))
    per_unit = tuple(Decimal(bounds.rows * end) for end in (min(0, bounds.low), max(0, bounds.high)))
    columns = (
        Column("id", SqlType.INTEGER, "bigint"),
        Column("person", SqlType.INTEGER, "bigint"),
        Column("ward", SqlType.TEXT, "text", domain=listed.get("ward", WARDS)),
        Column("month", SqlType.DATE, "date", domain=listed.get("month", MONTHS)),
        Column(
            "amount",
            SqlType.INTEGER,
            "integer",
            bounds=(Decimal(bounds.low), Decimal(bounds.high)),
            grid=Decimal(1),
            per_unit=(per_unit[0], per_unit[1]),
        ),
        Column("urgent", SqlType.BOOLEAN, "boolean"),
    )
    return make_visits_catalog(
        columns,
        name="placed",
        groups=bounds.groups,
        rows=bounds.rows,
        is_capped=bounds.capped,
        timeout_ms=int(1000 * PATIENCE_S),
    )


class World:
    """For each group its rows, the urgent ones of them, its people and its total: all that questions read of it."""

    def __init__(self, drawn: random.Random, bounds: Bounds, keys: tuple[str, ...]) -> None:
        self.bounds = bounds
        self.keys = keys
        self.groups = tuple(product(*DOMAINS[keys]))
        self.rows = np.array([drawn.randint(60, 180) for _ in self.groups])
        self.urgent = self.rows // 2
        self.people = self.rows.copy()
        self.total = self.rows * (bounds.low + bounds.high) // 2
        order = list(range(len(self.groups)))
        drawn.shuffle(order)
        # people of one block are in all of its groups that have so many
        self.blocks = {group: place // max(1, bounds.groups) for place, group in enumerate(order)}
        self._settle(range(len(self.groups)))

    def add_up(self, made: Functional) -> Integers:
        """Return a functional of every group. Raise AssertionError for one that no question here has."""
        if made.measure is Measure.UNITS:
            assert all(term.condition == ALWAYS for term in made.terms)
            return self.people
        if made.measure is Measure.UNIT_PARTS:
            return self._divide_people(made.sensitivity)
        found = np.zeros(len(self.groups), dtype=np.int64)
        for term in made.terms:
            is_whole = term.condition == ALWAYS
            assert is_whole or "urgent" in repr(term.condition)
            assert term.power == 0 or (is_whole and term.column == "amount")
            found += term.coefficient * (self.total if term.power else self.rows if is_whole else self.urgent)
        return found

    def _divide_people(self, parts: int) -> Integers:
        """Return the parts of people that each group has, if each is divided over all groups in which they are."""
        found = np.zeros(len(self.groups), dtype=np.int64)
        for block in {*self.blocks.values()}:
            groups = [group for group, one in self.blocks.items() if one == block]
            numbers = np.arange(max(int(self.people[group]) for group in groups))
            shared = sum(numbers < self.people[group] for group in groups)
            for group in groups:
                found[group] = (parts // shared[: self.people[group]]).sum()
        return found

    def set_size(self, name: str, group: int, value: int) -> None:
        """Let a group have another number of rows, urgent rows or people, or another total, as near as it can."""
        getattr(self, name)[group] = value
        self._settle((group,))

    def _settle(self, groups: Sequence[int]) -> None:
        for one in groups:
            rows = self.rows[one] = max(1, min(_MOST_ROWS, int(self.rows[one])))
            self.urgent[one] = max(0, min(rows, int(self.urgent[one])))
            self.people[one] = max(-(-rows // self.bounds.rows), min(rows, int(self.people[one])))
            self.total[one] = max(self.bounds.low * rows, min(self.bounds.high * rows, int(self.total[one])))

    def place(self, drawn: random.Random, common: CommonSums, sums: Sequence[Functional], cuts: Sequence[Cut]) -> None:
        """Move each group to where one literal just holds, or just fails by the tolerance, other groups being as they
        are."""
        for group in [*range(len(self.groups))] * _ROUNDS:
            cut = drawn.choice(cuts)
            names = sorted({_name_size(sums[place]) for place, _ in common.readings[cut.functional]})
            name = "total" if {"total", "rows"} <= {*names} else drawn.choice(names)
            fails = drawn.random() < 0.5
            if fails:
                cut = replace(cut, cut=cut.cut + (-cut.tolerance if cut.above else cut.tolerance))
            self._bisect(name, group, partial(self._holds, common, sums, cut, group), fails=fails)

    def _holds(self, common: CommonSums, sums: Sequence[Functional], cut: Cut, group: int) -> bool:
        return bool(evaluate_literal(common, cut, np.array([self.add_up(one) for one in sums]))[group])

    def _bisect(self, name: str, group: int, holds: Callable[[], bool], *, fails: bool) -> None:
        """Find neighbouring sizes of which one holds, and take it, or the other if the literal is to fail."""
        rows, before = int(self.rows[group]), int(getattr(self, name)[group])
        low, high = {
            "rows": (1, _MOST_ROWS),
            "urgent": (0, rows),
            "people": (-(-rows // self.bounds.rows), rows),
            "total": (self.bounds.low * rows, self.bounds.high * rows),
        }[name]
        kept = [(size, int(size[group])) for size in (self.rows, self.urgent, self.people, self.total)]

        def test(value: int) -> bool:
            for size, one in kept:
                size[group] = one
            self.set_size(name, group, value)
            return holds()

        first = test(low)
        if first == test(high):
            test(before)
            return
        while high - low > 1:
            middle = (low + high) // 2
            if test(middle) == first:
                low = middle
            else:
                high = middle
        test(high if first is fails else low)

    def list_rows(self, drawn: random.Random) -> list[dict[str, Any]]:
        """Return rows of people who are within all bounds, so that all rows count."""
        numbers = count()
        found: list[dict[str, Any]] = []
        for group, place in self.blocks.items():
            block = 10_000 * place
            rows, people = int(self.rows[group]), int(self.people[group])
            each, more = divmod(int(self.total[group]), rows)
            values = dict(zip(self.keys, self.groups[group], strict=True))
            whole = {"ward": WARDS[0], "month": MONTHS[0]} | values
            found += [
                {
                    "id": next(numbers),
                    "person": block + row % people,
                    **whole,
                    "amount": each + (row < more),
                    "urgent": row < int(self.urgent[group]),
                }
                for row in range(rows)
            ]
        drawn.shuffle(found)
        return found


def _name_size(made: Functional) -> str:
    if made.measure in (Measure.UNITS, Measure.UNIT_PARTS):
        return "people"
    if any(term.power for term in made.terms):
        return "total"
    return "rows" if all(term.condition == ALWAYS for term in made.terms) else "urgent"


def list_placed_cuts(formula: Formula) -> list[Cut]:
    """Return the literals of a formula, each once."""
    return [*dict.fromkeys(list_literals(formula))]


def repeat_worlds(common: CommonSums, times: int) -> CommonSums:
    """Return the same readings in so many copies of the key space, which share no cell."""
    cells = tuple(
        tuple(
            replace(
                where,
                summed_axes=tuple(axis + 1 for axis in where.summed_axes),
                axis=None if where.axis is None else where.axis + 1,
            )
            for where in reading
        )
        for reading in common.cells
    )
    return replace(common, cells=cells, shape=(times, *common.shape))


@dataclass
class Engines:
    """The engines that are asked for sums, and PostgreSQL to ask for the truth."""

    folder: Path
    sources: tuple[Source, ...]
    truth: psycopg.Connection[tuple[Any, ...]]
    relations: dict[str, str]

    def load(self, found: Sequence[Mapping[str, Any]], name: str) -> None:
        """Write rows where every engine reads them."""
        path = self.folder / f"{name}.parquet"
        declared = ", ".join(f"{column} {kind}" for column, kind in _TYPES.items())
        texts = self.folder / f"{name}.csv"
        texts.write_text("".join(",".join(str(row[column]) for column in _TYPES) + "\n" for row in found))
        with duckdb.connect() as writer:
            writer.execute(f"CREATE TABLE visits ({declared})")
            writer.execute(f"COPY visits FROM '{texts}' (HEADER false)")
            writer.execute(f"COPY visits TO '{path}'")
        with self.truth.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS visits; CREATE UNLOGGED TABLE visits ({declared})")
            with cursor.copy("COPY visits FROM STDIN (FORMAT csv)") as copy:
                copy.write(texts.read_text())
        self.relations = {"duckdb": f"read_parquet('{path}')", "postgres": "public.visits", "sail": f"parquet.`{path}`"}

    def fetch_keys(self, sql: str) -> set[tuple[Any, ...]]:
        """Return the rows of a query to PostgreSQL."""
        with self.truth.cursor() as cursor:
            cursor.execute(sql.encode())
            return set(cursor.fetchall())


@contextmanager
def open_engines(postgres_url: str, spark_url: str | None, folder: Path) -> Iterator[Engines]:
    """DuckDB over files in `folder`, PostgreSQL, and a server of Spark Connect if there is one."""
    with ExitStack() as closing:
        sources = [open_source("duckdb://", directory=folder), open_source(postgres_url, directory=folder)]
        if spark_url is not None:
            from tests.proxy.sources.spark.engines import open_server

            sources.append(open_server(spark_url, directory=folder))
        for one in sources:
            closing.callback(one.close)
        truth = closing.enter_context(psycopg.connect(postgres_url, autocommit=True))
        yield Engines(folder, tuple(sources), truth, {})
        truth.execute("DROP TABLE IF EXISTS visits")
