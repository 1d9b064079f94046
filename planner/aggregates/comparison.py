"""A HAVING after parsing: comparisons of sums over rows with constants, joined by AND and OR."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias, TypeVar

from planner.aggregates.key_numbers import KeyNumbers
from planner.aggregates.row_expression import Part, Values
from planner.catalog.catalog import Column
from planner.question.condition import Condition
from planner.question.key_cells import KeyCells
from planner.question.question import Measure
from planner.values.decimals import convert_to_decimal


class Slack(StrEnum):
    """The unit in which a tolerance of a comparison is measured."""

    THRESHOLD = "threshold"  # the analyst's unit; a percentage is one of the threshold
    ROWS = "rows"  # rows of a group; a percentage is one of a group of min_rows rows, as for percentiles
    RECORD = "record"  # rows, and only where the tolerance names the aggregate: it hinges on one record


_Folded = TypeVar("_Folded")


class _HavingTree:
    """The operations on every HAVING."""

    __slots__ = ()

    def mapped(self, change: Callable[["Comparison | Spread"], "Having"]) -> "Having":
        """Return the formula with every comparison changed."""
        return self.fold(
            change,
            outside=Outside,
            every=lambda children: Every(tuple(children)),
            some=lambda children: Some(tuple(children)),
        )

    def leaves(self) -> Iterator["Comparison | Spread"]:
        """Yield every comparison, in order of appearance, with repetitions."""
        match self:
            case Outside(inner):
                yield from inner.leaves()
            case Every(children) | Some(children):
                for child in children:
                    yield from child.leaves()
            case _:
                assert isinstance(self, Comparison | Spread)
                yield self

    def fold(
        self,
        leaf: Callable[["Comparison | Spread"], _Folded],
        *,
        outside: Callable[[_Folded], _Folded],
        every: Callable[[Sequence[_Folded]], _Folded],
        some: Callable[[Sequence[_Folded]], _Folded],
    ) -> _Folded:
        """Fold the formula from the comparisons upward, and return the value of the whole."""
        match self:
            case Outside(inner):
                return outside(inner.fold(leaf, outside=outside, every=every, some=some))
            case Every(children):
                return every([child.fold(leaf, outside=outside, every=every, some=some) for child in children])
            case Some(children):
                return some([child.fold(leaf, outside=outside, every=every, some=some) for child in children])
            case _:
                assert isinstance(self, Comparison | Spread)
                return leaf(self)


@dataclass(frozen=True, slots=True)
class Comparison(_HavingTree):
    """`S operator at`, where S sums `parts` over the rows of a group, in the analyst's unit.

    `left` is the left side as an analyst would write it, `text` the whole comparison. `threshold` is what a percentage
    is one of. With `own` every group has a threshold of its own instead, until these are set. A mean or ratio is S
    divided by a sum that is at least `per_row` for each row that counts for it (None: no division), less `origin`;
    `over` are these rows, where they are those of one column or condition.
    `values` are the rows without which SQL says NULL. `position` is 1-based in the question's text. `allowed` is the
    tolerance in the unit of S where it is settled already, `part_of` what the analyst wrote where this is a part of it.
    A ratio by a sum that may be 0 has that sum as `base`, until one is chosen that groups must reach: then S is shown
    as a part of it, `shown_by`. Where that sum may have `either_sign`, two are chosen. `off_each_unit` is taken off
    the sum for each privacy unit that has rows of `off_condition`, or if that is None rows of the parts. A ratio
    `by_units` has the number of such units as `base`. A mean that is compared with one over other rows has that as
    `against`, until bands of public thresholds take the place of both. With `cell_sums` S is their sum instead, and
    `parts` are none.
    """

    text: str
    left: str
    names: tuple[str, ...]
    measure: Measure
    parts: tuple[Part, ...]
    operator: str
    at: Fraction
    threshold: Fraction
    origin: Fraction
    per_row: Fraction | None
    values: tuple[Values, ...]
    slack: Slack
    position: int | None
    warnings: tuple[str, ...] = ()
    own: KeyNumbers | None = None
    allowed: Fraction | None = None
    part_of: str = ""
    over: Part | None = None
    base: tuple[Part, ...] = ()
    shown_by: Fraction = Fraction(1)
    by_units: bool = False
    off_each_unit: Fraction = Fraction(0)
    off_condition: Condition | None = None
    against: "OtherMean | None" = None
    either_sign: bool = False
    cell_sums: tuple["CellSum", ...] = ()

    @property
    def every_part(self) -> tuple[Part, ...]:
        """The parts of its own sum, and of the sums of groups that it is read off."""
        return (*self.parts, *(part for one in self.cell_sums for part in one.parts))


@dataclass(frozen=True, slots=True)
class CellSum:
    """A part of a comparison: `times` the sum of `parts` over the rows of `cells`, called `text`."""

    text: str
    measure: Measure
    parts: tuple[Part, ...]
    cells: KeyCells
    times: Fraction


@dataclass(frozen=True, slots=True)
class OtherMean:
    """The right side `factor * mean + constant` of a comparison of means; `mean` compares it with 0."""

    mean: Comparison
    factor: Fraction
    constant: Fraction


@dataclass(frozen=True, slots=True)
class Spread(_HavingTree):
    """A variance or standard deviation of `scale * column + shift` against a constant, in the analyst's unit.

    `sample` divides by one row less than there are, `root` says that the standard deviation is compared. Rows are those
    of `condition` among those of `where`. `argument` is what is taken the variance of, and `suffix` the FILTER, as an
    analyst would write them; `left` is the whole left side.
    """

    left: str
    names: tuple[str, ...]
    argument: str
    suffix: str
    column: Column
    scale: Fraction
    shift: Fraction
    condition: Condition
    where: Condition
    sample: bool
    root: bool
    operator: str
    threshold: Fraction
    position: int | None

    @property
    def text(self) -> str:
        """The comparison as an analyst would write it."""
        return f"{self.left} {self.operator} {convert_to_decimal(self.threshold)}"


@dataclass(frozen=True, slots=True)
class Every(_HavingTree):
    """A conjunction; with no children it is true."""

    children: tuple["Having", ...]


@dataclass(frozen=True, slots=True)
class Some(_HavingTree):
    """A disjunction; with no children it is false."""

    children: tuple["Having", ...]


@dataclass(frozen=True, slots=True)
class Outside(_HavingTree):
    """True exactly where `formula` is not true: where it is false, and where SQL says NULL, as EXCEPT has it."""

    formula: "Having"


Having: TypeAlias = Comparison | Spread | Every | Some | Outside
HOLDS = Every(())
FAILS = Some(())
