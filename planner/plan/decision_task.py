"""A question as numbers for a mechanism: formula, sensitivities, who is affected together, and the accuracy."""

from dataclasses import replace

from mechanisms.keyhole.one_shot import find_single_thresholds
from mechanisms.protocol import DecisionTask
from planner.functionals.sensitivity import JointSensitivity
from planner.question.public_knowledge import knowledge
from planner.question.question import Question


def decision_task(question: Question, joint: JointSensitivity) -> DecisionTask:
    """Return the question as numbers, with noise on block indices if that costs no other functional anything.

    A row that moves a *sum* by a small part moves its *block index* by a whole step all the same, and so does a unit
    that splits its rows, under a cap of several, between disjoint filters. Where those who move at all move in full,
    blocks are free; else functionals with noise on block indices are charged in full, the others by their parts.
    """
    task = DecisionTask(
        formula=question.formula,
        predicates=question.predicates,
        sensitivities=tuple(functional.sensitivity for functional in question.functionals),
        exposures=joint.find_exposures(),
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
        most_positives=question.accuracy.most_positives,
        knowledge=knowledge(question),
        keys=max(1, question.keys.size),
    )
    return replace(task, blocks=joint.find_free_blocks(blocks_worth_trying(task)))


def blocks_worth_trying(task: DecisionTask) -> frozenset[int]:
    """Return the functionals with one literal whose blocks are more than one step wide."""
    alone = find_single_thresholds(replace(task, blocks=None))
    return frozenset(index for index in alone if task.sensitivities[index] > 1)
