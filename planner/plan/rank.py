"""A reduced question's ranking, calibrated: how much noise its keys need to be put in their order."""

from mechanisms.protocol import Unachievable
from mechanisms.ranking.calibration import (
    ONE_LOOK,
    SCHEDULE,
    RankingCalibration,
    RankingTask,
    calibrate_ranking,
    groups_that_count,
)
from planner.errors import KeyholeError
from planner.functionals.unit_groups import groups_of_one_unit
from planner.question.model import Question


def calibrate_ranked(question: Question) -> RankingCalibration | None:
    """The ranking that a question asks for; None where it ranks nothing.

    Early looks save most groups a part of the noise. They are left out where a privacy unit loses less without them: it
    may be in more groups than are returned, and nothing is asked of these but their order.

    Raises:
        KeyholeError: KH303 where no noise meets the contract.
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
    """The same. Raises `Unachievable`."""
    ranked, accuracy = question.ranked, question.accuracy
    if ranked is None:
        return None
    size = question.keys.size
    task = RankingTask(
        keys=size,
        limit=size if ranked.limit is None else ranked.limit,
        descending=ranked.descending,
        sensitivity=ranked.functional.sensitivity,
        tolerance=ranked.tolerance + 1,  # keys that are further apart than the tolerance
        fnr=accuracy.fnr,
        fpr=accuracy.fpr,
    )
    groups = groups_of_one_unit(question)
    few = groups_that_count(task, groups=groups, signed=ranked.signed) < groups
    return calibrate_ranking(task, schedule=ONE_LOOK if few and not question.functionals else SCHEDULE)
