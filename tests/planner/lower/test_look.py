"""The text of looks: what is read, what is chosen, and which functionals can only grow."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
import sqlglot
from sqlglot import exp

from mechanisms.formula import TRUE
from planner.catalog.catalog import Column, SqlType, Table
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.look import find_growing_functionals, may_leave_out
from planner.lower.scan import rewrite
from planner.plan.question_identity import find_fingerprint, identify_paths
from planner.question.as_of import AsOf, Hopping
from planner.question.condition import ALWAYS, And, Compare, Like
from planner.question.looks import look_at
from planner.question.question import Measure, Question, Term
from tests.worlds.questions import CAPPED, CLIPPED, COUNTRIES, ROWS, count, question, total

_MONTHS = tuple(date(2026, month, 1) for month in range(1, 7))
_CUSTOMERS = replace(CLIPPED, unit=("customer_id",), groups_per_unit=2)
_SOLD = Column("sold_at", SqlType.TIMESTAMP, "timestamp without time zone")


def _look(
    table: Table, *, asked: tuple[date, ...] = _MONTHS[2:3], keys: tuple[str, ...] = ("country", "month")
) -> Question:
    table = replace(table, columns=(*(one for one in table.columns if one.name != "sold_at"), _SOLD), refresh="live")
    functionals = (count(table=table), total(table=table))
    columns = tuple(table.get_column(name) for name in keys)
    values = tuple(asked if one.name == "month" else one.domain or () for one in columns)
    return replace(
        question(TRUE, *functionals, table=table),
        keys=KeySpace(columns, values),
        as_of=AsOf("sold_at", datetime(2026, 3, 20), "month", _MONTHS, timedelta(days=32)),
    )


@pytest.mark.parametrize("table", [ROWS, CLIPPED, CAPPED], ids=["row", "clipped", "capped"])
def test_a_look_keeps_no_rollup_and_reads_what_had_come(table: Table) -> None:
    for dialect in (DUCKDB, POSTGRES):
        rewritten = rewrite(_look(table), dialect=dialect)
        assert rewritten.rollup is None
        assert "< TIMESTAMP '2026-03-20 00:00:00'" in rewritten.sql


def test_only_the_asked_windows_are_read_where_nothing_is_chosen() -> None:
    def reads(table: Table) -> str:
        return rewrite(_look(table), dialect=POSTGRES).sql

    for table in (ROWS, CLIPPED, CAPPED, replace(_CUSTOMERS, groups_per_unit=10_000)):
        assert "DATE '2026-03-01'" in reads(table)
        assert "DATE '2026-01-01'" not in reads(table)
        assert "DATE '2026-06-01'" not in reads(table)
    assert "DATE '2026-01-01'" in reads(_CUSTOMERS)
    assert "DATE '2026-06-01'" in reads(_CUSTOMERS)


@pytest.mark.parametrize("table", [_CUSTOMERS, CAPPED], ids=["clipped", "capped"])
def test_groups_and_rows_are_chosen_before_where(table: Table) -> None:
    """No WHERE of a look that chooses mentions what the question filters by."""
    asked = replace(_look(table), where=Compare("amount", ">", 7))
    for where in sqlglot.parse_one(rewrite(asked, dialect=POSTGRES).sql, dialect="postgres").find_all(exp.Where):
        assert "amount" not in where.sql()


def test_all_windows_of_a_horizon_are_a_range_of_the_rows_that_are_read() -> None:
    """A source that reads all its rows for an ordinary question need not for a look."""
    asked = _look(ROWS, asked=_MONTHS)
    plain = rewrite(replace(asked, as_of=None), dialect=POSTGRES).sql
    assert "BETWEEN" not in plain.partition("GROUP BY")[0]
    assert "'2026-01-01'" in rewrite(asked, dialect=POSTGRES).sql.partition("GROUP BY")[0]


def test_late_rows_are_asked_for_only_where_a_window_had_closed() -> None:
    def asks(question: Question) -> bool:
        return "INTERVAL" in rewrite(question, dialect=POSTGRES).sql

    assert not asks(_look(ROWS))
    assert asks(_look(ROWS, asked=_MONTHS[:1]))
    assert not asks(_look(CLIPPED))
    assert asks(_look(_CUSTOMERS))


def test_a_row_unit_has_nothing_to_choose() -> None:
    assert not may_leave_out(_look(ROWS))
    assert not may_leave_out(_look(replace(_CUSTOMERS, groups_per_unit=10_000)))
    assert may_leave_out(_look(CLIPPED))
    assert may_leave_out(_look(CAPPED))


def test_a_date_is_over_before_it_counts_where_something_is_chosen() -> None:
    """Rows of the same day that come after the look would have come at the same moment as those that it saw."""

    def asks(table: Table) -> str:
        look = _look(replace(table, columns=(*table.columns, Column("added", SqlType.DATE, "date"))))
        assert look.as_of is not None
        noon = replace(look.as_of, column="added", before=datetime(2026, 3, 20, 12))
        return rewrite(replace(look, as_of=noon), dialect=POSTGRES).sql

    for table in (ROWS, CLIPPED, replace(_CUSTOMERS, groups_per_unit=10_000)):
        assert ("\"added\" < DATE '2026-03-20'" in asks(table)) == may_leave_out(_look(table))
        assert ("\"added\" <= DATE '2026-03-20'" in asks(table)) != may_leave_out(_look(table))
    for table in (_CUSTOMERS, CAPPED):
        assert "\"added\" < DATE '2026-03-20'" in asks(table)


def test_what_is_dear_is_computed_for_the_rows_of_a_look_alone() -> None:
    def computes(question: Question) -> str:
        table = replace(question.table, columns=(*question.table.columns, Column("note", SqlType.TEXT, "text")))
        dear = replace(question, table=table, where=Like("note", "%flu%"))
        sql = rewrite(dear, dialect=POSTGRES).sql
        assert "every condition for every row" in sql
        return sql.rpartition("totals AS (")[2].partition("OFFSET 0")[0]

    for table in (ROWS, _CUSTOMERS):
        assert "WHERE" in computes(_look(table))
        assert "WHERE" not in computes(replace(_look(table), as_of=None))


def test_what_may_fall_does_not_grow() -> None:
    def sums(low: str, where: int | None = None) -> tuple[bool, ...]:
        amount = CLIPPED.get_column("amount")
        amount = replace(amount, bounds=(Decimal(low), Decimal(100)), per_unit=(Decimal(0), Decimal(500)))
        table = replace(CLIPPED, columns=tuple(amount if one.name == "amount" else one for one in CLIPPED.columns))
        asked = question(TRUE, count(table=table), total(table=table), table=table)
        asked = asked if where is None else replace(asked, where=Compare("amount", ">=", where))
        return find_growing_functionals(asked, dialect=POSTGRES)

    assert sums("0") == (True, True)
    assert sums("-1") == (True, False)
    assert sums("-1", where=0) == (True, True)


def test_a_number_of_units_falls_where_some_take_something_off() -> None:
    """A unit may have rows of the first condition at one look, and of both at the next."""
    dear, many = Compare("amount", ">", 5), Compare("amount", ">", 9)

    def falls(*terms: Term, off: int = 0) -> bool:
        measure = Measure.TOTAL if off else Measure.UNIT_SUM
        one = replace(count(table=CLIPPED), measure=measure, terms=terms, off_each_unit=off, sensitivity=99)
        one = replace(one, unit_range=(-99, 99))
        return find_growing_functionals(question(TRUE, one, table=CLIPPED), dialect=POSTGRES) == (False,)

    assert not falls(Term(3, None, dear, 0), Term(1, None, And((dear, many)), 0))
    assert falls(Term(3, None, dear, 0), Term(-1, None, And((dear, many)), 0))
    assert falls(Term(1, None, ALWAYS, 0), off=2)


def test_a_look_is_no_question_of_the_whole_table() -> None:
    look = _look(CLIPPED)
    plain = replace(look, as_of=None)
    assert look.as_of is not None
    later = replace(look, as_of=replace(look.as_of, before=datetime(2026, 3, 21)))
    assert len({find_fingerprint(one) for one in (plain, look, later)}) == 3
    assert len({identify_paths(one, digest="d") for one in (plain, look, later)}) == 3


def test_a_look_without_a_time_is_never_run() -> None:
    look = _look(ROWS)
    assert look.as_of is not None
    for broken in (replace(look.as_of, column="country"), replace(look.as_of, window="sold_at")):
        with pytest.raises(KeyholeError, match="KH900"):
            rewrite(replace(look, as_of=broken), dialect=POSTGRES)


def _hopping(table: Table, *, asked: int, hours: int = 24) -> str:
    table = replace(table, columns=(*table.columns, _SOLD))
    begins = tuple(datetime(2026, 1, 1) + i * timedelta(hours=12) for i in range(6))
    length = timedelta(hours=hours)
    as_of = AsOf(
        "sold_at", datetime(2026, 1, 3), "opened", begins, length, Hopping("sold_at", length, timedelta(hours=12))
    )
    asked_ = question(TRUE, count(table=table), table=table)
    keys = KeySpace((table.get_column("country"),), (COUNTRIES,))
    return rewrite(look_at(replace(asked_, keys=keys), as_of, windows=begins[1 : 1 + asked]), dialect=POSTGRES).sql


def test_one_window_is_a_range_of_the_rows_and_needs_no_row_twice() -> None:
    for table in (ROWS, replace(CAPPED, groups_per_unit=10_000), replace(_CUSTOMERS, groups_per_unit=10_000)):
        sql = _hopping(table, asked=1)
        assert "CROSS JOIN" not in sql
        assert "\"sold_at\" >= TIMESTAMP '2026-01-01 12:00:00'" in sql
        assert "\"sold_at\" < TIMESTAMP '2026-01-02 12:00:00'" in sql
        assert "CROSS JOIN" in _hopping(table, asked=2)


def test_where_groups_are_chosen_a_row_stands_in_each_of_its_windows() -> None:
    for hours, windows in ((24, 2), (30, 3), (12, 0)):
        sql = _hopping(_CUSTOMERS, asked=1, hours=hours)
        assert sql.partition("CROSS JOIN")[2].partition(" AS ")[0].count("(INTERVAL") == windows
        assert "\"sold_at\" >= TIMESTAMP '2026-01-01 00:00:00'" in sql


def test_windows_that_are_not_one_every_hop_are_never_run() -> None:
    hopping = Hopping("sold_at", timedelta(hours=24), timedelta(hours=12))
    table = replace(ROWS, columns=(*ROWS.columns, _SOLD))
    asked = question(TRUE, count(table=table), table=table)
    odd = (datetime(2026, 1, 1), datetime(2026, 1, 1, 13))
    as_of = AsOf("sold_at", datetime(2026, 1, 3), "opened", odd, timedelta(hours=24), hopping)
    with pytest.raises(KeyholeError, match="KH900"):
        rewrite(look_at(asked, as_of, windows=odd), dialect=POSTGRES)
    with pytest.raises(KeyholeError, match="KH900"):
        look_at(asked, as_of, windows=(datetime(2027, 1, 1),))
    with pytest.raises(KeyholeError, match="KH900"):
        look_at(asked, replace(as_of, window="country"), windows=odd)
    with pytest.raises(KeyholeError, match="KH900"):
        look_at(asked, replace(as_of, hopping=None), windows=odd)


def test_a_window_at_the_end_of_the_calendar_is_asked_for() -> None:
    last = (date(9999, 12, 31),)
    asked = _look(_CUSTOMERS, asked=last)
    assert asked.as_of is not None
    asked = replace(asked, as_of=replace(asked.as_of, horizon=last))
    assert "sold_at" in rewrite(asked, dialect=DUCKDB).sql
