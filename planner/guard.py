"""Guards: SUM and AVG over no values are NULL in SQL, so a literal that an empty group would pass needs a count (M2).

A guard `COUNT(x) > 0` of our own would cost more than the rest of the question. So the analyst's own `COUNT(x) >= m`,
joined by AND, plays it: there the guard is implied. Its tolerance is capped at `m - 1`, or else the relaxed count
would be no guard.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mechanisms.formula import AllOf, AnyOf, Cut, Formula
from planner.aggregate import Values
from planner.condition import ALWAYS, canonical
from planner.errors import KeyholeError
from planner.question import Functional, Measure


@dataclass(frozen=True, slots=True)
class Guarded:
    """The literals of one comparison, and the rows that must exist for it not to be NULL (None: it never is)."""

    formula: Formula
    values: Values | None
    text: str
    position: int | None


@dataclass(frozen=True, slots=True)
class GuardedAll:
    """A conjunction."""

    children: tuple["GuardedFormula", ...]


@dataclass(frozen=True, slots=True)
class GuardedAny:
    """A disjunction."""

    children: tuple["GuardedFormula", ...]


GuardedFormula = Guarded | GuardedAll | GuardedAny


def holds_at_zero(formula: Formula) -> bool:
    """Whether the formula holds where every functional is zero, as in a group without rows."""
    match formula:
        case Cut(_, cut, above, _):
            return cut < 0 if above else cut >= 0
        case AllOf(children):
            return all(holds_at_zero(child) for child in children)
        case AnyOf(children):
            return any(holds_at_zero(child) for child in children)


def guarding(formula: GuardedFormula, functionals: Mapping[int, Functional]) -> frozenset[int]:
    """The counts that guard some literal. Raises KH206 where a literal needs a guard and has none."""
    return _guarding(formula, functionals, frozenset())


def _guarding(
    formula: GuardedFormula, functionals: Mapping[int, Functional], available: frozenset[int]
) -> frozenset[int]:
    match formula:
        case Guarded():
            if formula.values is None or not holds_at_zero(formula.formula):
                return frozenset()
            found = frozenset(index for index in available if _implies(functionals[index], formula.values))
            if not found:
                raise _unguarded(formula, formula.values)
            return found
        case GuardedAny(children):
            return frozenset().union(*(_guarding(child, functionals, available) for child in children))
        case GuardedAll(children):
            implied = [_implied(child, functionals) for child in children]
            used: frozenset[int] = frozenset()
            for index, child in enumerate(children):
                others = available.union(*implied[:index], *implied[index + 1 :])
                used |= _guarding(child, functionals, others)
            return used


def _implied(formula: GuardedFormula, functionals: Mapping[int, Functional]) -> frozenset[int]:
    """The counts that are at least one wherever the formula holds."""
    match formula:
        case Guarded(inner):
            return _counted(inner, functionals)
        case GuardedAll(children):
            return frozenset().union(*(_implied(child, functionals) for child in children))
        case GuardedAny(children):
            implied = [_implied(child, functionals) for child in children]
            return frozenset.intersection(*implied) if implied else frozenset()


def _counted(formula: Formula, functionals: Mapping[int, Functional]) -> frozenset[int]:
    match formula:
        case Cut(functional, cut, above, _):
            count = functionals[functional].measure is not Measure.TOTAL
            return frozenset((functional,)) if count and above and cut >= 0 else frozenset()
        case AllOf(children):
            return frozenset().union(*(_counted(child, functionals) for child in children))
        case AnyOf(children):
            counted = [_counted(child, functionals) for child in children]
            return frozenset.intersection(*counted) if counted else frozenset()


def _implies(count: Functional, values: Values) -> bool:
    """Whether a positive count means that the values exist."""
    column = values.column is None or (count.measure is Measure.ROWS and count.column == values.column)
    condition = values.condition == ALWAYS or canonical(values.condition) == canonical(count.condition)
    return values.exact and column and condition


def _unguarded(formula: Guarded, values: Values) -> KeyholeError:
    if not values.exact:
        hint = "Write the CASE without ELSE, or as sum(x) FILTER (WHERE ...), and add a count of the same rows."
    else:
        filter_ = "" if values.condition == ALWAYS else f" FILTER (WHERE {canonical(values.condition)})"
        hint = f"Add: AND count({values.column or '*'}){filter_} >= 10"
    return KeyholeError(
        "KH206",
        f"{formula.text} would hold for groups without values, where SQL says NULL",
        detail="A group without values must not qualify, and finding out whether it has some costs budget.",
        hint=hint,
        position=formula.position,
    )


def plain(formula: GuardedFormula, *, capped: frozenset[int]) -> Formula:
    """The formula of literals, the tolerances of guarding counts capped so that they stay guards."""
    match formula:
        case Guarded(inner):
            return _capped(inner, capped)
        case GuardedAll(children):
            return AllOf(tuple(plain(child, capped=capped) for child in children))
        case GuardedAny(children):
            return AnyOf(tuple(plain(child, capped=capped) for child in children))


def _capped(formula: Formula, capped: frozenset[int]) -> Formula:
    match formula:
        case Cut(functional, cut, True, tolerance) if functional in capped and 0 <= cut < tolerance:
            return replace(formula, tolerance=cut)
        case Cut():
            return formula
        case AllOf(children):
            return AllOf(tuple(_capped(child, capped) for child in children))
        case AnyOf(children):
            return AnyOf(tuple(_capped(child, capped) for child in children))
