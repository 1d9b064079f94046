from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from proxy.play.bots import answer_by_counts, play_rounds
from proxy.play.building import Building
from proxy.play.key_sets import answer_by_keys, watch_day
from proxy.play.published import Publisher, Publishing
from proxy.play.tasks import TaskKind, draw_task, measure_distance, solve_task
from proxy.play.tradeoff import count_errors
from proxy.play.world import PrivateDays, draw_planted_events
from tests.seeded_noise import SeededNoise

EPSILONS = tuple(Fraction(1, inverse) for inverse in (100, 20, 10, 2, 1))


def _errors(building: Building, kind: TaskKind, way: Publishing, *, rounds: int) -> list[float]:
    return [
        play_rounds(
            building,
            kind=kind,
            way=way,
            epsilon=epsilon,
            rounds=rounds,
            noise=SeededNoise(3),
            generator=np.random.default_rng(3),
        ).error
        for epsilon in EPSILONS
    ]


@pytest.mark.statistical
def test_counting_intervals_errs_as_in_the_prototype(draw: Callable[[int], Building]) -> None:
    """The specification's trend: 93, 30, 12, 11, 10 of 18 true intervals at eps .01, .05, .1, .5, 1.

    Twenty rounds on one building with seeded noise: it repeats itself. With other noise the means move by 3 at the
    first and by 1.5 at the others (one standard deviation), so each interval fails in one of a thousand runs or less.
    The first two depend on how large rooms are, which the prototype does not say: they are taken to a third.
    """
    found = _errors(draw(1), TaskKind.EXCESS, Publishing.TICK_LAPLACE, rounds=20)
    assert 62 <= found[0] <= 124
    assert 10 <= found[1] <= 40
    for error, printed in zip(found[2:], (12, 11, 10), strict=True):
        assert abs(error - printed) <= 5


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [TaskKind.NIGHT, TaskKind.SENSOR, TaskKind.EVENT, TaskKind.MEETING])
def test_error_falls_with_epsilon(draw: Callable[[int], Building], kind: TaskKind) -> None:
    """Six rounds with seeded noise at eps .01 and 1: it repeats itself. The first mean is tens of times the second."""
    first, *_, last = _errors(draw(1), kind, Publishing.TICK_LAPLACE, rounds=6)
    assert last <= 4
    assert first >= 5 * last + 3


@pytest.mark.parametrize("kind", list(TaskKind))
def test_without_noise_nothing_is_wrong(draw: Callable[[int], Building], kind: TaskKind) -> None:
    for number in range(4):
        building = draw(1)
        plants = draw_planted_events(building, number=number)
        world = PrivateDays(building, plants)
        task = draw_task(kind, building, plants, number=number)
        publisher = Publisher(world, Publishing.TRUE, None, SeededNoise(0), np.random.default_rng(0))
        distance = measure_distance(task, answer_by_counts(task, publisher), solve_task(task, world), world)
        assert distance.error <= 2
        assert not distance.wrong_day


@pytest.mark.statistical
def test_a_key_set_keeps_its_rates(draw: Callable[[int], Building]) -> None:
    """Ticks above the threshold are missed 5 % of the time at most, those below by more than the tolerance returned
    10 % at most: some 500 of the first and 8,000 of the second, each mean beyond its rate plus .05 with probability
    below 1e-6; noise is seeded."""
    building, noise = draw(1), SeededNoise(9)
    missed, wrong, true, false = 0, 0, 0, 0
    for number in range(30):
        plants = draw_planted_events(building, number=number)
        world = PrivateDays(building, plants)
        task = draw_task(TaskKind.EXCESS, building, plants, number=number)
        answer = answer_by_keys(task, world, epsilon=Fraction(1, 4), noise=noise)
        counts = world.count_place(task.where)[task.on_day]
        returned = np.isin(np.arange(counts.size), answer.keys)
        above, below = counts > task.above, counts <= task.above - answer.tolerance
        missed, true = missed + int((above & ~returned).sum()), true + int(above.sum())
        wrong, false = wrong + int((below & returned).sum()), false + int(below.sum())
        assert answer.loss <= 0.25
    assert true > 400
    assert false > 4000
    assert missed / true <= 0.10
    assert wrong / false <= 0.15


def test_the_alarm_rings_where_the_room_is_too_full(draw: Callable[[int], Building]) -> None:
    """Missed in one of twenty at most at the first look, and next to never after eighteen; noise is seeded."""
    building = draw(1)
    for number in range(10):
        plants = draw_planted_events(building, number=number)
        world = PrivateDays(building, plants)
        task = draw_task(TaskKind.EXCESS, building, plants, number=number)
        alarm = watch_day(task, world, epsilon=Fraction(2), noise=SeededNoise(number))
        assert alarm.loss <= 2
        assert alarm.rang_at is not None
        counts = world.count_place(task.where)[task.on_day]
        assert counts[alarm.rang_at] > task.above - alarm.tolerance


@pytest.mark.parametrize("way", [way for way in Publishing if way is not Publishing.KEYHOLE])
def test_what_was_published_stays(draw: Callable[[int], Building], way: Publishing) -> None:
    building = draw(1)
    world = PrivateDays(building, draw_planted_events(building, number=0))
    epsilon = Fraction(1, 10) if way.has_epsilon else None
    publisher = Publisher(world, way, epsilon, SeededNoise(0), np.random.default_rng(0))
    room, region, floor = building.plan.rooms[0], building.plan.regions[1], 1
    once = publisher.publish((room, region), 2)
    again = publisher.publish((floor, region, room), 2)
    for number in (room, region):
        assert np.array_equal(once[number], again[number])
    if way is not Publishing.HS_PEGASUS:
        parts = [number for number in building.plan.regions if building.plan.places[number].parent == floor]
        together = sum(publisher.publish(tuple(parts), 2).values())
        assert np.allclose(again[floor], together, atol=0.1)


def test_zeros_tell_nothing(draw: Callable[[int], Building]) -> None:
    building = draw(1)
    world = PrivateDays(building, draw_planted_events(building, number=0))
    publisher = Publisher(world, Publishing.ZEROS, None, SeededNoise(0), np.random.default_rng(0))
    assert not any(values.any() for values in publisher.publish(building.plan.regions, 3).values())


def test_middle_errors_stand_still_from_one_look_to_the_next(draw: Callable[[int], Building]) -> None:
    """T3 at an epsilon of .1, where one round in ten is off by days: seeded, so it repeats itself. With other noise the
    middle of 48 moves by 5 ticks (one standard deviation); the mean of six moved by 70."""
    found = [
        count_errors(draw(1), Publishing.TICK_LAPLACE, Fraction(1, 10), noise=SeededNoise(seed)) for seed in (1, 2)
    ]
    assert [one.rounds for one in found[0]] == [48, 18, 48, 24, 24]
    once, again = (next(one for one in looks if one.kind is TaskKind.SENSOR) for looks in found)
    assert once.middle < once.error
    assert abs(once.middle - again.middle) <= 15
