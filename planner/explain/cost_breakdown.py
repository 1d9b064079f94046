"""The parts of a plan's epsilon, from public inputs alone.

They are the share of each functional, the functionals that one unit affects together, and the expected loss of groups.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from mechanisms.formula import Formula
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import Exposure, FunctionalTest, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import list_sum_rates
from mechanisms.threshold.one_shot import round_up_to_float
from mechanisms.threshold.three_zone import compute_expected_rate
from planner.question.plan import Plan
from planner.question.question import Functional

DISTANCES = (1, 3, 10)  # in tolerances: where the contract begins, a usual distance, and far away
"""How many tolerances a group is short of its thresholds, for what it is expected to lose."""


@dataclass(frozen=True, slots=True)
class JointCost:
    """The joint cost of functionals that one privacy unit can change at once in one key.

    `functionals` have the plan's numbers. `parts` has for each the part of its sensitivity by which the unit changes
    it.
    """

    functionals: tuple[int, ...]
    parts: tuple[Fraction, ...]
    epsilon: float


def list_joint_costs(plan: Plan) -> tuple[JointCost, ...]:
    """Return the sets of functionals that one unit can change at once, the most expensive set first.

    The first set is the worst case. If functionals are computed from common sums, there is one set of all functionals,
    with the loss of all sums together.
    """
    if plan.calibration.task.common is not None:
        used = tuple(index for index, test in enumerate(plan.calibration.tests) if test.rate)
        parts = (Fraction(1),) * len(used)
        return (JointCost(functionals=used, parts=parts, epsilon=plan.calibration.worst_case_epsilon),)
    tests = plan.calibration.tests
    found = []
    for exposure in plan.calibration.task.exposures:
        changed = tuple(index for index, part in enumerate(exposure) if part)
        parts = tuple(exposure[index] for index in changed)
        epsilon = sum(float(part) * tests[index].epsilon for part, index in zip(parts, changed, strict=True))
        found.append(JointCost(functionals=changed, parts=parts, epsilon=epsilon))
    return tuple(sorted(found, key=lambda group: (-group.epsilon, group.functionals, group.parts)))


def sum_separate_costs(plan: Plan) -> float:
    """Return the sum of the costs of the functionals, each by itself.

    If one test decides all of them, return its loss.
    """
    if plan.calibration.whole_question:
        return plan.worst_case_epsilon
    if plan.calibration.task.common is not None:
        return sum(one.epsilon for one in list_common_sums(plan))
    return sum(test.epsilon for test in plan.calibration.tests)


def compute_worst_case_share(plan: Plan, functional: int) -> float:
    """Return one functional's share of the worst-case loss: 0 if the most expensive unit does not change it.

    The shares of all functionals sum to one, up to the rounding of the worst case. If functionals are read off common
    sums, it is the share of the functional's first sum, whoever else reads that sum, and the shares do not sum to one.
    """
    common = plan.calibration.task.common
    if not plan.worst_case_epsilon:
        return 0.0  # of readings that cancel out
    if common is not None:
        place = common.readings[functional][0][0]
        dearest_parts = max(common.exposures, key=lambda parts: _compute_cost(plan, parts))
        return float(dearest_parts[place]) * list_common_sums(plan)[place].epsilon / plan.worst_case_epsilon
    dearest = list_joint_costs(plan)[0]
    if functional not in dearest.functionals or dearest.epsilon == 0.0:
        return 0.0
    part = dearest.parts[dearest.functionals.index(functional)]
    return float(part) * plan.calibration.tests[functional].epsilon / dearest.epsilon


@dataclass(frozen=True, slots=True)
class CommonSumCost:
    """A common sum from which functionals are computed.

    `sum` has its terms and its sensitivity. `epsilon` is its cost. `functionals` are the numbers, in the plan, of the
    functionals that read it.
    """

    sum: Functional
    epsilon: float
    functionals: tuple[int, ...]


def list_common_sums(plan: Plan) -> tuple[CommonSumCost, ...]:
    """Return the common sums of a plan, in the order in which they are computed.

    Return none if every functional has noise of its own.
    """
    common = plan.calibration.task.common
    if common is None:
        return ()
    rates = list_sum_rates(plan.calibration)
    return tuple(
        CommonSumCost(
            sum=made,
            epsilon=round_up_to_float(rate * made.sensitivity),
            functionals=tuple(
                index
                for index, reading in enumerate(common.readings)
                if any(one == place and times for one, times in reading)
            ),
        )
        for place, (made, rate) in enumerate(zip(plan.question.common, rates, strict=True))
    )


def _compute_cost(plan: Plan, parts: Exposure) -> float:
    noise = list_common_sums(plan)
    return sum(float(part) * one.epsilon for part, one in zip(parts, noise, strict=True))


def compute_one_shot_cost(plan: Plan) -> float | None:
    """Return the cost of the same contract with the mechanism `keyhole`, which costs every group the same.

    Return None if the plan is not progressive, if it compares nothing, or if `keyhole` cannot meet the contract.
    """
    if plan.calibration.mechanism != Progressive.name or not plan.question.functionals:
        return None
    try:
        return MECHANISMS[Keyhole.name].calibrate(plan.calibration.task).worst_case_epsilon
    except Unachievable:
        return None


def compute_expected_loss(test: FunctionalTest, sensitivity: int, *, tolerances: int) -> float:
    """Return the mean loss through one functional of a group that is `tolerances` tolerances below a threshold.

    It is exact for a functional with one literal whose answer matters until the end. Other literals of the formula may
    decide the group earlier, and a second literal on the functional may decide it later. Distances count at least one
    integer step.
    """
    distance = -tolerances * max(test.tolerance, 1)
    steps = (distance - 1) // test.block + 1
    return compute_expected_rate(test, steps) * (sensitivity if test.block == 1 else 1)


def list_expected_losses(plan: Plan) -> tuple[tuple[int, float], ...]:
    """Return the mean loss of a group, for each distance of `DISTANCES` from every threshold, in tolerances.

    The result is empty if the plan has no looks, or reads thresholds off common sums.
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
                    * compute_expected_loss(
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


def compute_one_step_cost(plan: Plan) -> float | None:
    """Return the cost of the question if every literal had a tolerance of at least one integer step.

    Return None if every literal has one.
    """
    task = plan.calibration.task
    if all(cut.tolerance for cut in task.list_literals()):
        return None
    try:
        formula, *predicates = map(_widen_to_one_step, task.formulas)
        wider = replace(task, formula=formula, predicates=tuple(predicates))
        return MECHANISMS[plan.calibration.mechanism].calibrate(wider).worst_case_epsilon
    except Unachievable:
        return None


def _widen_to_one_step(formula: Formula) -> Formula:
    return formula.map_literals(lambda literal: replace(literal, tolerance=max(1, literal.tolerance)))
