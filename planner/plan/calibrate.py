"""A reduced question's calibration: the sound one with the least worst case, or one that leaves noise to share."""

from dataclasses import replace

from mechanisms.keyhole.one_shot import better_in_blocks
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Unachievable
from mechanisms.registry import MECHANISMS
from planner.functionals.sensitivity import JointSensitivity, joint_sensitivity
from planner.plan.refusals import unreachable
from planner.plan.shareable_noise import shareable, shareable_foreseen
from planner.plan.task import blocks_worth_trying, decision_task
from planner.question.model import Question
from planner.question.plan import Sharing

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
