"""The tasks of the game, T1 to T5: drawn by seed, with their true answers and the distance of an answer from the truth.

| here | the chapter | distance |
|---|---|---|
| `TaskKind.EXCESS` | on [date] count the time units in which the occupancy of [room] exceeds [60] | difference |
| `TaskKind.NIGHT` | the most occupied region at night, 6 pm to 6 am, on [day] | rank |
| `TaskKind.SENSOR` | from when on [a sensor] reports a constant | ticks |
| `TaskKind.EVENT` | the start of a regular event in [room] | ticks |
| `TaskKind.MEETING` | the most likely time of a weekly meeting | ticks, on the right weekday |

Reference: Ghayyur's thesis, section 3.2.1. The fifth task is its example of a round.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from proxy.play.building import DAYS_A_WEEK, WORKING_DAYS, Building
from proxy.play.floor_plan import Counts
from proxy.play.world import PlantedEvents, PrivateDays

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NOON = 12 * 60  # minutes of a day


class TaskKind(Enum):
    """The kinds of tasks in the game, T1 to T5."""

    EXCESS = "T1"
    NIGHT = "T2"
    SENSOR = "T3"
    EVENT = "T4"
    MEETING = "T5"


@dataclass(frozen=True, slots=True)
class GameTask:
    """A task with its blanks filled in. The player sees all of it.

    `place` is the number of the room or region, or None if the player must find it. `day` counts from the first Monday,
    and `weekday` from Monday 0. `threshold` is a number of people. `morning` is True if the event is before noon.
    """

    kind: TaskKind
    place: int | None
    day: int | None
    weekday: int | None
    threshold: int | None
    morning: bool | None

    @property
    def where(self) -> int:
        """The number of the task's place. Only for a task about one place."""
        return _require_number(self.place)

    @property
    def on_day(self) -> int:
        """The task's day. Only for a task about one day."""
        return _require_number(self.day)

    @property
    def on_weekday(self) -> int:
        """The task's weekday. Only for a task about one weekday."""
        return _require_number(self.weekday)

    @property
    def above(self) -> int:
        """The task's threshold. Only for a task that has one."""
        return _require_number(self.threshold)


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """An answer to a task.

    It is a `count` in T1, a `place` in T2, a `day` and `tick` in T3, and a `tick` in T4. In T5 it is a weekday (as
    `day`) and a `tick`.
    """

    count: int | None = None
    place: int | None = None
    day: int | None = None
    tick: int | None = None


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of an answer from the truth, in the task's own unit. Only T5 has `wrong_day`."""

    error: float
    wrong_day: bool


def name_day(day: int) -> str:
    """Return the name of a day.

    >>> name_day(8)
    'Tuesday of week 2'
    """
    return f"{WEEKDAYS[day % DAYS_A_WEEK]} of week {day // DAYS_A_WEEK + 1}"


def draw_task(kind: TaskKind, building: Building, plants: PlantedEvents, *, number: int) -> GameTask:
    """Return the task of a kind for a round, with brackets drawn by the building's seed."""
    rng = np.random.default_rng((building.seed, building.tick_minutes, number, len(TaskKind)))
    match kind:
        case TaskKind.EXCESS:
            crowd = plants.crowd
            capacity = building.plan.places[crowd.region].capacity
            return GameTask(kind, crowd.region, crowd.day, None, capacity, None)
        case TaskKind.NIGHT:
            nights = [day for day in range(building.days_played - 1) if day % DAYS_A_WEEK < WORKING_DAYS]
            return GameTask(kind, None, int(rng.choice(nights)), None, None, None)
        case TaskKind.SENSOR:
            return GameTask(kind, plants.broken.region, None, None, None, None)
        case TaskKind.EVENT:
            free = [lecture for lecture in building.lectures if lecture.region not in plants.regions]
            lecture = free[int(rng.integers(len(free)))]
            morning = lecture.start * building.tick_minutes < _NOON
            return GameTask(kind, lecture.region, None, lecture.weekday, None, morning)
        case TaskKind.MEETING:
            return GameTask(kind, plants.meeting.region, None, None, None, None)


def describe_task(task: GameTask, building: Building) -> str:
    """Return the task in a sentence."""
    name = building.plan.places[task.where].name if task.place is not None else ""
    match task.kind:
        case TaskKind.EXCESS:
            return (
                f"On {name_day(task.on_day)}, count the {building.tick_minutes}-minute intervals in which"
                f" {name} has more than {task.threshold} people."
            )
        case TaskKind.NIGHT:
            return f"Which region is the most occupied in the night of {name_day(task.on_day)}, from 18:00 to 06:00?"
        case TaskKind.SENSOR:
            return f"The sensor of {name} broke, and reports nobody ever since. From when on?"
        case TaskKind.EVENT:
            half = "morning" if task.morning else "afternoon"
            return f"On {WEEKDAYS[task.on_weekday]}s there is a lecture in {name} in the {half}. When does it begin?"
        case TaskKind.MEETING:
            return f"There is a weekly meeting in {name}. On which weekday, and when does it begin?"


def solve_task(task: GameTask, world: PrivateDays) -> TaskAnswer:
    """Return the true answer, from the true counts and the timetable."""
    ticks = world.building.ticks_a_day
    match task.kind:
        case TaskKind.EXCESS:
            return TaskAnswer(count=int((world.count_place(task.where)[task.on_day] > task.above).sum()))
        case TaskKind.NIGHT:
            return TaskAnswer(place=world.building.plan.regions[int(np.argmax(world.count_nights(task.on_day)))])
        case TaskKind.SENSOR:
            last = int(np.flatnonzero(world.count_place(task.where).ravel())[-1])
            return TaskAnswer(day=(last + 1) // ticks, tick=(last + 1) % ticks)
        case TaskKind.EVENT:
            return TaskAnswer(tick=_find_lecture_start(task, world.building))
        case TaskKind.MEETING:
            return TaskAnswer(day=world.plants.meeting.weekday, tick=world.plants.meeting.start)


def measure_distance(task: GameTask, answer: TaskAnswer, truth: TaskAnswer, world: PrivateDays) -> Distance:
    """Return the distance of an answer from the truth.

    Raises:
        ValueError: the answer lacks a part that the task needs, or names something that does not exist.
    """
    ticks = world.building.ticks_a_day
    match task.kind:
        case TaskKind.EXCESS:
            return Distance(
                abs(_check_number_within(answer.count, ticks + 1) - _check_number_within(truth.count, ticks + 1)),
                wrong_day=False,
            )
        case TaskKind.NIGHT:
            if answer.place not in world.building.plan.regions:
                raise ValueError("the answer is a region")
            return Distance(_rank_region(world.count_nights(task.on_day), world, answer.place), wrong_day=False)
        case TaskKind.SENSOR:
            at, true = (
                _check_number_within(one.day, world.days) * ticks + _check_number_within(one.tick, ticks)
                for one in (answer, truth)
            )
            return Distance(abs(at - true), wrong_day=False)
        case TaskKind.EVENT:
            return Distance(
                abs(_check_number_within(answer.tick, ticks) - _check_number_within(truth.tick, ticks)), wrong_day=False
            )
        case TaskKind.MEETING:
            wrong = _check_number_within(answer.day, DAYS_A_WEEK) != truth.day
            return Distance(
                abs(_check_number_within(answer.tick, ticks) - _check_number_within(truth.tick, ticks)), wrong_day=wrong
            )


def _rank_region(nights: Counts, world: PrivateDays, region: int) -> int:
    """Return the number of regions with more people than this one."""
    return int((nights > nights[world.building.plan.regions.index(region)]).sum())


def _find_lecture_start(task: GameTask, building: Building) -> int:
    for lecture in building.lectures:
        morning = lecture.start * building.tick_minutes < _NOON
        if (lecture.region, lecture.weekday, morning) == (task.where, task.on_weekday, task.morning):
            return lecture.start
    raise AssertionError("the fourth task is about a lecture of the timetable")


def _check_number_within(number: int | None, stop: int) -> int:
    if number is None or not 0 <= number < stop:
        raise ValueError(f"the answer has a number from 0 to {stop - 1} that is missing or outside")
    return number


def _require_number(number: int | None) -> int:
    assert number is not None, "a task has the brackets of its kind"
    return number
