"""The course of a group's window under an alarm: the chance of an alert, its delay, and the loss by then.

It helps owners to choose a tolerance, or to decide if rough alarms before sharp ones pay. Values are invented, none is
read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from mechanisms.alarm.calibration import AlarmTask, calibrate_alarm
from mechanisms.alarm.ladder import calibrate_ladder
from mechanisms.alarm.run import compute_chances_by_look
from mechanisms.formula import Cut, list_literals
from mechanisms.protocol import Unachievable
from mechanisms.standing.alarms import StandingAlarms
from mechanisms.standing.distance import StandingDistance
from planner.explain.literal_labels import convert_to_users_unit
from planner.explain.rounded_numbers import spell_number
from planner.monitors.growth import list_leasts
from planner.monitors.monitor_plan import MonitorPlan

_DISTANCES = (-8, -4, -2, -1, 0, 1, 4)  # in tolerances beyond the threshold, at the window's last look


@dataclass(frozen=True, slots=True)
class Course:
    """An example group whose value grows evenly through its window, up to `value` in the analyst's unit.

    `tolerances_away` is its distance from the threshold in tolerances. `crossing_look` is the first look at which it is
    above the threshold, None if there is none. `at_crossing` and `by_close` are the chances of an alert by that look
    and by the close. `mean_delay` is the average delay of the alert in looks, at most until the close. With rough
    alarms before sharp ones the group loses `ladder_epsilon` on average, None without a ladder.
    """

    value: Decimal
    tolerances_away: int
    crossing_look: int | None
    at_crossing: float | None
    by_close: float
    mean_delay: float | None
    ladder_epsilon: float | None


@dataclass(frozen=True, slots=True)
class Courses:
    """Example groups around one threshold of a monitor: how soon an alarm reports each, and what that costs.

    `text` is the threshold, `epsilon` the cost of its alarm, and `ladder_epsilon` the cost that is reserved for a
    ladder instead. If `watches_whole`, one alarm watches the whole condition, and the costs are that alarm's.
    """

    text: str
    epsilon: float
    ladder_epsilon: float | None
    courses: tuple[Course, ...]
    watches_whole: bool


def list_courses(plan: MonitorPlan) -> tuple[Courses, ...]:
    """Return, for each threshold, the courses of groups far below it, within its tolerance and beyond it.

    There are none at a close. If one alarm watches the whole condition, the other thresholds of an AND are far
    exceeded, and those of an OR far missed. Then this threshold alone decides how far inside the condition a group is.
    There are none if a threshold is an upper one, which a group with an empty window satisfies.
    """
    standing = plan.standing
    if isinstance(standing, StandingDistance):
        return tuple(_list_joint_courses(plan, standing))
    if not isinstance(standing, StandingAlarms):
        return ()
    return tuple(
        _make_courses(plan, literal, ladder.task, find_seen=int, watches_whole=False)
        for literal, ladder in zip(standing.literals, standing.ladders, strict=True)
    )


def _list_joint_courses(plan: MonitorPlan, standing: StandingDistance) -> Iterator[Courses]:
    (ladder,) = standing.alarm.ladders
    literals = dict.fromkeys(list_literals(standing.task.formula))
    if not all(literal.above for literal in literals):
        return
    for literal in literals:

        def see(value: int, own: Cut = literal) -> int:
            return value if len(literals) == 1 else (value - own.cut) * standing.functional_weights[own.functional]

        yield _make_courses(plan, literal, ladder.task, find_seen=see, watches_whole=len(literals) > 1)


def _make_courses(
    plan: MonitorPlan, literal: Cut, task: AlarmTask, *, find_seen: Callable[[int], int], watches_whole: bool
) -> Courses:
    """Return the courses of values at one literal. `find_seen` returns the value that the alarm sees."""
    index = literal.functional
    least = list_leasts(plan.question, plan.regimes)[index]
    alarm = calibrate_alarm(task)
    try:
        ladder = calibrate_ladder(task)
    except Unachievable:
        ladder = None
    functional = plan.question.functionals[index]
    made = []
    for distance in _DISTANCES:
        # a tolerance short of the threshold is the last value that hardly ever alerts
        final = literal.cut + distance * literal.tolerance + (distance >= 0)
        if final < 0 and least is not None:
            continue
        values = [final * look // task.looks for look in range(1, task.looks + 1)]
        seen = [find_seen(value) for value in values]
        chances = compute_chances_by_look(alarm, seen)
        crosses = next((look for look, value in enumerate(values, start=1) if value > literal.cut), None)
        climbed = None
        if ladder is not None:
            first, last = ladder.rungs[0], ladder.rungs[-1]
            climbed = float(first.loss) + compute_chances_by_look(first, seen)[-1] * float(last.loss)
        made.append(
            Course(
                value=convert_to_users_unit(functional, final),
                tolerances_away=distance,
                crossing_look=crosses,
                at_crossing=None if crosses is None else chances[crosses - 1],
                by_close=chances[-1],
                mean_delay=None if crosses is None else sum(1.0 - chance for chance in chances[crosses - 1 : -1]),
                ladder_epsilon=climbed,
            )
        )
    return Courses(
        text=f"{functional.name} > {spell_number(convert_to_users_unit(functional, literal.cut))}",
        epsilon=alarm.worst_case_epsilon,
        ladder_epsilon=None if ladder is None else ladder.worst_case_epsilon,
        courses=tuple(made),
        watches_whole=watches_whole,
    )
