from collections.abc import Callable

import numpy as np
import pytest

from proxy.play.building import NOBODY, Building, draw_building
from proxy.play.floor_plan import OPEN_TO_STUDENTS, Level, RegionKind, draw_floor_plan
from proxy.play.tasks import GameTask, TaskKind, solve_task
from proxy.play.world import PrivateDays, draw_planted_events

SMALL = {"people": 60, "tick_minutes": 10, "days_known": 7, "days_played": 7}


def test_there_are_64_regions_of_the_papers_kinds() -> None:
    plan = draw_floor_plan()
    found = {kind: len(plan.list_regions_of_kind(kind)) for kind in RegionKind}
    assert list(found.values()) == [14, 12, 5, 6, 21, 6]
    assert sum(found[kind] for kind in OPEN_TO_STUDENTS) == 37
    assert len({place.name for number in plan.regions for place in [plan.places[number]]}) == 64


def test_every_place_contains_the_rooms_of_what_it_contains() -> None:
    plan = draw_floor_plan()
    for level in (Level.BUILDING, Level.FLOOR, Level.REGION):
        for number in plan.list_level(level):
            place = plan.places[number]
            inside = [other for other in plan.places if other.parent == number]
            assert [room for other in inside for room in range(other.start, other.stop)] == list(
                range(place.start, place.stop)
            )
            assert sum(other.capacity for other in inside) == place.capacity


def test_a_seed_makes_one_building() -> None:
    once, again, other = (draw_building(seed=seed, **SMALL) for seed in (5, 5, 6))
    assert np.array_equal(once.counts, again.counts)
    assert np.array_equal(once.places, again.places)
    assert once.lectures == again.lectures
    assert not np.array_equal(once.counts, other.counts)


def test_counts_are_of_the_people_there() -> None:
    building = draw_building(seed=5, **SMALL)
    wednesday = building.counts[:, building.days_known + 2]
    for tick in (0, 60, 72, 100):
        rooms = building.places[:, tick]
        assert np.array_equal(np.bincount(rooms[rooms != NOBODY], minlength=139), wednesday[:, tick])


def test_weekends_are_quiet_and_nights_are_quieter_than_days(draw: Callable[[int], Building]) -> None:
    together = draw(1).counts.sum(axis=0)
    weekday, weekend = together[:5].max(axis=1), together[5:7].max(axis=1)
    assert weekend.max() < 0.2 * weekday.min()
    assert together[2, 12 * 3] < 0.1 * together[2, 12 * 12]


@pytest.mark.parametrize("wrong", [{"tick_minutes": 7}, {"days_played": 8}, {"people": 2}, {"days_known": 3}])
def test_what_is_no_building_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"weeks|people"):
        draw_building(seed=1, **{**SMALL, **wrong})


@pytest.mark.parametrize("number", range(12))
def test_what_is_planted_is_found_in_the_true_series(draw: Callable[[int], Building], number: int) -> None:
    building = draw(1)
    plants = draw_planted_events(building, number=number)
    world = PrivateDays(building, plants)
    assert plants == draw_planted_events(building, number=number)
    assert len(plants.regions) == 3

    crowd = world.count_place(plants.crowd.region)[plants.crowd.day]
    allowed = building.plan.places[plants.crowd.region].capacity
    # ninety minutes full, 75 to 105 of them too full, ninety minutes full
    assert 15 <= (crowd > allowed).sum() <= 21
    assert (crowd == allowed).sum() >= 36

    silent = world.count_place(plants.broken.region).ravel()
    begins = plants.broken.day * building.ticks_a_day + plants.broken.tick
    before = building.plan.add_up(building.played_counts, plants.broken.region)
    assert not silent[begins:].any()
    assert np.array_equal(silent[:begins], before.ravel()[:begins])
    truth = solve_task(GameTask(TaskKind.SENSOR, plants.broken.region, None, None, None, None), world)
    assert truth.day is not None
    assert truth.tick is not None
    # the region may have been empty for a while before
    assert begins - 24 <= truth.day * building.ticks_a_day + truth.tick <= begins

    meeting = plants.meeting
    weekly = world.count_place(meeting.region).reshape(3, 7, -1)
    assert (weekly[:, meeting.weekday, meeting.start : meeting.stop].min(axis=1) >= 12).all()


def test_the_building_is_the_sum_of_its_floors_with_what_is_planted(draw: Callable[[int], Building]) -> None:
    building = draw(1)
    world = PrivateDays(building, draw_planted_events(building, number=4))
    whole = world.count_place(0)
    for level in (Level.FLOOR, Level.REGION, Level.ROOM):
        assert np.array_equal(sum(world.count_place(number) for number in building.plan.list_level(level)), whole)
    assert not np.array_equal(whole, building.plan.add_up(building.played_counts, 0))
