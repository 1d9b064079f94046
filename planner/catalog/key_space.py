"""The key space of a question: the product of its keys' public domains, restricted by WHERE's conditions on keys."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from math import prod

import numpy as np
import numpy.typing as npt

from planner.catalog.catalog import Column, Table, Value
from planner.errors import cut_at_word

_MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"
_UNQUOTED = re.compile(rf"[^\s,;/'\"]+|{_MOMENT}")  # values whose end is visible without quotes
WHOLE_TABLE = "whole_table"  # the one column of an answer about a table that is one group


def format_value(value: Value) -> str:
    """Return a value as PostgreSQL prints it (DateStyle ISO). The ledger and answers have keys in this form.

    Keys are charged, stored and returned in this form.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case _:
            return str(value)


def quote_in_row(text: str) -> str:
    """Return a value as text for a comma-separated list. It is quoted if it has a comma or a blank."""
    return text if _UNQUOTED.fullmatch(text) else "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The grouping columns in the question's order, each with the values that it may take in this question.

    The keys are all combinations of these values, in row-major order. Without columns there is one key: the whole
    table.
    """

    columns: tuple[Column, ...]
    values: tuple[tuple[Value, ...], ...] = field(hash=False)  # not hashed: there may be millions

    @property
    def names(self) -> tuple[str, ...]:
        """The grouping columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def identities(self) -> Mapping[str, str]:
        """A map from each grouping column's name in the question to its `Column.identity`."""
        return {column.name: column.identity for column in self.columns}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values per grouping column."""
        return tuple(len(values) for values in self.values)

    @property
    def description(self) -> str:
        """The grouping columns in words."""
        return ", ".join(map(cut_at_word, self.names)) or "the whole table as one group"

    @property
    def size(self) -> int:
        """The number of keys: the product of the numbers of values."""
        return prod(self.shape)

    def count_values(self, names: tuple[str, ...]) -> int:
        """Return the number of combinations of the values of the named key columns."""
        return prod(len(values) for name, values in zip(self.names, self.values, strict=True) if name in names)

    def number_values(self, names: tuple[str, ...]) -> npt.NDArray[np.int64]:
        """Return, for each key of the space, the number of its combination of the named columns, counted from 0."""
        axes = [axis for axis, name in enumerate(self.names) if name in names]
        sizes = [self.shape[axis] for axis in axes]
        numbers = np.arange(prod(sizes)).reshape([len_ if i in axes else 1 for i, len_ in enumerate(self.shape)])
        return np.broadcast_to(numbers, self.shape).reshape(-1)

    def get_key(self, index: int) -> tuple[Value, ...]:
        """Return the key at a row-major index."""
        coordinates = np.unravel_index(index, self.shape)
        return tuple(values[int(i)] for values, i in zip(self.values, coordinates, strict=True))

    def list_keys(self, mask: npt.NDArray[np.bool_]) -> Iterator[tuple[Value, ...]]:
        """Yield the keys where `mask` (length `size`) is true, in row-major order."""
        for index in np.flatnonzero(mask):
            yield self.get_key(int(index))

    def get_whole_domain(self, index: int) -> tuple[Value, ...]:
        """Return all public values of a grouping column, even if the question asks about some of them."""
        declared = self.columns[index].domain
        return self.values[index] if declared is None else declared

    def count_reachable_groups(self, table: Table) -> int:
        """Return the number of keys, of the whole public domain, in which a unit without bounds could have rows."""
        free = [i for i, column in enumerate(self.columns) if not table.determines(column)]
        return prod(len(self.get_whole_domain(i)) for i in free)
