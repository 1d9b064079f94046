"""The alignment of a source's result rows with the public key space."""

from collections.abc import Sequence
from datetime import date
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Integers
from planner.catalog.catalog import Column, SqlType, Value
from planner.catalog.key_space import KeySpace
from planner.catalog.listed_values import remember_of_list

Groups: TypeAlias = Sequence[Any] | npt.NDArray[Any]
_ORDINAL = frozenset({SqlType.INTEGER, SqlType.DATE, SqlType.TIMESTAMP})


def align_groups(groups: Sequence[Groups], sums: Sequence[Groups], keys: KeySpace) -> Integers:
    """Return the value of every functional for every public key. A key without a group gets 0.

    Groups whose key is not public are dropped.

    Parameters:
        groups: for each grouping column, that column's value in every group.
        sums: for each functional, its integer in every group.

    Returns:
        int64 of shape (functionals, keys), keys in row-major order.
    """
    return write_groups(groups, sums, keys, into=np.zeros((len(sums), keys.size), dtype=np.int64))


def write_groups(groups: Sequence[Groups], sums: Sequence[Groups], keys: KeySpace, *, into: Integers) -> Integers:
    """Write the values of some groups into the array `into`, and return the array.

    The array has shape (functionals, keys), and starts with zeros. Groups whose key is not public are dropped.
    """
    if not sums:  # a formula of public columns alone
        return into
    index = np.zeros(len(sums[0]), dtype=np.int64)
    inside = np.ones(index.shape, dtype=np.bool_)
    for column, values, found in zip(keys.columns, keys.values, groups, strict=True):
        position = _find_positions(column, values, found)
        inside &= position >= 0
        index = index * len(values) + position
    if inside.all():
        for row, total in zip(into, sums, strict=True):
            row[index] = np.asarray(total, dtype=np.int64)
        return into
    index = index[inside]
    for row, total in zip(into, sums, strict=True):
        row[index] = np.asarray(total, dtype=np.int64)[inside]
    return into


def _find_positions(column: Column, values: tuple[Value, ...], found: Groups) -> npt.NDArray[np.int64]:
    """Return the index of each found value among the public values, or -1 for any other value."""
    if column.sql_type in _ORDINAL:
        return _find_ordinal_positions(*_sort_ordinals(values), _make_ordinals(found))
    places = _number_values(values)
    listed = found.tolist() if isinstance(found, np.ndarray) else found
    if column.sql_type is SqlType.UUID:
        listed = [str(value) for value in listed]
    return np.fromiter((places.get(value, -1) for value in listed), dtype=np.int64, count=len(listed))


@remember_of_list
def _number_values(values: tuple[Value, ...]) -> dict[Value, int]:
    """Map each public value to its index."""
    return {value: place for place, value in enumerate(values)}


@remember_of_list
def _sort_ordinals(values: tuple[Value, ...]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64] | None]:
    """Return the public values as ascending integers, and the original index of each.

    The second result is None if the values are already in ascending order.
    """
    public = _make_ordinals(values)
    if np.all(public[:-1] <= public[1:]):
        return public, None
    order = np.argsort(public)
    return public[order], order


def _make_ordinals(values: Groups) -> npt.NDArray[np.int64]:
    """Return integers as they are, dates and timestamps as microseconds since 1970."""
    if isinstance(values, np.ndarray):
        return (values.astype("datetime64[us]") if values.dtype.kind == "M" else values).astype(np.int64)
    if len(values) and isinstance(values[0], date):
        return np.array(values, dtype="datetime64[us]").astype(np.int64)
    return np.array(values, dtype=np.int64)


def _find_ordinal_positions(
    ordered: npt.NDArray[np.int64], order: npt.NDArray[np.int64] | None, found: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the index of each found value among the public values, or -1.

    The time grows only with the number of found values, as groups may come in many pieces.
    """
    if not len(ordered):
        return np.full(found.shape, -1, dtype=np.int64)
    if ordered[-1] - ordered[0] == len(ordered) - 1:  # no value is missing between them: places are differences
        place = found - ordered[0]  # wraps around far outside alone, and then not into the places
        outside = (place < 0) | (place >= len(ordered))
        if order is not None:
            place = order[np.where(outside, 0, place)]
        place[outside] = -1
        return np.asarray(place, dtype=np.int64)
    place = np.minimum(np.searchsorted(ordered, found), len(ordered) - 1)
    return np.where(ordered[place] == found, place if order is None else order[place], -1)
