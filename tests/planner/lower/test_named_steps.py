"""A statement defines the steps that its relations read by name, each behind those that it reads itself."""

import re
from fractions import Fraction

import pytest

from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.dialects.sail import SAIL
from planner.lower.kept.named_steps import define_steps, keep_steps, make_step, merge_steps
from planner.lower.left_out import LeftOutRows
from planner.lower.unit_statistics import BoundKind, UnitCounts, UnitStatistic
from planner.plan.build import plan_question
from planner.question.plan import Rewritten
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import compiled
from tests.proxy.sources.unit_paths.test_unit_paths import OF_ONE
from tests.proxy.sources.unit_paths.test_work_along_keys import ASKED

ONE = Fraction(1)


def test_steps_are_defined_in_front_each_once_and_those_alone_that_are_read() -> None:
    first = make_step("SELECT 1 AS x")
    second, unread = make_step(f"SELECT x FROM {first.name}"), make_step("SELECT 2 AS x")
    steps = merge_steps([first, second], [first, unread])
    assert steps == (first, second, unread)
    defined = f"WITH\n{first.name} AS MATERIALIZED (\n  SELECT 1 AS x\n),\n{second.name} AS MATERIALIZED (\n"
    defined += f"  SELECT x FROM {first.name}\n)"
    read = f"SELECT * FROM {second.name}"
    assert define_steps(steps, read, dialect=DUCKDB) == f"{defined}\n{read}"
    assert define_steps(steps, f"WITH\na AS ({read})\nTABLE a", dialect=DUCKDB) == f"{defined},\na AS ({read})\nTABLE a"
    assert define_steps(steps, "SELECT 3", dialect=DUCKDB) == "SELECT 3"


def test_a_statement_reads_steps_from_where_they_are_kept() -> None:
    """What a kept step alone reads is not defined, and a step by itself is defined with what it reads."""
    first = make_step("SELECT 1 AS x")
    second, third = make_step(f"SELECT x FROM {first.name}"), make_step(f"SELECT x + 1 AS x FROM {first.name}")
    sql = f"WITH\na AS (SELECT * FROM {second.name}, {third.name})\nTABLE a"
    steps = (first, second, third)
    made = keep_steps(Rewritten("duckdb", sql), steps, table="t", dialect=DUCKDB)
    assert made.sql == define_steps(steps, sql, dialect=DUCKDB) == made.write_from_kept({})
    kept = f"{second.name} AS NOT MATERIALIZED (SELECT * FROM s)"
    assert made.write_from_kept({second.name: "s"}) == made.sql.replace(
        f"{second.name} AS MATERIALIZED (\n  SELECT x FROM {first.name}\n)", kept
    )
    both = made.write_from_kept({second.name: "s", third.name: "t"})
    assert both == f"WITH\n{kept},\n{third.name} AS NOT MATERIALIZED (SELECT * FROM t){made.body}"
    assert [step.kept_rows.build for step in made.steps if step.kept_rows][1:] == [
        define_steps(steps, step.build, dialect=DUCKDB) for step in (second, third)
    ]
    rows = {step.name: step.kept_rows for step in made.steps if step.kept_rows is not None}[third.name]
    assert rows.write_build({}) == rows.build
    read = f"WITH\n{first.name} AS NOT MATERIALIZED (SELECT * FROM s)\n{third.build}"
    assert rows.write_build({first.name: "s", second.name: "t"}) == read
    asked_about = make_step(f"SELECT x FROM {first.name} WHERE x > 3", asked=True)
    made = keep_steps(Rewritten("duckdb", f"TABLE {asked_about.name}"), (first, asked_about), table="t", dialect=DUCKDB)
    assert [step.kept_rows is not None for step in made.steps] == [True, False]


def test_a_step_is_found_behind_apostrophes_and_the_name_of_none_is_a_text() -> None:
    """An analyst's text may look like a step's name: WHERE note = 'keyhole_step_...'."""
    step = make_step("SELECT 1 AS x")
    told = f"/* a unit's */ -- a unit's\nSELECT \"it's\", 'it\\' FROM {step.name} /* it's */"
    assert define_steps([step], told, dialect=DUCKDB).count(step.name) == 2
    assert define_steps([], told, dialect=DUCKDB) == told


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SAIL], ids=lambda dialect: dialect.name)
def test_statements_over_paths_joins_lists_and_values_define_what_they_read(dialect: Dialect) -> None:
    """So do what a rollup holds, private bounds count and owners see of what is left out. A row that is first in no
    order could be another one wherever an engine computes a step anew."""
    catalog = compiled()
    written = []
    for sql in (*ASKED, *OF_ONE):
        made = plan_question(asked(sql, catalog=catalog), dialect=dialect).rewritten
        written += [
            made.sql,
            *(one.kept_rows.build for one in made.steps if one.kept_rows),
            *([made.rollup.build] if made.rollup else []),
            *(
                [
                    made.from_kept_steps.sql,
                    *(one.kept_rows.build for one in made.from_kept_steps.steps if one.kept_rows),
                ]
                if made.from_kept_steps
                else []
            ),
        ]
    for table in catalog.tables[1:]:
        groups = UnitStatistic(
            BoundKind.GROUPS, tuple(one.name for one in table.columns if one.domain), None, ONE, (1,)
        )
        left_out = LeftOutRows(table, dialect)
        written += [UnitCounts(table, dialect, (groups,), counts_units=True).sql, left_out.count_rows()]
        written += [left_out.count_units(()), left_out.measure_groups(()), left_out.count_joined_rows(3)]
    for sql in written:
        names = re.findall(r"\bkeyhole_step_[0-9a-f]{32}\b", sql)
        defined = re.findall(r"\b(keyhole_step_[0-9a-f]{32}) AS (?:MATERIALIZED )?\(", sql)
        assert set(names) == set(defined), sql
        assert len(defined) == len(set(defined))
        assert sql.count("LIMIT 1)") == len(re.findall(r"ORDER BY keyhole_[sm]0[\w, ]* LIMIT 1\)", sql))
    assert sum("keyhole_step_" in sql for sql in written) > len(written) // 2


@pytest.mark.parametrize("dialect", [DUCKDB, POSTGRES, SAIL], ids=lambda dialect: dialect.name)
def test_a_statement_carries_what_it_reads_and_steps_what_any_question_reads(dialect: Dialect) -> None:
    """So steps serve every question that joins these tables, and a row is as wide as the question."""
    joined = "lines JOIN orders ON l_shop = o_shop AND l_order = o_key JOIN customers USING (household)"
    beside = {"count(*) > 4": set(), "sum(amount) > 4": {"amount"}, "avg(o_price) > 1": {"o_price"}}
    kept = set()
    for aggregate, read in beside.items():
        sql = f"SELECT o_month FROM {joined} WHERE l_month = 1 GROUP BY o_month HAVING {aggregate}"
        made = plan_question(asked(sql, catalog=compiled()), dialect=dialect).rewritten
        kept.add(tuple(step.kept_rows and step.kept_rows.build for step in made.steps))
        named = set(re.findall(r"\b(?:region|l_mode|c_key|[ol]_month|o_customer|o_price|amount)\b", made.body))
        assert named == {"o_month", "l_month", "o_customer", "c_key", *read}
    assert len(kept) == 1
