"""Rising numbers at equal distances, in a short form: the lower ends of up to a million groups of a question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from typing import overload

MOST_WRITTEN = 2_001
"""Steps that are written out where the ledger tells groups apart. It never changes: names in the ledger rest on it."""


@dataclass(frozen=True, slots=True)
class Run:
    """The `count` whole numbers that begin at `first` and are `step` apart."""

    first: int
    step: int
    count: int

    @property
    def last(self) -> int:
        """The greatest number of the run."""
        return self.first + self.step * (self.count - 1)

    @property
    def numbers(self) -> range:
        """All numbers of the run, in rising order."""
        return range(self.first, self.last + 1, self.step)


@dataclass(frozen=True, slots=True)
class Steps(Sequence[int | Decimal]):
    """Whole numbers, or multiples of 10^-scale, in rising order, as runs. Each run is above the one before.

    If `scale` is None, the numbers are whole; else they are counted in units of 10^-scale.
    """

    runs: tuple[Run, ...]
    scale: int | None

    def __len__(self) -> int:
        return sum(run.count for run in self.runs)

    def __iter__(self) -> Iterator[int | Decimal]:
        return map(self.convert_units, chain.from_iterable(run.numbers for run in self.runs))

    @overload
    def __getitem__(self, at: int) -> int | Decimal: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[int | Decimal, ...]: ...
    def __getitem__(self, at: int | slice) -> int | Decimal | tuple[int | Decimal, ...]:
        if isinstance(at, slice):
            return tuple(islice(self, *at.indices(len(self))))
        place = at if at >= 0 else at + len(self)
        for run in self.runs:
            if 0 <= place < run.count:
                return self.convert_units(run.first + run.step * place)
            place -= run.count
        raise IndexError(at)

    @property
    def meaning(self) -> str:
        """A canonical text of the numbers. Two `Steps` have equal texts exactly if they have equal numbers."""
        runs = ", ".join(f"{run.count} from {run.first} by {run.step}" for run in self.runs)
        return f"steps {runs} of 10^-{self.scale or 0}"

    def convert_units(self, units: int) -> int | Decimal:
        """Return `units` times 10^-scale, or `units` itself without a scale."""
        return units if self.scale is None else Decimal(units).scaleb(-self.scale)


@dataclass(frozen=True, slots=True)
class StepSamples(Sequence[int | Decimal | None]):
    """One number inside each group, for groups that are separated by steps.

    The sequence starts with a number below the first step if `has_below`. It ends with a number above the last step if
    `has_above`, and then NULL if `has_null`.
    """

    steps: Steps
    has_below: bool
    has_above: bool
    has_null: bool

    def __len__(self) -> int:
        return len(self.steps) - 1 + self.has_below + self.has_above + self.has_null

    @overload
    def __getitem__(self, at: int) -> int | Decimal | None: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[int | Decimal | None, ...]: ...
    def __getitem__(self, at: int | slice) -> int | Decimal | tuple[int | Decimal | None, ...] | None:
        if isinstance(at, slice):
            return tuple(self[place] for place in range(*at.indices(len(self))))
        place = at if at >= 0 else at + len(self)
        if not 0 <= place < len(self):
            raise IndexError(at)
        if self.has_null and place == len(self) - 1:
            return None
        if self.has_below and place == 0:
            return self.steps.convert_units(self.steps.runs[0].first - 1)
        return self.steps[place - self.has_below]
