"""The sorting and display of an answer's keys as PostgreSQL does it, by the question's ORDER BY."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from mechanisms.formula import Integers
from planner.scorecard.key_order import KeyOrder, SortedColumn
from proxy.pipeline.key_rows import KeyRows
from proxy.pipeline.messages import KeySet
from proxy.shadow.key_labels import KeyLabels

_Shown: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class LabelledKeys:
    """Released keys in their displayed form. None is PostgreSQL's NULL."""

    columns: tuple[str, ...]
    keys: Sequence[_Shown]


def show_keys(keys: KeySet, labels: KeyLabels | None, order: KeyOrder) -> KeySet | LabelledKeys:
    """Return the keys in the given order. Replace computed keys by their displayed form in `labels`."""
    return sort_keys(keys, order) if labels is None else label_keys(keys, labels, order)


def label_keys(keys: KeySet, labels: KeyLabels, order: KeyOrder = ()) -> LabelledKeys:
    """Return the keys in their displayed form, in the given order. Equal keys keep their relative order."""
    shown = list(zip(*labels.apply(keys.arrays), strict=True))
    for column in reversed(order):
        by = _make_sort_key(labels, column)
        shown.sort(key=lambda key: by(key[column.index]), reverse=column.descending)  # at once
    return LabelledKeys((*labels.names, *keys.columns[labels.keys :]), shown)


def _make_sort_key(labels: KeyLabels, column: SortedColumn) -> Callable[[str | None], int | tuple[bool, int | str]]:
    """Return the function by which a column's texts are sorted."""
    ranks = labels.columns[column.index].ranks if column.index < len(labels.columns) else {}
    if ranks:
        return (ranks | ({None: -1} if column.has_unusual_nulls else {})).__getitem__
    return _make_text_key(column)


def _make_text_key(column: SortedColumn) -> Callable[[str | None], tuple[bool, int | str]]:
    """Return the function by which texts are sorted, with NULL at PostgreSQL's place unless it is unusual."""
    last = not column.has_unusual_nulls
    if column.is_number:
        return lambda text: ((text is None) is last, int(text or 0))
    return lambda text: ((text is None) is last, text or "")


def sort_keys(keys: KeySet, order: KeyOrder) -> KeySet:
    """Return the keys in another order. Equal keys keep their relative order.

    Texts, with dates and times among them, are sorted by code points, as the shadow does, and false comes before true.
    Raise IndexError for a missing column, and ValueError for a text that is not a number.
    """
    if not order:
        return keys
    turned = np.lexsort([_rank(keys, column) for column in reversed(order)])
    if isinstance(keys.keys, KeyRows):
        places = tuple(at[turned] for at in keys.keys.places)
        return KeySet(columns=keys.columns, keys=KeyRows(keys.keys.texts, places))
    return KeySet(columns=keys.columns, keys=tuple(keys.keys[index] for index in turned.tolist()))


def _rank(keys: KeySet, column: SortedColumn) -> Integers:
    """Return each key's rank among the column's distinct texts, negative for a descending order."""
    if isinstance(keys.keys, KeyRows):
        texts, places = keys.keys.texts[column.index], keys.keys.places[column.index]
    else:
        cells = [key[column.index] for key in keys.keys]
        texts = tuple(dict.fromkeys(cells))
        numbers = {text: number for number, text in enumerate(texts)}
        places = np.array([numbers[cell] for cell in cells], dtype=np.uint32)
    ranks = np.empty(len(texts), dtype=np.int64)
    by = _make_text_key(column)
    ranks[sorted(range(len(texts)), key=lambda at: by(texts[at]))] = np.arange(len(texts))
    found: Integers = ranks[places]
    return -found if column.descending else found
