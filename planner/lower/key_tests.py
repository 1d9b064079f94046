"""The tests of a grouping column's public values: once a row as the table is read, or once a group."""

from planner.catalog.catalog import Column, Value
from planner.lower.contribution_bounds import write_not_null
from planner.lower.domain import LONGEST_LIST, is_gapless, write_domain_test, write_restriction
from planner.lower.row import RowSql
from planner.question.condition import ALWAYS, Condition
from planner.question.question import Question


def pair_keys(question: Question) -> list[tuple[Column, tuple[Value, ...]]]:
    """Return each grouping column with the public values that the question asks about."""
    return list(zip(question.keys.columns, question.keys.values, strict=True))


def write_row_tests(row: RowSql, column: Column, values: tuple[Value, ...]) -> list[str]:
    """Return the SQL of the scan's tests on a grouping column, or nothing if its groups are tested instead."""
    if _is_tested_later(column, values):
        return []
    return [write_restriction(row, column, values) or write_not_null(row, column)]


def write_fixed_tests(row: RowSql) -> list[str]:
    """Return the SQL of the tests on fixed keys. They are made on rows before their units are bounded."""
    found = ((row.table.get_column(key.name), key.values) for key in row.table.fixed)
    return [write_restriction(row, column, values) or write_not_null(row, column) for column, values in found]


def write_group_tests(row: RowSql, question: Question) -> list[str]:
    """Return the SQL of the tests on grouping columns after rows are grouped. No NULL passes."""
    return [
        condition
        for i, (column, values) in enumerate(pair_keys(question))
        if _is_tested_later(column, values)
        and (condition := write_domain_test(row, f"k{i}", column, values)) is not None
    ]


def write_where_tests(row: RowSql, where: Condition) -> list[str]:
    """Return the SQL of WHERE's tests on a row, or nothing if every row counts."""
    return [] if where == ALWAYS else [row.write_condition(where)]


def _is_tested_later(column: Column, values: tuple[Value, ...]) -> bool:
    """Return True if the values are tested once a group, since testing the whole domain on rows costs too much.

    A range is still tested on rows if that may avoid reading some of them.
    """
    whole = column.domain is not None and len(values) == len(column.domain)
    return whole and (not column.prunable if is_gapless(column, values) else len(values) <= LONGEST_LIST)
