"""Noise that later questions can share, where it costs little more than noise that serves one threshold alone."""

from dataclasses import replace

from mechanisms.keyhole.noise_continuation import CONTINUABLE
from mechanisms.keyhole.one_shot import better_in_blocks
from mechanisms.protocol import Calibration, Mechanism, Unachievable
from planner.catalog.refresh import parse_refresh
from planner.functionals.sensitivity import JointSensitivity
from planner.plan.identity import leave_paths
from planner.question.model import Question
from planner.question.plan import Sharing

MOST_FOR_SHARING = 1.5
"""How many times as much noise on a sum may cost as noise on its blocks, and the question as the cheapest."""


def shareable(
    mechanism: Mechanism, question: Question, joint: JointSensitivity, cheapest: Calibration
) -> tuple[Calibration, Sharing | None]:
    """The calibration with noise on sums instead of blocks wherever that costs at most `MOST_FOR_SHARING` times as
    much, and what was given up for it; the cheapest itself and None where nothing is.

    Guarantee: the contract of the cheapest, for a worst case of at most `MOST_FOR_SHARING` times its own; a functional
    whose noise no later question could read keeps its blocks. The exposures are those of the blocks that are left.
    Nothing is calibrated unless some blocks are given up.

    Parameters:
        question: minimised, as in a plan.
        joint: its joint sensitivity.
        cheapest: the sound calibration with the least worst case.
    """
    in_blocks = frozenset(index for index, test in enumerate(cheapest.tests) if test.block > 1)
    if not in_blocks or not _can_be_read_again(mechanism, question):
        return cheapest, None
    lost = frozenset(index for index, leaves in enumerate(leave_paths(question)) if not leaves)
    kept = in_blocks & (lost | better_in_blocks(cheapest, by=MOST_FOR_SHARING))
    if kept == in_blocks:
        return cheapest, None
    try:
        found = mechanism.calibrate(replace(cheapest.task, exposures=joint.exposures(kept), blocks=kept))
    except Unachievable:
        return cheapest, None
    if found.worst_case_epsilon > MOST_FOR_SHARING * cheapest.worst_case_epsilon:
        return cheapest, None
    return found, Sharing(functionals=in_blocks - kept, epsilon_in_blocks=cheapest.worst_case_epsilon)


def _can_be_read_again(mechanism: Mechanism, question: Question) -> bool:
    """Whether the question leaves noise and a later one can have the same data version."""
    lasting = parse_refresh(question.table.refresh).kind != "live"
    return question.accuracy.reuse and mechanism.name in CONTINUABLE and lasting
