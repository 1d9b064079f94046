"""The accountant's values: the charge of a question before it runs, and its loss afterwards.

Every amount is an integer number of 1e-9 epsilon (suffix `_nano`, rounded up by the caller), so sums are exact.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import prod

import numpy as np
import numpy.typing as npt

from accountant.errors import LedgerMisuse
from accountant.look_losses import LossAfterLooks, check_curve, check_looks, check_looks_that_ran
from mechanisms.threshold.renyi import Curve

NanoArray = npt.NDArray[np.int64]

ROW_UNIT = "row"
# what stands for all data versions that one question alone is asked on; the name of one has 32 digits behind it
LIVE = "live"
_OF_ONE_QUESTION = re.compile(rf"{LIVE} [0-9a-f]{{32}}")
# how finely losses are counted: integers of it add up exactly, and rounding up costs 1e-9 epsilon a charge at most
NANO = 10**9
# One charge of a thousand epsilon is no privacy at all; nine million of them still fit an int64.
MOST_NANO_PER_CHARGE = 1000 * NANO
# the largest int64, with which arrays of balances can be compared
MOST_CAP_NANO = 2**63 - 1
# how large a key set may be against memory: eight bytes a key in every array of losses, so 128 MB; set, not measured
MOST_KEYS = 1 << 24


def is_lasting(version: str) -> bool:
    """Return True if a later question may have the same data version: not on live tables."""
    return _OF_ONE_QUESTION.fullmatch(version) is None


@dataclass(frozen=True, slots=True)
class Family:
    """Table, grouping columns and filter: the partition that per-key sums belong to.

    `unit` is the privacy unit as text ("row", or the unit's columns such as "customer_id,month"). `columns` are the
    sorted grouping columns, `filter` the canonical WHERE ("" for none), `version` the public data version. `immutable`
    are the columns whose values never change for a row: for unit "row", keys of two versions are known to be disjoint
    only on these. TimeZone, collation and public tables that shape the keys belong in the column's name or the version.
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

    `columns` is sorted by column name. The keys are all those of the question's public domain, with or without rows.
    Without grouping columns there is one key, the whole table.
    """

    columns: tuple[tuple[str, tuple[str, ...]], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.columns]
        if names != sorted(set(names)):
            raise LedgerMisuse("the columns of the keys are sorted and distinct")
        for name, values in self.columns:
            if not values or not _are_distinct(values):
                raise LedgerMisuse(f"the key values of {name} are distinct, and at least one")
        if self.key_count > MOST_KEYS:
            raise LedgerMisuse(f"more than {MOST_KEYS} keys in one question")

    @property
    def shape_by_column(self) -> tuple[int, ...]:
        """The number of values per column: per-key arrays have this shape, in C order."""
        return tuple(len(values) for _, values in self.columns)

    @property
    def key_count(self) -> int:
        """The number of keys of the question."""
        return prod(self.shape_by_column)


# memory against looking again: a long list of key values is most often that of the question before; set, not measured
_LONG_VALUES = 10_000
_LONG_LISTS = 4  # the key columns of a question, and those of the answer that it reads
_distinct: "deque[tuple[str, ...]]" = deque(maxlen=_LONG_LISTS)


def _are_distinct(values: tuple[str, ...]) -> bool:
    if any(known is values for known in tuple(_distinct)):
        return True
    distinct = len(set(values)) == len(values)
    if distinct and len(values) > _LONG_VALUES:
        _distinct.append(values)
    return distinct


@dataclass(frozen=True, slots=True)
class Amounts:
    """A loss in 1e-9 epsilon: of any single cell, and of one whole privacy unit (0 for unit "row")."""

    epsilon_nano: int
    unit_epsilon_nano: int

    @property
    def table_nano(self) -> int:
        """Return the amount charged to the table's balance: one unit's loss, or for unit "row" the loss of one key."""
        return max(self.epsilon_nano, self.unit_epsilon_nano)


NOTHING = Amounts(0, 0)


@dataclass(frozen=True, slots=True, order=True)
class PathState:
    """One state of a functional's noise path, which a question reads or continues.

    `identity` names the functional with all that its noise depends on (not thresholds, rates or keys). `version` is the
    public data version. `reservation` is the one that committed this state. It contains no data.
    """

    identity: str
    version: str
    reservation: str


@dataclass(frozen=True, slots=True)
class StoredPath:
    """The newest state of a path, with its values in the form in which they were committed.

    If `is_taken`, an open or dead question continues it: it can be read, but not continued. `questions` is the number
    of questions that drew its noise or read it.
    """

    identity: str
    state: PathState
    body: bytes = field(repr=False)
    is_taken: bool
    questions: int


@dataclass(frozen=True, slots=True)
class PathContinuation:
    """The cost of a question that continues noise paths to the shared balances. Its cost to its analyst is separate.

    `shared_loss` is the largest fresh loss of any key, given the values revealed there before, and of a unit.
    `public_loss` is the public part of it: the loss of the rates above the highest one reserved before.
    """

    paths: tuple[PathState, ...]
    shared_loss: Amounts
    public_loss: Amounts

    def __post_init__(self) -> None:
        if not self.paths or list(self.paths) != sorted(set(self.paths)):
            raise LedgerMisuse("the paths that a question continues are sorted, distinct, and at least one")


@dataclass(frozen=True, slots=True)
class Charge:
    """The worst case of one question, before it runs.

    `question` is the question's fingerprint. `epsilon_nano` is the worst-case loss of any single cell, the same for
    all. `unit_epsilon_nano` is the worst-case loss of one whole privacy unit: the sum of its top-G keys' losses (0 for
    unit "row", else at least half of `epsilon_nano`). Both count everything that the answer reveals to its analyst,
    even if parts of it were charged to others before. `shared` is false only for reading released values (a stored
    answer, values of noise paths): that is charged to the analyst's own balances only. `path_continuation` is set for
    questions that continue noise paths, whose cost to everybody is lower.

    `renyi` is the curve of Rényi divergences of one whole unit, and `cell_renyi` that of one cell. A question may have
    them if its noise may be drawn at its finest rates at once. In a reservation either of them means that the noise is
    drawn so: the balances count the curves, nothing is refunded, and the paths are never continued. A balance without a
    curve counts the pure loss.

    `looks` is set for a question whose looks at a key draw their own noise: what one cell has lost after the first,
    after the first two, and so on. Its commit gives back the looks that did not run.
    """

    question: str
    analyst: str
    family: Family
    cells: Cells
    epsilon_nano: int
    unit_epsilon_nano: int
    shared: bool
    path_continuation: PathContinuation | None = None
    renyi: Curve | None = None
    cell_renyi: Curve | None = None
    looks: tuple[LossAfterLooks, ...] = ()

    def __post_init__(self) -> None:
        if tuple(name for name, _ in self.cells.columns) != self.family.columns:
            raise LedgerMisuse("the keys' columns are the family's columns")
        for amounts in (self.own_amounts, self.shared_amounts, self.known_amounts):
            if not 0 <= amounts.epsilon_nano <= MOST_NANO_PER_CHARGE:
                raise LedgerMisuse(f"a charge is between 0 and {MOST_NANO_PER_CHARGE}e-9 epsilon")
            _check_unit(self.family.unit, amounts)
        if self.path_continuation is not None:
            if not self.shared:
                raise LedgerMisuse("what is read from noise paths alone does not continue them")
            if any(path.version != self.family.version for path in self.path_continuation.paths):
                raise LedgerMisuse("a noise path is continued on its own data version")
        if self.is_by_curve and (not self.shared or self.path_continuation is not None):
            raise LedgerMisuse("Rényi divergences are of fresh noise, drawn all at once")
        if self.renyi is not None and self.family.unit == ROW_UNIT:
            raise LedgerMisuse("rows have no balance per unit beside the key's")
        check_curve(self.renyi, self.unit_epsilon_nano)
        check_curve(self.cell_renyi, self.epsilon_nano)
        if self.looks:
            if not self.is_by_curve:
                raise LedgerMisuse("looks are given back to balances that count curves")
            check_looks(self.looks, LossAfterLooks(self.epsilon_nano, self.cell_renyi))

    @property
    def is_by_curve(self) -> bool:
        """Return True if a balance counts the question's Rényi divergences."""
        return self.renyi is not None or self.cell_renyi is not None

    def without_curves(self) -> "Charge":
        """Return the same charge by its pure loss alone."""
        return replace(self, renyi=None, cell_renyi=None, looks=()) if self.is_by_curve else self

    @property
    def own_amounts(self) -> Amounts:
        """The full worst case, for the analyst's own balances and the cap per question."""
        return Amounts(self.epsilon_nano, self.unit_epsilon_nano)

    @property
    def shared_amounts(self) -> Amounts:
        """The worst case for the shared balances: only what everybody together did not know before."""
        if self.path_continuation is not None:
            return self.path_continuation.shared_loss
        return self.own_amounts if self.shared else NOTHING

    @property
    def known_amounts(self) -> Amounts:
        """The public part of `shared_amounts`, for balances that must not reveal the outcomes of others' questions."""
        if self.path_continuation is not None:
            return self.path_continuation.public_loss
        return self.own_amounts if self.shared else NOTHING


@dataclass(frozen=True, slots=True)
class Wording:
    """The wording of a question and the promise of its answer, for people who read the ledger.

    No balance depends on it.

    `text` is the question's text, as far as the policy keeps it (None: not at all). `guarantee` is a sentence. `fnr`
    and `fpr` are rates as decimal text (None: no bound).
    """

    text: str | None
    guarantee: str
    fnr: str | None
    fpr: str | None


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to touch data, durably paid at the worst case until it is committed or released."""

    id: str
    charge: Charge
    reserved_at: datetime


@dataclass(frozen=True, slots=True)
class Spent:
    """The ex-post loss of a question: one number for all keys, or one per key. Use `from_uniform` or `from_keys`.

    `epsilon_nano` is the largest loss of any key. `keys` has the little-endian int64 loss of each key in C order of the
    question's cells, or None if all are equal. `unit_epsilon_nano` is the top-G sum of the keys' losses (0 for rows).
    If the question continued noise paths, `fresh` is the part that nobody had learned before (None: all of it).
    `renyi` is the unit's curve of the looks that ran, for a question by looks with a curve of units (None: all of it).
    """

    epsilon_nano: int
    unit_epsilon_nano: int
    keys: bytes | None = field(repr=False)
    fresh: "Spent | None" = None
    renyi: Curve | None = None

    def __post_init__(self) -> None:
        if self.fresh is not None and self.fresh.fresh is not None:
            raise LedgerMisuse("a fresh loss has no part that is fresher")

    @staticmethod
    def from_uniform(epsilon_nano: int, *, unit_epsilon_nano: int) -> "Spent":
        """Return a loss of `epsilon_nano` for every key."""
        return Spent(epsilon_nano, unit_epsilon_nano, None)

    @staticmethod
    def from_keys(epsilon_nano: Sequence[int] | NanoArray, *, unit_epsilon_nano: int) -> "Spent":
        """Return a loss of `epsilon_nano[i]` for key i, in C order of the question's cells."""
        losses = np.asarray(epsilon_nano, dtype="<i8").reshape(-1)
        if losses.size == 0 or int(losses.min()) < 0:
            raise LedgerMisuse("losses are non-negative, one per key")
        return Spent(int(losses.max()), unit_epsilon_nano, losses.tobytes())

    def read_amounts(self, cells: Cells) -> NanoArray | int:
        """Return the losses as a number, or as a read-only array of the cells' shape."""
        if self.keys is None:
            return self.epsilon_nano
        return np.frombuffer(self.keys, dtype="<i8").reshape(cells.shape_by_column).astype(np.int64, copy=False)

    def find_shared_part(self, charge: Charge) -> "Spent":
        """Return the part of the loss that counts on the shared balances. `charge` is the reserved charge."""
        if not charge.shared:
            return NOTHING_SPENT
        return self if self.fresh is None or charge.path_continuation is None else self.fresh

    @property
    def largest_losses(self) -> Amounts:
        """The largest loss of any key, and of a unit."""
        return Amounts(self.epsilon_nano, self.unit_epsilon_nano)

    def check_within_reservation(self, charge: Charge) -> None:
        """Raise `LedgerMisuse` unless every key and the unit stay within the reserved worst case."""
        self.check_keys()
        for loss in (self, self.fresh):
            if loss is not None and loss.keys is not None and len(loss.keys) != 8 * charge.cells.key_count:
                raise LedgerMisuse("losses per key do not match the number of keys")
        full = Spent.from_uniform(charge.epsilon_nano, unit_epsilon_nano=charge.unit_epsilon_nano)
        if (charge.is_by_curve or self.renyi is not None) and self != full:
            losses = self.read_amounts(charge.cells)
            check_looks_that_ran(charge.looks, losses, ran=self.renyi, reserved=charge.renyi)
            check_curve(self.renyi, self.unit_epsilon_nano)
        self._check_losses_within(charge.own_amounts, charge)
        self.find_shared_part(charge)._check_losses_within(charge.shared_amounts, charge)

    def check_keys(self) -> None:
        """Raise `LedgerMisuse` unless `epsilon_nano` is the largest loss per key. Check the fresh losses as well."""
        if self.keys is not None:
            if not self.keys or len(self.keys) % 8:
                raise LedgerMisuse("losses per key are int64, at least one")
            losses = np.frombuffer(self.keys, dtype="<i8")
            if int(losses.min()) < 0 or int(losses.max()) != self.epsilon_nano:
                raise LedgerMisuse("losses per key are non-negative, and the largest is the loss of any key")
        if self.fresh is not None:
            self.fresh.check_keys()

    def _check_losses_within(self, reserved: Amounts, charge: Charge) -> None:
        if not 0 <= self.epsilon_nano <= reserved.epsilon_nano:
            raise LedgerMisuse("more spent than reserved for a key")
        if self.unit_epsilon_nano > reserved.unit_epsilon_nano:
            raise LedgerMisuse("more spent than reserved for a unit")
        _check_unit(charge.family.unit, self.largest_losses)


NOTHING_SPENT = Spent(0, 0, None)


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A released answer that may be returned again without a charge to the shared balances.

    `reservation` paid for the answer, `charge` is what was reserved, and `spent` its ex-post loss. If `is_held`, the
    asking analyst has already paid for the answer or read it, so that reading it again is free.
    """

    reservation: str
    charge: Charge
    spent: Spent
    answer: bytes = field(repr=False)
    is_held: bool

    @property
    def analyst(self) -> str:
        """The analyst who paid for the answer."""
        return self.charge.analyst

    @property
    def epsilon_nano(self) -> int:
        """The largest loss of any key."""
        return self.spent.epsilon_nano

    def make_reading_charge(self, analyst: str) -> Charge:
        """Return the charge for another analyst who reads the answer, on that analyst's own balances only.

        It is the answer's worst case, so that a refusal reveals nothing of the outcome. The commit charges the answer's
        ex-post loss.
        """
        charge = self.charge.without_curves()
        return replace(charge, analyst=analyst, shared=False, path_continuation=None)


def _check_unit(unit: str, amounts: Amounts) -> None:
    if unit == ROW_UNIT:
        if amounts.unit_epsilon_nano != 0:
            raise LedgerMisuse("unit row has no per-unit charge beside the key's")
    elif not amounts.epsilon_nano <= 2 * amounts.unit_epsilon_nano <= MOST_NANO_PER_CHARGE * 2000:
        # rows of one cell can exchange what a unit adds: that is taking the unit away, and putting another one there
        raise LedgerMisuse("a cell loses at most twice what a unit loses")
