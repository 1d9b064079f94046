"""A question over very many keys, cut into blocks of keys that a source reads one after the other.

Guarantee: the blocks and their order follow from the question and the dialect alone, never from data. Each statement is
the question's own with fewer keys. A unit's contribution is bounded before a question's own restriction of keys, so
together they give the integers of one statement. Proof: docs/proofs/key_blocks.md.

References: docs/decisions/0028-many-keys.md.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from math import prod

from planner.catalog.catalog import Column, Value
from planner.catalog.key_space import KeySpace
from planner.catalog.listed_values import remember_of_list
from planner.lower.contribution_bounds import exceeds_groups
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import LONGEST_LIST, ORDERED
from planner.lower.scan import rewrite
from planner.question.plan import KeyBlock
from planner.question.question import Question


def rewrite_blocks(question: Question, *, dialect: Dialect) -> tuple[KeyBlock, ...]:
    """Return the statements that read a question block by block. Return none if one statement reads all of it.

    One statement is used if the dialect reads all keys at once, or if SQL cannot name a block's values in short form.
    It is also used if every block would need all rows. So it is if a unit's keys are chosen among all keys, if a unit
    is divided over its keys, and if the question is about totals of units.
    """
    most = dialect.keys_at_once
    if most is None or question.keys.size <= most or _needs_all_rows(question):
        return ()
    spaces = tuple(cut_keys(question.keys, most_keys=most))
    if not all(
        _is_short(column, values) for _, space in spaces for column, values in _list_cut_columns(space, question.keys)
    ):
        return ()
    return tuple(
        KeyBlock(start, space, rewrite(replace(question, keys=space), dialect=dialect).sql) for start, space in spaces
    )


def cut_keys(keys: KeySpace, *, most_keys: int) -> Iterator[tuple[int, KeySpace]]:
    """Yield blocks of at most the given number of keys, each with the index of its first key.

    A block has consecutive values of the first key column. If one value alone has too many keys, its block is cut by
    the next key column.
    """
    depth = next(place for place in range(len(keys.shape)) if prod(keys.shape[place + 1 :]) <= most_keys)
    behind = prod(keys.shape[depth + 1 :])
    stretches = _cut_values(keys.values[depth], most_keys // behind)
    start = 0
    for before in product(*keys.values[:depth]):
        for stretch in stretches:
            values = (*((value,) for value in before), stretch, *keys.values[depth + 1 :])
            yield start, replace(keys, values=values)
            start += len(stretch) * behind


@remember_of_list
def _cut_values(values: tuple[Value, ...], most: int) -> tuple[tuple[Value, ...], ...]:
    """Return stretches of values. Equal arguments return the same objects, by which other results are cached."""
    return tuple(values[start : start + most] for start in range(0, len(values), most))


def _needs_all_rows(question: Question) -> bool:
    if question.per_unit is not None or any(one.split_keys for one in question.computed_functionals):
        return True
    return not question.table.is_row_unit and exceeds_groups(question.table, question.keys)


def _list_cut_columns(space: KeySpace, whole: KeySpace) -> Iterator[tuple[Column, tuple[Value, ...]]]:
    """Yield each column of which a block has only some values, with these values."""
    for column, values, all_values in zip(space.columns, space.values, whole.values, strict=True):
        if len(values) < len(all_values):
            yield column, values


def _is_short(column: Column, values: tuple[Value, ...]) -> bool:
    """Return True if a statement can name the values: as a short list, or as a range."""
    return len(values) <= LONGEST_LIST or (column.sql_type in ORDERED and _ascends(values))


@remember_of_list
def _ascends(values: tuple[Value, ...]) -> bool:
    return all(low < high for low, high in pairwise(values))  # type: ignore[operator]  # of one ordered type
