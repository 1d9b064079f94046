"""A statement defines the steps that its relations read by name, each behind those that it reads itself."""

import pytest

from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.kept.named_steps import define_steps, merge_steps, name_step


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


def test_a_text_that_looks_like_a_step_is_none() -> None:
    step = name_step("SELECT 1 AS x")
    spelled = f"SELECT 'it''s {step.name}'"
    assert define_steps([], spelled, dialect=DUCKDB) == spelled
    with pytest.raises(KeyholeError, match="KH900"):
        define_steps([], f"SELECT * FROM {step.name}", dialect=DUCKDB)
