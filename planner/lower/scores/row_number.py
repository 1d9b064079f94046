"""A number of a row as SQL: its terms added up in whole steps, NULL where the row has none."""

from planner.lower.measure import null_test_sql, row_value
from planner.lower.row import RowSql
from planner.question.condition import ALWAYS
from planner.question.question import Term
from planner.question.scores import RowNumber, ScoreAxis
from planner.values.sql_literals import integer


def cell_sql(row: RowSql, axis: ScoreAxis) -> str:
    """Return SQL for the cell that a row is in along an axis, a bigint; NULL without a number. No row makes it fail."""
    reach = axis.width * axis.cells
    largest = _largest(row, axis.number) + abs(axis.start) + reach
    added = [_add_term(row, term, largest) for term in axis.number.terms]
    from_start = " + ".join([*added, row.dialect.cast_whole(integer(-axis.start), largest)])
    clamped = row.dialect.cast_whole(f"LEAST(GREATEST({from_start}, 0), {integer(reach - 1)})", largest)
    cell = clamped if axis.width == 1 else row.dialect.floor_quotient(clamped, axis.width)
    return f"CASE WHEN {_has_number(row, axis.number)} THEN {row.dialect.spelling.cast(cell, 'bigint')} END"


def _has_number(row: RowSql, number: RowNumber) -> str:
    """Return SQL for the test that a row has the number."""
    tests = [] if number.present == ALWAYS else [f"({row.holds(number.present)})"]
    for name in number.columns:
        column, found = row.column(name), null_test_sql(row, row.table.get_column(name))
        if found != column:
            tests.append(f"(({column}) IS NULL OR ({found}) IS NOT NULL)")
    return " AND ".join(tests) or "TRUE"


def _largest(row: RowSql, number: RowNumber) -> int:
    """Return a bound from zero on the sums of some of its terms, and on their factors."""
    reached = 1
    for term in number.terms:
        if term.column is None or not term.power:
            reached += abs(term.coefficient)
        else:
            value = row_value(row, row.table.get_column(term.column))
            reached += abs(term.coefficient) * max(-value.low, value.high, value.steps)
    return reached


def _add_term(row: RowSql, term: Term, largest: int) -> str:
    """Return SQL for a row's summand by one term, zero where it does not count."""
    tests = [] if term.condition == ALWAYS else [f"({row.holds(term.condition)})"]
    amount = row.dialect.cast_whole(integer(term.coefficient), largest)
    if term.column is not None and term.power:
        value = row_value(row, row.table.get_column(term.column))
        factor = row.dialect.cast_whole(integer(term.coefficient * value.steps), largest)
        stepped = row.dialect.cast_whole(value.sql, largest) if value.steps == 1 else value.sql
        amount = f"COALESCE({stepped}, 0) * {factor}"
    elif term.column is not None:
        tests.append(f"({null_test_sql(row, row.table.get_column(term.column))}) IS NOT NULL")
    return f"CASE WHEN {' AND '.join(tests)} THEN {amount} ELSE 0 END" if tests else amount
