"""A reduced question's calibration: the sound one with the least worst case, on common sums where means have several
thresholds, or one that leaves noise to share."""

from dataclasses import replace

from mechanisms.keyhole.one_shot import better_in_blocks
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Unachievable
from mechanisms.registry import MECHANISMS
from planner.functionals.common_sums import find_common_sums
from planner.functionals.sensitivity import JointSensitivity, joint_sensitivity
from planner.plan.refusals import unreachable
from planner.plan.shareable_noise import shareable, shareable_foreseen
from planner.plan.task import blocks_worth_trying, decision_task
from planner.question.model import Question
from planner.question.plan import APART, Sharing

_WORTH_COMMON_SUMS = 0.9  # of the loss apart: noise that later questions could read is given up for a tenth at least
_WORTH_A_WHOLE_STEP = 1.2  # blocks a fifth cheaper are tried at a whole step: a judgement, as the cheapest wins anyway


def calibrate(question: Question) -> tuple[Calibration, Sharing | None]:
    """The calibration that a question is asked with, and what was given up so that its noise can be shared.

    Raises:
        KeyholeError: KH303 when the mechanism cannot meet the contract, with a setting that would do.
    """
    try:
        return choose_calibration(question)
    except Unachievable as refusal:
        raise unreachable(question, refusal) from None


def choose_calibration(question: Question) -> tuple[Calibration, Sharing | None]:
    """The cheapest calibration, or one that costs little more and leaves noise to share. Raises `Unachievable`."""
    mechanism, joint = MECHANISMS[question.accuracy.mechanism], joint_sensitivity(question)
    first = decision_task(question, joint)
    common = _calibrate_on_common_sums(mechanism, question, first)
    try:
        apart = _calibrate_apart(mechanism, question, joint, first)
    except Unachievable:
        if common is None:
            raise
        return common, None
    if common is None or common.worst_case_epsilon >= _WORTH_COMMON_SUMS * apart[0].worst_case_epsilon:
        return apart
    return replace(common, compared={APART: apart[0].worst_case_epsilon}), None


def calibrate_without_common_sums(question: Question) -> Calibration:
    """The cheapest calibration with noise on every functional, which is all that a window's close decides on. Raises
    `Unachievable`."""
    mechanism, joint = MECHANISMS[question.accuracy.mechanism], joint_sensitivity(question)
    calibration, _ = _calibrate_apart(mechanism, question, joint, decision_task(question, joint))
    return calibration


def with_common_sums(question: Question, calibration: Calibration) -> Question:
    """The question as it is computed for a calibration: with the sums off which its functionals are read, if any."""
    if calibration.task.common is None:
        return question
    found = find_common_sums(question)
    assert found is not None
    return replace(question, common=found.sums)


def _calibrate_on_common_sums(mechanism: Mechanism, question: Question, task: DecisionTask) -> Calibration | None:
    """The calibration of thresholds that are read off common sums; None where there are none, or it is impossible."""
    found = find_common_sums(question)
    if found is None:
        return None
    try:
        return mechanism.calibrate(replace(task, common=found.common, blocks=frozenset()))
    except Unachievable:
        return None


def _calibrate_apart(
    mechanism: Mechanism, question: Question, joint: JointSensitivity, first: DecisionTask
) -> tuple[Calibration, Sharing | None]:
    """The calibration with noise on every functional by itself. Raises `Unachievable`."""
    blocks = blocks_worth_trying(first)
    assert first.blocks is not None
    found = shareable_foreseen(mechanism, question, joint, first) if blocks <= first.blocks else None
    return found or shareable(mechanism, question, joint, _find_cheapest(mechanism, first, joint, blocks))


def _find_cheapest(
    mechanism: Mechanism, first: DecisionTask, joint: JointSensitivity, blocks: frozenset[int]
) -> Calibration:
    """The sound calibration with the least worst case. Raises `Unachievable` where every way of asking does.

    Tried are the first task's blocks, which are free, all of `blocks`, and those that are free or save enough.
    """
    sound: list[Calibration] = []

    def attempt(task: DecisionTask) -> Calibration | Unachievable:
        try:
            calibration = mechanism.calibrate(task)
        except Unachievable as refusal:
            return refusal
        if not _has_unsafe_blocks(calibration):
            sound.append(calibration)
        return calibration

    assert first.blocks is not None
    last = attempt(first)
    if not blocks <= first.blocks:
        last = attempt(replace(first, exposures=joint.exposures(blocks), blocks=blocks))
        if isinstance(last, Calibration):
            worth = first.blocks | better_in_blocks(last, by=_WORTH_A_WHOLE_STEP)
            if first.blocks < worth < blocks:
                attempt(replace(first, exposures=joint.exposures(worth), blocks=worth))
    if not sound:
        assert isinstance(last, Unachievable)
        raise last
    return min(sound, key=lambda calibration: calibration.worst_case_epsilon)


def _has_unsafe_blocks(calibration: Calibration) -> bool:
    """Whether a mechanism put noise on block indices where only sums may be counted on."""
    task = calibration.task
    return task.blocks is not None and any(
        test.block > 1 and index not in task.blocks and not all(exposure[index] == 1 for exposure in task.exposures)
        for index, test in enumerate(calibration.tests)
    )
