"""The calibrated ranking of a reduced question: the noise that its keys need to be put in order."""

from mechanisms.protocol import Unachievable
from mechanisms.ranking.calibration import (
    ONE_LOOK,
    SCHEDULE,
    RankingCalibration,
    calibrate_ranking,
    count_charged_groups,
)
from planner.errors import KeyholeError
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups
from planner.rankings.ranked import make_ranking_task

_MOST_IN_TURN = 1_000  # partitions that are looked at one after the other, at 0.2 ms each; of more each has one look


def calibrate_question_ranking(question: Question) -> RankingCalibration | None:
    """Return the calibrated ranking that a question asks for, or None if it ranks nothing.

    Early looks save most groups a part of the noise. They are left out if a privacy unit loses less without them. That
    may be if it is in more groups than are returned, and only their order is asked.

    Raises:
        KeyholeError: KH303 if no noise meets the contract.
    """
    try:
        return choose_ranking(question)
    except Unachievable as refusal:
        raise KeyholeError(
            "KH303",
            f"the accuracy asked for cannot be reached: {refusal.reason}",
            hint="Widen keyhole.tolerance, or choose higher keyhole.fnr and keyhole.fpr.",
        ) from None


def choose_ranking(question: Question) -> RankingCalibration | None:
    """Return the ranking that a question asks for, as `calibrate_question_ranking` does.

    Raise `Unachievable` if no noise meets the contract.
    """
    ranked = question.ranked
    if ranked is None:
        return None
    task, groups = make_ranking_task(question, ranked), count_unit_groups(question)
    few = count_charged_groups(task, groups=groups, signed=ranked.has_both_signs) < groups
    at_once = (few and not question.functionals) or task.partitions > _MOST_IN_TURN
    return calibrate_ranking(task, schedule=ONE_LOOK if at_once else SCHEDULE)
