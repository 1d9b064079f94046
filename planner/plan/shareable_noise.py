"""Noise that later questions can share, where it costs little more than noise that serves one threshold alone."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from mechanisms.keyhole.contract import tolerances
from mechanisms.keyhole.noise_continuation import CONTINUABLE
from mechanisms.keyhole.one_shot import better_in_blocks, epsilon_on_sum
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import Calibration, DecisionTask, Foreseen, Mechanism, Unachievable
from planner.catalog.refresh import parse_refresh
from planner.functionals.sensitivity import JointSensitivity
from planner.plan.identity import leave_paths
from planner.question.model import Question
from planner.question.plan import Sharing

MOST_FOR_SHARING = 1.5
"""How many times as much noise on a sum may cost as noise on its blocks, and the question as the cheapest."""


def shareable(
    mechanism: Mechanism,
    question: Question,
    joint: JointSensitivity,
    cheapest: Calibration,
    *,
    made: Mapping[frozenset[int], Calibration | None] = MappingProxyType({}),
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
        made: what its task comes to with noise on these blocks alone, where that was calibrated before.
    """
    in_blocks = frozenset(index for index, test in enumerate(cheapest.tests) if test.block > 1)
    if not in_blocks or not _can_be_read_again(mechanism, question):
        return cheapest, None
    kept = in_blocks & (_list_unread(question) | better_in_blocks(cheapest, by=MOST_FOR_SHARING))
    found = None
    if kept < in_blocks:
        found = made[kept] if kept in made else _with_blocks(mechanism, cheapest.task, joint, kept)
    if found is None or found.worst_case_epsilon > MOST_FOR_SHARING * cheapest.worst_case_epsilon:
        return cheapest, None
    return found, Sharing(functionals=in_blocks - kept, mechanism=mechanism.name, apart=cheapest.task)


def shareable_foreseen(
    mechanism: Mechanism, question: Question, joint: JointSensitivity, task: DecisionTask
) -> tuple[Calibration, Sharing | None] | None:
    """What `shareable` comes to when the cheapest is `task`'s calibration, which is made only where the choice between
    sums and blocks may depend on its tests. None where nothing is known beforehand.

    Guarantee: equal to `shareable`'s result wherever it is not None: what is decided without the calibration follows
    from bounds that hold for it (docs/proofs/apportionment.md).

    Parameters as for `shareable`.
    """
    if not isinstance(mechanism, Progressive) or not _can_be_read_again(mechanism, question):
        return None
    try:
        foreseen = mechanism.foresee(task)
    except Unachievable:
        return None
    if foreseen is None:
        return None
    in_blocks = frozenset(index for index, test in enumerate(foreseen.tests) if test is not None and test.block > 1)
    kept = _foresee_kept(question, foreseen, in_blocks)
    made: dict[frozenset[int], Calibration | None] = {}
    if kept is not None and kept < in_blocks:
        found = made[kept] = _with_blocks(mechanism, task, joint, kept)
        if found is not None and found.worst_case_epsilon <= MOST_FOR_SHARING * foreseen.least_epsilon:
            return found, Sharing(functionals=in_blocks - kept, mechanism=mechanism.name, apart=task)
    return shareable(mechanism, question, joint, mechanism.calibrate_foreseen(foreseen), made=made)


def _foresee_kept(question: Question, foreseen: Foreseen, in_blocks: frozenset[int]) -> frozenset[int] | None:
    """The blocks that are not given up, None where that may depend on the tests."""
    kept = in_blocks & _list_unread(question)
    sensitivities = foreseen.task.sensitivities
    near = tolerances(foreseen.task.formula, len(sensitivities))
    for index in in_blocks - kept:
        test = foreseen.tests[index]
        assert test is not None
        on_sum = epsilon_on_sum(sensitivities[index], near[index], fnr=foreseen.fnr[index], fpr=foreseen.fpr[index])
        if on_sum > MOST_FOR_SHARING * test.most_epsilon:
            kept |= {index}
        elif on_sum > MOST_FOR_SHARING * test.least_epsilon:
            return None
    return kept


def _list_unread(question: Question) -> frozenset[int]:
    """The functionals whose noise no later question could read."""
    return frozenset(index for index, leaves in enumerate(leave_paths(question)) if not leaves)


def _with_blocks(
    mechanism: Mechanism, task: DecisionTask, joint: JointSensitivity, kept: frozenset[int]
) -> Calibration | None:
    """The calibration with noise on the blocks of `kept` alone, None where nothing meets the contract."""
    try:
        return mechanism.calibrate(replace(task, exposures=joint.exposures(kept), blocks=kept))
    except Unachievable:
        return None


def _can_be_read_again(mechanism: Mechanism, question: Question) -> bool:
    """Whether the question leaves noise and a later one can have the same data version."""
    lasting = parse_refresh(question.table.refresh).kind != "live"
    return question.accuracy.reuse and mechanism.name in CONTINUABLE and lasting
