"""The JSON for players. Before a round is answered it has only what was published; afterwards it has everything.

Guarantee, kept by tests/proxy/play/test_telling.py: what `write_round`, `write_series` and `write_heat_map` return
depends on true counts only through what was published, and never names the seed.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mechanisms.risk.posterior import CONFIDENCES
from proxy.play.attacker_beliefs import AttackedDay, Belief, LocalisedPeople, PublishedChannel
from proxy.play.bots import BotError
from proxy.play.building import DAYS_A_WEEK, MINUTES_A_DAY, Building
from proxy.play.floor_plan import FloorPlan
from proxy.play.game import Feedback, GameSession, Round
from proxy.play.heat_map import colour_counts
from proxy.play.key_sets import KeySetAnswer
from proxy.play.published import SENTENCES, Publisher, Publishing, Values
from proxy.play.tasks import WEEKDAYS, GameTask, TaskAnswer, TaskKind, describe_task, name_day
from proxy.play.tradeoff import Tradeoff

SLOT_MINUTES = 15
"""Of a heat map: 64 regions by 96 slots are 6,144 cells."""

_HOUR = 60  # minutes
_BUSIEST = 12  # regions of a night that are shown: what fits a page
_EVENING, _MORNING = 18 * 60, 6 * 60  # minutes of a day

Json = dict[str, Any]
Floats = npt.NDArray[np.float64]


def write_plan(plan: FloorPlan) -> list[Json]:
    """Return the places as JSON, in order of their numbers."""
    return [
        {
            "name": place.name,
            "level": place.level.value,
            "kind": None if place.kind is None else place.kind.value,
            "capacity": place.capacity,
            "parent": place.parent,
        }
        for place in plan.places
    ]


def write_session(session: GameSession, *, key: str, now: float, shared_seed: bool) -> Json:
    """Return the state of a session as JSON. It has the seed if the player named it, or once the session has ended."""
    over = session.is_over(now)
    return {
        "key": key,
        "name": session.name,
        "teaching": session.teaching,
        "seconds_left": round(session.get_seconds_left(now), 2),
        "over": over,
        "points": session.points,
        "rounds": session.rounds_done,
        "days": [name_day(day) for day in range(session.building.days_played)],
        "tick_minutes": session.building.tick_minutes,
        "seed": session.building.seed if shared_seed or over else None,
        "round": None if session.round is None or over else write_round(session, session.round, now=now),
    }


def write_round(session: GameSession, at: Round, *, now: float) -> Json:
    """Return an open round as JSON.

    It has the way and epsilon in teaching mode. It also has them if Keyhole answers, since a key set shows its way
    anyhow.
    """
    told: Json = {
        "number": at.number,
        "task": at.task.kind.value,
        "text": describe_task(at.task, session.building),
        "place": at.task.place,
        "day": at.task.day,
        "weekday": at.task.weekday,
        "threshold": at.task.threshold,
        "seconds": round(now - at.began, 2),
        "keys": None if at.keys is None else write_key_set(at.keys, at.task, session.building),
    }
    if session.teaching or at.keys is not None:
        told |= _write_way(at)
    return told


def write_series(seen: Mapping[int, Mapping[int, Values]], *, start: int, stop: int) -> Json:
    """Return the published values of places as JSON, by place, over the days in order.

    Each day has its ticks from `start` to before `stop`.
    """
    days = sorted(seen)
    return {
        "days": days,
        "start": start,
        "places": {
            str(number): [
                float(value) for day in days for value in np.round(seen[day][number][start:stop].astype(np.float64), 2)
            ]
            for number in seen[days[0]]
        },
    }


def write_heat_map(building: Building, seen: Mapping[int, Values]) -> Json:
    """Return a day's heat map as JSON: each place's mean published count and its colour, by quarter of an hour."""
    ticks = SLOT_MINUTES // building.tick_minutes
    regions, values, colours = [], [], []
    for number, series in seen.items():
        means = series.astype(np.float64).reshape(-1, ticks).mean(axis=1)
        mean, spread = building.measure_usual_occupancy(number)
        regions.append(number)
        values.append(np.round(means, 1).tolist())
        colours.append(colour_counts(means, mean=mean, spread=spread).tolist())
    return {"slot_minutes": SLOT_MINUTES, "places": regions, "values": values, "colours": colours}


def write_key_set(keys: KeySetAnswer, task: GameTask, building: Building) -> Json:
    """Return a key set as JSON, with its question, its promise, and the answer read from it."""
    return {
        "sql": keys.sql,
        "tolerance": keys.tolerance,
        "loss": keys.loss,
        "keys": [_name_key(key, task, building) for key in keys.keys],
        "numbers": list(keys.keys),
        "read": _name_answer(keys.conclusion, task, building),
    }


def write_feedback(feedback: Feedback, session: GameSession) -> Json:
    """Return everything about an answered round as JSON, including the true series."""
    at, building = feedback.round, session.building
    points = feedback.points
    told: Json = {
        "number": at.number,
        "task": at.task.kind.value,
        "text": describe_task(at.task, building),
        "answer": _name_answer(feedback.answer, at.task, building),
        "truth": _name_answer(feedback.truth, at.task, building),
        "error": feedback.distance.error,
        "wrong_day": feedback.distance.wrong_day,
        "unit": {TaskKind.EXCESS: "intervals", TaskKind.NIGHT: "ranks"}.get(at.task.kind, "ticks"),
        "seconds": round(feedback.seconds, 1),
        "points": points.points,
        "accuracy": points.accuracy,
        "speed": points.speed,
        "bonus": points.bonus,
        "total": session.points,
        "rounds": session.rounds_done,
        "keys": write_key_set(feedback.keys, at.task, building),
        "keys_error": feedback.keys_distance.error,
        "keys_epsilon": float(feedback.compared_epsilon),
        "bot": None if feedback.counts_answer is None else _name_answer(feedback.counts_answer, at.task, building),
        "alarm": None,
        "overlay": _write_overlay(feedback, building),
    }
    if feedback.alarm is not None:
        rang = feedback.alarm.rang_at
        told["alarm"] = {
            "rang": None if rang is None else name_tick(rang, building),
            "tolerance": feedback.alarm.tolerance,
            "loss": feedback.alarm.loss,
            "looks": feedback.alarm.looks,
        }
    return told | _write_way(at)


def write_belief(day: AttackedDay, belief: Belief, channel: PublishedChannel) -> Json:
    """Return an attacker's belief as JSON, the likeliest regions first."""
    places = day.building.plan.places
    at = belief.regions.index(belief.true_region)
    order = sorted(range(len(belief.regions)), key=lambda place: (-belief.posterior[place], place))
    return {
        "people": belief.people,
        "true_region": places[belief.true_region].name,
        "prior": float(belief.prior[at]),
        "posterior": float(belief.posterior[at]),
        "joint": float(belief.joint[at]),
        "bound_of_presence": belief.presence,
        "bound_of_place": belief.place,
        "loss": channel.loss,
        "regions": [
            {
                "name": places[belief.regions[place]].name,
                "prior": float(belief.prior[place]),
                "posterior": float(belief.posterior[place]),
                "joint": float(belief.joint[place]),
                "published": belief.published[place],
                "here": place == at,
            }
            for place in order
        ],
    }


def write_localised_people(found: LocalisedPeople) -> Json:
    """Return the people of a day as JSON, by class of confidence."""
    return {
        "classes": [f"to {100 * end:g} %" for end in CONFIDENCES],
        "hidden_per_tick": found.hidden_count / found.ticks,
        "believed_per_tick": [count / found.ticks for count in found.believed_counts],
        "raised_per_tick": [count / found.ticks for count in found.raised_counts],
    }


def write_tradeoff(found: Tradeoff) -> Json:
    """Return as JSON the errors of the bots at an epsilon, and the people whom it reveals."""
    return {
        "epsilon": found.epsilon,
        "looks": found.looks,
        "tolerance": found.tolerance,
        "tasks": [
            {
                "task": laplace.kind.value,
                "laplace": laplace.middle,
                "laplace_wrong_day": laplace.wrong_day,
                "keyhole": keyhole.middle,
                "keyhole_wrong_day": keyhole.wrong_day,
                "rounds": laplace.rounds,
            }
            for laplace, keyhole in zip(found.laplace, found.keyhole, strict=True)
        ],
        "raised": dict(found.raised_people),
    }


def write_errors(way: Publishing, found: Sequence[BotError]) -> Json:
    """Return the bots' errors by one way of publishing as JSON."""
    return {
        "way": way.value,
        "text": SENTENCES[way],
        "rounds": found[0].rounds,
        "tasks": [{"task": one.kind.value, "error": one.middle, "wrong_day": one.wrong_day} for one in found],
    }


def write_action(action: Mapping[str, Any]) -> str:
    """Return an action of a trace as a line of JSON."""
    return json.dumps(action)


def name_tick(tick: int, building: Building) -> str:
    """Return the time of day at which a tick begins."""
    hours, minutes = divmod(tick * building.tick_minutes % MINUTES_A_DAY, _HOUR)
    return f"{hours:02}:{minutes:02}"


def _write_way(at: Round) -> Json:
    return {
        "way": at.way.value,
        "way_text": SENTENCES[at.way],
        "epsilon": None if at.epsilon is None else float(at.epsilon),
    }


def _name_key(key: int, task: GameTask, building: Building) -> str:
    day, tick = divmod(key, building.ticks_a_day)
    match task.kind:
        case TaskKind.EXCESS:
            return name_tick(key, building)
        case TaskKind.NIGHT:
            return building.plan.places[key].name
        case TaskKind.SENSOR:
            return f"{name_day(day)}, {name_tick(tick, building)}"
        case TaskKind.EVENT | TaskKind.MEETING:
            return f"{WEEKDAYS[day]}, {name_tick(tick, building)}"


def _name_answer(answer: TaskAnswer, task: GameTask, building: Building) -> str:
    match task.kind:
        case TaskKind.EXCESS:
            return f"{answer.count} intervals"
        case TaskKind.NIGHT:
            return building.plan.places[answer.place].name if answer.place is not None else ""
        case TaskKind.SENSOR:
            return f"{name_day(answer.day or 0)}, {name_tick(answer.tick or 0, building)}"
        case TaskKind.EVENT:
            return name_tick(answer.tick or 0, building)
        case TaskKind.MEETING:
            return f"{WEEKDAYS[(answer.day or 0) % DAYS_A_WEEK]}, {name_tick(answer.tick or 0, building)}"


def _write_overlay(feedback: Feedback, building: Building) -> Json:
    """Return the task's true series as JSON, with the published values and marks at the answers."""
    at, task = feedback.round, feedback.round.task
    if task.kind is TaskKind.NIGHT:
        return _write_nights(feedback, building)
    days = [task.on_day] if task.kind is TaskKind.EXCESS else list(range(at.world.days))
    if task.kind is TaskKind.EVENT:
        days = list(range(task.on_weekday, at.world.days, DAYS_A_WEEK))
    true = at.world.count_place(task.where)[days].astype(np.float64)
    published = None if at.publisher is None else _read_published(at.publisher, task.where, days)
    ticks, first = building.ticks_a_day, 0
    match task.kind:
        case TaskKind.EXCESS:
            labels = [name_tick(tick, building) for tick in range(ticks)]
            shown = [true[0], None if published is None else published[0]]
            marks: list[Json] = []
            width = 1
        case TaskKind.EVENT:
            labels = [name_tick(tick, building) for tick in range(ticks)]
            shown = [true.mean(axis=0), None if published is None else published.mean(axis=0)]
            width, first = 1, task.on_weekday * ticks
            marks = _list_marks(feedback, lambda answer: answer.tick or 0)
        case TaskKind.MEETING:
            width = SLOT_MINUTES // building.tick_minutes
            shown = [_average_week(series, width) for series in (true, published)]
            slots = ticks // width
            labels = [
                f"{WEEKDAYS[slot // slots][:2]} {name_tick(slot % slots * width, building)}"
                for slot in range(DAYS_A_WEEK * slots)
            ]
            marks = _list_marks(feedback, lambda answer: ((answer.day or 0) * ticks + (answer.tick or 0)) // width)
        case _:
            width = _HOUR // building.tick_minutes
            shown = [None if series is None else series.reshape(-1, width).mean(axis=1) for series in (true, published)]
            hours = ticks // width
            labels = [
                f"{name_day(slot // hours)}, {slot % hours:02}:00" for slot in range(len(days) * hours)
            ]  # fmt: skip
            marks = _list_marks(feedback, lambda answer: ((answer.day or 0) * ticks + (answer.tick or 0)) // width)
    keys = [] if feedback.keys is None else sorted({(key - first) // width for key in feedback.keys.keys})
    return {
        "kind": "line",
        "labels": labels,
        "true": _round_numbers(shown[0]),
        "published": None if shown[1] is None else _round_numbers(shown[1]),
        "threshold": task.threshold,
        "marks": marks,
        "keys": keys,
    }


def _write_nights(feedback: Feedback, building: Building) -> Json:
    at, day = feedback.round, feedback.round.task.on_day
    regions = building.plan.regions
    nights = at.world.count_nights(day)
    shown = np.argsort(-nights, kind="stable")[:_BUSIEST].tolist()
    chosen = None if feedback.answer.place is None else regions.index(feedback.answer.place)
    if chosen is not None and chosen not in shown:
        shown.append(chosen)
    evening, morning = (minutes // building.tick_minutes for minutes in (_EVENING, _MORNING))
    hours = _HOUR / building.tick_minutes
    published = None
    if at.publisher is not None:
        numbers = tuple(regions[place] for place in shown)
        before, after = at.publisher.publish(numbers, day), at.publisher.publish(numbers, day + 1)
        published = [
            round(float(before[number][evening:].sum() + after[number][:morning].sum()) / hours, 1)
            for number in numbers
        ]  # fmt: skip
    return {
        "kind": "bar",
        "labels": [building.plan.places[regions[place]].name for place in shown],
        "true": [round(float(nights[place]) / hours, 1) for place in shown],
        "published": published,
        "threshold": None,
        "marks": [] if chosen is None else [{"at": shown.index(chosen), "name": "your answer"}],
        "keys": [shown.index(regions.index(key)) for key in feedback.keys.keys if regions.index(key) in shown],
    }


def _list_marks(feedback: Feedback, place: Callable[[TaskAnswer], int]) -> list[Json]:
    return [
        {"at": place(feedback.truth), "name": "truth"},
        {"at": place(feedback.answer), "name": "your answer"},
    ]  # fmt: skip


def _read_published(publisher: Publisher, number: int, days: Sequence[int]) -> Floats:
    return np.array([publisher.publish((number,), day)[number] for day in days], dtype=np.float64)


def _average_week(series: Floats | None, width: int) -> Floats | None:
    """Return the mean week, by slot."""
    if series is None:
        return None
    weeks = series.shape[0] // DAYS_A_WEEK
    return np.asarray(series.reshape(weeks, -1, width).mean(axis=(0, 2)))


def _round_numbers(series: Floats | None) -> list[float]:
    return [] if series is None else np.round(series, 2).tolist()
