"""Means and shares with several thresholds, all computed from one sum and one count whose noise they share.

`avg(x) > 10 OR avg(x) < 4` compares `sum(x) - 10 * count(x)` and `sum(x) - 4 * count(x)` with zero. Both follow from
`sum(x - 7)` and `count(x)`: subtract or add three times the count. Any number would do in the place of 7. In the middle
of the thresholds the count's noise is multiplied least.

Proof: docs/proofs/common_sums.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm
from typing import TypeAlias

from mechanisms.formula import list_literals
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import CommonSums
from planner.functionals.functional import LARGEST, make_bounded_sum
from planner.functionals.functional_identity import identify_functional
from planner.functionals.sensitivity import find_sensitivity_of_sums
from planner.question.condition_text import write_canonical
from planner.question.question import Functional, Measure, Question, Term, write_aggregate

MOST_TIMES = 2**20  # by which a count is multiplied: with as many rows as there may be it stays within an int64
_MOST_IN_THE_MIDDLE = 12  # thresholds, of which the count is taken off in their middle; of more, where it costs least
_TRIED = 8  # numbers to take off, among many thresholds of unequal tolerances

_Spelled: TypeAlias = tuple[tuple[int, str, str, int], ...]


@dataclass(frozen=True, slots=True)
class CommonSumPlan:
    """The sums from which a question's functionals are computed, and how, in the functionals' order."""

    sums: tuple[Functional, ...]
    common: CommonSums


@dataclass(frozen=True, slots=True)
class _Split:
    """A functional as `numerator_factor * numerator + count_factor * denominator`, in whole steps."""

    place: int
    numerator_factor: int
    count_factor: int
    numerator: tuple[Term, ...]
    denominator: Term | None


def find_common_sums(question: Question) -> CommonSumPlan | None:
    """Return common sums for a question with at least two thresholds of one mean or share.

    Return None for other questions.

    Guarantee: in exact integers every functional times its scale is the combination of sums that its reading says, in
    every key. This holds if units are bounded by rows or not at all. If each unit's totals are clipped, it holds for
    units with at most `rows_per_unit` rows. For other units, functional and combination move in the same direction.
    The sensitivities and exposures are those of the sums.

    Parameters:
        question: minimised, as in a plan.
    """
    simple = question.ranked is None and question.as_of is None and question.in_time is None
    own = question.accuracy.mechanism in (Keyhole.name, Progressive.name)
    if not (simple and own) or any(one.offsets is not None for one in question.functionals):
        return None
    groups = _group_functionals(question)
    if not groups:
        return None
    sums: list[Functional] = []
    readings: dict[int, tuple[tuple[int, int], ...]] = {}
    scales: dict[int, int] = {}
    for group in groups:
        made = _read_group(question, group)
        if made is None:
            return None
        total, counted, found = made
        first = _find_or_add_sum(sums, total)
        further = _find_or_add_sum(sums, counted)
        for split, (scale, times) in zip(group, found, strict=True):
            readings[split.place], scales[split.place] = ((first, 1), (further, times)), scale
    for place, functional in enumerate(question.functionals):
        if place not in readings:
            readings[place], scales[place] = ((_find_or_add_sum(sums, functional), 1),), 1
    known = tuple(sums)
    common = CommonSums(
        sensitivities=tuple(one.sensitivity for one in known),
        exposures=find_sensitivity_of_sums(question, known).find_exposures(),
        readings=tuple(readings[place] for place in range(len(readings))),
        scales=tuple(scales[place] for place in range(len(scales))),
    )
    return CommonSumPlan(sums=known, common=common)


def _find_or_add_sum(sums: list[Functional], wanted: Functional) -> int:
    """Return the index of a sum. Append the sum if it is new."""
    identity = identify_functional(wanted)
    for place, one in enumerate(sums):
        if identify_functional(one) == identity:
            return place
    sums.append(wanted)
    return len(sums) - 1


def _group_functionals(question: Question) -> list[list[_Split]]:
    """Return the functionals with one threshold each, grouped by numerator and denominator, at least two in a group."""
    thresholds: dict[int, set[int]] = {}
    for formula in question.formulas:
        for cut in list_literals(formula):
            thresholds.setdefault(cut.functional, set()).add(cut.cut)
    splits = [
        split
        for place, functional in enumerate(question.functionals)
        if len(thresholds.get(place, ())) == 1 and (split := _split_functional(place, functional)) is not None
    ]
    groups: dict[tuple[_Spelled, _Spelled], list[_Split]] = {}
    for split in splits:
        if split.denominator is not None:
            groups.setdefault((_spell_terms(split.numerator), _spell_terms((split.denominator,))), []).append(split)
    for split in splits:  # a mean against zero has no count, and goes with the others of its sum
        if split.denominator is None and question.functionals[split.place].unit_range is None:
            alike = [group for key, group in groups.items() if key[0] == _spell_terms(split.numerator)]
            if len(alike) == 1:
                alike[0].append(split)
    return [
        group
        for group in groups.values()
        if len({Fraction(one.count_factor, one.numerator_factor) for one in group}) > 1
    ]


def _spell_terms(terms: Sequence[Term]) -> _Spelled:
    return tuple(
        sorted((one.coefficient, one.column or "", write_canonical(one.condition), one.power) for one in terms)
    )


def _split_functional(place: int, functional: Functional) -> _Split | None:
    """Return a functional as a numerator minus a multiple of a count, or None if it has another form.

    The numerator of a mean is the sum of values. That of a share is the count of its part.
    """
    if functional.measure is not Measure.TOTAL or functional.off_each_unit:
        return None
    if any(one.power > 1 for one in functional.terms):
        return None
    added = [one for one in functional.terms if one.power]
    over = added or [one for one in functional.terms if one.coefficient > 0]
    rest = [one for one in functional.terms if one not in over]
    if not over or len(rest) > 1 or (not rest and not added):
        return None
    each = gcd(*(one.coefficient for one in over))
    numerator = tuple(Term(one.coefficient // each, one.column, one.condition, one.power) for one in over)
    if not rest:
        return _Split(place, each, 0, numerator, None)
    counted = Term(1, rest[0].column, rest[0].condition, 0)
    return _Split(place, each, rest[0].coefficient, numerator, counted)


def _read_group(
    question: Question, group: Sequence[_Split]
) -> tuple[Functional, Functional, list[tuple[int, int]]] | None:
    """Return a group's sum and count, and the scale and multiple of the count for each functional.

    Return None if numbers become too large.
    """
    counted = next(split.denominator for split in group if split.denominator is not None)
    each = lcm(*(split.numerator_factor for split in group))
    means = [Fraction(split.count_factor * each, split.numerator_factor) for split in group]
    scales = [each // split.numerator_factor for split in group]

    def make_numerator(middle: int) -> tuple[Term, ...]:
        over = (Term(each * one.coefficient, one.column, one.condition, one.power) for one in group[0].numerator)
        return (*over, *((Term(middle, counted.column, counted.condition, 0),) if middle else ()))

    def add_up(terms: tuple[Term, ...], measure: Measure, name: str, step: Decimal) -> Functional:
        return make_bounded_sum(terms, measure, name=name, table=question.table, where=question.where, step=step)

    first = question.functionals[group[0].place]
    step = first.unit_size / Decimal(scales[0])
    text = write_aggregate(first)
    count = add_up((counted,), Measure.ROWS, f"the count of {text}", Decimal(1))
    middle = round((min(means) + max(means)) / 2)
    if len(group) > _MOST_IN_THE_MIDDLE:
        allowed = {cut.functional: cut.tolerance + 1 for formula in question.formulas for cut in list_literals(formula)}
        fine = [scale * allowed[split.place] for scale, split in zip(scales, group, strict=True)]

        def estimate_price(chosen: int) -> float:
            summed = add_up(make_numerator(chosen), Measure.TOTAL, text, step).sensitivity / min(fine)
            distances = (abs(mean - chosen) / own for mean, own in zip(means, fine, strict=True))
            return summed + float(count.sensitivity * max(distances))

        edges = sorted({round(mean) for mean in means})
        middle = min((*edges[:: max(1, len(edges) // _TRIED)], middle), key=estimate_price)
    times = [scale * split.count_factor - middle for scale, split in zip(scales, group, strict=True)]
    terms = make_numerator(middle)
    if max(*map(abs, times), *scales, *(abs(one.coefficient) for one in terms)) > MOST_TIMES:
        return None
    less = f" less {(-middle * step).normalize():f} for each of its rows" if middle else ""
    total = add_up(terms, Measure.TOTAL, f"the sum of {text}{less}", step)
    if total.sensitivity > LARGEST:
        return None
    return total, count, list(zip(scales, times, strict=True))
