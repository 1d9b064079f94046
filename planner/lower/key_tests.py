"""When the public values of a grouping column are tested: once a row as the table is read, or once a group."""

from planner.catalog.catalog import Column, Value
from planner.lower.contribution_bounds import not_null
from planner.lower.domain import LONGEST_LIST, gapless, list_domain, restriction
from planner.lower.row import RowSql
from planner.question.condition import ALWAYS, Condition
from planner.question.question import Question


def pair_keys(question: Question) -> list[tuple[Column, tuple[Value, ...]]]:
    """Return each grouping column with the public values that the question asks about."""
    return list(zip(question.keys.columns, question.keys.values, strict=True))


def row_tests(row: RowSql, column: Column, values: tuple[Value, ...]) -> list[str]:
    """Return the SQL of the scan's tests on a grouping column; nothing if the groups are tested."""
    if _is_tested_later(column, values):
        return []
    return [restriction(row, column, values) or not_null(row, column)]


def fixed_tests(row: RowSql) -> list[str]:
    """Return what is asked of a row before its unit is bounded, where keys are fixed."""
    found = ((row.table.get_column(key.name), key.values) for key in row.table.fixed)
    return [restriction(row, column, values) or not_null(row, column) for column, values in found]


def group_tests(row: RowSql, question: Question) -> list[str]:
    """Return the SQL of the tests on grouping columns once rows are grouped; no NULL passes."""
    return [
        condition
        for i, (column, values) in enumerate(pair_keys(question))
        if _is_tested_later(column, values) and (condition := list_domain(row, f"k{i}", column, values)) is not None
    ]


def where_tests(row: RowSql, where: Condition) -> list[str]:
    """Return the SQL of WHERE's tests on a row; nothing if every row counts."""
    return [] if where == ALWAYS else [row.holds(where)]


def _is_tested_later(column: Column, values: tuple[Value, ...]) -> bool:
    """Return True if the values are tested once a group: the whole domain costs more per row than it saves.

    A range is tested per row all the same where that may spare reading rows.
    """
    whole = column.domain is not None and len(values) == len(column.domain)
    return whole and (not column.prunable if gapless(column, values) else len(values) <= LONGEST_LIST)
