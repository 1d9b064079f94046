"""Bots that play the game: each treats the published counts as the true ones, and answers from them.

They measure how useful a way of publishing is at an epsilon, over many rounds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechanisms.protocol import Noise
from proxy.play.building import DAYS_A_WEEK, Building
from proxy.play.key_sets import answer_by_keys
from proxy.play.published import Publisher, Publishing
from proxy.play.tasks import GameTask, TaskAnswer, TaskKind, draw_task, measure_distance, solve_task
from proxy.play.world import PrivateDays, draw_planted_events

_NOON, _EVENING, _MORNING = 12 * 60, 18 * 60, 6 * 60  # minutes of a day
_EVENT_MINUTES = 60  # how long a bot assumes that an event lasts

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BotError:
    """The error of a bot's answers in one task, over a number of rounds.

    `middle` is the median, which few bad rounds do not move. In T5 there is also the share of rounds with a wrong
    weekday.
    """

    kind: TaskKind
    error: float
    middle: float
    wrong_day: float
    rounds: int


def play_rounds(
    building: Building,
    *,
    kind: TaskKind,
    way: Publishing,
    epsilon: Fraction | None,
    rounds: int,
    noise: Noise,
    generator: np.random.Generator,
    draws: int = 1,
) -> BotError:
    """Play one task with a bot in `rounds` worlds of a building.

    Parameters as for `Publisher`. With `KEYHOLE` the bot reads the key set. `draws` is the number of draws of noise in
    each world; each draw is a round.
    """
    errors, wrong = [], 0
    for number in range(rounds):
        plants = draw_planted_events(building, number=number)
        world = PrivateDays(building, plants)
        task = draw_task(kind, building, plants, number=number)
        truth = solve_task(task, world)
        for _ in range(draws):
            if way is Publishing.KEYHOLE:
                assert epsilon is not None, "a key set has an epsilon"
                answer = answer_by_keys(task, world, epsilon=epsilon, noise=noise).conclusion
            else:
                answer = answer_by_counts(task, Publisher(world, way, epsilon, noise, generator))
            distance = measure_distance(task, answer, truth, world)
            errors.append(distance.error)
            wrong += distance.wrong_day
    return BotError(kind, float(np.mean(errors)), float(np.median(errors)), wrong / len(errors), len(errors))


def answer_by_counts(task: GameTask, publisher: Publisher) -> TaskAnswer:
    """Return the answer that would be right if the published counts were true."""
    building = publisher.world.building
    match task.kind:
        case TaskKind.EXCESS:
            return TaskAnswer(count=int((_read_series(publisher, task.where, [task.on_day]) > task.above).sum()))
        case TaskKind.NIGHT:
            return TaskAnswer(place=_find_busiest(publisher, task.on_day))
        case TaskKind.SENSOR:
            at = _find_silence(task, publisher)
            return TaskAnswer(day=at // building.ticks_a_day, tick=at % building.ticks_a_day)
        case TaskKind.EVENT:
            days = range(task.on_weekday, publisher.world.days, DAYS_A_WEEK)
            summed = _read_series(publisher, task.where, days).reshape(len(days), -1).sum(axis=0)
            noon = _NOON // building.tick_minutes
            part = summed[:noon] if task.morning else summed[noon:]
            return TaskAnswer(tick=_find_steepest_hour(part, building) + (0 if task.morning else noon))
        case TaskKind.MEETING:
            series = _read_series(publisher, task.where, range(publisher.world.days))
            at = _find_steepest_hour(series.reshape(-1, DAYS_A_WEEK * building.ticks_a_day).sum(axis=0), building)
            return TaskAnswer(day=at // building.ticks_a_day, tick=at % building.ticks_a_day)


def _read_series(publisher: Publisher, number: int, days: Sequence[int]) -> Floats:
    return np.concatenate([publisher.publish((number,), day)[number] for day in days]).astype(np.float64)


def _find_busiest(publisher: Publisher, day: int) -> int:
    building = publisher.world.building
    regions = building.plan.regions
    evening, morning = (minutes // building.tick_minutes for minutes in (_EVENING, _MORNING))
    before, after = publisher.publish(regions, day), publisher.publish(regions, day + 1)
    return max(regions, key=lambda number: float(before[number][evening:].sum() + after[number][:morning].sum()))


def _find_silence(task: GameTask, publisher: Publisher) -> int:
    """Return the tick from which the counts look like zeros, while the earlier counts look usual.

    The mean counts of the known past are the usual ones.
    """
    building = publisher.world.building
    days = range(publisher.world.days)
    series = _read_series(publisher, task.where, days)
    usual = np.tile(building.average_known_week(task.where), publisher.world.days // DAYS_A_WEEK)
    # the loss of squares that calling a tick usual saves against calling it silent
    return min(int(np.argmax(np.cumsum(usual * (2 * series - usual)))) + 1, series.size - 1)


def _find_steepest_hour(summed: Floats, building: Building) -> int:
    """Return the tick at which the hour begins whose counts exceed those of the hour before it by most."""
    ticks = _EVENT_MINUTES // building.tick_minutes
    added = np.concatenate([[0.0], np.cumsum(summed)])
    after = added[2 * ticks :] - added[ticks:-ticks]
    before = added[ticks:-ticks] - added[: -2 * ticks]
    return int(np.argmax(after - before)) + ticks
