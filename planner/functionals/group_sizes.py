"""The group size for which a mean's tolerance is meant, if a count beside the mean says that groups are larger.

"Within t units for groups of at least m rows" gives the tested sum a tolerance of `t * m`, so a larger m makes a
question cheaper. Take `count(x) >= 500 AND avg(x) > 20`. A group with fewer rows than the count accepts with its
tolerance, 450 at 10 %, fails whatever its mean is. So m is 450 there, and nothing is given up.

Guarantee: let each mean's tolerance be meant for groups of `rows` rows. A group that passes the minimal formula with
all its sums relaxed then passes it with means within t of their thresholds, however few rows it has. So a group that
fails even with the tolerances in the analyst's own units is returned at most `fpr` of the time.

Proof: docs/proofs/group_sizes.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from planner.aggregates.aggregate import identify_sum
from planner.aggregates.comparison import Comparison, Complement, Conjunction, Disjunction, Having, SpreadComparison
from planner.aggregates.row_expression import RequiredValues, SumPart
from planner.catalog.catalog import SqlType, Table
from planner.catalog.tolerance import Tolerances
from planner.functionals.guards import implies
from planner.functionals.row_range import is_never_null
from planner.question.condition import Condition, join_all
from planner.question.question import Measure, Term

Leaf: TypeAlias = Comparison | SpreadComparison
_Counted: TypeAlias = tuple[object, ...]
_UPWARD = (">", ">=")


@dataclass(frozen=True, slots=True)
class GroupSize:
    """The group size `rows` for which a mean's tolerance is meant, and `guard`, the typed count that demands it."""

    rows: int
    guard: str


@dataclass(frozen=True, slots=True)
class _Floor:
    """A count of rows with a lower threshold, and the least number of rows if its relaxed literal holds."""

    part: SumPart
    counted: _Counted
    rows: int
    text: str


def find_group_sizes(
    formula: Having, *, table: Table, where: Condition, tolerances: Tolerances, min_rows: int
) -> Mapping[object, GroupSize]:
    """Return the group size that the formula's counts guarantee for each mean, ratio, percentile and variance.

    The result is by `identify_mean`.

    Parameters:
        formula: as typed, in negation normal form.
        table: its rows are counted.
        where: the condition that all rows satisfy.
        tolerances: the tolerances in force, by which counts are relaxed.
        min_rows: the setting. A tolerance may be a fraction of it.
    """
    if all(identify_mean(leaf) is None for leaf in formula.list_comparisons()):
        return {}
    counts = _Counts.from_formula(formula, tolerances, min_rows)
    found: dict[object, GroupSize | None] = {}
    for leaf, floors in _pair_with_floors(formula, counts, ()):
        mean = identify_mean(leaf)
        if mean is None:
            continue
        sizes = [
            GroupSize(one.rows, one.text)
            for one in floors
            if is_divisor_at_least(one.part, _find_divisor(leaf), table, where)
        ]
        size = max(sizes, key=lambda one: one.rows, default=None)
        before = found.get(mean, size)
        found[mean] = None if size is None or before is None else min(size, before, key=lambda one: one.rows)
    return {mean: size for mean, size in found.items() if size is not None}


def find_demanded_units(formula: Having, base: SumPart, tolerances: Tolerances, *, min_rows: int) -> int:
    """Return how many units a formula demands of every group by a count of them, reduced by its tolerance.

    Return 0 if it demands none.
    """
    units = (Measure.UNITS, *identify_sum((base,)))
    joined = formula.children if isinstance(formula, Conjunction) else (formula,)
    counts = [one for one in joined if isinstance(one, Comparison) and _identify_count(one) == units]
    found = [
        floor(one.right_value) + (one.operator == ">") - _find_slack(one, tolerances, min_rows)
        for one in counts
        if one.operator in _UPWARD
    ]
    return max(found, default=0)


def identify_mean(leaf: Leaf) -> object | None:
    """Return the identity of a comparison of a mean, ratio, percentile or variance, whatever its direction.

    Return None for other comparisons, whose tolerance does not depend on a group's size.
    """
    if isinstance(leaf, SpreadComparison):
        return leaf.left_text, leaf.threshold
    return identify_sum(leaf.summands) if leaf.per_row is not None else None


def _find_divisor(leaf: Leaf) -> SumPart | None:
    return (
        SumPart(Fraction(1), leaf.column, leaf.condition, 0)
        if isinstance(leaf, SpreadComparison)
        else leaf.divisor_rows
    )


def is_divisor_at_least(counted: SumPart, divisor: SumPart | None, table: Table, where: Condition) -> bool:
    """Return True if the divisor of a mean has at least as many rows as `counted` counts."""
    if divisor is None:
        return False
    wanted, known = divisor.column, counted.column
    if wanted is not None and wanted.sql_type is SqlType.DOUBLE and wanted != known:
        return False  # a row may hold NaN, which is counted elsewhere and adds nothing here
    always = wanted is None or is_never_null(wanted, table)
    values = RequiredValues(None if always or wanted is None else wanted.name, divisor.condition)
    return implies(Term(1, None if known is None else known.name, join_all((where, counted.condition)), 0), values)


@dataclass(slots=True)
class _Counts:
    """Every literal of a formula on a plain count.

    `relaxed_by_threshold` has the relaxed number of rows by threshold. `bounded_above` are the counts that also have
    an upper bound.
    """

    relaxed_by_threshold: dict[_Counted, dict[int, int]] = field(default_factory=dict)
    bounded_above: set[_Counted] = field(default_factory=set)

    @staticmethod
    def from_formula(formula: Having, tolerances: Tolerances, min_rows: int) -> "_Counts":
        made = _Counts()
        made._read(formula, tolerances, min_rows, outside=False)
        return made

    def _read(self, formula: Having, tolerances: Tolerances, min_rows: int, *, outside: bool) -> None:
        match formula:
            case Complement(inner):
                self._read(inner, tolerances, min_rows, outside=True)
            case Conjunction(children) | Disjunction(children):
                for child in children:
                    self._read(child, tolerances, min_rows, outside=outside)
            case Comparison() if (counted := _identify_count(formula)) is not None:
                if outside or formula.operator not in _UPWARD:
                    self.bounded_above.add(counted)
                known, slack = (
                    self.relaxed_by_threshold.setdefault(counted, {}),
                    _find_slack(formula, tolerances, min_rows),
                )
                for least in (
                    ceil(formula.right_value),
                    floor(formula.right_value) + 1,
                ):  # either may come of it, also by a complement
                    known[least] = min(known.get(least, least), least - slack)
            case _:
                pass

    def find_floor(self, leaf: Leaf, *, is_implied: bool) -> _Floor | None:
        """Return the lower bound on a count that a comparison guarantees, or None.

        Parameters:
            is_implied: True if the whole formula implies the comparison.
        """
        counted = _identify_count(leaf)
        if counted is None or not isinstance(leaf, Comparison) or leaf.operator not in _UPWARD:
            return None
        if counted in self.bounded_above and not is_implied:
            return None
        least = ceil(leaf.right_value) if leaf.operator == ">=" else floor(leaf.right_value) + 1
        rows = min(relaxed for number, relaxed in self.relaxed_by_threshold[counted].items() if number >= least)
        return _Floor(leaf.summands[0], counted, rows, leaf.text)


def _identify_count(leaf: Leaf) -> _Counted | None:
    """Return the identity of a plain count of rows, units or values. Return None for everything else."""
    if (
        isinstance(leaf, SpreadComparison)
        or leaf.key_thresholds is not None
        or leaf.per_row is not None
        or leaf.unit_deduction
    ):
        return None
    if len(leaf.summands) != 1 or leaf.summands[0].power or leaf.summands[0].coefficient != 1:
        return None
    alone = leaf.measure if leaf.measure in (Measure.UNITS, Measure.VALUES) else Measure.ROWS
    return (alone, *identify_sum(leaf.summands))


def _find_slack(comparison: Comparison, tolerances: Tolerances, min_rows: int) -> int:
    """Return the tolerance of a count in rows. A guard may have less, never more."""
    if comparison.fixed_tolerance is not None:
        return floor(comparison.fixed_tolerance)
    amount = tolerances.find_amount(comparison.names)
    if amount is None:
        return 0  # such a question is refused
    return floor(amount.compute_size(threshold=comparison.threshold, bounds=Fraction(min_rows)))


def _pair_with_floors(
    formula: Having, counts: _Counts, above: tuple[_Floor, ...], *, is_implied: bool = True
) -> Iterator[tuple[Leaf, tuple[_Floor, ...]]]:
    """Yield every comparison with the counts that are joined to it by AND."""
    match formula:
        case Conjunction(children):
            beside = tuple(_find_floors(children, counts, is_implied=is_implied))
            for child in children:
                yield from _pair_with_floors(child, counts, (*above, *beside), is_implied=is_implied)
        case Disjunction(children):
            for child in children:
                yield from _pair_with_floors(child, counts, above, is_implied=False)
        case Complement(inner):
            for leaf in inner.list_comparisons():
                yield leaf, ()
        case _:
            assert isinstance(formula, Comparison | SpreadComparison)
            yield formula, above


def _find_floors(children: tuple[Having, ...], counts: _Counts, *, is_implied: bool) -> Iterator[_Floor]:
    for child in children:
        if isinstance(child, Conjunction):
            yield from _find_floors(child.children, counts, is_implied=is_implied)
        elif isinstance(child, Comparison) and (found := counts.find_floor(child, is_implied=is_implied)) is not None:
            yield found
