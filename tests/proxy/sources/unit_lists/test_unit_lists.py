"""Lists of privacy units on the engines: the groups are those that PostgreSQL counts, and one unit moves its own alone.

Rows repeat where the owner vouched that they do not, lead nowhere where they should lead somewhere, and hold the least
and greatest values of their types.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.catalog.catalog import Catalog
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from tests.effort import examples
from tests.planner.asked import asked_once, written_once
from tests.proxy.sources.unit_lists.listed import ASKED, NAMES, OF_ODD_ROWS
from tests.proxy.sources.unit_paths.shop import load_sql, shops, take_one_away
from tests.proxy.sources.worlds import Engines


def _truth(sql: str, engines: Engines, *, counted: str) -> Mapping[Any, int]:
    """By group of two values, how many units PostgreSQL counts there among the rows that belong to somebody.

    Values are clipped to their columns' bounds where they are added up or averaged.
    """
    select, _, _ = sql.rpartition(" GROUP BY ")
    for column, low, high in (("o_price", 0, 6), ("amount", -5, 10)):
        clipped = f"least(greatest({column}, {low}), {high})"
        select = re.sub(rf"(sum|avg)\({column}\)", rf"\1(CASE WHEN {column} IS NOT NULL THEN {clipped} END)", select)
    stored = re.sub(rf"\b({'|'.join(NAMES)})\b", r"truth_\1", select)
    stored = re.sub(r"SELECT (l_mode|l\.l_mode|region)", rf"SELECT {counted}, \1", stored, count=1)
    rows: Any = engines.writer.execute(f"{stored} GROUP BY 2".encode()).fetchall()
    return {key: count for count, key in rows if key in ("air", "ship", "north", "south")}


@pytest.mark.parametrize("asks", ASKED, ids=("rows", "totals", "sets", "joins", "mixed", "pairs"))
@examples(20, quick=2, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=shops(), data=st.data())
def test_groups_count_the_units_that_are_on_the_list(
    engines: Engines,
    asks: tuple[Catalog, str, tuple[str, ...]],
    rows: dict[str, list[tuple[Any, ...]]],
    data: st.DataObject,
) -> None:
    """Both engines give what PostgreSQL counts for the statement as it is written, over the rows that have a unit.

    Without one unit each group loses that unit at most.
    """
    catalog, counted, statements = asks
    unit = catalog.tables[0].unit
    without = take_one_away(rows, unit, data)
    worlds = []
    with duckdb.connect() as duck:
        for world in (rows, without):
            for statement in load_sql(world, unit):
                duck.execute(statement)
            truth = [
                f"DROP TABLE IF EXISTS truth_{name}; CREATE TABLE truth_{name} AS SELECT * FROM"
                f" {'' if name == 'customers' else 'stored_'}{name} WHERE ({', '.join(unit)}) IS NOT NULL"
                for name in NAMES
            ]
            engines.writer.execute("; ".join([*load_sql(world, unit), *truth]).encode())
            answers = []
            for sql in statements:
                question = asked_once(sql, catalog)
                expected = _truth(sql, engines, counted=counted)
                found: list[Any] = [
                    duck.execute(written_once(question, DUCKDB)).fetchall(),
                    engines.writer.execute(written_once(question, POSTGRES).encode()).fetchall(),
                ]
                for one in found:
                    assert {key: count for key, count in one if count} == expected, sql
                answers.append(expected)
            worlds.append(answers)
    _check_loss(*worlds)


@examples(60, quick=5, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=shops(), data=st.data())
def test_no_row_makes_a_list_fail_or_decides_about_other_units(
    engines: Engines, rows: dict[str, list[tuple[Any, ...]]], data: st.DataObject
) -> None:
    """Where plain SQL fails, on sums beyond a type and on division by zero, both engines give the same groups.

    Without one unit each group loses that unit at most.
    """
    catalog = ASKED[0][0]
    unit = catalog.tables[0].unit
    questions = [asked_once(sql, catalog) for sql in OF_ODD_ROWS]
    worlds = []
    with duckdb.connect() as duck:
        for world in (rows, take_one_away(rows, unit, data)):
            for statement in load_sql(world, unit):
                duck.execute(statement)
            engines.writer.execute("; ".join(load_sql(world, unit)).encode())
            answers = []
            for sql, question in zip(OF_ODD_ROWS, questions, strict=True):
                found = dict(duck.execute(written_once(question, DUCKDB)).fetchall())
                other: Any = engines.writer.execute(written_once(question, POSTGRES).encode()).fetchall()
                assert found == dict(other), sql
                answers.append(found)
            worlds.append(answers)
    _check_loss(*worlds)


def _check_loss(before: Sequence[Mapping[Any, int]], after: Sequence[Mapping[Any, int]]) -> None:
    """Insist that the second world, without one unit, has one unit less in each group, or as many."""
    for whole, rest in zip(before, after, strict=True):
        assert all(whole.get(key, 0) - rest.get(key, 0) in (0, 1) for key in whole.keys() | rest.keys())
