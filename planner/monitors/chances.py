"""What a group's window comes to with an alarm: when it is likely to alert, how late, and what it then has lost.

For owners who choose a tolerance, or whether rough alarms before sharp ones pay. Values are imagined, none is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from mechanisms.alarm.calibration import AlarmTask, calibrate_alarm
from mechanisms.alarm.ladder import LadderCalibration, calibrate_ladder
from mechanisms.alarm.run import chances_by_look
from mechanisms.formula import Cut
from mechanisms.protocol import Unachievable
from mechanisms.standing.alarms import StandingAlarms
from planner.explain.literal_labels import in_users_unit
from planner.explain.numbers import plain
from planner.monitors.model import MonitorPlan

_DISTANCES = (-8, -4, -2, -1, 0, 1, 4)  # in tolerances beyond the threshold, at the window's last look


@dataclass(frozen=True, slots=True)
class Course:
    """A group whose value grows evenly through its window, up to `value` in the analyst's unit, `beyond` the threshold
    by so many tolerances.

    `crosses` is the first look at which it is above the threshold, None if at none. `at_crossing` and `by_close` are
    the chances to have alerted by then, `late` how many looks later than it crosses it alerts on average (at the close
    at last). With rough alarms before sharp ones it loses `ladder_epsilon` on average, None where there is no ladder.
    """

    value: Decimal
    beyond: int
    crosses: int | None
    at_crossing: float | None
    by_close: float
    late: float | None
    ladder_epsilon: float | None


@dataclass(frozen=True, slots=True)
class Courses:
    """What happens at one threshold by itself: `text` is it, `epsilon` what its alarm costs, and `ladder_epsilon` what
    is reserved for a ladder in its place."""

    text: str
    epsilon: float
    ladder_epsilon: float | None
    courses: tuple[Course, ...]


def list_courses(plan: MonitorPlan) -> tuple[Courses, ...]:
    """For each threshold what groups far below it, within its tolerance and beyond it come to; none at a close."""
    if not isinstance(plan.standing, StandingAlarms):
        return ()
    return tuple(_courses(plan, ladder.task, literal.functional) for literal, ladder in _alarms(plan.standing))


def _alarms(standing: StandingAlarms) -> Iterator[tuple[Cut, LadderCalibration]]:
    yield from zip(standing.literals, standing.ladders, strict=True)


def _courses(plan: MonitorPlan, task: AlarmTask, index: int) -> Courses:
    alarm = calibrate_alarm(task)
    try:
        ladder = calibrate_ladder(task)
    except Unachievable:
        ladder = None
    functional = plan.question.functionals[index]
    made = []
    for distance in _DISTANCES:
        # a tolerance short of the threshold is the last value that hardly ever alerts
        final = task.cut + distance * task.tolerance + (distance >= 0)
        if final < 0 and task.least is not None:
            continue
        values = [final * look // task.looks for look in range(1, task.looks + 1)]
        chances = chances_by_look(alarm, values)
        crosses = next((look for look, value in enumerate(values, start=1) if value > task.cut), None)
        climbed = None
        if ladder is not None:
            first, last = ladder.rungs[0], ladder.rungs[-1]
            climbed = float(first.loss) + chances_by_look(first, values)[-1] * float(last.loss)
        made.append(
            Course(
                value=in_users_unit(functional, final),
                beyond=distance,
                crosses=crosses,
                at_crossing=None if crosses is None else chances[crosses - 1],
                by_close=chances[-1],
                late=None if crosses is None else sum(1.0 - chance for chance in chances[crosses - 1 : -1]),
                ladder_epsilon=climbed,
            )
        )
    return Courses(
        text=f"{functional.name} > {plain(in_users_unit(functional, task.cut))}",
        epsilon=alarm.worst_case_epsilon,
        ladder_epsilon=None if ladder is None else ladder.worst_case_epsilon,
        courses=tuple(made),
    )
