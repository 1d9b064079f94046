"""Guards: SUM and AVG over no values are NULL in SQL, so a literal that an empty group would pass needs a count (M2).

A guard `COUNT(x) > 0` of our own would cost more than the rest of the question. So the analyst's own `COUNT(x) >= m`,
joined by AND, plays it: there the guard is implied. Its tolerance is capped at `m - 1`, or else the relaxed count
would be no guard.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from mechanisms.formula import AllOf, AnyOf, Cut, Formula
from mechanisms.formula import complement as complement_of
from planner.condition import ALWAYS, And, IsNull, all_of, canonical, disjoint, spelled
from planner.errors import KeyholeError
from planner.question import Functional, Measure
from planner.row_expression import Values
from planner.row_range import Range, not_true


@dataclass(frozen=True, slots=True)
class Absence:
    """Values without which a comparison is NULL, and the range of what one row can add to its sum without them."""

    values: Values
    without: Range


@dataclass(frozen=True, slots=True)
class Guarded:
    """The literals of one comparison, and the values that must exist for it not to be NULL (none: it never is).

    It stands for "the literals hold and the values exist"; where it is `outside`, for "the literals hold or the values
    do not exist", which is the complement of the complementary literals.
    """

    formula: Formula
    values: tuple[Absence, ...]
    text: str
    position: int | None
    outside: bool = False


@dataclass(frozen=True, slots=True)
class GuardedAll:
    """A conjunction."""

    children: tuple["GuardedFormula", ...]


@dataclass(frozen=True, slots=True)
class GuardedAny:
    """A disjunction."""

    children: tuple["GuardedFormula", ...]


GuardedFormula = Guarded | GuardedAll | GuardedAny
Counts: TypeAlias = frozenset[tuple[int, int]]  # indices of functionals, each with a number of rows that it implies

_LEAST = (1, 2)


def holds_at_zero(formula: Formula, functionals: Mapping[int, Functional] | None = None) -> bool:
    """Whether the formula holds where every functional is zero, as in a group without rows.

    Where offsets are taken off `functionals`, whether every literal that it needs does so for some group.
    """
    known = functionals or {}
    match formula:
        case Cut(index, cut, above, _):
            return cut < 0 if above else cut + _largest(known.get(index)) >= 0
        case AllOf(children):
            return all(holds_at_zero(child, known) for child in children)
        case AnyOf(children):
            return any(holds_at_zero(child, known) for child in children)


def _largest(functional: Functional | None) -> int:
    """How far a group's own threshold may lie above the functional's cuts; the least lies at them."""
    return 0 if functional is None or functional.offsets is None else functional.offsets.largest


def _held(formula: Formula, row: Range, functionals: Mapping[int, Functional]) -> bool | None:
    """Whether literals on one functional hold in every group, however many rows add so much each.

    None if it depends on the rows, or on the group whose own threshold it is.
    """
    match formula:
        case Cut(index, cut, above, _):
            negative = cut + _largest(functionals[index]) < 0
            surely = row[0] == 0 and negative if above else row[1] == 0 and cut >= 0
            never = row[1] == 0 and cut >= 0 if above else row[0] == 0 and negative
            return True if surely else False if never else None
        case AllOf(children):
            held = [_held(child, row, functionals) for child in children]
            return False if False in held else None if None in held else True
        case AnyOf(children):
            held = [_held(child, row, functionals) for child in children]
            return True if True in held else None if None in held else False


def complement(formula: GuardedFormula) -> GuardedFormula:
    """The formula that is true exactly where this one is not.

    Guarantee: the formula of literals is true exactly where SQL's HAVING is true, NULL counting as not true, and its
    two-valued complement is De Morgan's: AND becomes OR, `S > c` becomes `S <= c`. A comparison is true where its
    literals hold and its values exist, so its complement is true where they do not hold or no values exist. In a group
    without values S is 0. If the complementary literals hold at 0, "or no values exist" adds nothing. If not, the
    comparison itself holds at 0 and needed a guard, whose complement stands beside this one, joined by OR: where it is
    false the values exist, and where it is true nothing depends on this one.
    """
    match formula:
        case Guarded():
            return replace(formula, formula=complement_of(formula.formula), outside=not formula.outside)
        case GuardedAll(children):
            return GuardedAny(tuple(complement(child) for child in children))
        case GuardedAny(children):
            return GuardedAll(tuple(complement(child) for child in children))


def guarding(formula: GuardedFormula, functionals: Mapping[int, Functional]) -> Counts:
    """The counts that guard some literal, and for how many. Raises KH206 where one needs a guard and has none."""
    return _guarding(formula, functionals, frozenset())


def _guarding(formula: GuardedFormula, functionals: Mapping[int, Functional], available: Counts) -> Counts:
    match formula:
        case Guarded():
            guards: Counts = frozenset()
            for absence in formula.values:
                if _held(formula.formula, absence.without, functionals) is formula.outside:
                    continue
                found = frozenset(
                    (index, least)
                    for index, least in available
                    if least == absence.values.least and _implies(functionals[index], absence.values)
                )
                if not found:
                    raise _unguarded(formula, absence.values)
                guards |= found
            return guards
        case GuardedAny(children) | GuardedAll(children):
            if isinstance(formula, GuardedAll):
                implied = [_implied(child, functionals) for child in children]
            else:  # a child matters only where the others fail
                implied = [_implied(complement(child), functionals) for child in children]
            used: Counts = frozenset()
            for index, child in enumerate(children):
                others = available.union(*implied[:index], *implied[index + 1 :])
                used |= _guarding(child, functionals, others)
            return used


def _implied(formula: GuardedFormula, functionals: Mapping[int, Functional]) -> Counts:
    """The counts that are at least one, and those that are at least two, wherever the formula holds."""
    match formula:
        case Guarded(inner):
            return frozenset() if formula.outside and formula.values else _counted(inner, functionals)
        case GuardedAll(children):
            return frozenset().union(*(_implied(child, functionals) for child in children))
        case GuardedAny(children):
            implied = [_implied(child, functionals) for child in children]
            return frozenset.intersection(*implied) if implied else frozenset()


def _counted(formula: Formula, functionals: Mapping[int, Functional]) -> Counts:
    match formula:
        case Cut(functional, cut, above, _):
            count = functionals[functional].measure is not Measure.TOTAL
            return frozenset((functional, n) for n in _LEAST if cut >= n - 1) if count and above else frozenset()
        case AllOf(children):
            return frozenset().union(*(_counted(child, functionals) for child in children))
        case AnyOf(children):
            counted = [_counted(child, functionals) for child in children]
            return frozenset.intersection(*counted) if counted else frozenset()


def _implies(count: Functional, values: Values) -> bool:
    """Whether as many rows of the count mean that as many of the values exist."""
    counted = count.terms[0]
    known = counted.condition
    if counted.column is not None:
        known = all_of((known, Values(counted.column, ALWAYS).rows))
    if values.column is not None and counted.column != values.column and not disjoint(known, IsNull(values.column)):
        return False
    return canonical(values.condition) == canonical(counted.condition) or disjoint(
        And((known,)), not_true(values.condition)
    )


def _unguarded(formula: Guarded, values: Values) -> KeyholeError:
    filter_ = "" if values.condition == ALWAYS else f" FILTER (WHERE {spelled(values.condition)})"
    without = "without values" if values.least == 1 else f"with fewer than {values.least} values"
    return KeyholeError(
        "KH206",
        f"{formula.text} would hold for groups {without}, where SQL says NULL",
        detail=f"A group {without} must not qualify, and finding out how many it has costs budget.",
        hint=f"Add: AND count({values.column or '*'}){filter_} >= 10",
        position=formula.position,
    )


def plain(formula: GuardedFormula, *, capped: Counts) -> Formula:
    """The formula of literals, the tolerances of guarding counts capped so that they stay guards."""
    match formula:
        case Guarded(inner):
            return _capped(inner, capped)
        case GuardedAll(children):
            return AllOf(tuple(plain(child, capped=capped) for child in children))
        case GuardedAny(children):
            return AnyOf(tuple(plain(child, capped=capped) for child in children))


def _capped(formula: Formula, capped: Counts) -> Formula:
    match formula:
        case Cut(functional, cut, True, tolerance):
            kept = [cut - least + 1 for known, least in capped if known == functional and cut >= least - 1]
            return replace(formula, tolerance=min([tolerance, *kept]))
        case Cut():
            return formula
        case AllOf(children):
            return AllOf(tuple(_capped(child, capped) for child in children))
        case AnyOf(children):
            return AnyOf(tuple(_capped(child, capped) for child in children))
