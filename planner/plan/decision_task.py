"""A question as numbers for a mechanism: formula, sensitivities, exposures and accuracy."""

from dataclasses import replace

from mechanisms.keyhole.one_shot import find_single_thresholds
from mechanisms.protocol import DecisionTask
from planner.functionals.sensitivity import JointSensitivity
from planner.question.public_knowledge import find_knowledge
from planner.question.question import Question


def make_decision_task(question: Question, joint: JointSensitivity) -> DecisionTask:
    """Return the question as numbers. Noise is on block indices if that makes no other functional more expensive.

    A row that moves a *sum* by a small part still moves its *block index* by a whole step. So does a unit that splits
    its rows, under a cap of several, between disjoint filters. If every row that moves a sum moves it in full, blocks
    cost nothing extra. Otherwise functionals with noise on block indices are charged in full, and the others by their
    parts.
    """
    task = DecisionTask(
        formula=question.formula,
        predicates=question.predicates,
        sensitivities=tuple(functional.sensitivity for functional in question.functionals),
        exposures=joint.find_exposures(),
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
        most_positives=question.accuracy.most_positives,
        knowledge=find_knowledge(question),
        keys=max(1, question.keys.size),
    )
    return replace(task, blocks=joint.find_free_blocks(find_blocks_to_try(task)))


def find_blocks_to_try(task: DecisionTask) -> frozenset[int]:
    """Return the functionals for which noise on block indices may cost less: one literal, sensitivity above 1."""
    alone = find_single_thresholds(replace(task, blocks=None))
    return frozenset(index for index in alone if task.sensitivities[index] > 1)
