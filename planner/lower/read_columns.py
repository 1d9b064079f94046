"""The columns of a table that a statement reads, so that its relation carries no others.

Guarantee: a table with fewer columns has the same rows of the same units. The order in which rows count reads all
columns that questions see, whether or not they are carried.

References: docs/decisions/0040-named-steps.md.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from planner.catalog.catalog import Column, Lookup, Table
from planner.question.condition import Condition, find_columns
from planner.question.question import Functional, Question, ValuesOfRows

OF_ALL_ROWS = ("least", "greatest", "rows", "values", "total", "mean")
"""The kinds of values that are aggregates of a unit's rows. The other kinds are windows over its rows."""


def keep_columns(table: Table, names: Iterable[str]) -> Table:
    """Return the table with only the named columns and the columns that these need.

    These are the columns from which they are computed, and those of the unit, of its path, of lists and of the unit's
    own values. Columns that are looked up together all stay, because they are read from one relation. A window over a
    unit's rows reads all columns, because they order its rows.
    """
    if any(isinstance(one.rule, ValuesOfRows) and _has_window(one.rule) for one in table.own):
        return table
    kept = table.include_bases([*names, *_list_unit_columns(table)])
    bases = {column.name: base for column in table.columns if (base := _find_base(table, column)) is not None}
    looked_up = {bases[name] for name in kept if name in bases}
    kept |= table.include_bases(name for name, base in bases.items() if base in looked_up)
    return replace(table, columns=tuple(column for column in table.columns if column.name in kept))


def list_read_columns(
    question: Question, table: Table, where: Condition, functionals: Sequence[Functional]
) -> Iterator[str]:
    """Yield the names of the columns of `table` that a question reads. Names may repeat."""
    yield from question.keys.names
    yield from (key.name for key in table.fixed)
    yield from find_columns(where)
    yield from list_summed_columns(functionals)
    if table.row_cap is not None:
        yield table.row_cap.unique
    if question.as_of is not None:
        yield question.as_of.column
        if question.as_of.hopping is not None:
            yield question.as_of.hopping.column
    if question.in_time is not None:
        yield from (question.in_time.column, question.in_time.arrival_column)


def list_summed_columns(functionals: Iterable[Functional]) -> Iterator[str]:
    """Yield the names of the columns that functionals read. Names may repeat."""
    for functional in functionals:
        yield from functional.columns
        yield from (name for condition in functional.conditions for name in find_columns(condition))


def _list_unit_columns(table: Table) -> Iterator[str]:
    yield from table.unit
    yield from (column.name for column in table.columns if column.is_unit_value)
    if table.path is not None:
        yield from table.path.from_columns
    for listed in table.unit_lists:
        yield from (name for name, _ in listed.key_columns)
        if listed.comparison is not None:
            yield listed.comparison[1]


def _has_window(rule: ValuesOfRows) -> bool:
    return any(one.kind not in OF_ALL_ROWS for one in rule.values)


def _find_base(table: Table, column: Column) -> str | None:
    """Return the stored column by which a column is looked up in the end, or None if it is not looked up."""
    base = None
    while isinstance(column.derivation, Lookup):
        base = column.derivation.column
        column = table.get_column(base)
    return base
