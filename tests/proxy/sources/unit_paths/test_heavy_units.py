"""Rows of units whose totals nothing can cut are summed without their units, once a source keeps who the others are."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from planner.catalog.catalog import Table
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.question.plan import Rewritten
from proxy.sources.open import open_source
from proxy.sources.protocol import Source
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import TYPES, compiled, load_sql
from tests.worlds.house import new_database

ASKED = (
    "SELECT l_mode FROM lines WHERE l_month < 3 GROUP BY l_mode HAVING sum(amount) > 10 AND count(*) > 4",
    "SELECT l_month, l_mode FROM lines GROUP BY 1, 2 HAVING sum(amount) FILTER (WHERE amount > 0) > 10",
)
DECIDE_BY_VALUES = (
    "statistics_propagation,filter_pushdown,join_filter_pushdown,row_group_pruner,compressed_materialization"
)
GROUPED = (
    "SELECT l_mode FROM lines WHERE household = 'ann' GROUP BY l_mode HAVING count(*) > 4",
    "SELECT l_mode FROM lines GROUP BY l_mode HAVING count(DISTINCT household) > 4",
    "SELECT o_month, l_mode FROM lines JOIN orders ON l_shop = o_shop AND l_order = o_key GROUP BY 1, 2"
    " HAVING count(*) > 4",
)
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "customers": [(key, f"h{key}", "north") for key in range(1, 30)],
    "orders": [("s", key, 1 + key % 29, 1 + key % 3, 2) for key in range(60)],
    "lines": [
        *(("s", 0, "air", 1, 9) for _ in range(8)),
        *(("s", key, "air" if key % 3 else "ship", 1 + key % 3, key % 7 - 3) for key in range(70)),
        ("s", None, "air", 1, 5),
    ],
}


@dataclass(frozen=True, slots=True)
class Shop:
    """A source with the shop's tables, what they are called there, and what takes away all rows of one."""

    source: Source
    relation: Callable[[str], str]
    empty: Callable[[str], object]

    def read(self, sql: str, *, version: str | None) -> list[list[int]]:
        """The integers of a question by lists alone, and everything built for the next one."""
        question = asked(sql, catalog=compiled())
        made = plan_question(replace(question, table=self._place(question.table)), dialect=self.source.dialect)
        found = self.source.read_aggregates(
            replace(made.rewritten, rollup=None),
            question.keys,
            functionals=len(made.question.computed_functionals),
            timeout_ms=60_000,
            version=version,
        )
        self.source.wait_for_rollups()
        return [list(map(int, values)) for values in found.values]

    def _place(self, table: Table) -> Table:
        path = None if table.path is None else replace(table.path, table=self._place(table.path.table))
        return replace(table, relation=self.relation(table.name), path=path)


@pytest.fixture(params=["duckdb", "postgresql"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> Iterator[Shop]:
    loads = load_sql(ROWS, ("household",))
    if request.param == "duckdb":
        with duckdb.connect() as writer:
            for statement in loads:
                writer.execute(statement)

            def copy(table: str, condition: str = "TRUE") -> None:
                writer.execute(f"COPY (FROM {table} WHERE {condition}) TO '{tmp_path / table}.parquet'")

            for table in TYPES:
                copy(table)
            source = open_source("duckdb://", directory=tmp_path, rollups=1)
            yield Shop(source, lambda one: f"read_parquet('{tmp_path / one}.parquet')", lambda one: copy(one, "FALSE"))
            source.close()
    else:
        with new_database(postgres_url) as url, psycopg.connect(url, autocommit=True) as owner:
            owner.execute("; ".join(loads).encode())
            source = open_source(url, directory=tmp_path, rollups=1)
            yield Shop(source, lambda one: f"public.{one}", lambda one: owner.execute(f"TRUNCATE {one}".encode()))
            source.close()


def test_a_version_s_later_questions_do_not_reach_units_that_nothing_can_cut(shop: Shop) -> None:
    """The tables that lead to units are empty by then. Of another version they lead nowhere."""
    expected = [shop.read(sql, version="1") for sql in ASKED]
    assert all(any(map(any, one)) for one in expected), "some group has rows"
    for table in ("orders", "customers"):
        shop.empty(table)
    assert [shop.read(sql, version="1") for sql in ASKED] == expected
    for version in ("2", None):
        assert not any(any(map(any, shop.read(sql, version=version))) for sql in ASKED)


def test_many_lists_are_made_for_those_alone_who_ask_again(shop: Shop) -> None:
    """A mean's threshold is part of what it adds up. Sixteen steps are kept; beside nine no list is made at once."""
    several = [f"SELECT l_mode FROM lines GROUP BY 1 HAVING avg(amount) > {number / 2}" for number in range(1, 13)]
    *_, once, twice = several
    expected = {sql: shop.read(sql, version="1") for sql in (*several, twice)}
    for table in ("orders", "customers"):
        shop.empty(table)
    found = {sql: shop.read(sql, version="1") for sql in (several[0], once, twice)}
    assert found == {several[0]: expected[several[0]], once: [[0, 0]], twice: expected[twice]}
    assert any(map(any, expected[once]))


def _heavy(rewritten: Rewritten, rows: dict[str, list[tuple[Any, ...]]] = ROWS) -> list[tuple[Any, ...]]:
    assert rewritten.from_kept_steps is not None
    build = next(
        one.kept_rows.build
        for one in reversed(rewritten.from_kept_steps.steps)
        if one.kept_rows and "keyhole_z0" in one.definition
    )
    with duckdb.connect() as duck:
        for statement in load_sql(rows, ("household",)):
            duck.execute(statement)
        return duck.execute(build).fetchall()


def test_keys_are_listed_of_units_that_a_clip_may_cut_and_of_nobody() -> None:
    """h1 has eight lines of 9 and one more, and counts for three of at most 20. Orders 60 to 69 are nobody's."""
    found = _heavy(plan_question(asked(ASKED[0], catalog=compiled()), dialect=DUCKDB).rewritten)
    of_nobody = {key for _, key, unit, *_ in found if unit is None}
    of_units = {unit for *_, unit, _ in found if unit is not None}
    assert of_nobody == {0, *range(60, 70)}
    assert ("", 0, None, True) in found
    assert "h1" in of_units
    assert len(of_units) < 29


def test_units_are_heavy_by_what_they_lose() -> None:
    sql = "SELECT l_mode FROM lines GROUP BY l_mode HAVING sum(amount) > 10"
    made = plan_question(asked(sql, catalog=compiled()), dialect=DUCKDB).rewritten
    lost = {**ROWS, "lines": [*ROWS["lines"], *(("s", 5, "air", 1, -5) for _ in range(3))]}
    before, after = ({unit for *_, unit, _ in _heavy(made, rows)} for rows in (ROWS, lost))
    assert after - before == {"h6"}


def _plan_kept(rewritten: Rewritten, rows: dict[str, list[tuple[Any, ...]]]) -> tuple[int, str]:
    """How many keys are listed, and what DuckDB does with the list, without how many rows it expects."""
    assert rewritten.from_kept_steps is not None
    with duckdb.connect(config={"disabled_optimizers": DECIDE_BY_VALUES}) as duck:
        for statement in load_sql(rows, ("household",)):
            duck.execute(statement)
        kept = {}
        for step in rewritten.from_kept_steps.steps:
            assert step.kept_rows is not None
            duck.execute(f"CREATE TABLE kept_{step.name} AS {step.kept_rows.build}")
            kept[step.name] = f"kept_{step.name}"
        told = duck.execute(f"EXPLAIN (FORMAT JSON) {rewritten.from_kept_steps.write_from_kept(kept)}").fetchall()[0][1]
        (count,) = duck.execute(f"SELECT count(*) FROM {list(kept.values())[-1]}").fetchone() or (0,)
    return count, re.sub(r'"Estimated Cardinality": "\d+"', "", told)


def test_duckdb_does_the_same_whether_or_not_a_unit_is_heavy() -> None:
    light = {**ROWS, "lines": [row for row in ROWS["lines"] if row[4] != 9 and row[1] in range(1, 60)]}
    made = plan_question(asked(ASKED[0], catalog=compiled()), dialect=DUCKDB).rewritten
    (nobody, without), (some, with_heavy) = _plan_kept(made, light), _plan_kept(made, ROWS)
    assert nobody == 1
    assert some > 10
    assert without == with_heavy


def test_statements_that_read_units_reach_all_of_them() -> None:
    for sql in GROUPED:
        assert plan_question(asked(sql, catalog=compiled()), dialect=DUCKDB).rewritten.from_kept_steps is None, sql
