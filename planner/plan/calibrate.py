"""The calibration of a reduced question: the sound one with the least worst case, or one that leaves noise to share.

If means have several thresholds, their noise may be on common sums.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Unachievable
from mechanisms.registry import MECHANISMS
from planner.functionals.cell_readings import list_cell_sums, reads_cells
from planner.functionals.common_sums import find_common_sums
from planner.functionals.sensitivity import JointSensitivity, find_joint_sensitivity
from planner.plan.decision_task import find_blocks_to_try, make_decision_task
from planner.plan.plan_refusals import refuse_unreachable
from planner.plan.shareable_noise import bound_cost_in_blocks, describe_sharing, find_short_blocks, narrow_to_blocks
from planner.question.plan import APART, NoiseSharing
from planner.question.question import Question

_CACHED_TASKS = 128  # as many as plans, which keep the same calibrations
_MOST_TRIED_ALONE = 3  # functionals with dear blocks: each further one is a calibration more


@lru_cache(maxsize=_CACHED_TASKS)
def _calibrate_task(mechanism: str, task: DecisionTask) -> Calibration:
    """Return the named mechanism's calibration, which depends on the task alone.

    Raise `Unachievable` if no noise meets the accuracy.

    A question about other rows with the same thresholds, such as a chart with another filter, has the same task.
    """
    return MECHANISMS[mechanism].calibrate(task)


def calibrate(question: Question) -> tuple[Calibration, NoiseSharing | None]:
    """Return the calibration of the question, and the extra cost of noise that later questions can share, if any.

    Raises:
        KeyholeError: KH303 if the mechanism cannot meet the contract, with a setting that can.
    """
    try:
        return choose_calibration(question)
    except Unachievable as refusal:
        raise refuse_unreachable(question, refusal, calibrate=choose_calibration) from None


def choose_calibration(question: Question) -> tuple[Calibration, NoiseSharing | None]:
    """Return the cheapest calibration, or one that costs little more and leaves noise to share.

    Raise `Unachievable` if none exists.
    """
    mechanism, joint = MECHANISMS[question.accuracy.mechanism], find_joint_sensitivity(question)
    first = make_decision_task(question, joint)
    if reads_cells(question):
        return _calibrate_on_cells(mechanism, question, first), None
    common = _calibrate_on_common_sums(mechanism, question, first)
    try:
        apart = _calibrate_separate_noise(mechanism, question, joint, first)
    except Unachievable:
        if common is None:
            raise
        return common, None
    if common is None or common.worst_case_epsilon >= apart[0].worst_case_epsilon:
        return apart
    return replace(common, compared={APART: apart[0].worst_case_epsilon}), None


def calibrate_without_common_sums(question: Question) -> Calibration:
    """Return the cheapest calibration with noise on every functional, the only kind for a window's close.

    Raise `Unachievable` if none exists.
    """
    mechanism, joint = MECHANISMS[question.accuracy.mechanism], find_joint_sensitivity(question)
    calibration, _ = _calibrate_separate_noise(mechanism, question, joint, make_decision_task(question, joint))
    return calibration


def add_common_sums(question: Question, calibration: Calibration) -> Question:
    """Return the question with the common sums of its functionals, if its calibration uses common sums."""
    if calibration.task.common is None:
        return question
    if reads_cells(question):
        return replace(question, common=list_cell_sums(question)[0])
    found = find_common_sums(question)
    assert found is not None
    return replace(question, common=found.sums)


def _calibrate_on_cells(mechanism: Mechanism, question: Question, task: DecisionTask) -> Calibration:
    """Return the calibration of thresholds on values that are read off several groups.

    Raise `Unachievable` if no noise meets the accuracy.
    """
    if mechanism.name not in (Keyhole.name, Progressive.name):
        raise Unachievable("this mechanism compares no groups with other groups", instead=Progressive.name)
    return _calibrate_task(mechanism.name, replace(task, common=list_cell_sums(question)[1], blocks=frozenset()))


def _calibrate_on_common_sums(mechanism: Mechanism, question: Question, task: DecisionTask) -> Calibration | None:
    """Return the calibration of thresholds on common sums, or None if there are none or it is impossible."""
    found = find_common_sums(question)
    if found is None:
        return None
    try:
        return _calibrate_task(mechanism.name, replace(task, common=found.common, blocks=frozenset()))
    except Unachievable:
        return None


def _calibrate_separate_noise(
    mechanism: Mechanism, question: Question, joint: JointSensitivity, first: DecisionTask
) -> tuple[Calibration, NoiseSharing | None]:
    """Return the calibration with noise on every functional by itself.

    Raise `Unachievable` if no noise meets the accuracy.
    """
    choices = [
        first,
        *(replace(first, exposures=joint.find_exposures(one), blocks=one) for one in _list_block_choices(first)),
    ]
    short = find_short_blocks(mechanism, question)
    tasks = [replace(task, short_blocks=short) for task in choices]
    found = _find_cheapest_calibration(mechanism, tasks)
    if len(question.functionals) > 1:
        found = _use_tighter_contracts(mechanism, tasks, found)
    return found, describe_sharing(mechanism, found)


def _use_tighter_contracts(mechanism: Mechanism, tasks: Sequence[DecisionTask], found: Calibration) -> Calibration:
    """Return `found`, or a cheaper calibration of a contract with narrower tolerances.

    A test on blocks uses at most two blocks, while its tolerance may be wider. The shares that are best for it differ
    from those that are best for noise on the sum, and apportionment searches near its start. It finds them at the
    tolerance of two blocks. A mechanism that keeps the narrower contract keeps the wider one.
    """
    for task in tasks:
        narrow = narrow_to_blocks(task)
        if narrow == task or bound_cost_in_blocks(narrow) >= found.worst_case_epsilon:
            continue
        try:
            calibration = _calibrate_task(mechanism.name, narrow)
        except Unachievable:
            continue
        if not _has_unsafe_blocks(calibration) and calibration.worst_case_epsilon < found.worst_case_epsilon:
            found = replace(calibration, task=task)
    return found


def _list_block_choices(first: DecisionTask) -> list[frozenset[int]]:
    """Return the sets of functionals that may have noise on block indices, besides those for which that is free.

    They follow from the functionals and thresholds alone, never from rates or tolerances. So a choice that is tried for
    one contract is tried for every wider one.
    """
    assert first.blocks is not None
    whole, free = find_blocks_to_try(first), first.blocks
    dear = sorted(whole - free)
    if len(dear) < 2:
        return [whole] if dear else []
    return [whole, *(free | {one} for one in dear)] if len(dear) <= _MOST_TRIED_ALONE else [whole]


def _find_cheapest_calibration(mechanism: Mechanism, tasks: Sequence[DecisionTask]) -> Calibration:
    """Return the sound calibration with the least worst case. Raise `Unachievable` if all tasks do."""
    sound: list[Calibration] = []
    refused: Unachievable | None = None
    for task in tasks:
        try:
            calibration = _calibrate_task(mechanism.name, task)
        except Unachievable as refusal:
            refused = refusal
        else:
            if not _has_unsafe_blocks(calibration):
                sound.append(calibration)
    if not sound:
        assert refused is not None
        raise refused
    return min(sound, key=lambda calibration: calibration.worst_case_epsilon)


def _has_unsafe_blocks(calibration: Calibration) -> bool:
    """Return True if a mechanism put noise on block indices of a functional for which only sums are sound."""
    task = calibration.task
    return task.blocks is not None and any(
        test.block > 1 and index not in task.blocks and not all(exposure[index] == 1 for exposure in task.exposures)
        for index, test in enumerate(calibration.tests)
    )
