"""Before a round is answered nothing is told but what was published: a player reads whatever the browser has."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from proxy.play import round_json
from proxy.play.building import Building
from proxy.play.floor_plan import Level, RegionKind
from proxy.play.game import GameSession
from proxy.play.published import Publishing
from proxy.play.tasks import TaskKind, solve_task
from proxy.play.world import find_lively_regions
from tests.seeded_noise import SeededNoise

ROUND = {"number", "task", "text", "place", "day", "weekday", "threshold", "seconds", "keys"}
STATE = {"seconds_left", "over", "points", "rounds", "round"}
SESSION = STATE | {"key", "name", "teaching", "days", "tick_minutes", "seed"}


def _session(building: Building, *, teaching: bool = False) -> GameSession:
    return GameSession(
        name="Ada",
        building=building,
        teaching=teaching,
        noise=SeededNoise(5),
        generator=np.random.default_rng(5),
        began=0.0,
    )


def _until(session: GameSession, way: Publishing) -> None:
    while session.begin_round(0.0).way is not way:
        session.give_up_round(0.0)


def _told(session: GameSession, day: int) -> str:
    """All that is told of an open round."""
    regions = session.building.plan.regions
    seen = session.read_published(1.0, regions, range(day, day + 1))
    return json.dumps(
        [
            round_json.write_session(session, key="key", now=1.0, shared_seed=False),
            round_json.write_series(seen, start=0, stop=288),
            round_json.write_heat_map(session.building, seen[day]),
        ]
    )


@pytest.mark.parametrize("way", [Publishing.TICK_LAPLACE, Publishing.PEGASUS, Publishing.HS_PEGASUS, Publishing.TTL])
def test_what_is_told_depends_on_what_was_published_alone(draw: Callable[[int], Building], way: Publishing) -> None:
    """Two buildings whose private days differ, to which the same was published, look the same."""
    building = draw(1)
    lounges, lively = building.plan.list_regions_of_kind(RegionKind.LOUNGE), find_lively_regions(building)
    lounge = next(number for number in lounges if number in lively)
    counts = building.counts.copy()
    counts[building.plan.places[lounge].rooms, building.days_known :] += 7
    other = replace(building, counts=counts)
    assert find_lively_regions(other) == find_lively_regions(building)

    here, there = _session(building), _session(other)
    for session in (here, there):
        _until(session, way)
    assert here.round is not None
    assert there.round is not None
    assert here.round.task == there.round.task
    first = _told(here, 3)
    assert here.round.publisher is not None
    assert there.round.publisher is not None
    there.round.publisher._published_values.update(here.round.publisher._published_values)
    assert _told(there, 3) == first


@pytest.mark.parametrize("way", list(Publishing))
def test_an_open_round_tells_neither_truth_nor_way_nor_seed(draw: Callable[[int], Building], way: Publishing) -> None:
    session = _session(draw(1))
    _until(session, way)
    told = round_json.write_session(session, key="key", now=1.0, shared_seed=False)
    assert set(told) == SESSION
    assert told["seed"] is None
    if way is Publishing.KEYHOLE:
        assert set(told["round"]) == ROUND | {"way", "way_text", "epsilon"}
        assert set(told["round"]["keys"]) == {"sql", "tolerance", "loss", "keys", "numbers", "read"}
    else:
        assert set(told["round"]) == ROUND
        assert told["round"]["keys"] is None


def test_true_counts_are_told_where_they_are_published_alone(draw: Callable[[int], Building]) -> None:
    for way in (Publishing.TRUE, Publishing.TICK_LAPLACE, Publishing.ZEROS, Publishing.PEGASUS_SMOOTH):
        session = _session(draw(1))
        _until(session, way)
        assert session.round is not None
        seen = round_json.write_series(session.read_published(1.0, (0,), range(2, 3)), start=0, stop=288)
        true = session.round.world.count_place(0)[2].tolist()
        assert (seen["places"]["0"] == true) is (way is Publishing.TRUE)


def test_teaching_tells_the_way_before(draw: Callable[[int], Building]) -> None:
    session = _session(draw(1), teaching=True)
    _until(session, Publishing.TICK_LAPLACE)
    told = round_json.write_session(session, key="key", now=1.0, shared_seed=True)
    assert told["round"]["way"] == "tick_laplace"
    assert told["round"]["epsilon"] > 0
    assert told["seed"] == 1


@pytest.mark.parametrize("kind", list(TaskKind))
def test_feedback_has_the_true_series_and_is_json(draw: Callable[[int], Building], kind: TaskKind) -> None:
    session = _session(draw(1))
    while session.begin_round(0.0).task.kind is not kind:
        session.give_up_round(0.0)
    assert session.round is not None
    task, world = session.round.task, session.round.world
    truth = solve_task(task, world)
    told: dict[str, Any] = json.loads(json.dumps(round_json.write_feedback(session.answer_round(9.0, truth), session)))
    assert told["error"] == 0
    assert told["truth"] == told["answer"]
    overlay = told["overlay"]
    assert len(overlay["labels"]) == len(overlay["true"])
    assert overlay["published"] is None or len(overlay["published"]) == len(overlay["true"])
    assert all(0 <= mark["at"] < len(overlay["labels"]) for mark in overlay["marks"])
    assert all(0 <= key < len(overlay["labels"]) for key in overlay["keys"])
    if kind is TaskKind.EXCESS:
        assert sum(count > overlay["threshold"] for count in overlay["true"]) == truth.count
        assert told["alarm"]["looks"] == 288
    if kind is TaskKind.NIGHT:
        assert overlay["true"] == sorted(overlay["true"], reverse=True)


def test_a_heat_map_has_ten_colours_for_every_region(draw: Callable[[int], Building]) -> None:
    session = _session(draw(1))
    _until(session, Publishing.TRUE)
    building = session.building
    heat = round_json.write_heat_map(building, session.read_published(1.0, building.plan.regions, range(1, 2))[1])
    assert len(heat["colours"]) == 64
    assert {len(row) for row in heat["colours"]} == {96}
    assert {colour for row in heat["colours"] for colour in row} <= set(range(10))
    assert [building.plan.places[number].level for number in heat["places"]] == [Level.REGION] * 64
