"""A cache of results that depend on a list of public values alone, computed once for each list.

A compiled key column has one tuple of values while its catalog is open, and every question by that column has the same
tuple object. Results are therefore found by the object itself. A search for an equal tuple would cost as much as some
of the results, and equal values may read differently (1, TRUE).
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from hashlib import sha256
from typing import Any, TypeVar

from planner.catalog.catalog import Value
from planner.catalog.key_space import format_value

_Result = TypeVar("_Result")
_Values = tuple[Value, ...]

SHORT_LIST = 1_000  # values; shorter lists are computed again in less than a millisecond
MOST_VALUES = 4_000_000
"""Remembered of each kind, over all lists: four columns of a million, whose texts take some hundred megabytes."""


def remember_of_list(compute: Callable[..., _Result]) -> Callable[..., _Result]:
    """Cache `compute(values, *about)` for recently used lists.

    The cache's key is the identity of `values`, together with `about`.

    The cache holds results about at most `MOST_VALUES` values, or about one longer list. Threads may share it.
    """
    lock = threading.Lock()
    kept: OrderedDict[tuple[Hashable, ...], tuple[_Values, _Result]] = OrderedDict()

    def look_up(values: _Values, *about: Any) -> _Result:
        if len(values) < SHORT_LIST:
            return compute(values, *about)
        key = (id(values), *about)
        with lock:
            found = kept.get(key)
            if found is not None:
                kept.move_to_end(key)
                return found[1]
        result = compute(values, *about)
        with lock:
            kept[key] = values, result  # it keeps the tuple, so that no other one gets its id
            while len(kept) > 1 and sum(len(listed) for listed, _ in kept.values()) > MOST_VALUES:
                kept.popitem(last=False)
        return result

    return look_up


@remember_of_list
def format_values(values: _Values) -> tuple[str, ...]:
    """Return each value as PostgreSQL prints it."""
    texts = tuple(value for value in values if type(value) is str)
    if len(texts) == len(values):
        return texts
    return tuple(map(str, values)) if all(type(value) is int for value in values) else tuple(map(format_value, values))


@remember_of_list
def digest_texts(values: _Values) -> str:
    """Return the sha256 of the values' texts in their order, in hex."""
    return sha256("\n".join(map(repr, format_values(values))).encode()).hexdigest()
