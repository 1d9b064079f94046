"""A HAVING after parsing: comparisons of sums over rows with constants, joined by AND and OR."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias, TypeVar

from mechanisms.protocol import Quantile
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
    """A comparison `S operator right_value`, in the analyst's unit.

    S is the sum of `summands` over the rows of a group. - `text`, `left_text`: the comparison and its left side, as an
    analyst would write them. `whole_text`: the analyst's
      comparison if this one is a part of it. `position` is 1-based in the question's text.
    - `threshold`: the value to which a tolerance in percent refers. `fixed_tolerance`: the tolerance in the unit of S,
      if it is known. `base_text`: the comparison beside this one that decides its tolerance, as typed.
    - `key_thresholds`: each group's own threshold, until `right_value` and `threshold` are set.
    - `per_row`, `origin`: a mean or ratio is S divided by a sum, less `origin`. That sum is at least `per_row` for each
      row that it counts. None means no division. `divisor_rows` are these rows, if one column or condition defines
      them.
    - `required_values`: the comparison is NULL in groups without rows of these.
    - `ratio_base`: the divisor of a ratio that may be 0. A threshold is chosen for it, which groups must reach; two if
      it `has_either_sign`. S is then shown as a part of that sum, by `display_factor`. A ratio that `divides_by_units`
      has the number of these units as `ratio_base`.
    - `unit_deduction`: the number subtracted for each privacy unit that has rows of `deduction_condition`. If that is
      None, for each that has rows of the parts.
    - `other_mean`: the right side, if means over different rows are compared. If both are means of the group itself,
      bands of public thresholds replace the comparison later.
    - `cell_sums`: sums of other groups. If there are any, S is their sum, and there are no `summands`.
    """

    text: str
    left_text: str
    names: tuple[str, ...]
    measure: Measure
    summands: tuple[SumPart, ...]
    operator: str
    right_value: Fraction
    threshold: Fraction
    origin: Fraction
    per_row: Fraction | None
    required_values: tuple[RequiredValues, ...]
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
        """True if the comparison reads sums or means of groups other than its own group."""
        return bool(self.cell_sums) or (self.other_mean is not None and self.other_mean.reads_groups)

    @property
    def compares_ratios(self) -> bool:
        """True if the comparison is of ratios of sums, not of means of rows, and one ratio is of other groups."""
        return self.other_mean is not None and self.divisor_rows is not None and self.divisor_rows.power > 0

    @property
    def reads_no_sum(self) -> bool:
        """True if the comparison reads no sum, and depends only on which other groups exist."""
        return bool(self.cell_sums) and not any(one.factor for one in self.cell_sums)

    @property
    def may_lack_groups(self) -> bool:
        """True if the comparison is NULL for some groups: another group does not exist, or all groups are equal."""
        other = self.other_mean
        read = [one.cells for one in self.cell_sums] + ([other.own_cells, other.cells] if other is not None else [])
        return any(cells.may_have_no_value for cells in read)

    @property
    def every_part(self) -> tuple[SumPart, ...]:
        """The parts of the comparison's own sum, and of the sums of other groups that it reads."""
        return (*self.summands, *(part for one in self.cell_sums for part in one.summands))


def require_count(
    counted: str,
    least: int,
    *,
    measure: Measure,
    parts: tuple[SumPart, ...],
    tolerance: Fraction,
    position: int | None,
) -> Comparison:
    """Return the comparison `count >= least`, with a tolerance in the count's unit."""
    return Comparison(
        text=f"{counted} >= {least}",
        left_text=counted,
        names=("count",),
        measure=measure,
        summands=parts,
        operator=">=",
        right_value=Fraction(least),
        threshold=Fraction(least),
        origin=Fraction(0),
        per_row=None,
        required_values=(),
        slack=Slack.THRESHOLD,
        position=position,
        fixed_tolerance=tolerance,
    )


@dataclass(frozen=True, slots=True)
class CellSum:
    """A summand of a comparison: `factor` times the sum of `summands` over the rows of the groups `cells`.

    `text` is its name.
    """

    text: str
    measure: Measure
    summands: tuple[SumPart, ...]
    cells: KeyCells
    factor: Fraction


@dataclass(frozen=True, slots=True)
class OtherMean:
    """The right side `factor * mean + constant` of a comparison of means. `mean` is that mean's comparison with 0.

    `deviation_factor` times the standard deviation of the mean's rows is added, of a sample if it `is_sample`. A
    deviation below `least_deviation` counts as that. With a `quantile` of these rows, `quantile_factor` times that is
    read instead of the mean. Its rank may err by `rank_slack`, a share of the rows.

    `cells` are the groups over whose rows the mean is computed, and `groups` is their number. `own_cells` and
    `own_groups` are those of the left side. `least_rows` are the least numbers of rows of both means, which counts
    beside the comparison demand. For ratios of sums they are sums of the divisor. `reach` is then the farthest from 0
    that the other ratio can be.
    """

    mean: Comparison
    factor: Fraction
    constant: Fraction
    own_cells: KeyCells = OWN_GROUP_ALONE
    cells: KeyCells = OWN_GROUP_ALONE
    own_groups: int = 1
    groups: int = 1
    least_rows: tuple[int, int] = (1, 1)
    deviation_factor: Fraction = Fraction(0)
    is_sample: bool = False
    least_deviation: Fraction = Fraction(0)
    reach: Fraction = Fraction(0)
    quantile: Quantile | None = None
    quantile_factor: Fraction = Fraction(0)
    rank_slack: Fraction = Fraction(0)

    @property
    def reads_groups(self) -> bool:
        """True if either side of the comparison is a mean over other groups."""
        return (self.own_cells, self.cells) != (OWN_GROUP_ALONE, OWN_GROUP_ALONE)


@dataclass(frozen=True, slots=True)
class SpreadComparison(_HavingTree):
    """A comparison of the spread (variance or standard deviation) of `scale * column + shift` with a constant.

    `threshold` is in the analyst's unit. If it `is_sample`, the squares are divided by the number of rows less one. If
    it `is_deviation`, the standard deviation is compared. The rows satisfy `condition` and `where`. `argument` is the
    argument of the variance, and `suffix` the FILTER, as an analyst would write them; `left_text` is the whole left
    side.
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
        return f"{self.left_text} {self.operator} {convert_to_decimal(self.threshold)}"


@dataclass(frozen=True, slots=True)
class Conjunction(_HavingTree):
    """A conjunction of formulas. Without children it is true."""

    children: tuple["Having", ...]


@dataclass(frozen=True, slots=True)
class Disjunction(_HavingTree):
    """A disjunction of formulas. Without children it is false."""

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

    Inside a `Complement` these conditions are replaced by FAILS.
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
    """Return the conjunction or disjunction of the children.

    Nested ones are flattened, and constants are simplified.
    """
    kind, other = (Conjunction, Disjunction) if is_conjunction else (Disjunction, Conjunction)
    kept: dict[Having, None] = {}
    for child in children:
        if child == other(()):
            return child
        for part in child.children if isinstance(child, kind) else (child,):
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else kind(tuple(kept))
