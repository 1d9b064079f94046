"""The accountant's values: what is charged to which keys, within which limits.

Every amount is an integer number of 1e-9 epsilon (suffix `_nano`, rounded up by the caller), so sums are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import prod

import numpy as np
import numpy.typing as npt

from accountant.errors import LedgerMisuse

NanoArray = npt.NDArray[np.int64]

ROW_UNIT = "row"
NANO = 10**9
# One charge of a thousand epsilon is no privacy at all; nine million of them still fit an int64.
MOST_NANO_PER_CHARGE = 1000 * NANO
MOST_KEYS = 1 << 24


@dataclass(frozen=True, slots=True)
class Family:
    """Table, grouping columns and filter: the partition that per-key sums belong to.

    `unit` is the privacy unit as text ("row", or the unit's columns such as "customer_id,month"); `columns` the sorted
    grouping columns; `filter` the canonical WHERE ("" for none); `version` the public data version; `immutable` the
    columns whose values never change for a row (it decides, for unit "row", whether keys of two versions can be told
    apart). TimeZone, collation and public tables that shape the keys belong in the column's name or the version.
    """

    table: str
    unit: str
    columns: tuple[str, ...]
    filter: str
    version: str
    immutable: frozenset[str]

    def __post_init__(self) -> None:
        if list(self.columns) != sorted(set(self.columns)):
            raise LedgerMisuse("a family's columns are sorted and distinct")
        if not self.table or not self.unit:
            raise LedgerMisuse("a family names its table and its privacy unit")


@dataclass(frozen=True, slots=True)
class Cells:
    """The keys of a question: the product of one tuple of key values (canonical text) per grouping column.

    `columns` is sorted by column name. Every key of the question's public domain stands here, with rows or without.
    No grouping column means one key, the whole table.
    """

    columns: tuple[tuple[str, tuple[str, ...]], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        if names != sorted(set(names)):
            raise LedgerMisuse("the columns of the keys are sorted and distinct")
        for name, values in self.columns:
            if not values or len(set(values)) != len(values):
                raise LedgerMisuse(f"the key values of {name} are distinct, and at least one")
        if self.size > MOST_KEYS:
            raise LedgerMisuse(f"more than {MOST_KEYS} keys in one question")

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of values per column: per-key arrays have this shape, in C order."""
        return tuple(len(values) for _, values in self.columns)

    @property
    def size(self) -> int:
        """The number of keys."""
        return prod(self.shape)


@dataclass(frozen=True, slots=True)
class Charge:
    """The worst case of one question, before it runs.

    `question` is the question's fingerprint; `epsilon_nano` the worst-case loss of any single key, the same for all;
    `unit_epsilon_nano` the worst-case loss of one whole privacy unit: the sum of its top-G keys' losses (0 for unit
    "row", else at least `epsilon_nano`). `shared` is false only for a stored answer read by another analyst, which
    counts for that analyst's own balances alone.
    """

    question: str
    analyst: str
    family: Family
    cells: Cells
    epsilon_nano: int
    unit_epsilon_nano: int
    shared: bool

    def __post_init__(self) -> None:
        if tuple(name for name, _ in self.cells.columns) != self.family.columns:
            raise LedgerMisuse("the keys' columns are the family's columns")
        if not 0 <= self.epsilon_nano <= MOST_NANO_PER_CHARGE:
            raise LedgerMisuse(f"a charge is between 0 and {MOST_NANO_PER_CHARGE}e-9 epsilon")
        _check_unit(self.family.unit, self.epsilon_nano, self.unit_epsilon_nano)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps that hold for one question. None means no cap; tables with a privacy unit must have `per_unit_nano`.

    `apart`: analysts are accounted for one by one, as caps of their own need; then what the shared balances have left
    for one of them counts the others' questions at their worst case, so that it tells nothing of their outcomes.
    """

    per_predicate_nano: int
    per_unit_nano: int | None
    per_query_nano: int | None
    analyst_per_predicate_nano: int | None
    analyst_per_unit_nano: int | None
    apart: bool


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to touch data, durably paid at the worst case until it is committed or released."""

    id: str
    charge: Charge
    reserved_at: datetime


@dataclass(frozen=True, slots=True)
class Spent:
    """The ex-post loss of a question: uniform, or per key. Build it with `uniform` or `per_key`.

    `epsilon_nano` is the largest loss of any key; `keys` the little-endian int64 loss of each key in C order of the
    question's cells, or None when all are equal; `unit_epsilon_nano` the top-G sum of the keys' losses (0 for rows).
    """

    epsilon_nano: int
    unit_epsilon_nano: int
    keys: bytes | None = field(repr=False)

    @staticmethod
    def uniform(epsilon_nano: int, *, unit_epsilon_nano: int) -> "Spent":
        """Every key lost `epsilon_nano`."""
        return Spent(epsilon_nano, unit_epsilon_nano, None)

    @staticmethod
    def per_key(epsilon_nano: Sequence[int] | NanoArray, *, unit_epsilon_nano: int) -> "Spent":
        """Key i, in C order of the question's cells, lost `epsilon_nano[i]`."""
        losses = np.asarray(epsilon_nano, dtype="<i8").reshape(-1)
        if losses.size == 0 or int(losses.min()) < 0:
            raise LedgerMisuse("losses are non-negative, one per key")
        return Spent(int(losses.max()), unit_epsilon_nano, losses.tobytes())

    def amounts(self, cells: Cells) -> NanoArray | int:
        """The losses as a number, or as an array of the cells' shape."""
        if self.keys is None:
            return self.epsilon_nano
        return np.frombuffer(self.keys, dtype="<i8").reshape(cells.shape).astype(np.int64)

    def check_covered_by(self, charge: Charge) -> None:
        """Raise `LedgerMisuse` unless every key and the unit stay within the reserved worst case."""
        if not 0 <= self.epsilon_nano <= charge.epsilon_nano:
            raise LedgerMisuse("more spent than reserved for a key")
        if self.unit_epsilon_nano > charge.unit_epsilon_nano:
            raise LedgerMisuse("more spent than reserved for a unit")
        if self.keys is not None and len(self.keys) != 8 * charge.cells.size:
            raise LedgerMisuse("losses per key do not match the number of keys")
        _check_unit(charge.family.unit, self.epsilon_nano, self.unit_epsilon_nano)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A released answer that may be served again for nothing more on the shared balances.

    `reservation` is the one that paid for it, `charge` what it reserved, `spent` its ex-post loss, `held` whether the
    asking analyst has already paid for it or read it (then reading it again is free).
    """

    reservation: str
    charge: Charge
    spent: Spent
    answer: bytes = field(repr=False)
    held: bool

    @property
    def analyst(self) -> str:
        """Who paid for it."""
        return self.charge.analyst

    @property
    def epsilon_nano(self) -> int:
        """The largest loss of any key."""
        return self.spent.epsilon_nano

    def reading(self, analyst: str) -> Charge:
        """What another analyst reserves to read it, on the own balances only; committed is the loss of its release.

        It is the worst case, so that a refusal tells nothing of the outcome.
        """
        return replace(self.charge, analyst=analyst, shared=False)


@dataclass(frozen=True, slots=True)
class Left:
    """What still fits: the largest uniform `epsilon_nano` per key, and the largest per-unit sum (None: no cap)."""

    epsilon_nano: int
    unit_epsilon_nano: int | None


def _check_unit(unit: str, epsilon_nano: int, unit_epsilon_nano: int) -> None:
    if unit == ROW_UNIT:
        if unit_epsilon_nano != 0:
            raise LedgerMisuse("unit row has no per-unit charge beside the key's")
    elif not epsilon_nano <= unit_epsilon_nano <= MOST_NANO_PER_CHARGE * 1000:
        raise LedgerMisuse("a unit loses at least what one of its keys loses")
