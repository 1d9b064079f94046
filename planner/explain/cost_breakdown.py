"""The parts of a plan's epsilon, from public inputs alone.

They are the share of every functional, who is affected together, and the expected loss of groups.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.formula import Formula
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import Exposure, FunctionalTest, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import sum_rates
from mechanisms.threshold.one_shot import at_least
from mechanisms.threshold.three_zone import expected_rate
from planner.question.plan import Plan
from planner.question.question import Functional

DISTANCES = (1, 3, 10)  # in tolerances: where the contract begins, a usual distance, and far away
"""How many tolerances a group is short of its thresholds, for what it is expected to lose."""


@dataclass(frozen=True, slots=True)
class Together:
    """Functionals that one privacy unit can change at once in one key, in the plan's numbering, and what they cost.

    `parts` says for each by which part of its sensitivity.
    """

    functionals: tuple[int, ...]
    parts: tuple[Fraction, ...]
    epsilon: float


def sets_together(plan: Plan) -> tuple[Together, ...]:
    """Return the functionals that one unit can change at once, the most expensive first.

    The first one is the worst case.

    Where functionals are read off common sums it is all of them, for the loss of all sums together.
    """
    if plan.calibration.task.common is not None:
        used = tuple(index for index, test in enumerate(plan.calibration.tests) if test.rate)
        parts = (Fraction(1),) * len(used)
        return (Together(functionals=used, parts=parts, epsilon=plan.calibration.worst_case_epsilon),)
    tests = plan.calibration.tests
    found = []
    for exposure in plan.calibration.task.exposures:
        changed = tuple(index for index, part in enumerate(exposure) if part)
        parts = tuple(exposure[index] for index in changed)
        epsilon = sum(float(part) * tests[index].epsilon for part, index in zip(parts, changed, strict=True))
        found.append(Together(functionals=changed, parts=parts, epsilon=epsilon))
    return tuple(sorted(found, key=lambda group: (-group.epsilon, group.functionals, group.parts)))


def separate_sums(plan: Plan) -> float:
    """Return the sum of the functionals' costs one by one; a test for all of them together has its one loss."""
    if plan.calibration.whole_question:
        return plan.worst_case_epsilon
    if plan.calibration.task.common is not None:
        return sum(one.epsilon for one in common_noise(plan))
    return sum(test.epsilon for test in plan.calibration.tests)


def share_of_worst_case(plan: Plan, functional: int) -> float:
    """Return the part of one functional's loss in the worst case: 0 if the most expensive unit does not change it.

    The shares of all functionals sum to one, up to the rounding of the worst case. Where functionals are read off
    common sums it is the part of the first sum, no matter who else reads that, and the parts do not sum to one.
    """
    common = plan.calibration.task.common
    if common is not None:
        place = common.readings[functional][0][0]
        dearest_parts = max(common.exposures, key=lambda parts: _cost(plan, parts))
        return float(dearest_parts[place]) * common_noise(plan)[place].epsilon / plan.worst_case_epsilon
    dearest = sets_together(plan)[0]
    if functional not in dearest.functionals or dearest.epsilon == 0.0:
        return 0.0
    part = dearest.parts[dearest.functionals.index(functional)]
    return float(part) * plan.calibration.tests[functional].epsilon / dearest.epsilon


@dataclass(frozen=True, slots=True)
class CommonNoise:
    """A sum off which functionals are read.

    It has its terms, how far a unit moves it, its cost, and its readers, in the plan's numbering of functionals.
    """

    sum: Functional
    epsilon: float
    functionals: tuple[int, ...]


def common_noise(plan: Plan) -> tuple[CommonNoise, ...]:
    """Return the common sums of a plan, in the order in which they are computed.

    Return none if every functional has noise of its own.
    """
    common = plan.calibration.task.common
    if common is None:
        return ()
    rates = sum_rates(plan.calibration)
    return tuple(
        CommonNoise(
            sum=made,
            epsilon=at_least(rate * made.sensitivity),
            functionals=tuple(
                index
                for index, reading in enumerate(common.readings)
                if any(one == place and times for one, times in reading)
            ),
        )
        for place, (made, rate) in enumerate(zip(plan.question.common, rates, strict=True))
    )


def _cost(plan: Plan, parts: Exposure) -> float:
    noise = common_noise(plan)
    return sum(float(part) * one.epsilon for part, one in zip(parts, noise, strict=True))


def one_shot(plan: Plan) -> float | None:
    """Return the cost of the same contract with `keyhole`, where all groups cost the same.

    Return None if the plan is no progressive one, if it compares nothing, or if it cannot be met so.
    """
    if plan.calibration.mechanism != Progressive.name or not plan.question.functionals:
        return None
    try:
        return MECHANISMS[Keyhole.name].calibrate(plan.calibration.task).worst_case_epsilon
    except Unachievable:
        return None


def expected_loss(test: FunctionalTest, sensitivity: int, *, tolerances: int) -> float:
    """Return the mean loss through one functional of a group that is some tolerances short of a threshold.

    It is exact for a functional with one literal whose answer matters until the end; other literals of the formula may
    settle the group earlier, a second literal on the functional later. Distances count at least one integer step.
    """
    distance = -tolerances * max(test.tolerance, 1)
    steps = (distance - 1) // test.block + 1
    return expected_rate(test, steps) * (sensitivity if test.block == 1 else 1)


def expected_losses(plan: Plan) -> tuple[tuple[int, float], ...]:
    """Return the mean loss of a group that is so far from every threshold, for each of `DISTANCES`.

    It is empty without looks, and where thresholds are read off common sums.
    """
    calibration = plan.calibration
    early = any(test.looks for test in calibration.tests)
    if calibration.mechanism != Progressive.name or not early or calibration.task.common is not None:
        return ()
    return tuple(
        (
            tolerances,
            max(
                sum(
                    float(part)
                    * expected_loss(
                        calibration.tests[index], calibration.task.sensitivities[index], tolerances=tolerances
                    )
                    for index, part in enumerate(exposure)
                    if part
                )
                for exposure in calibration.task.exposures
            ),
        )
        for tolerances in DISTANCES
    )


def with_one_step(plan: Plan) -> float | None:
    """Return the cost of the question if every literal had a tolerance of at least one integer step.

    Return None if all have.
    """
    task = plan.calibration.task
    if all(cut.tolerance for cut in task.literals()):
        return None
    try:
        formula, *predicates = map(_with_one_step, task.formulas)
        wider = replace(task, formula=formula, predicates=tuple(predicates))
        return MECHANISMS[plan.calibration.mechanism].calibrate(wider).worst_case_epsilon
    except Unachievable:
        return None


def _with_one_step(formula: Formula) -> Formula:
    return formula.mapped(lambda literal: replace(literal, tolerance=max(1, literal.tolerance)))
