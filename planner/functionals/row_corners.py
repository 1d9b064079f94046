"""The amounts that one row can add to several functionals at once, at the corners of its possible values.

A row meets some of the conditions and has values in some of the columns, which leaves finitely many cases. In each case
a functional is an affine function of the columns' values, each within its range, or has squares as well. The absolute
value of `x^2 - c` is nowhere above the larger of `x^2 - c` and `c`, which is convex as well.

Guarantee: take a row that satisfies `among`. In absolute values, its amounts lie under a mixture of the corners: for
weights >= 0, their weighted sum is at most that of some corner. Cases that no row can be in are left out if that is
provable. Proof: docs/proofs/joint_loss.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from planner.catalog.catalog import Table
from planner.functionals.row_range import Range, find_sum_range, make_not_true_condition, may_be_nan
from planner.question.condition import ALWAYS, And, Condition, IsNull, Not
from planner.question.condition_text import write_canonical
from planner.question.disjoint import are_disjoint
from planner.question.question import Term
from planner.question.range_inference import narrow_range

MOST_CORNERS = 256  # every calibration looks at each; with more, the plain sum is charged: sound and dearer
_MOST_STEPS = 1024  # cases and corners looked at before giving up: both double with each condition and each column

_Value: TypeAlias = int | None  # of a column that is added up; None for a row without one


@dataclass(frozen=True, slots=True)
class RowCorner:
    """A corner of the amounts that a row can add to the functionals.

    `amounts` has the absolute amounts at the corner, by functional. `can_move` is True, by functional, if some row
    with values in the same columns, and under the same conditions, adds anything.
    """

    amounts: tuple[int, ...]
    can_move: tuple[bool, ...]


def list_row_corners(
    functionals: Sequence[Sequence[Term]], *, ranges: Mapping[str, Range], table: Table, among: Condition = ALWAYS
) -> tuple[RowCorner, ...] | None:
    """Return the corners of the amounts that a row can add, or None if there are too many cases to list.

    Parameters:
        ranges: in grid steps, of every column that a term adds up.
        table: the rows' table. It knows which columns may hold NaN.
    """
    conditions = {write_canonical(term.condition): term.condition for terms in functionals for term in terms}
    found: dict[RowCorner, None] = {}
    steps = 0
    for case in _list_cases(sorted(conditions.items()), among):
        steps += 1
        if steps > _MOST_STEPS:
            return None
        if case is None:
            continue
        counting = [
            [term for term in terms if write_canonical(term.condition) in case.true_texts] for terms in functionals
        ]
        names = tuple(dict.fromkeys(t.column for terms in counting for t in terms if t.column is not None))
        alike: dict[frozenset[str], list[tuple[int, ...]]] = {}
        for values in product(*(_list_ends(name, case, counting, ranges, table) for name in names)):
            steps += 1
            at = dict(zip(names, values, strict=True))
            box = {
                name: _narrow_range(name, case, ranges, table)
                for name in names
                if at[name] is not None and name in ranges
            }
            present = frozenset(name for name, value in at.items() if value is not None)
            alike.setdefault(present, []).append(tuple(_find_change(terms, at, box) for terms in counting))
            if steps > _MOST_STEPS:
                return None
        for corners in alike.values():
            moved = tuple(map(any, zip(*corners, strict=True)))
            found |= dict.fromkeys(RowCorner(added, moved) for added in corners)
        if len(found) > MOST_CORNERS:
            return None
    return tuple(corner for corner in found if any(corner.amounts))


@dataclass(frozen=True, slots=True)
class _Case:
    """Conditions that hold, by text, with all known conditions of a row in the case and the negated others."""

    true_texts: frozenset[str]
    true_conditions: tuple[Condition, ...]
    false_conditions: tuple[Condition, ...]

    def add_condition(self, text: str, condition: Condition) -> "_Case | None":
        """Return the case in which a further condition holds, or None if no row can be in it."""
        further = _Case(self.true_texts | {text}, (*self.true_conditions, condition), self.false_conditions)
        return further if self.admits(condition) else None

    def add_negation(self, condition: Condition) -> "_Case | None":
        """Return the case in which a further condition does not hold, or None if no row can be in it."""
        failed = make_not_true_condition(condition)
        if are_disjoint(And(self.true_conditions), failed):
            return None
        return _Case(self.true_texts, self.true_conditions, (*self.false_conditions, failed))

    def admits(self, condition: Condition) -> bool:
        """Return True if a row of the case may satisfy a condition, also if that is unknown."""
        known = And((*self.true_conditions, condition))
        return not are_disjoint(known, ALWAYS) and not any(are_disjoint(known, one) for one in self.false_conditions)


def _list_cases(conditions: Sequence[tuple[str, Condition]], among: Condition) -> Iterator[_Case | None]:
    """Yield the cases that a row may be in. A branch is cut off as soon as no row is left.

    None is yielded for each step on the way, so that the caller can count the steps.
    """

    def list_subcases(case: _Case | None, left: Sequence[tuple[str, Condition]]) -> Iterator[_Case | None]:
        if case is None:
            return
        if not left:
            yield case
            return
        yield None
        (text, condition), *others = left
        yield from list_subcases(case.add_condition(text, condition), others)
        yield from list_subcases(case.add_negation(condition), others)

    return list_subcases(_Case(frozenset(), (among,), ()), conditions)


def _list_ends(
    name: str, case: _Case, counting: Sequence[Sequence[Term]], ranges: Mapping[str, Range], table: Table
) -> list[_Value]:
    """Return the ends of a column's range if a row of the case may have a value, and None if it may have none."""
    ends: list[_Value] = []
    if case.admits(Not(IsNull(name))):
        added_up = any(term.power for terms in counting for term in terms if term.column == name)
        ends += dict.fromkeys(_narrow_range(name, case, ranges, table)) if added_up else [1]
    if may_be_nan(name, table) or case.admits(IsNull(name)):
        ends.append(None)
    return ends


def _evaluate_term(term: Term, at: Mapping[str, _Value]) -> int:
    if term.column is None:
        return term.coefficient
    value = at[term.column]
    return 0 if value is None else term.coefficient * value**term.power


def _narrow_range(name: str, case: _Case, ranges: Mapping[str, Range], table: Table) -> Range:
    return narrow_range(name, ranges[name], among=(*case.true_conditions, *case.false_conditions), table=table)


def _find_change(terms: Sequence[Term], at: Mapping[str, _Value], box: Mapping[str, Range]) -> int:
    """Return the absolute value of a functional at a corner.

    For a sum with squares it is the value of a convex function that is nowhere below the absolute value.
    """
    change = sum(_evaluate_term(term, at) for term in terms)
    signs = {term.coefficient > 0 for term in terms if term.power == 2 and term.column and at[term.column] is not None}
    if not signs:
        return abs(change)
    present = [term for term in terms if term.column is None or at[term.column] is not None]
    low, high = find_sum_range(present, box, frozenset(box))
    if signs == {True}:
        return max(change, -low)
    return max(-change, high) if signs == {False} else max(-low, high)
