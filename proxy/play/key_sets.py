"""Keyhole's own answer to each task: a threshold question over the private days, which returns only keys.

| task | the question | what one reads off it |
|---|---|---|
| T1 | which ticks of the day have more people than the threshold | how many keys there are |
| T2 | the region that is the most occupied in that night | the key |
| T3 | which slots of working hours have more person-ticks than a public number | the slot behind the last key |
| T4, T5 | which slots of the week have, over all weeks, more than a public number | where most keys begin |

An event, one presence at one tick, is in one group. Each answer costs `epsilon` at event level, as published counts do.
The tolerance is what that epsilon affords at rates of 5 % missed and 10 % wrong. The numbers in T3 to T5 come from the
known past and the fire code, never from the days that are asked about. Slots are as long as the tolerance needs.

T1's question is also a monitor's: whether the room had more people than allowed at any time of the day. The alarm costs
its epsilon once for anybody who comes and goes that day, however many ticks they stay.

References: docs/proofs/optimal_test.md, docs/proofs/ranking.md, docs/proofs/alarm.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.alarm.run import draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.protocol import FunctionalTest, Noise
from mechanisms.ranking.run import rank_keys
from proxy.play.afford import find_affordable_alarm, find_affordable_ranking, find_affordable_test
from proxy.play.building import BY_DAY, DAYS_A_WEEK, MINUTES_A_DAY, WORKING_DAYS, Building
from proxy.play.floor_plan import Counts
from proxy.play.tasks import WEEKDAYS, GameTask, TaskAnswer, TaskKind, name_day
from proxy.play.world import PrivateDays

_QUIET = 0.3  # of a region's usual hour by day: below it is hardly ever an hour with a sensor that works
_CROWDED = 0.25  # of what the fire code allows, more than which an event is taken for one
_MINUTES_AN_HOUR = 60  # as everywhere
_SENSOR_MINUTES = (60, 120, 240, 480)  # of slots: longer ones afford a smaller epsilon, and tell less when
_EVENT_MINUTES = (5, 15, 30, 60)  # the same, of events
_TOLERANCES_ABOVE_NOTHING = 3  # fewer make slots shorter, and keys of empty slots more frequent than one in thousands
_NOON = 12 * 60  # minutes of a day


@dataclass(frozen=True, slots=True)
class KeySetAnswer:
    """An answer of Keyhole to a task, with its promise.

    `keys` are ticks of the day in T1, and the number of the place in T2. In T3 they are ticks at which slots begin,
    counted from the first midnight. In T4 and T5 these are counted from Monday's midnight. `sql` is the question as
    SQL. `conclusion` is the task's answer that follows from the keys. `loss` is the most that one presence loses.
    """

    keys: tuple[int, ...]
    sql: str
    tolerance: int
    loss: float
    conclusion: TaskAnswer


@dataclass(frozen=True, slots=True)
class AlarmAnswer:
    """The tick at which an alarm rang on the day of T1, None if it did not; and the alarm's promise."""

    rang_at: int | None
    tolerance: int
    loss: float
    looks: int


def answer_by_keys(task: GameTask, world: PrivateDays, *, epsilon: Fraction, noise: Noise) -> KeySetAnswer:
    """Return Keyhole's answer to a task.

    Parameters:
        epsilon: the most that one presence at one tick loses.

    Raises:
        ValueError: an epsilon that is too small for any tolerance.
    """
    match task.kind:
        case TaskKind.EXCESS:
            return _answer_excess(task, world, epsilon, noise)
        case TaskKind.NIGHT:
            return _answer_night(task, world, epsilon, noise)
        case TaskKind.SENSOR:
            return _answer_sensor(task, world, epsilon, noise)
        case TaskKind.EVENT | TaskKind.MEETING:
            return _answer_weekly(task, world, epsilon, noise)


def watch_day(task: GameTask, world: PrivateDays, *, epsilon: Fraction, noise: Noise) -> AlarmAnswer:
    """Run a monitor's alarm on T1's room and day, with a look at every tick. Return when it rang.

    A person who comes and goes raises each of the day's counts by at most one. They lose `epsilon` for all of them
    together.
    """
    counts = world.count_place(task.where)[task.on_day]
    alarm = find_affordable_alarm(epsilon, looks=counts.size, cut=task.above, regime=Regime.COMING_AND_GOING)
    states = draw_alarms(keys=1, noise=noise)
    for look in range(1, counts.size + 1):
        states = look_at_values(alarm, states, counts[look - 1 : look], look=look, noise=noise)
    rang = states[0].rang_at
    return AlarmAnswer(rang - 1 if rang else None, alarm.task.tolerance, alarm.worst_case_epsilon, counts.size)


def _answer_excess(task: GameTask, world: PrivateDays, epsilon: Fraction, noise: Noise) -> KeySetAnswer:
    test = find_affordable_test(epsilon)
    passed = decide_thresholds(test, world.count_place(task.where)[task.on_day], task.above, noise)
    name = world.building.plan.places[task.where].name
    sql = (
        f"SELECT tick FROM presence WHERE place = '{name}' AND day = '{name_day(task.on_day)}'\n"
        f"GROUP BY tick HAVING count(*) > {task.threshold}"
    )
    return _make_answer(np.flatnonzero(passed), sql, test, TaskAnswer(count=int(passed.sum())))


def _answer_night(task: GameTask, world: PrivateDays, epsilon: Fraction, noise: Noise) -> KeySetAnswer:
    regions = world.building.plan.regions
    ranking = find_affordable_ranking(epsilon, keys=len(regions))
    ranked = rank_keys(ranking, world.count_nights(task.on_day), taking_part=None, keeps_path=False, noise=noise)
    first = regions[int(ranked.ranked_keys[0])]
    sql = (
        f"SELECT region FROM presence WHERE night = '{name_day(task.on_day)}'\n"
        "GROUP BY region ORDER BY count(*) DESC LIMIT 1"
    )
    return KeySetAnswer((first,), sql, ranking.task.tolerance, ranking.worst_case_epsilon, TaskAnswer(place=first))


def _answer_sensor(task: GameTask, world: PrivateDays, epsilon: Fraction, noise: Noise) -> KeySetAnswer:
    building, test = world.building, find_affordable_test(epsilon)
    usual, _ = building.measure_usual_occupancy(task.where)
    slot = _choose_slot(_QUIET * usual, test, _SENSOR_MINUTES, building)
    cut = int(_QUIET * usual * slot)
    summed = world.count_place(task.where).reshape(-1, slot).sum(axis=1)
    a_day = building.ticks_a_day // slot
    start, stop = (minutes // building.tick_minutes // slot for minutes in BY_DAY)
    slots = np.array(
        [
            day * a_day + number
            for day in range(world.days)
            if day % DAYS_A_WEEK < WORKING_DAYS
            for number in range(start, stop)
        ]
    )
    passed = slots[decide_thresholds(test, summed[slots], cut, noise)]
    later = slots[slots > (int(passed[-1]) if passed.size else -1)]
    first = (int(later[0]) if later.size else int(slots[-1])) * slot
    sql = (
        f"SELECT day, slot FROM presence WHERE place = '{building.plan.places[task.where].name}'\n"
        f"GROUP BY day, slot HAVING count(*) > {cut}  -- slots of {slot * building.tick_minutes} minutes by day"
    )
    read = TaskAnswer(day=first // building.ticks_a_day, tick=first % building.ticks_a_day)
    return _make_answer(passed * slot, sql, test, read)


def _answer_weekly(task: GameTask, world: PrivateDays, epsilon: Fraction, noise: Noise) -> KeySetAnswer:
    building, test = world.building, find_affordable_test(epsilon)
    weeks = world.days // DAYS_A_WEEK
    crowded = weeks * _CROWDED * building.plan.places[task.where].capacity
    slot = _choose_slot(crowded, test, _EVENT_MINUTES, building)
    cut = int(crowded * slot)
    summed = world.count_place(task.where).reshape(weeks, -1, slot).sum(axis=(0, 2))
    asked = np.arange(summed.size)
    sql = f"SELECT weekday, slot FROM presence WHERE place = '{building.plan.places[task.where].name}'"
    if task.kind is TaskKind.EVENT:
        noon, a_day = (minutes // building.tick_minutes // slot for minutes in (_NOON, MINUTES_A_DAY))
        begin = task.on_weekday * a_day + (0 if task.morning else noon)
        asked = np.arange(begin, begin + noon)
        sql += f" AND weekday = '{WEEKDAYS[task.on_weekday]}' AND half = '{'morning' if task.morning else 'afternoon'}'"
    passed = asked[decide_thresholds(test, summed[asked], cut, noise)] * slot
    at = find_beginning(passed, ticks=_MINUTES_AN_HOUR // building.tick_minutes)
    day, tick = divmod(int(asked[asked.size // 2]) * slot if at is None else at, building.ticks_a_day)
    read = TaskAnswer(tick=tick) if task.kind is TaskKind.EVENT else TaskAnswer(day=day, tick=tick)
    sql += f"\nGROUP BY weekday, slot HAVING count(*) > {cut}  -- slots of {slot * building.tick_minutes} minutes"
    return _make_answer(passed, sql, test, read)


def _choose_slot(cut: float, test: FunctionalTest, minutes: Sequence[int], building: Building) -> int:
    """Return how many ticks to group, so that the threshold lies some tolerances above zero.

    It is the least number that suffices, or the largest there is. `cut` is the threshold of one tick.
    """
    slots = [each // building.tick_minutes for each in minutes]
    return next((slot for slot in slots if cut * slot >= _TOLERANCES_ABOVE_NOTHING * test.tolerance), slots[-1])


def find_beginning(keys: npt.NDArray[np.int64], *, ticks: int) -> int | None:
    """Return the key at the beginning of the `ticks` ticks that contain the most keys. Return None without keys.

    >>> find_beginning(np.array([3, 20, 21, 22, 24]), ticks=6)
    20
    """
    if not keys.size:
        return None
    within = [int(((keys >= key) & (keys < key + ticks)).sum()) for key in keys]
    return int(keys[int(np.argmax(within))])


def _make_answer(keys: npt.NDArray[np.int64], sql: str, test: FunctionalTest, read: TaskAnswer) -> KeySetAnswer:
    return KeySetAnswer(tuple(keys.tolist()), sql, test.tolerance, test.epsilon, read)


def decide_thresholds(test: FunctionalTest, values: Counts, cut: int, noise: Noise) -> npt.NDArray[np.bool_]:
    """Return True for each value that passes `value > cut` by the optimal one-shot test, each with its own noise."""
    noisy = values + noise.draw_discrete_laplace(rate=test.rate, size=values.size)
    boundary = cut - test.shift
    ties = noise.draw_bernoulli(probability=test.tie, size=values.size)
    return np.asarray((noisy > boundary) | ((noisy == boundary) & ties))
