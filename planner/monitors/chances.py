"""The course of a group's window under an alarm: the chance of an alert, its delay, and the loss by then.

It helps owners to choose a tolerance, or to decide if rough alarms before sharp ones pay. Values are invented, none is
read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from planner.monitors.trend import Trend

_DISTANCES = (-8, -4, -2, -1, 0, 1, 4)  # in tolerances beyond the threshold, at the window's last look
_TOLERANCES_OF_EARLIER = 10  # what earlier windows weigh, as if the tolerance were a tenth of them


@dataclass(frozen=True, slots=True)
class Course:
    """An example group of EXPLAIN, whose value grows evenly during its window, up to `value` in the analyst's unit.

    `tolerances_away` is its final distance from the threshold in tolerances. `crossing_look` is the first look at which
    it is above the threshold, None if there is none. `at_crossing` and `by_close` are the probabilities of an alert by
    that look and by the close. `mean_delay` is the mean delay of the alert in looks, at most until the close. With
    rough alarms before sharp ones (a ladder) the group loses `ladder_epsilon` on average; without a ladder that is
    None.
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
    """Example groups around one threshold of a monitor: how soon an alarm reports each of them, and the alarm's cost.

    `text` is the threshold, and `epsilon` the cost of its alarm. `ladder_epsilon` is the cost that is reserved instead
    if rough alarms come before sharp ones. If `watches_whole`, one alarm watches the whole condition, and the costs are
    that alarm's. If earlier windows are read, `earlier_value` is the value that each of them is taken to have.
    """

    text: str
    epsilon: float
    ladder_epsilon: float | None
    courses: tuple[Course, ...]
    watches_whole: bool
    earlier_value: Decimal | None = None


def list_courses(plan: MonitorPlan) -> tuple[Courses, ...]:
    """Return, for each threshold, the courses of groups far below it, within its tolerance and beyond it.

    There are none if alerts come at the close only. If one alarm watches the whole condition, the other thresholds of
    an AND are taken to be far exceeded, and those of an OR far missed. Then this threshold alone decides how far inside
    the condition a group is. There are none if a threshold is an upper one, which a group with an empty window
    satisfies. Earlier windows are taken to be equal. They are at the threshold that the condition demands of them, or
    so large that the tolerance is a tenth of them. If they are added, all are at the threshold.
    """
    standing = plan.standing
    if plan.trend is not None:
        return tuple(_list_trend_courses(plan, plan.trend, standing)) if isinstance(standing, StandingAlarms) else ()
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


def _list_trend_courses(plan: MonitorPlan, trend: Trend, standing: StandingAlarms) -> Iterator[Courses]:
    """Yield the courses at each threshold whose value rises while the window fills."""
    for literal, ladder in zip(standing.literals, standing.ladders, strict=True):
        weights = dict(trend.weights[literal.functional])
        if trend.rises[literal.functional] and literal.functional not in trend.constant and literal.above:
            earlier = {at: weight for at, weight in weights.items() if at[1]}
            size = _find_earlier_value(trend, standing.literals, literal, weights)
            start = size * sum(earlier.values())
            made = _make_courses(plan, literal, ladder.task, find_seen=int, watches_whole=False, start=start)
            sums = {place for (place, _) in earlier}
            shown = trend.sums[min(sums)] if len(sums) == 1 else None
            yield replace(made, earlier_value=None if shown is None else convert_to_users_unit(shown, size))


def _find_earlier_value(
    trend: Trend, literals: Sequence[Cut], literal: Cut, weights: Mapping[tuple[int, int], int]
) -> int:
    """Return the value that every earlier window of a threshold is taken to have."""
    earlier = {at: weight for at, weight in weights.items() if at[1]}
    for base in literals:
        read = dict(trend.weights[base.functional])
        if base.functional in trend.constant and base.above and read.keys() <= earlier.keys():
            return max(0, -(-(base.cut + 1) // max(1, sum(read.values()))))
    together = sum(earlier.values())
    if together > 0:
        return max(0, literal.cut // sum(weights.values()))
    return _TOLERANCES_OF_EARLIER * max(1, literal.tolerance) // -together if together else 0


def _make_courses(
    plan: MonitorPlan,
    literal: Cut,
    task: AlarmTask,
    *,
    find_seen: Callable[[int], int],
    watches_whole: bool,
    start: int = 0,
) -> Courses:
    """Return the courses of values at one literal, each from a start on.

    `find_seen` returns the value that the alarm sees.
    """
    index = literal.functional
    least = None if plan.trend is not None else list_leasts(plan.question, plan.regimes)[index]
    alarm = calibrate_alarm(task)
    try:
        ladder = calibrate_ladder(task) if plan.trend is None else None  # trends have no rough alarms
    except Unachievable:
        ladder = None
    functional = plan.question.functionals[index]
    made = []
    for distance in _DISTANCES:
        # a tolerance short of the threshold is the last value that hardly ever alerts
        final = literal.cut + distance * literal.tolerance + (distance >= 0)
        if final < start and (least is not None or plan.trend is not None):
            continue
        values = [start + (final - start) * look // task.looks for look in range(1, task.looks + 1)]
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
