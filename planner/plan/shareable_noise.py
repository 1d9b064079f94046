"""Noise that later questions can share: blocks are kept short, so that tests with wide tolerances put noise on the sum.

Noise on block indices serves one threshold alone. A price must not rise when a tolerance widens, so the choice between
blocks and sums cannot compare their prices. Blocks get cheaper in steps, and such a choice would jump from cheap blocks
back to a more expensive sum. Instead tests on blocks use at most `SHORT_BLOCKS` blocks of their tolerance. The cheaper
of a test on blocks and one on the sum falls as the tolerance grows. It is the sum from about that many sensitivities
on.

References: docs/decisions/0010-reuse.md; docs/proofs/apportionment.md, "Prices are monotone".
"""

from dataclasses import replace

from mechanisms.formula import Cut
from mechanisms.keyhole.noise_continuation import CONTINUABLE
from mechanisms.keyhole.one_shot import find_single_thresholds, make_loss_curve
from mechanisms.protocol import SHORT_BLOCKS, Calibration, DecisionTask, Mechanism
from mechanisms.threshold.one_shot import find_least_epsilon
from planner.catalog.refresh import parse_refresh
from planner.plan.question_identity import list_shareable
from planner.question.plan import NoiseSharing
from planner.question.question import Question

_CHEAPER = 0.98  # of a test on the sum: less is hardly worth a line in EXPLAIN


def find_short_blocks(mechanism: Mechanism, question: Question) -> frozenset[int]:
    """Return the functionals whose blocks are made short.

    Noise on their sums then costs little more, and later questions can read it.

    Parameters:
        question: minimised, as in a plan.
    """
    lasting = parse_refresh(question.table.refresh).kind != "live"
    if not (question.accuracy.allows_reuse and mechanism.name in CONTINUABLE and lasting):
        return frozenset()
    return frozenset(index for index, leaves in enumerate(list_shareable(question)) if leaves)


def narrow_to_blocks(task: DecisionTask) -> DecisionTask:
    """Return the task with the tolerance of each functional with short blocks limited to the length of its blocks."""
    alone = find_single_thresholds(task) & task.short_blocks

    def narrow(cut: Cut) -> Cut:
        widest = SHORT_BLOCKS * task.sensitivities[cut.functional] - 1
        return replace(cut, tolerance=min(cut.tolerance, widest)) if cut.functional in alone else cut

    return replace(
        task,
        formula=task.formula.map_literals(narrow),
        predicates=tuple(predicate.map_literals(narrow) for predicate in task.predicates),
    )


def bound_cost_in_blocks(narrow: DecisionTask) -> float:
    """Return a lower bound on the cost of a narrowed task: the cost of its most expensive test at both full rates."""
    loss = make_loss_curve(narrow)
    used = {cut.functional for cut in narrow.list_literals()}
    return max(
        float(max(exposure[functional] for exposure in narrow.exposures)) * loss(functional, narrow.fnr, narrow.fpr)[0]
        for functional in used
    )


def describe_sharing(mechanism: Mechanism, found: Calibration) -> NoiseSharing | None:
    """Return the noise that later questions can share: the functionals whose noise is on their sums.

    Return None if there are none.

    Parameters:
        found: the calibration with short blocks.
    """
    shared = frozenset(
        index
        for index, test in enumerate(found.tests)
        if index in found.task.short_blocks and test.rate and test.block == 1 and _is_cheaper_in_blocks(found, index)
    )
    apart = replace(found.task, short_blocks=frozenset())
    return NoiseSharing(functionals=shared, mechanism=mechanism.name, task_in_blocks=apart) if shared else None


def _is_cheaper_in_blocks(found: Calibration, functional: int) -> bool:
    task, test = found.task, found.tests[functional]
    if task.blocks is not None and functional not in task.blocks:
        return False
    in_blocks, _, _ = find_least_epsilon(
        sensitivity=task.sensitivities[functional],
        tolerance=test.tolerance,
        fnr=test.fnr,
        fpr=test.fpr,
        allow_block=True,
    )
    return in_blocks < _CHEAPER * test.epsilon
