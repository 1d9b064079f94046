"""A number of a row as SQL: the sum of its terms in whole steps, NULL if the row has none."""

from planner.lower.measure import make_row_value, write_null_test
from planner.lower.row import RowSql
from planner.question.condition import ALWAYS
from planner.question.question import Term
from planner.question.scores import RowNumber, ScoreAxis
from planner.values.sql_literals import write_integer


def write_cell(row: RowSql, axis: ScoreAxis) -> str:
    """Return SQL for a row's cell along an axis, a bigint, NULL if the row has no number. The SQL fails on no row."""
    reach = axis.width * axis.cells
    largest = _bound_sums(row, axis.number) + abs(axis.start) + reach
    added = [_write_term(row, term, largest) for term in axis.number.terms]
    from_start = " + ".join([*added, row.dialect.cast_whole(write_integer(-axis.start), largest)])
    clamped = row.dialect.cast_whole(f"LEAST(GREATEST({from_start}, 0), {write_integer(reach - 1)})", largest)
    cell = clamped if axis.width == 1 else row.dialect.divide_down(clamped, axis.width)
    return (
        f"CASE WHEN {_write_number_test(row, axis.number)} THEN {row.dialect.spelling.write_cast(cell, 'bigint')} END"
    )


def _write_number_test(row: RowSql, number: RowNumber) -> str:
    """Return SQL for the test that a row has the number."""
    tests = [] if number.present == ALWAYS else [f"({row.write_condition(number.present)})"]
    for name in number.columns:
        column, found = row.write_column(name), write_null_test(row, row.table.get_column(name))
        if found != column:
            tests.append(f"(({column}) IS NULL OR ({found}) IS NOT NULL)")
    return " AND ".join(tests) or "TRUE"


def _bound_sums(row: RowSql, number: RowNumber) -> int:
    """Return a bound on the absolute value of every partial sum of the terms, and of their factors."""
    reached = 1
    for term in number.terms:
        if term.column is None or not term.power:
            reached += abs(term.coefficient)
        else:
            value = make_row_value(row, row.table.get_column(term.column))
            reached += abs(term.coefficient) * max(-value.low, value.high, value.steps)
    return reached


def _write_term(row: RowSql, term: Term, largest: int) -> str:
    """Return SQL for a row's summand by one term, zero if it does not count."""
    tests = [] if term.condition == ALWAYS else [f"({row.write_condition(term.condition)})"]
    amount = row.dialect.cast_whole(write_integer(term.coefficient), largest)
    if term.column is not None and term.power:
        value = make_row_value(row, row.table.get_column(term.column))
        factor = row.dialect.cast_whole(write_integer(term.coefficient * value.steps), largest)
        stepped = row.dialect.cast_whole(value.sql, largest) if value.steps == 1 else value.sql
        amount = f"COALESCE({stepped}, 0) * {factor}"
    elif term.column is not None:
        tests.append(f"({write_null_test(row, row.table.get_column(term.column))}) IS NOT NULL")
    return f"CASE WHEN {' AND '.join(tests)} THEN {amount} ELSE 0 END" if tests else amount
