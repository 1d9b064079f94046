"""What the computed keys of a question ask of a row: conditions, and numbers that are compared with many cuts."""

from collections.abc import Iterable, Iterator
from math import log2

from planner.catalog.model import Column, Computed, ComputedName, Merged, Parts, Table
from planner.catalog.steps import Steps
from planner.question.condition import And, Condition, Leaf, Not, Or
from planner.question.row_work import UNNOTICED_TESTS

_STEP_TESTS = 4  # how often the number of a step reads a value


def list_key_truths(keys: Iterable[Column], table: Table) -> tuple[Condition, ...]:
    """Return the conditions that are keys: of each the one that is true in its second group."""
    found = (
        parts.tests[1] for parts in _list_parts(keys, table) if isinstance(parts.column, ComputedName) and parts.tests
    )
    return tuple(dict.fromkeys(test for test in found if isinstance(test, Leaf | Not | And | Or)))


def list_dear_numbers(keys: Iterable[Column], table: Table) -> tuple[ComputedName, ...]:
    """Return the numbers whose computing, for some rows and not for others, could be told from the time it takes."""
    found: dict[ComputedName, int] = {}
    for parts in _list_parts(keys, table):
        if not isinstance(parts.column, ComputedName) or parts.tests:
            continue
        derived = parts.column.column.derivation
        assert isinstance(derived, Computed)
        times = _STEP_TESTS if isinstance(parts.cuts, Steps) else _STEP_TESTS + int(log2(len(parts.cuts) + 1))
        found[parts.column] = times * (1 + derived.term.size // 3)
    return tuple(found) if sum(found.values()) > UNNOTICED_TESTS else ()


def _list_parts(keys: Iterable[Column], table: Table) -> Iterator[Parts]:
    for key in keys:
        match key.derivation:
            case Parts() as parts:
                yield parts
            case Merged(columns=several):
                yield from _list_parts([table.column(name) for name in several], table)
