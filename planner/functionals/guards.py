"""Guards: counts that keep a group without values from passing a comparison which SQL makes NULL there.

SUM and AVG over no values are NULL in SQL. A guard `COUNT(x) > 0` of our own would cost more than the rest of the
question. So the analyst's own `COUNT(x) >= m`, joined by AND, is the guard, since it implies it. Its tolerance is
capped at `m - 1`, or else the relaxed count would be no guard. A literal that fails without the same values, even with
its tolerance, is a guard as it stands: `SUM(x) > 40000` beside `SUM(x) < 90000`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate
from operator import and_, or_
from typing import TypeAlias, TypeVar

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, relax_formula
from mechanisms.formula import negate_formula as complement_of
from planner.aggregates.comparison import Comparison, SpreadComparison
from planner.aggregates.row_expression import RequiredValues
from planner.errors import KeyholeError
from planner.functionals.guard_remedy import Remedy, find_only_column
from planner.functionals.row_range import Range, make_not_true_condition
from planner.question.condition import ALWAYS, And, Condition, IsNull, join_all
from planner.question.condition_text import write_canonical
from planner.question.disjoint import are_disjoint
from planner.question.question import Functional, Measure, Term


@dataclass(frozen=True, slots=True)
class Absence:
    """The case that a group has none of the `required_values` that a comparison reads, so the comparison is NULL.

    Each row of such a group adds to the comparison's sum an amount within `range_without`. `fails_beside` are other
    values that the comparison reads. If a group has some of them but none of `required_values`, the test fails anyway,
    so no guard is needed. `is_in_all_rows`: every row that satisfies the condition of `required_values` has such a
    value.
    """

    required_values: RequiredValues
    range_without: Range
    fails_beside: tuple[RequiredValues, ...] = ()
    is_in_all_rows: bool = False

    def is_implied(self, counted: Term, where: Condition) -> bool:
        """Return True if a count implies the values: a group with n counted rows has at least n values."""
        values = replace(self.required_values, column=None) if self.is_in_all_rows else self.required_values
        among = replace(counted, condition=join_all((where, counted.condition)))
        return implies(counted, values) or implies(among, values)


_Folded = TypeVar("_Folded")


class _GuardedTree:
    """The operations on every formula of guarded literals."""

    __slots__ = ()

    def walk_leaves(self) -> Iterator["Guarded"]:
        """Yield every comparison, in order of appearance."""
        match self:
            case GuardedAll(children) | GuardedAny(children):
                for child in children:
                    yield from child.walk_leaves()
            case _:
                assert isinstance(self, Guarded)
                yield self

    def map_leaves(self, leaf: Callable[["Guarded"], "GuardedFormula"]) -> "GuardedFormula":
        """Return the same tree with other comparisons."""
        return self.fold(
            leaf,
            every=lambda children: GuardedAll(tuple(children)),
            some=lambda children: GuardedAny(tuple(children)),
        )

    def fold(
        self,
        leaf: Callable[["Guarded"], _Folded],
        *,
        every: Callable[[Sequence[_Folded]], _Folded],
        some: Callable[[Sequence[_Folded]], _Folded],
    ) -> _Folded:
        """Fold the formula from the comparisons upward, and return the value of the whole."""
        match self:
            case GuardedAll(children):
                return every([child.fold(leaf, every=every, some=some) for child in children])
            case GuardedAny(children):
                return some([child.fold(leaf, every=every, some=some) for child in children])
            case _:
                assert isinstance(self, Guarded)
                return leaf(self)


@dataclass(frozen=True, slots=True)
class ComparisonPlace:
    """The comparison of the question from which literals were made: its text and its position."""

    text: str
    position: int | None

    @staticmethod
    def from_comparison(leaf: Comparison | SpreadComparison) -> "ComparisonPlace":
        """Return the text and position of the comparison, which all of its literals share."""
        return ComparisonPlace((leaf.whole_text if isinstance(leaf, Comparison) else "") or leaf.text, leaf.position)


@dataclass(frozen=True, slots=True)
class Guarded(_GuardedTree):
    """The literals of one comparison, and the values without which it is NULL (none: it is never NULL).

    The whole means "the literals hold and the values exist". With `is_complement` it means "the literals hold or the
    values do not exist", the complement of the complementary literals. `known_truth` is the truth of the literals if
    declared bounds decide it, else None. `source` is the analyst's comparison.
    """

    formula: Formula
    required_values: tuple[Absence, ...]
    text: str
    position: int | None
    is_complement: bool = False
    remedy: Remedy | None = None
    known_truth: Formula | None = None
    source: ComparisonPlace | None = None


@dataclass(frozen=True, slots=True)
class GuardedAll(_GuardedTree):
    """The conjunction of guarded formulas: it holds if all of its children hold."""

    children: tuple["GuardedFormula", ...]


@dataclass(frozen=True, slots=True)
class GuardedAny(_GuardedTree):
    """The disjunction of guarded formulas: it holds if any of its children holds."""

    children: tuple["GuardedFormula", ...]


GuardedFormula = Guarded | GuardedAll | GuardedAny
Counts: TypeAlias = frozenset[tuple[int, int]]  # pairs of a functional and the number of rows that it implies


@dataclass(frozen=True, slots=True)
class _Known:
    """The facts that hold wherever a formula holds: counts that are reached, and values that exist."""

    counts: Counts = frozenset()
    values: tuple[RequiredValues, ...] = ()

    def __or__(self, other: "_Known") -> "_Known":
        return _Known(self.counts | other.counts, (*self.values, *other.values))

    def __and__(self, other: "_Known") -> "_Known":
        return _Known(
            self.counts & other.counts,
            tuple(one for one in self.values if any(_are_same(one, second) for second in other.values)),
        )


_NOTHING = _Known()

_LEAST = (1, 2)  # values that an aggregate needs not to be NULL: one, of a sample's variance two


def holds_at_zero(formula: Formula, functionals: Mapping[int, Functional] | None = None) -> bool:
    """Return True if the formula holds when every functional is zero, as in a group without rows.

    If offsets are subtracted from `functionals`, return True if every literal that it needs holds for some group.
    """
    known = functionals or {}

    def at_zero(literal: Cut) -> bool:
        largest = _find_largest_offset(known.get(literal.functional))
        return literal.cut < 0 if literal.above else literal.cut + largest >= 0

    return formula.fold(at_zero, every=all, some=any)


def _find_largest_offset(functional: Functional | None) -> int:
    """Return the largest offset of a functional, or 0. A group's own threshold lies at most that far above the cuts."""
    return 0 if functional is None or functional.offsets is None else functional.offsets.largest


def _holds_everywhere(formula: Formula, row: Range, functionals: Mapping[int, Functional]) -> bool | None:
    """Return True if literals on one functional hold in every group, and False if in none, for rows in a range.

    Return None if it depends on the rows, or on the group's own threshold.
    """

    def decide_literal(literal: Cut) -> bool | None:
        negative = literal.cut + _find_largest_offset(functionals[literal.functional]) < 0
        surely = row[0] == 0 and negative if literal.above else row[1] == 0 and literal.cut >= 0
        never = row[1] == 0 and literal.cut >= 0 if literal.above else row[0] == 0 and negative
        return True if surely else False if never else None

    def every(found: Sequence[bool | None]) -> bool | None:
        return False if False in found else None if None in found else True

    def some(found: Sequence[bool | None]) -> bool | None:
        return True if True in found else None if None in found else False

    return formula.fold(decide_literal, every=every, some=some)


def complement(formula: GuardedFormula) -> GuardedFormula:
    """Return the complement of a guarded formula. It is true exactly where the formula is false or NULL.

    Guarantee: the formula of literals is true exactly where SQL's HAVING is true, with NULL counted as not true. Its
    two-valued complement is De Morgan's: AND becomes OR, `S > c` becomes `S <= c`. A comparison is true if its
    literals hold and its values exist. So its complement is true if the literals fail or no values exist. In a group
    without values S is 0. If the complementary literals hold at 0, "or no values exist" adds nothing. If they fail at
    0, the comparison itself holds at 0, so it has a guard. The complement of that guard is joined to this complement
    by OR. If the guard's complement is false, the values exist. If it is true, the disjunction is true.
    """

    def negate_leaf(guarded: Guarded) -> GuardedFormula:
        settled = None if guarded.known_truth is None else complement_of(guarded.known_truth)
        opposed = complement_of(guarded.formula)
        return replace(guarded, formula=opposed, is_complement=not guarded.is_complement, known_truth=settled)

    return formula.fold(
        negate_leaf,
        every=lambda children: GuardedAny(tuple(children)),
        some=lambda children: GuardedAll(tuple(children)),
    )


def find_guards(formula: GuardedFormula, functionals: Mapping[int, Functional], *, where: Condition = ALWAYS) -> Counts:
    """Return the counts that guard some literal, each with the number of rows that the count guarantees.

    Raises KH206 if a literal needs a guard and has none.

    Parameters:
        where: the condition of all rows that count.
    """
    missing: list[tuple[Guarded, RequiredValues]] = []
    found = _find_guards(formula, functionals, where, _NOTHING, missing)
    if missing:
        raise UnguardedError(tuple(missing))
    return found


def _find_guards(
    formula: GuardedFormula,
    functionals: Mapping[int, Functional],
    where: Condition,
    available: _Known,
    missing: list[tuple[Guarded, RequiredValues]],
) -> Counts:
    match formula:
        case Guarded():
            guards: Counts = frozenset()
            needless: list[RequiredValues] = []
            for absence in formula.required_values:
                if _holds_everywhere(formula.formula, absence.range_without, functionals) is formula.is_complement:
                    continue
                if any(one not in needless for one in absence.fails_beside) and not formula.is_complement:
                    needless.append(absence.required_values)
                    continue
                if any(_includes(known, absence.required_values) for known in available.values):
                    continue
                found = frozenset(
                    (index, least)
                    for index, least in available.counts
                    if least == absence.required_values.least_rows
                    and absence.is_implied(functionals[index].terms[0], where)
                )
                if not found:
                    missing.append((formula, absence.required_values))
                guards |= found
            return guards
        case GuardedAny(children) | GuardedAll(children):
            if isinstance(formula, GuardedAll):
                implied = [_find_implied_facts(child, functionals) for child in children]
            else:  # in an OR a child matters only where the others fail
                implied = [_find_implied_facts(complement(child), functionals) for child in children]
            used: Counts = frozenset()
            behind = list(accumulate(reversed(implied[1:]), lambda after, one: one | after, initial=_NOTHING))
            for child, own, after in zip(children, implied, reversed(behind), strict=False):
                used |= _find_guards(child, functionals, where, available | after, missing)
                available |= own
            return used


def _find_implied_facts(formula: GuardedFormula, functionals: Mapping[int, Functional]) -> _Known:
    """Return the facts that a formula implies: counts that are at least one or two, and values that exist."""

    def find_known(guarded: Guarded) -> _Known:
        if guarded.is_complement and guarded.required_values:
            return _NOTHING
        loosest = relax_formula(guarded.formula)
        needed = (
            absence
            for absence in guarded.required_values
            if _holds_everywhere(loosest, absence.range_without, functionals) is False
        )
        return _Known(_find_counts(guarded.formula, functionals), tuple(absence.required_values for absence in needed))

    def every(children: Sequence[_Known]) -> _Known:
        return reduce(or_, children, _NOTHING)

    def some(children: Sequence[_Known]) -> _Known:
        return reduce(and_, children) if children else _NOTHING

    return formula.fold(find_known, every=every, some=some)


def _are_same(one: RequiredValues, other: RequiredValues) -> bool:
    return (one.column, one.least_rows, write_canonical(one.condition)) == (
        other.column,
        other.least_rows,
        write_canonical(other.condition),
    )


def _includes(known: RequiredValues, values: RequiredValues) -> bool:
    """Return True if the values that are known to exist are among those that must exist."""
    if (known.column, known.least_rows) != (values.column, values.least_rows):
        return False
    return _are_same(known, values) or are_disjoint(And((known.rows,)), make_not_true_condition(values.condition))


def _find_counts(formula: Formula, functionals: Mapping[int, Functional]) -> Counts:

    def find_counts(literal: Cut) -> Counts:
        if not literal.above or functionals[literal.functional].measure in (Measure.TOTAL, Measure.UNIT_SUM):
            return frozenset()
        return frozenset((literal.functional, n) for n in _LEAST if literal.cut >= n - 1)

    return formula.fold(
        find_counts,
        every=lambda children: frozenset().union(*children),
        some=lambda children: frozenset.intersection(*children) if children else frozenset(),
    )


def implies(counted: Term, values: RequiredValues) -> bool:
    """Return True if a count implies the values: a group with n counted rows has at least n values."""
    known = counted.condition
    if counted.column is not None:
        known = join_all((known, RequiredValues(counted.column, ALWAYS).rows))
    if values.column is not None and counted.column != values.column and not are_disjoint(known, IsNull(values.column)):
        return False
    return write_canonical(values.condition) == write_canonical(counted.condition) or are_disjoint(
        And((known,)), make_not_true_condition(values.condition)
    )


class UnguardedError(KeyholeError):
    """KH206 for the first comparison that needs a guard.

    `missing` has all of them, each with the values that it needs.
    """

    def __init__(self, missing: tuple[tuple[Guarded, RequiredValues], ...]) -> None:
        self.missing = missing
        formula, values = missing[0]
        without = "without values" if values.least_rows == 1 else f"with fewer than {values.least_rows} values"
        super().__init__(
            "KH206",
            f"{formula.text} would hold for groups {without}, where SQL says NULL",
            detail=f"A group {without} must not qualify, and finding out how many it has costs budget.",
            hint=write_guard_hint(formula, values),
            position=formula.position,
        )


def write_guard_hint(formula: Guarded, values: RequiredValues) -> str:
    """Return the condition to add to the question, so that the values exist in every group that passes the formula."""
    column = find_only_column(values)
    alone = column if column and implies(Term(1, column, ALWAYS, 0), values) else None
    return (formula.remedy or Remedy()).write_hint(values, plain_column=alone)


def strip_guards(formula: GuardedFormula, *, capped: Counts) -> Formula:
    """Return the formula of literals without the guards' annotations.

    Tolerances of guarding counts are limited so that the counts remain guards.
    """
    return formula.fold(
        lambda guarded: _cap_counts(guarded.formula, capped),
        every=lambda children: AllOf(tuple(children)),
        some=lambda children: AnyOf(tuple(children)),
    )


def _cap_counts(formula: Formula, capped: Counts) -> Formula:
    def cap(literal: Cut) -> Cut:
        if not literal.above:
            return literal
        kept = [
            literal.cut - least + 1
            for known, least in capped
            if known == literal.functional and literal.cut >= least - 1
        ]
        return replace(literal, tolerance=min([literal.tolerance, *kept])) if kept else literal

    return formula.map_literals(cap)
