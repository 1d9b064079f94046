"""A HAVING after parsing: comparisons of sums over rows with constants, joined by AND and OR."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias, TypeVar

from planner.aggregates.key_numbers import KeyNumbers
from planner.aggregates.row_expression import RequiredValues, SumPart
from planner.catalog.catalog import Column
from planner.question.condition import Condition
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.question import Measure
from planner.values.decimals import convert_to_decimal


class Slack(StrEnum):
    """The unit in which a tolerance of a comparison is measured."""

    THRESHOLD = "threshold"  # the analyst's unit; a percentage is one of the threshold
    ROWS = "rows"  # rows of a group; a percentage is one of a group of min_rows rows, as for percentiles
    RECORD = "record"  # rows, and only where the tolerance names the aggregate: it hinges on one record


_Folded = TypeVar("_Folded")


class _HavingTree:
    """The operations on every HAVING formula."""

    __slots__ = ()

    def map_comparisons(self, change: Callable[["Comparison | SpreadComparison"], "Having"]) -> "Having":
        """Return the formula with `change` applied to every comparison."""
        return self.fold(
            change,
            outside=Complement,
            every=lambda children: Conjunction(tuple(children)),
            some=lambda children: Disjunction(tuple(children)),
        )

    def list_comparisons(self) -> Iterator["Comparison | SpreadComparison"]:
        """Yield every comparison, in order of appearance, with repetitions."""
        match self:
            case Unknown():
                return
            case Complement(inner):
                yield from inner.list_comparisons()
            case Conjunction(children) | Disjunction(children):
                for child in children:
                    yield from child.list_comparisons()
            case _:
                assert isinstance(self, Comparison | SpreadComparison)
                yield self

    def fold(
        self,
        leaf: Callable[["Comparison | SpreadComparison"], _Folded],
        *,
        outside: Callable[[_Folded], _Folded],
        every: Callable[[Sequence[_Folded]], _Folded],
        some: Callable[[Sequence[_Folded]], _Folded],
    ) -> _Folded:
        """Fold the formula from the comparisons upward, and return the value of the whole. `Unknown` is false."""
        match self:
            case Unknown():
                return some([])
            case Complement(inner):
                return outside(inner.fold(leaf, outside=outside, every=every, some=some))
            case Conjunction(children):
                return every([child.fold(leaf, outside=outside, every=every, some=some) for child in children])
            case Disjunction(children):
                return some([child.fold(leaf, outside=outside, every=every, some=some) for child in children])
            case _:
                assert isinstance(self, Comparison | SpreadComparison)
                return leaf(self)


@dataclass(frozen=True, slots=True)
class Comparison(_HavingTree):
    """A comparison `S operator at`, where S sums `parts` over the rows of a group, in the analyst's unit.

    `left` is the left side as an analyst would write it, `text` the whole comparison. `threshold` is the value to which
    a percentage refers. With `key_thresholds`, each group has a threshold of its own until `at` and `threshold` are
    set. A mean or ratio is S divided by a sum that is at least `per_row` for each row that counts for it (None: no
    division), less `origin`. `divisor_rows` are these rows, if they are those of one column or condition.

    Without the rows of `values`, SQL says NULL. `position` is 1-based in the question's text. `fixed_tolerance` is the
    tolerance in the unit of S if it is already known. `part_of` is the analyst's comparison if this is a part of it.

    A ratio by a sum that may be 0 has that sum as `ratio_base` until a threshold for the sum is chosen, which groups
    must reach. S is then shown as a part of that sum, by `display_factor`. If the sum `has_either_sign`, two thresholds
    are chosen. `unit_deduction` is subtracted for each privacy unit that has rows of `deduction_condition`, or, if that
    is None, rows of the parts. A ratio that `divides_by_units` has the number of such units as `ratio_base`. A mean
    that is compared with a mean over other rows has that as `other_mean`. Bands of public thresholds replace both, if
    both are means of the group itself. With `cell_sums` S is their sum instead, and there are no `parts`. `base` is the
    literal beside it that decides its tolerance, as typed.
    """

    text: str
    left_text: str
    names: tuple[str, ...]
    measure: Measure
    parts: tuple[SumPart, ...]
    operator: str
    right_value: Fraction
    threshold: Fraction
    origin: Fraction
    per_row: Fraction | None
    values: tuple[RequiredValues, ...]
    slack: Slack
    position: int | None
    warnings: tuple[str, ...] = ()
    key_thresholds: KeyNumbers | None = None
    fixed_tolerance: Fraction | None = None
    whole_text: str = ""
    divisor_rows: SumPart | None = None
    ratio_base: tuple[SumPart, ...] = ()
    display_factor: Fraction = Fraction(1)
    divides_by_units: bool = False
    unit_deduction: Fraction = Fraction(0)
    deduction_condition: Condition | None = None
    other_mean: "OtherMean | None" = None
    has_either_sign: bool = False
    cell_sums: tuple["CellSum", ...] = ()
    base_text: str = ""

    @property
    def reads_other_groups(self) -> bool:
        """True if the comparison reads sums or means of groups other than the one it decides."""
        return bool(self.cell_sums) or (self.other_mean is not None and self.other_mean.reads_groups)

    @property
    def may_lack_groups(self) -> bool:
        """True if it is NULL for some groups because they lack a neighbour, or all groups are equal."""
        other = self.other_mean
        read = [one.cells for one in self.cell_sums] + ([other.own_cells, other.cells] if other is not None else [])
        return any(cells.may_have_no_value for cells in read)

    @property
    def every_part(self) -> tuple[SumPart, ...]:
        """The parts of its own sum, and of the sums of groups that it is read off."""
        return (*self.parts, *(part for one in self.cell_sums for part in one.parts))


def require_count(
    counted: str,
    least: int,
    *,
    measure: Measure,
    parts: tuple[SumPart, ...],
    tolerance: Fraction,
    position: int | None,
) -> Comparison:
    """Return the comparison that a count is at least a number, with a tolerance in the count's unit."""
    return Comparison(
        text=f"{counted} >= {least}",
        left_text=counted,
        names=("count",),
        measure=measure,
        parts=parts,
        operator=">=",
        right_value=Fraction(least),
        threshold=Fraction(least),
        origin=Fraction(0),
        per_row=None,
        values=(),
        slack=Slack.THRESHOLD,
        position=position,
        fixed_tolerance=tolerance,
    )


@dataclass(frozen=True, slots=True)
class CellSum:
    """A part of a comparison: `times` the sum of `parts` over the rows of `cells`, called `text`."""

    text: str
    measure: Measure
    parts: tuple[SumPart, ...]
    cells: KeyCells
    times: Fraction


@dataclass(frozen=True, slots=True)
class OtherMean:
    """The right side `factor * mean + constant` of a comparison of means. `mean` is its comparison with 0.

    `cells` are the groups whose rows it is the mean of, `groups` their number, `own_cells` those of the left side.
    `rows` are the numbers of rows that both means are sure to have, once counts beside the comparison demand them.
    """

    mean: Comparison
    factor: Fraction
    constant: Fraction
    own_cells: KeyCells = OWN_GROUP_ALONE
    cells: KeyCells = OWN_GROUP_ALONE
    own_groups: int = 1
    groups: int = 1
    least_rows: tuple[int, int] = (1, 1)

    @property
    def reads_groups(self) -> bool:
        """True if either side is a mean of other groups."""
        return (self.own_cells, self.cells) != (OWN_GROUP_ALONE, OWN_GROUP_ALONE)


@dataclass(frozen=True, slots=True)
class SpreadComparison(_HavingTree):
    """A comparison of the spread (variance or standard deviation) of `scale * column + shift` with a constant.

    It is in the analyst's unit. `is_sample` divides by one row less than there are; `is_deviation` compares the
    standard deviation. The rows satisfy `condition` and `where`. `argument` is the argument of the variance, and
    `suffix` the FILTER, as an analyst would write them; `left` is the whole left side.
    """

    left_text: str
    names: tuple[str, ...]
    argument: str
    suffix: str
    column: Column
    scale: Fraction
    shift: Fraction
    condition: Condition
    where: Condition
    is_sample: bool
    is_deviation: bool
    operator: str
    threshold: Fraction
    position: int | None

    @property
    def text(self) -> str:
        """The comparison as an analyst would write it."""
        return f"{self.left} {self.operator} {convert_to_decimal(self.threshold)}"


@dataclass(frozen=True, slots=True)
class Conjunction(_HavingTree):
    """A conjunction; with no children it is true."""

    children: tuple["Having", ...]


@dataclass(frozen=True, slots=True)
class Disjunction(_HavingTree):
    """A disjunction; with no children it is false."""

    children: tuple["Having", ...]


@dataclass(frozen=True, slots=True)
class Complement(_HavingTree):
    """The groups for which `formula` is not true, because it is false or NULL, as for EXCEPT."""

    formula: "Having"


@dataclass(frozen=True, slots=True)
class Unknown(_HavingTree):
    """A condition that is NULL for every group, such as a comparison with NULL. It occurs while a formula is read."""


Having: TypeAlias = Comparison | SpreadComparison | Conjunction | Disjunction | Complement | Unknown
HOLDS = Conjunction(())
FAILS = Disjunction(())
UNKNOWN = Unknown()


def replace_unknown(formula: Having, instead: Having) -> Having:
    """Return the formula, simplified, with HOLDS or FAILS in place of every condition that is NULL for all groups.

    Inside a complement they fail: it has the groups for which a formula is not true.
    """
    match formula:
        case Unknown():
            return instead
        case Complement(inner):
            return Complement(replace_unknown(inner, FAILS))
        case Conjunction(children):
            return join_children((replace_unknown(child, instead) for child in children), is_conjunction=True)
        case Disjunction(children):
            return join_children((replace_unknown(child, instead) for child in children), is_conjunction=False)
        case _:
            return formula


def contains_unknown(formula: Having) -> bool:
    """Return True if some condition in the formula is NULL for every group."""
    match formula:
        case Complement(inner):
            return contains_unknown(inner)
        case Conjunction(children) | Disjunction(children):
            return any(map(contains_unknown, children))
        case _:
            return isinstance(formula, Unknown)


def join_children(children: Iterable[Having], *, is_conjunction: bool) -> Having:
    """Join the children, flattened, without constants."""
    kind, other = (Conjunction, Disjunction) if is_conjunction else (Disjunction, Conjunction)
    kept: dict[Having, None] = {}
    for child in children:
        if child == other(()):
            return child
        for part in child.children if isinstance(child, kind) else (child,):
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else kind(tuple(kept))
