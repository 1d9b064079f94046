"""The questions that are audited, and the neighbouring databases on which they may reveal most.

The claimed loss must be small enough for the draws to refute it. So the tolerances of a question are widened until the
mechanism claims little enough.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import TypeAlias

import numpy as np

from mechanisms.formula import AllOf, AnyOf, Booleans, Cut, Formula, evaluate_formula
from mechanisms.protocol import Calibration, CommonSums, DecisionTask, Exposure, Mechanism
from mechanisms.published.probe import PHASES_RESERVED
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""From just true to just false beyond the tolerance: all may reveal most."""

FAR_DEPTHS = (-0.2, *DEPTHS, 1.2)
"""For mechanisms whose loss may be largest beyond the tolerance."""

MIDDLE = (0.5,)
"""For mechanisms that are slow to draw."""

_ROWS = 400  # of a group whose thresholds are read off common sums: they are far from each other then
_MOST_WIDENINGS = 8  # an end to the search; losses fall about as tolerances grow, so two or three suffice

Values: TypeAlias = tuple[int, ...]


def make_audit_tasks() -> dict[str, DecisionTask]:
    """Return the questions that audits ask, by name.

    Their tolerances are small, which makes their losses large enough to measure.
    """
    first = Cut(functional=0, cut=20, above=True, tolerance=4)
    second = Cut(functional=1, cut=30, above=False, tolerance=4)
    together, apart = expose_all_functionals(2), expose_functional_sets(((0,), (1,)), functionals=2)
    sums = tuple(Cut(functional=f, cut=40, above=True, tolerance=8) for f in range(3))
    whole, half, nothing = Fraction(1), Fraction(1, 2), Fraction(0)
    parts: tuple[Exposure, ...] = ((whole, half, nothing), (half, whole, nothing), (nothing, nothing, whole))

    def task(
        formula: Formula,
        sensitivities: tuple[int, ...],
        exposures: tuple[Exposure, ...],
        blocks: frozenset[int] | None = None,
        predicates: tuple[Formula, ...] = (),
        common: CommonSums | None = None,
    ) -> DecisionTask:
        return DecisionTask(
            formula=formula,
            sensitivities=sensitivities,
            exposures=exposures,
            fnr=0.05,
            fpr=0.1,
            blocks=blocks,
            most_positives=1,
            predicates=predicates,
            common=common,
        )

    means = CommonSums(
        sensitivities=(2, 1),
        exposures=together,
        readings=(((0, 1), (1, -2)), ((0, 1), (1, 2))),
        scales=(1, 1),
    )
    outside = AnyOf(
        (Cut(functional=0, cut=0, above=True, tolerance=8), Cut(functional=1, cut=-1, above=False, tolerance=8))
    )
    low, high = (Cut(functional=1, cut=cut, above=True, tolerance=4) for cut in (30, 33))
    larger = Cut(functional=0, cut=24, above=True, tolerance=4)
    return {
        "one condition": task(first, (1,), expose_all_functionals(1)),
        "coarse units": task(first, (3,), expose_all_functionals(1)),
        "both of two": task(AllOf((first, second)), (1, 1), together),
        "either of two apart": task(AnyOf((first, second)), (1, 1), apart),
        "parts of sums": task(AllOf(sums), (4, 4, 4), parts, blocks=frozenset()),
        "scorecard": task(first, (1, 1), together, predicates=(low, high, AnyOf((larger, high)))),
        "two sides of a mean": task(outside, (4, 4), together, blocks=frozenset(), common=means),
    }


def widen_tolerances(mechanism: Mechanism, task: DecisionTask, *, most_epsilon: float) -> DecisionTask:
    """Return the task with all tolerances multiplied by one whole number.

    The number is large enough for the claimed loss of an answer to be `most_epsilon` at most. The search ends after a
    few tries, so the loss may stay slightly above that. No private data is read.

    Raises:
        Unachievable: the mechanism cannot calibrate the task.
    """
    times, widened = 1, task
    for _ in range(_MOST_WIDENINGS):
        claimed = _price_answer(mechanism.calibrate(widened))
        if claimed <= most_epsilon:
            break
        times = max(times + 1, math.floor(times * claimed / most_epsilon))
        widened = _change_literals(task, partial(_widen_tolerance, times=times))
    return widened


def _widen_tolerance(literal: Cut, times: int) -> Cut:
    return replace(literal, tolerance=literal.tolerance * times)


def _change_literals(task: DecisionTask, change: Callable[[Cut], Cut]) -> DecisionTask:
    """Return the task with every literal of every formula changed."""
    formula, *predicates = (formula.map_literals(change) for formula in task.formulas)
    return replace(task, formula=formula, predicates=tuple(predicates))


def _price_answer(calibration: Calibration) -> float:
    """Return the worst case of an answer, or of one phase if several phases are reserved."""
    phases = PHASES_RESERVED if calibration.deniable else 1
    return calibration.worst_case_epsilon / phases


def sharpen_task(task: DecisionTask) -> DecisionTask:
    """Return the task with all thresholds raised by one, and half of the tolerances."""

    def sharpen(literal: Cut) -> Cut:
        return replace(literal, cut=literal.cut + 1, tolerance=literal.tolerance // 2)

    return _change_literals(task, sharpen)


def list_critical_neighbours(
    task: DecisionTask, *, depths: Sequence[float] = DEPTHS, leaves_out_ends: bool = False
) -> Iterator[tuple[Values, Values]]:
    """Yield one key's values near every threshold, and the same values after a maximal change by one privacy unit.

    All literals are at the same depth of their bands, from just true (0) to just false beyond the tolerance (1), at
    each of `depths`. They move together, inward or outward, each by its part of an exposure. If a functional has
    several literals, each is used in turn. With several exposures, the functionals that an exposure does not move are
    at either end of their bands, so that an AND or an OR depends on the others. `leaves_out_ends` skips the ends at
    which it does not depend on the others, and only moves inward. Answers that become rarer reveal more from the same
    number of draws.

    For functionals that are read off common sums, the values are those of the sums. One literal after the other is in
    its band, and the unit moves every sum by its sensitivity, in either direction.
    """
    if task.common is not None:
        yield from _list_neighbours_on_sums(task, task.common, depths)
        return
    functionals = range(len(task.sensitivities))

    def find_inward_step(literal: Cut | None) -> int:
        return (1 if literal.above else -1) if literal else 0

    seen = set()
    for exposure, bands, depth, depth_of_others in product(task.exposures, _list_bands(task), depths, (0.0, 1.0)):
        together = {functional for functional in functionals if exposure[functional]}
        if leaves_out_ends and not _depends_on_functionals(
            task.formula, together, are_others_true=depth_of_others == 0.0
        ):
            continue
        values = _make_values(bands, [depth if f in together else depth_of_others for f in functionals])
        for side in (-1,) if leaves_out_ends else (1, -1):
            step = [
                side * find_inward_step(bands.get(f)) * int(task.sensitivities[f] * exposure[f]) for f in functionals
            ]
            moved = tuple(value + by for value, by in zip(values, step, strict=True))
            if moved != values and frozenset((values, moved)) not in seen:
                seen.add(frozenset((values, moved)))
                yield values, moved


def _list_neighbours_on_sums(
    task: DecisionTask, common: CommonSums, depths: Sequence[float]
) -> Iterator[tuple[Values, Values]]:
    places = range(len(common.sensitivities))
    for literal, depth, exposure in product(dict.fromkeys(task.list_literals()), depths, common.exposures):
        values = [_ROWS] * len(common.sensitivities)
        (first, _), *others = common.readings[literal.functional]
        (wanted,) = _make_values({0: literal}, [depth])
        read = sum(times * values[place] for place, times in others)
        values[first] = common.scales[literal.functional] * wanted - read
        for signs in product((1, -1), repeat=len(places) - 1):
            step = [
                sign * int(exposure[place] * common.sensitivities[place])
                for place, sign in zip(places, (1, *signs), strict=True)
            ]
            yield tuple(values), tuple(value + by for value, by in zip(values, step, strict=True))


def make_values_at_depths(task: DecisionTask, depths: Sequence[float]) -> Values:
    """Return one key's values, each at a depth of its functional's band.

    Depth 0 is just true, and depth 1 just false beyond the tolerance. Functionals that no formula mentions are 0. Of
    several literals on one functional the last one counts.
    """
    return _make_values(_list_bands(task)[-1], depths)


def _list_bands(task: DecisionTask) -> list[dict[int, Cut]]:
    """Return dictionaries that map each functional to one of its literals.

    The first dictionary has the first literals, the second one the second literals, and so on. Functionals without a
    literal are left out.
    """
    own: dict[int, list[Cut]] = {}
    for literal in dict.fromkeys(task.list_literals()):
        own.setdefault(literal.functional, []).append(literal)
    most = max(map(len, own.values()), default=1)
    return [{f: literals[min(turn, len(literals) - 1)] for f, literals in own.items()} for turn in range(most)]


def _make_values(bands: Mapping[int, Cut], depths: Sequence[float]) -> Values:
    def place_value(functional: int, depth: float) -> int:
        cut = bands.get(functional)
        if cut is None:
            return 0
        distance = 1 - round(depth * (cut.tolerance + 1))
        return cut.cut + distance if cut.above else cut.cut + 1 - distance

    return tuple(place_value(functional, depth) for functional, depth in enumerate(depths))


def _depends_on_functionals(formula: Formula, functionals: set[int], *, are_others_true: bool) -> bool:
    """Return True if the literals of `functionals` decide the formula, while all others are true, or all false."""

    def test_literal(cut: Cut) -> Booleans:
        return np.array([True, False] if cut.functional in functionals else [are_others_true] * 2)

    true, false = evaluate_formula(formula, test_literal, keys=2)
    return bool(true != false)
