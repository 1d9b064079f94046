"""Expensive conditions, computed for every row before any other test of the row.

Guarantee: take a question with a test that could cost more on one row than on another. Then every row of the table
costs as much as all tests of the question cost on it: neither WHERE nor keys, joins, AND, OR or CASE skip a test for a
row. So an analyst cannot choose whose row is expensive. Only the differences between rows remain, up to the limit of
`row_work.py`.

PostgreSQL does not move conditions into a subquery that ends in OFFSET 0, and computes the subquery's columns as it
reads. Neither does DuckDB. Its optimizer skips rows by the least and greatest value of a column, but does not see
through LEAST. `tests/proxy/sources/test_work_of_a_row.py` tests both engines.

References: docs/decisions/0017-timing.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from math import log2
from types import MappingProxyType

from planner.catalog.catalog import Column, Computed, ComputedName, MergedKeys, SqlType, Table, ValueGroups
from planner.catalog.steps import Steps
from planner.errors import KeyholeError
from planner.lower.layout import indent_blocks, write_select
from planner.lower.row import RowSql
from planner.lower.sums.null_tests import reads_no_value
from planner.question.condition import ALWAYS, And, Condition, Leaf, Not, Or
from planner.question.question import Functional
from planner.question.row_work import UNNOTICED_TESTS, are_expensive

_STEP_TESTS = 4  # how often the number of a step reads a value


def compute_conditions(
    row: RowSql,
    where: Condition,
    functionals: Iterable[Functional],
    *,
    keys: Iterable[Column] = (),
    beside: Iterable[str] = (),
    remaining: Mapping[Condition, Condition] = MappingProxyType({}),
) -> RowSql:
    """Return the rows with a computed column for each expensive condition of a question.

    If all conditions are cheap, the rows are unchanged. Tests for NULL alone are not computed, since they cost the
    same on every row.

    Parameters:
        keys: the question's keys, whose conditions and numbers are computed as well.
        beside: the relation's columns besides the table's columns and measures.
        remaining: for a condition of which parts are stored, the part that is still to be computed.

    Raises KH214 if a single row could cost more than any may.
    """
    keys = tuple(keys)
    conditions, truths, numbers = _list_expensive_conditions(
        row.table, list_conditions(where, functionals), keys, remaining
    )
    if not (conditions or truths or numbers):
        return row
    fence = row.dialect.row_fence
    if fence is None and not conditions and len(keys) == 1 and len(truths) + len(numbers) == 1:
        return row  # nothing spares a row the one thing that is computed
    if fence is None:
        raise _refuse_expensive(row)
    usable = (column for column in row.table.columns if column.sql_type is not SqlType.OTHER)
    stored = (column.name for column in usable if column.derivation is None)
    kept = [
        row.dialect.spelling.quote_identifier(name)
        for name in dict.fromkeys((*stored, *row.measures.values(), *beside))
    ]
    free = _list_free_names(row)
    names = dict(zip(conditions, free, strict=False))
    of_keys = dict(zip(truths, free, strict=False))
    of_numbers: dict[str, str] = dict(zip(numbers, free, strict=False))
    computed = [
        f"{row.write_computed(remaining.get(condition, condition))} AS {name}" for condition, name in names.items()
    ]
    computed += [f"{row.write_computed_truth(condition)} AS {name}" for condition, name in of_keys.items()]
    computed += [f"{row.write_column(number)} AS {name}" for number, name in of_numbers.items()]
    lines = [
        "(",
        "  -- every condition for every row, before any row is left out",
        *indent_blocks(write_select(kept + computed), [f"FROM {_hide_values(row, kept)}", fence]),
        ") AS computed",
    ]
    table = replace(row.table, relation="\n".join(lines))
    return replace(row, table=table, conditions=names, truths=of_keys, numbers=of_numbers)


def has_expensive(table: Table, conditions: Iterable[Condition], keys: Iterable[Column]) -> bool:
    """Return True if something that a question tests on a row must be computed for every row. Raise KH214."""
    return any(_list_expensive_conditions(table, conditions, tuple(keys), MappingProxyType({})))


def list_conditions(where: Condition, functionals: Iterable[Functional]) -> Iterator[Condition]:
    """Yield every condition that a question tests on a row."""
    yield where
    yield from (condition for functional in functionals for condition in functional.conditions)


def _list_expensive_conditions(
    table: Table, asked: Iterable[Condition], keys: tuple[Column, ...], left: Mapping[Condition, Condition]
) -> tuple[tuple[Condition, ...], tuple[Condition, ...], tuple[ComputedName, ...]]:
    """Return the conditions, conditions of keys and numbers to compute for every row.

    All are empty if none is expensive.
    """
    every = dict.fromkeys(one for one in asked if one != ALWAYS)
    conditions = tuple(one for one in every if one in left or not reads_no_value(one, table))
    truths, numbers = _list_key_truths(keys, table), _list_expensive_numbers(keys, table)
    truths = truths if are_expensive(truths, table) else ()
    return (conditions, truths, numbers) if are_expensive([*conditions, *truths], table) or numbers else ((), (), ())


def _hide_values(row: RowSql, names: list[str]) -> str:
    """Return the SQL of a relation whose columns have no statistics that the engine's optimizer could use."""
    hidden = [row.dialect.hide_statistics(name) for name in names]
    if hidden == names:
        return row.table.relation
    columns = ", ".join(f"{sql} AS {name}" for sql, name in zip(hidden, names, strict=True))
    return f"(SELECT {columns} FROM {row.table.relation}) AS stored"


def _refuse_expensive(row: RowSql) -> KeyholeError:
    return KeyholeError(
        "KH214",
        f"{row.dialect.name} may compute some conditions of this question for some rows and not for others",
        detail="Then the time of an answer could reveal a row. This concerns text behind a % in LIKE, and more than "
        "sixteen tests of a row. Each derived column counts as five tests more.",
        hint="Ask for fewer conditions at once, and let patterns begin with text: LIKE 'flu%'.",
    )


def _list_free_names(row: RowSql) -> Iterator[str]:
    taken = {column.name.lower() for column in row.table.columns}
    return (name for i in count() if (name := f"keyhole_c{i}") not in taken)


def _list_key_truths(keys: Iterable[Column], table: Table) -> tuple[Condition, ...]:
    """Return the conditions that are keys: for each the one that is true in its second group."""
    found = (
        parts.tests[1] for parts in _list_parts(keys, table) if isinstance(parts.column, ComputedName) and parts.tests
    )
    return tuple(dict.fromkeys(test for test in found if isinstance(test, Leaf | Not | And | Or)))


def _list_expensive_numbers(keys: Iterable[Column], table: Table) -> tuple[ComputedName, ...]:
    """Return the numbers whose computation for some rows only could be noticed by the time it takes."""
    found: dict[ComputedName, int] = {}
    for parts in _list_parts(keys, table):
        if not isinstance(parts.column, ComputedName) or parts.tests:
            continue
        derived = parts.column.column.derivation
        assert isinstance(derived, Computed)
        times = (
            _STEP_TESTS if isinstance(parts.cut_points, Steps) else _STEP_TESTS + int(log2(len(parts.cut_points) + 1))
        )
        found[parts.column] = times * (1 + derived.term.size // 3)
    return tuple(found) if sum(found.values()) > UNNOTICED_TESTS else ()


def _list_parts(keys: Iterable[Column], table: Table) -> Iterator[ValueGroups]:
    for key in keys:
        match key.derivation:
            case ValueGroups() as parts:
                yield parts
            case MergedKeys(columns=several):
                yield from _list_parts([table.get_column(name) for name in several], table)
