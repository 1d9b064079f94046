"""Which looks become one statement, and that none is left out."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

import pytest

from mechanisms.formula import TRUE
from planner.catalog.catalog import Column, SqlType, Table
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.lower.shared_looks import MOST_SHARED, SharedLook, share_scans
from planner.question.as_of import AsOf
from planner.question.condition import Compare, Like
from planner.question.question import Question
from tests.worlds.questions import CAPPED, CLIPPED, FRANCE, MONTHS, ROWS, SPAIN, count, question, total

_SOLD = Column("sold_at", SqlType.TIMESTAMP, "timestamp without time zone")
_AS_OF = AsOf("sold_at", datetime(2011, 2, 20), "month", MONTHS, timedelta(days=32))
_CUSTOMERS = replace(CLIPPED, unit=("customer_id",), groups_per_unit=2)


def _look(table: Table = _CUSTOMERS) -> Question:
    table = replace(table, columns=(*table.columns, _SOLD))
    return replace(question(TRUE, count(table=table), total(table=table), table=table), as_of=_AS_OF)


def _share(*questions: Question) -> tuple[SharedLook, ...]:
    shared = share_scans(questions, dialect=POSTGRES)
    assert sorted(number for look in shared for number, _ in look.places) == list(range(len(questions)))
    for look in shared:
        for dialect in (DUCKDB, POSTGRES):
            rewrite(look.question, dialect=dialect)
    return shared


@pytest.mark.parametrize("table", [ROWS, _CUSTOMERS, CAPPED], ids=["row", "clipped", "capped"])
def test_a_hundred_standing_questions_are_a_few_scans(table: Table) -> None:
    look = _look(table)
    asked = [replace(look, where=Compare("line_id", "<", i)) for i in range(100)]
    assert len(_share(*asked)) == -(-200 // MOST_SHARED)
    thresholds_apart = [replace(look, formula=TRUE) for _ in range(100)]
    (together,) = _share(*thresholds_apart)
    assert {places for _, places in together.places} == {(0, 1)}


def test_one_where_of_all_stays_where_it_is() -> None:
    look = replace(_look(), where=FRANCE)
    (same,) = _share(look, replace(look, functionals=look.functionals[:1]))
    assert same.question.where == FRANCE
    assert same.places == ((0, (0, 1)), (1, (0,)))
    (apart,) = _share(look, replace(look, where=SPAIN))
    assert apart.places == ((0, (0, 1)), (1, (2, 3)))


def test_what_reads_other_rows_or_bounds_them_otherwise_is_another_statement() -> None:
    look = _look()
    assert look.as_of is not None
    others: Sequence[Question] = (
        replace(look, as_of=replace(look.as_of, before=datetime(2011, 2, 21))),
        replace(look, as_of=replace(look.as_of, horizon=MONTHS[1:])),
        replace(look, keys=replace(look.keys, values=(look.keys.values[0], (date(2011, 2, 1),)))),
        replace(look, table=replace(look.table, groups_per_unit=1)),
        replace(look, table=replace(look.table, seed="another")),
        replace(look, as_of=None),
    )
    assert len(_share(look, *others)) == 1 + len(others)


def test_columns_of_its_own_leave_a_question_with_the_others() -> None:
    look = _look()
    more = replace(look.table, columns=(*look.table.columns, Column("note", SqlType.TEXT, "text")))
    other = replace(look.table, columns=(*look.table.columns, Column("note", SqlType.TEXT, "varchar(9)")))
    assert len(_share(look, replace(look, table=more, where=Compare("note", "=", "x")))) == 1
    assert len(_share(replace(look, table=more), replace(look, table=other))) == 2


def test_together_no_row_costs_more_than_any_may() -> None:
    look = _look()
    table = replace(look.table, columns=(*look.table.columns, Column("note", SqlType.TEXT, "text")))
    asked = [replace(look, table=table, where=Like("note", f"%{i:02}{'abcdefghij' * 6}%{i}%")) for i in range(8)]
    assert 1 < len(_share(*asked)) < 8
