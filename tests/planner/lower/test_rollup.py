"""The rows that count, as text: what a rollup holds does not depend on the question, what is asked of it does."""

from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from mechanisms.formula import TRUE
from planner.catalog.catalog import Table
from planner.catalog.key_space import KeySpace
from planner.lower.contribution_bounds import Bounding
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.kept import rollup as rollups
from planner.lower.kept.rollup_build import build_rollup
from planner.lower.scan import rewrite
from planner.question.condition import Compare
from planner.question.plan import Rollup
from planner.question.question import Functional, Question
from tests.worlds.questions import CAPPED, CLIPPED, FRANCE, ROWS, count, question, total

DIALECTS = (DUCKDB, POSTGRES)


def _question(table: Table, *functionals: Functional, keys: tuple[str, ...] = ("country", "month")) -> Question:
    asked = question(TRUE, *(functionals or (count(table=table),)), table=table)
    columns = tuple(table.get_column(name) for name in keys)
    return replace(asked, keys=KeySpace(columns=columns, values=tuple(column.domain or () for column in columns)))


def _rollup(asked: Question, dialect: Dialect = POSTGRES) -> Rollup:
    rollup = rewrite(asked, dialect=dialect).rollup
    assert rollup is not None
    return rollup


@pytest.mark.parametrize("dialect", DIALECTS, ids=attrgetter("name"))
@pytest.mark.parametrize("table", [CLIPPED, CAPPED], ids=["clipped", "capped"])
def test_one_rollup_for_all_questions_with_these_keys(table: Table, dialect: Dialect) -> None:
    asked = _question(table)
    others = [
        replace(asked, where=Compare("amount", ">", 7)),
        _question(table, total(table=table), count(FRANCE, table=table)),
        _question(table, keys=("month", "country")),
        replace(asked, keys=replace(asked.keys, values=(("France",), asked.keys.values[1]))),
    ]
    name = _rollup(asked, dialect).name
    assert {_rollup(other, dialect).name for other in others} == {name}


@pytest.mark.parametrize("dialect", DIALECTS, ids=attrgetter("name"))
def test_what_a_rollup_holds_is_written_once_for_all_questions(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(CLIPPED, seed=f"written once for {dialect.name}")
    built = []

    def build(bounding: Bounding, **within: Any) -> list[str]:
        built.append(bounding)
        return build_rollup(bounding, **within)

    monkeypatch.setattr(rollups, "build_rollup", build)
    for asked in (_question(table), replace(_question(table, total(table=table)), where=Compare("amount", ">", 7))):
        assert _rollup(asked, dialect).build == "\n".join(build_rollup(built[0]))
    assert len(built) == 1


def test_other_bounding_is_another_rollup() -> None:
    different = [
        CLIPPED,
        CAPPED,
        replace(CLIPPED, seed="another"),
        replace(CLIPPED, groups_per_unit=CLIPPED.groups_per_unit + 1),
        replace(CLIPPED, relation="sales_2027"),
    ]
    assert len({_rollup(_question(table)).name for table in different}) == len(different)
    assert _rollup(_question(CLIPPED)).name != _rollup(_question(CLIPPED, keys=("country",))).name
    assert _rollup(_question(CLIPPED), DUCKDB).name != _rollup(_question(CLIPPED)).name


@pytest.mark.parametrize("dialect", DIALECTS, ids=attrgetter("name"))
@pytest.mark.parametrize("table", [CLIPPED, CAPPED], ids=["clipped", "capped"])
def test_the_table_is_read_by_the_build_alone(table: Table, dialect: Dialect) -> None:
    rollup = _rollup(replace(_question(table, total(table=table)), where=Compare("amount", ">", 7)), dialect)
    build = sqlglot.parse_one(rollup.build, dialect=dialect.name)
    answer = sqlglot.parse_one(f"WITH rolled AS (SELECT 1),\n{rollup.sql}", dialect=dialect.name)
    assert sum(scan.name == "sales" for scan in build.find_all(exp.Table)) == 1
    assert all(scan.name != "sales" for scan in answer.find_all(exp.Table))
    assert all("amount" not in where.sql() for where in build.find_all(exp.Where))


def test_nothing_is_kept_of_rows_that_are_their_own_units_or_of_live_tables() -> None:
    assert rewrite(_question(ROWS), dialect=POSTGRES).rollup is None
    live = replace(CLIPPED, refresh="live")
    assert rewrite(_question(live), dialect=POSTGRES).rollup is None


def test_a_column_may_not_be_called_as_the_rollups_own() -> None:
    named = replace(CLIPPED.columns[0], name="Keyhole_rows", domain=None)
    assert rewrite(_question(replace(CLIPPED, columns=(*CLIPPED.columns, named))), dialect=DUCKDB).rollup is None
