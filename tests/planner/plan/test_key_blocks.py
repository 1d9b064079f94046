"""Blocks of keys are all of the keys, in their order, and follow from the question alone."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Column, SqlType, Value
from planner.catalog.key_space import KeySpace
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.plan.key_blocks import cut_keys, rewrite_blocks
from planner.question.question import Question
from tests.worlds.questions import CLIPPED, ROWS, above, count, question

SMALL = replace(DUCKDB, keys_at_once=3)


@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=3), most=st.integers(1, 30))
def test_blocks_are_all_keys_in_their_order(shape: list[int], most: int) -> None:
    columns = tuple(Column(f"c{place}", SqlType.INTEGER, "integer") for place in range(len(shape)))
    keys = KeySpace(columns, tuple(tuple(range(size)) for size in shape))
    found: list[tuple[Value, ...]] = []
    for start, space in cut_keys(keys, most_keys=most):
        assert start == len(found)
        assert 1 <= space.size <= most
        found += [space.get_key(place) for place in range(space.size)]
    assert found == [keys.get_key(place) for place in range(keys.size)]


def _by_number(question: Question, *numbers: int) -> Question:
    """The question with a key column of such numbers in front."""
    numbered = Column("line_id", SqlType.INTEGER, "integer", domain=numbers)
    keys = KeySpace((numbered, *question.keys.columns), (numbers, *question.keys.values))
    return replace(question, keys=keys)


def test_a_statement_has_the_keys_of_its_block_alone() -> None:
    asked = question(above(0, 100, 10), count())
    blocks = rewrite_blocks(asked, dialect=SMALL)
    assert [(block.start, block.keys.size) for block in blocks] == [(0, 3), (3, 3), (6, 3), (9, 3)]
    assert "'France'" in blocks[0].sql
    assert "'Germany'" not in blocks[0].sql
    assert "'Germany'" in blocks[1].sql
    assert plan_question(asked, dialect=SMALL).rewritten.blocks == blocks


def test_few_keys_are_read_by_one_statement() -> None:
    assert rewrite_blocks(question(above(0, 100, 10), count()), dialect=DUCKDB) == ()
    assert rewrite_blocks(question(above(0, 100, 10), count()), dialect=POSTGRES) == ()
    assert rewrite_blocks(question(above(0, 100, 10), count()), dialect=replace(SMALL, keys_at_once=12)) == ()


def test_a_choice_among_all_keys_is_made_once() -> None:
    chosen = replace(CLIPPED, unit=("customer_id",))
    assert rewrite_blocks(question(above(0, 100, 10), count(table=chosen), table=chosen), dialect=SMALL) == ()
    several = replace(chosen, groups_per_unit=12)
    assert rewrite_blocks(question(above(0, 100, 10), count(table=several), table=several), dialect=SMALL) != ()


@pytest.mark.parametrize(
    ("numbers", "in_blocks"),
    [
        (tuple(range(6_000)), True),
        (tuple(range(0, 18_000, 3)), True),
        (tuple(reversed(range(6_000))), False),  # a block's range would have the keys of all others in it
    ],
)
def test_a_block_is_a_range_where_it_has_many_values(numbers: tuple[int, ...], *, in_blocks: bool) -> None:
    asked = _by_number(question(above(0, 100, 10), count()), *numbers)
    blocks = rewrite_blocks(asked, dialect=replace(DUCKDB, keys_at_once=2_000 * 12))
    assert [block.start for block in blocks] == ([0, 24_000, 48_000] if in_blocks else [])
    assert all("BETWEEN" in block.sql and len(block.sql) < 2_000 for block in blocks)


def test_texts_too_many_to_be_listed_are_read_at_once() -> None:
    texts = tuple(map(str, range(5_000)))
    named = Column("name", SqlType.TEXT, "text", domain=texts)
    asked = question(above(0, 100, 10), count())
    table = replace(ROWS, columns=(*ROWS.columns, named))
    asked = replace(asked, table=table, keys=KeySpace((named,), (texts,)))
    assert rewrite_blocks(asked, dialect=replace(DUCKDB, keys_at_once=2_000)) == ()
    assert len(rewrite_blocks(asked, dialect=replace(DUCKDB, keys_at_once=1_000))) == 5
