"""Thresholds that a key determines: exactly the groups of the real SQL join qualify, on both engines, without noise."""

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject
from hypothesis import strategies as st

from mechanisms.formula import Integers, evaluate_formula
from planner.catalog.catalog import Table
from planner.catalog.key_space import format_value
from planner.errors import KeyholeError
from planner.functionals.per_key_offsets import subtract_offsets
from planner.plan.minimise import minimise
from planner.question.question import Question
from tests.effort import examples
from tests.proxy.sources.test_joins import FROM, UNITS, World, asked, catalog, load, worlds
from tests.proxy.sources.worlds import Engines

JOINS = tuple(source for source in FROM if "hospitals" not in source and "levels" not in source)
ATOMS = (
    "count(*) > w.beds",
    "count(*) >= 0.8 * w.beds",
    "count(*) < 0.5 * w.beds + 1",
    "NOT (count(*) > w.beds / 2)",
    "count(*) = w.beds",
    "count(*) <> w.beds - 1",
    "w.beds - count(*) <= 3.5",
    "w.weight < sum(v.age)",
    "2 * sum(v.age) - count(*) > 3 * w.beds + w.weight",
    "count(*) BETWEEN w.level AND w.beds",
    "count(*) > max(w.level)",
    "min(w.beds) > count(*)",
    "count(*) FILTER (WHERE v.age > 50) > w.level",
    "count(*) > coalesce(w.beds, 2)",
    "count(*) > 2",
    "sum(v.age) > 10 * w.level * w.level",
)


@pytest.fixture
def joined_tables(engines: Engines) -> Iterator[Engines]:
    """The engines, without the public tables afterwards."""
    yield engines
    engines.writer.execute("DROP TABLE IF EXISTS visits, wards, hospitals, levels, rooms")


def _passed(question: Question, values: Integers) -> set[tuple[str, ...]]:
    compared = subtract_offsets(question, values)
    for formula in (question.formula, minimise(question.formula).formula):
        held = evaluate_formula(formula, lambda cut: cut.evaluate(compared[cut.functional]), keys=question.keys.size)
        found = {tuple(map(format_value, key)) for key in question.keys.list_keys(np.asarray(held))}
    return found


_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@examples(150, suppress_health_check=_SLOW)
@given(
    world=worlds(),
    table=st.sampled_from(UNITS),
    source=st.sampled_from(JOINS),
    atoms=st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3, unique=True),
    both=st.sampled_from((" AND ", " OR ")),
    known=st.booleans(),
    further=st.booleans(),
)
def test_the_groups_are_those_of_the_real_join(
    joined_tables: Engines,
    world: World,
    table: Table,
    source: str,
    atoms: list[str],
    both: str,
    known: bool,
    further: bool,
) -> None:
    """Of the groups with rows; those without are none of SQL's."""
    conditions = ["w.beds IS NOT NULL AND w.level IS NOT NULL AND w.weight IS NOT NULL"] if known else []
    conditions += [] if table.is_row_unit else ["v.person IS NOT NULL"]
    where = f" {'AND' if 'WHERE' in source else 'WHERE'} {' AND '.join(conditions)}" if conditions else ""
    keys = "v.ward, w.open" if further else "v.ward"
    group = f"{source}{where} GROUP BY {keys}, w.beds, w.level, w.weight HAVING {both.join(f'({a})' for a in atoms)}"
    try:
        question = asked(f"SELECT v.ward {group}", catalog(table, world.public))
    except KeyholeError as error:
        assert error.code in ("KH206", "KH208", "KH220", "KH304"), error  # noqa: PT017 (no value, no guard, or settled)
        return
    assert question.keys.names == ("ward",)
    truth, relations = load(joined_tables, world)
    try:
        real = _keys(truth.execute(f"SELECT v.ward {group}").fetchall())
    except duckdb.OutOfRangeException:  # SQL's own int4 arithmetic on public numbers; Keyhole's has no such limit
        reject()
    there = _keys(truth.execute(f"SELECT DISTINCT v.ward {source}{where}").fetchall())
    same = _keys(joined_tables.writer.execute(f"SELECT v.ward {group}").fetchall())
    truth.close()
    possible = {(format_value(value),) for value in table.get_column("ward").domain or ()}
    assert real == same
    for answer in joined_tables.answers(question, relations):
        assert _passed(question, answer) & there == real & possible


def _keys(rows: list[Any]) -> set[tuple[str, ...]]:
    return {tuple(map(format_value, row)) for row in rows if None not in row}
