"""A standing question as one look at some of its windows.

References: docs/proofs/units_over_a_horizon.md.
"""

from dataclasses import replace

from planner.catalog.catalog import Column, SqlType, Table, Value
from planner.catalog.key_space import KeySpace
from planner.errors import KeyholeError
from planner.question.as_of import AsOf
from planner.question.question import Question


def look_at(question: Question, as_of: AsOf, *, windows: tuple[Value, ...]) -> Question:
    """Return the question about `windows` alone, over the rows that had arrived by the look.

    If windows overlap (`AsOf.hopping`), they become its last key, a new column `as_of.window`. Otherwise that column is
    already one of its keys. The table's `groups_per_unit` still bounds a unit's groups: pairs of key and window.

    Raises KH900 if the question has such a column already, or does not have the key, or `windows` are not of the
    horizon.
    """
    if not set(windows) <= set(as_of.horizon):
        raise KeyholeError("KH900", "the look has windows outside the horizon")
    if as_of.hopping is not None:
        question = _add_windows(question, as_of)
    if as_of.window not in question.keys.names:
        raise KeyholeError("KH900", "the question has no window among its keys")
    place = question.keys.names.index(as_of.window)
    values = (*question.keys.values[:place], windows, *question.keys.values[place + 1 :])
    return replace(question, keys=replace(question.keys, values=values), as_of=as_of)


def _add_windows(question: Question, as_of: AsOf) -> Question:
    column = Column(as_of.window, SqlType.TIMESTAMP, "timestamp without time zone", domain=as_of.horizon)

    def add(table: Table) -> Table:
        if any(one.name == column.name for one in table.columns):
            raise KeyholeError("KH900", "a column already has the name of the window")
        return replace(table, columns=(*table.columns, column))

    rows = question.per_unit
    keys = KeySpace((*question.keys.columns, column), (*question.keys.values, as_of.horizon))
    per_unit = None if rows is None else replace(rows, table=add(rows.table))
    return replace(question, table=add(question.table), keys=keys, per_unit=per_unit)
