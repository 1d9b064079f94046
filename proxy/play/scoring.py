"""Points for an answer: how right it is, how quick, and how many rounds were done before.

    points = 100 * max(0, 1 - error / scale) * (0.5 + 0.5 * max(0, 1 - seconds / 120)) * (1 + 0.1 * min(rounds, 10))

The scale is 25 % of the true count and 5 at least in T1, 3 ranks in T2, and 12 ticks in T3 and T4. In T5 it is 6 ticks,
and a wrong weekday halves the points for accuracy. The chapter says what points depend on, but prints no formula. This
one is ours.

Reference: Ghayyur's thesis, section 3.2.1.
"""

from dataclasses import dataclass

from proxy.play.tasks import Distance, TaskAnswer, TaskKind

SECONDS = 120.0
"""After so many an answer is as slow as it can be; it still counts for a half."""

_PART_OF_TRUE, _LEAST_SCALE = 0.25, 5.0  # of the true count; intervals
_SCALES = {TaskKind.NIGHT: 3.0, TaskKind.SENSOR: 12.0, TaskKind.EVENT: 12.0, TaskKind.MEETING: 6.0}
_MOST_ROUNDS = 10  # that still raise the points: double at most


@dataclass(frozen=True, slots=True)
class Points:
    """The points of an answer, and the factors from which they are computed."""

    accuracy: float
    speed: float
    bonus: float

    @property
    def points(self) -> float:
        """The points that the player gets: accuracy and speed, times the bonus.

        >>> Points(accuracy=0.5, speed=0.75, bonus=1.1).points
        41.25
        """
        return round(100.0 * self.accuracy * self.speed * self.bonus, 2)


def score_answer(kind: TaskKind, distance: Distance, truth: TaskAnswer, *, seconds: float, rounds_done: int) -> Points:
    """Return the points of one answer.

    Parameters:
        seconds: from the moment at which the round began.
        rounds_done: how many of the session were answered before.

    The answer is two ranks off, after a minute, in the third round:

    >>> score_answer(TaskKind.NIGHT, Distance(2, False), TaskAnswer(place=7), seconds=60, rounds_done=2).points
    30.0
    """
    scale = max(_LEAST_SCALE, _PART_OF_TRUE * (truth.count or 0)) if kind is TaskKind.EXCESS else _SCALES[kind]
    accuracy = max(0.0, 1.0 - distance.error / scale) * (0.5 if distance.wrong_day else 1.0)
    speed = 0.5 + 0.5 * max(0.0, 1.0 - max(0.0, seconds) / SECONDS)
    return Points(accuracy=accuracy, speed=speed, bonus=1.0 + 0.1 * min(rounds_done, _MOST_ROUNDS))
