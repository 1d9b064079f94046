"""Bounds of finer groups where WHERE fixes a key, in every small world of one unit, on the engines themselves.

A world is what a unit has in two wards in three months: nothing or three rows in each, or one in those that are read.
All worlds are units of one table and groups of one question, so that nothing is drawn and nothing fails by chance.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from typing import TypeAlias

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

from planner.catalog.catalog import Catalog, Column, Derivation, Grouping, RowCap, SqlType, Table
from planner.question.question import Question
from tests.planner.asked import asked
from tests.proxy.sources.worlds import Engines
from tests.worlds.retail import retail

World: TypeAlias = tuple[tuple[int, ...], ...]

WARDS = ("A", "B")
MONTHS = tuple(date(2025, month, 1) for month in (10, 11, 12))
CELLS = tuple(product(WARDS, MONTHS))
_ROWS = ((), (3, 3, -2), (3,))  # their values of x
WORLDS: tuple[World, ...] = tuple(product(*(_ROWS[: 2 if month == MONTHS[0] else 3] for _, month in CELLS)))
MOST_ROWS, MOST_TOTAL = 2, 4  # what the owner declares by ward and month; three rows are more

_TOTALS = (Decimal(-30), Decimal(30))
CLIPPED = Table(
    name="stays",
    relation="stays",
    columns=(
        Column("id", SqlType.INTEGER, "integer"),
        Column("world", SqlType.INTEGER, "integer", domain=tuple(range(len(WORLDS)))),
        Column("ward", SqlType.TEXT, "text", domain=WARDS),
        Column("admitted", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("month", SqlType.DATE, "date", domain=MONTHS, derivation=Derivation("date_trunc", "month", "admitted")),
        Column(
            "x",
            SqlType.INTEGER,
            "integer",
            bounds=(Decimal(-3), Decimal(3)),
            grid=Decimal(1),
            per_unit=_TOTALS,
        ),
    ),
    unit=("world",),
    groups_per_unit=2,
    rows_per_unit=10,
    row_cap=None,
    refresh="static",
    seed="stays",
    groupings=(
        Grouping(("ward",), 2, None, ()),
        Grouping(("ward", "month"), 6, MOST_ROWS, (("x", (Decimal(-MOST_TOTAL), Decimal(MOST_TOTAL))),)),
    ),
)
CAPPED = replace(CLIPPED, rows_per_unit=None, row_cap=RowCap(rows=10, unique="id"))
ONE_WARD = replace(
    CLIPPED, groups_per_unit=1, groupings=(replace(CLIPPED.groupings[0], groups=1), CLIPPED.groupings[1])
)

ONE, TWO = (MONTHS[1],), MONTHS[1:]
WHERES = {
    "month = '2025-11-01'": ONE,
    "month IN ('2025-11-01', '2025-12-01')": TWO,
    "admitted >= '2025-11-01' AND admitted < '2025-12-01'": ONE,
    "admitted >= '2025-11-01' AND admitted < '2026-01-01'": TWO,
}


def _catalog(table: Table) -> Catalog:
    return replace(retail(), tables=(table,), public_tables=(), max_keys=10**6)


def _ask(where: str, table: Table) -> Question:
    sql = f"SELECT world, ward FROM stays WHERE {where} GROUP BY world, ward HAVING count(*) > 40 OR sum(x) > 50"
    return asked(sql, catalog=_catalog(table), mechanism="keyhole")


@dataclass(frozen=True, slots=True)
class Loaded:
    """All worlds in both engines."""

    engines: Engines
    relations: dict[str, str]

    def read(self, question: Question) -> npt.NDArray[np.int64]:
        """By functional, world and ward, what both engines give."""
        found = self.engines.answers(question, self.relations)
        assert len(found) >= 2
        for other in found[1:]:
            assert np.array_equal(found[0], other)
        return found[0].reshape(len(question.functionals), len(WORLDS), len(WARDS))


@pytest.fixture(scope="module")
def loaded(engines: Engines) -> Iterator[Loaded]:
    rows = []
    for number, world in enumerate(WORLDS):
        for place, ((ward, month), values) in enumerate(zip(CELLS, world, strict=True)):
            time = datetime(month.year, month.month, 17, 12)
            rows += [(10 * place + i, number, ward, time, x) for i, x in enumerate(values)]
    path = engines.folder / "fixed_keys.parquet"
    declared = "(id integer, world integer, ward text, admitted timestamp, x integer)"
    spelled = ", ".join(f"({i}, {number}, '{ward}', TIMESTAMP '{time}', {x})" for i, number, ward, time, x in rows)
    with duckdb.connect() as writer:
        writer.execute(f"CREATE TABLE stays {declared}")
        writer.execute(f"INSERT INTO stays VALUES {spelled}")
        writer.execute(f"COPY stays TO '{path}'")
    engines.writer.execute(f"CREATE UNLOGGED TABLE fixed_keys {declared}")
    engines.writer.execute(f"INSERT INTO fixed_keys VALUES {spelled}")
    yield Loaded(engines, {"duckdb": f"read_parquet('{path}')", "postgres": "public.fixed_keys"})
    engines.writer.execute("DROP TABLE fixed_keys")


def _read_rows(world: World, ward: str, months: tuple[date, ...]) -> list[int]:
    cells = zip(CELLS, world, strict=True)
    return [x for (where, month), values in cells if where == ward and month in months for x in values]


@pytest.mark.parametrize("table", [CLIPPED, CAPPED, ONE_WARD], ids=["clipped", "capped", "one ward"])
@pytest.mark.parametrize(("where", "months"), WHERES.items(), ids=WHERES)
def test_a_unit_changes_what_is_charged_and_not_more(
    loaded: Loaded, where: str, months: tuple[date, ...], table: Table
) -> None:
    """By unit, without and with: a fixed key divides the price, and the scan keeps to it in every world."""
    question = _ask(where, table)
    found = loaded.read(question)
    rows = MOST_ROWS * len(months)
    count, total = question.functionals
    most = 3 * rows if table is CAPPED else MOST_TOTAL * len(months)
    assert (count.sensitivity, total.sensitivity) == (rows, most)
    assert np.abs(found[0]).max() == rows  # attained: no larger bound would do
    assert np.abs(found[1]).max() <= most
    assert np.count_nonzero(found.any(axis=0), axis=1).max() == question.table.groups_per_unit


@pytest.mark.parametrize("table", [CLIPPED, CAPPED], ids=["clipped", "capped"])
@pytest.mark.parametrize(("where", "months"), WHERES.items(), ids=WHERES)
def test_a_unit_within_its_bounds_is_whole_whatever_it_has_elsewhere(
    loaded: Loaded, where: str, months: tuple[date, ...], table: Table
) -> None:
    """Rows in other months take no place of those that are asked for, though the cap is that of the months asked for.
    Clipped totals of the others are those of their bounds."""
    found = loaded.read(_ask(where, table))
    rows, most = MOST_ROWS * len(months), MOST_TOTAL * len(months)
    whole = 0
    for number, world in enumerate(WORLDS):
        for place, ward in enumerate(WARDS):
            read = _read_rows(world, ward, months)
            if table is CLIPPED:
                assert found[0, number, place] == min(len(read), rows)
                assert found[1, number, place] == max(-most, min(most, sum(read)))
            elif len(read) <= rows:
                assert list(found[:, number, place]) == [len(read), sum(read)]
                whole += 1
    assert table is CLIPPED or whole > len(WORLDS) // 2


@pytest.mark.parametrize("table", [CLIPPED, CAPPED], ids=["clipped", "capped"])
@pytest.mark.parametrize(("where", "months"), WHERES.items(), ids=WHERES)
def test_a_cell_changes_its_own_ward_alone(loaded: Loaded, where: str, months: tuple[date, ...], table: Table) -> None:
    """By cell, without and with: its ward moves by at most what is charged if no bound cuts the unit, and by twice that
    at most if one does. A cell of another month moves nothing at all."""
    question = _ask(where, table)
    found = loaded.read(question)
    places = {world: number for number, world in enumerate(WORLDS)}
    limits = np.array([functional.sensitivity for functional in question.functionals])
    rows = MOST_ROWS * len(months)
    for world, number in places.items():
        for cell, (ward, month) in enumerate(CELLS):
            if not world[cell]:
                continue
            left = places[(*world[:cell], (), *world[cell + 1 :])]
            moved = np.abs(np.subtract(found[:, number], found[:, left]))
            own = WARDS.index(ward)
            assert not moved[:, 1 - own].any()
            if month not in months:
                assert not moved.any()
                continue
            cut = len(_read_rows(world, ward, months)) > rows
            assert (moved[:, own] <= (2 if cut else 1) * limits).all()


@pytest.mark.parametrize(
    "where",
    [
        "true",
        "month >= '2025-11-01'",
        "admitted >= '2025-11-01'",
        "admitted >= '2025-11-01' AND admitted < '2026-01-02'",
        "month IN ('2025-11-01', '2026-01-01')",
        "NOT month = '2025-11-01'",
        "month = '2025-11-01' OR x = 1",
    ],
)
def test_rows_of_no_declared_period_stay_where_where_does_not_rule_them_out(loaded: Loaded, where: str) -> None:
    """The bounds are those of a ward: 6 groups of 2 rows; and every row that WHERE keeps is there to be bounded."""
    question = _ask(where, CLIPPED)
    assert question.table.fixed == ()
    assert question.functionals[0].sensitivity == 12
    loaded.read(question)
