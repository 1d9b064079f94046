"""The truths that a condition may have on rows that are known in part: true, false, both, or none if it is NULL.

Many places are evaluated together. At each place some columns are known, and others may hold anything.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from itertools import repeat
from operator import is_not
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from planner.catalog.catalog import Column, SqlType, Value
from planner.question.condition import Compare, Condition, IsNull, Leaf, Like, Within
from planner.values.like import find_matcher
from planner.values.operators import COMPARISONS, FLIPPED_OPERATORS

Places = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PossibleTruths:
    """The possible truths of a condition for each candidate row: it may be true, it may be false, or both."""

    may_be_true: Places
    may_be_false: Places


def allow_both_truths(count: int) -> PossibleTruths:
    """Return the possible truths of a test of an unknown value: both true and false, for `count` candidates."""
    every = np.ones(count, dtype=np.bool_)
    return PossibleTruths(every, every)


def test_values(leaf: Leaf, column: Column, values: Sequence[Value | None]) -> PossibleTruths:
    """Return the possible truths of a test of one column, for each of the column's candidate values."""
    seen = _convert_values(column, values)
    count, whole = len(seen), None not in seen
    present = np.ones(count, np.bool_) if whole else np.fromiter(map(is_not, seen, repeat(None)), np.bool_, count)
    holds: Callable[[Any], bool]
    match leaf:
        case IsNull():
            return PossibleTruths(~present, present)
        case Compare(_, operator, value):
            holds = partial(COMPARISONS[FLIPPED_OPERATORS[operator]], _convert_values(column, [value])[0])
        case Within(_, listed):
            holds = frozenset(_convert_values(column, listed)).__contains__
        case Like(_, pattern):
            holds = find_matcher(pattern)
    if whole:
        true = np.fromiter(map(holds, seen), np.bool_, count)
    else:
        true = np.fromiter((one is not None and holds(one) for one in seen), np.bool_, count)
    return PossibleTruths(true, ~true & present)


def _convert_values(column: Column, values: Sequence[Value | None]) -> Sequence[Any]:
    match column.sql_type:
        case SqlType.DOUBLE:
            numbers = cast("Sequence[int | Decimal | None]", values)
            return [number if number is None else float(Decimal(number)) for number in numbers]
        case SqlType.TEXT:
            longest = column.longest_text
            present = values if None not in values else [one for one in values if one is not None]
            if max(map(len, map(str, present)), default=0) <= longest:
                return values
            return [value if value is None else str(value)[:longest] for value in values]
        case _:
            return values


def find_possible_places(conditions: Iterable[Condition], test: Callable[[Leaf], PossibleTruths], count: int) -> Places:
    """Return, for each of `count` candidates, True if all conditions may be true for it.

    Guarantee: it is False only if no row with the candidate's known values satisfies all of them.
    """
    held = np.ones(count, dtype=np.bool_)
    for condition in conditions:
        held &= condition.fold(
            test, negation=_negate, every=_join_truths_by_and(count), some=_join_truths_by_or(count)
        ).may_be_true
    return held


def _negate(one: PossibleTruths) -> PossibleTruths:
    return PossibleTruths(one.may_be_false, one.may_be_true)


def _join_truths_by_and(count: int) -> Callable[[Sequence[PossibleTruths]], PossibleTruths]:
    def join(parts: Sequence[PossibleTruths]) -> PossibleTruths:
        true = reduce(np.logical_and, (one.may_be_true for one in parts), np.ones(count, dtype=np.bool_))
        return PossibleTruths(
            true, reduce(np.logical_or, (one.may_be_false for one in parts), np.zeros(count, dtype=np.bool_))
        )

    return join


def _join_truths_by_or(count: int) -> Callable[[Sequence[PossibleTruths]], PossibleTruths]:
    def join(parts: Sequence[PossibleTruths]) -> PossibleTruths:
        inner = _join_truths_by_and(count)([_negate(one) for one in parts])
        return _negate(inner)

    return join
