"""A statement defines the steps that its relations read by name, each behind those that it reads itself."""

import pytest

from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.kept.named_steps import define_steps, keep_steps, merge_steps, name_step
from planner.question.plan import Rewritten


def test_steps_are_defined_in_front_each_once_and_those_alone_that_are_read() -> None:
    first = name_step("SELECT 1 AS x")
    second, unread = name_step(f"SELECT x FROM {first.name}", few=True), name_step("SELECT 2 AS x")
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
    first = name_step("SELECT 1 AS x")
    second, third = name_step(f"SELECT x FROM {first.name}"), name_step(f"SELECT x + 1 AS x FROM {first.name}")
    sql = f"WITH\na AS (SELECT * FROM {second.name}, {third.name})\nTABLE a"
    steps = (first, second, third)
    made = keep_steps(Rewritten("duckdb", sql), steps, table="t", dialect=DUCKDB)
    assert made.sql == define_steps(steps, sql, dialect=DUCKDB) == made.read_kept({})
    kept = f"{second.name} AS NOT MATERIALIZED (SELECT * FROM s)"
    assert made.read_kept({second.name: "s"}) == made.sql.replace(
        f"{second.name} AS MATERIALIZED (\n  SELECT x FROM {first.name}\n)", kept
    )
    both = made.read_kept({second.name: "s", third.name: "t"})
    assert both == f"WITH\n{kept},\n{third.name} AS NOT MATERIALIZED (SELECT * FROM t){made.body}"
    assert [step.rows.build for step in made.steps[1:]] == [
        define_steps(steps, step.build, dialect=DUCKDB) for step in (second, third)
    ]


def test_a_text_that_looks_like_a_step_is_none() -> None:
    step = name_step("SELECT 1 AS x")
    spelled = f"SELECT 'it''s {step.name}'"
    told = f"/* a unit's */ -- a unit's\nSELECT * FROM {step.name} /* it's */"
    assert define_steps([step], told, dialect=DUCKDB).count(step.name) == 2
    assert define_steps([], spelled, dialect=DUCKDB) == spelled
    with pytest.raises(KeyholeError, match="KH900"):
        define_steps([], f"SELECT * FROM {step.name}", dialect=DUCKDB)
