from collections.abc import Callable

import numpy as np
import pytest

from proxy.play.building import Building
from proxy.play.scoring import score_answer
from proxy.play.tasks import (
    Distance,
    GameTask,
    TaskAnswer,
    TaskKind,
    describe_task,
    draw_task,
    measure_distance,
    solve_task,
)
from proxy.play.world import PrivateDays, draw_planted_events

Asked = tuple[GameTask, PrivateDays]


@pytest.fixture(params=list(TaskKind), ids=lambda kind: kind.value)
def asked(request: pytest.FixtureRequest, draw: Callable[[int], Building]) -> Asked:
    building = draw(1)
    plants = draw_planted_events(building, number=3)
    task = draw_task(request.param, building, plants, number=3)
    assert task == draw_task(request.param, building, plants, number=3)
    return task, PrivateDays(building, plants)


def test_the_true_answer_is_right(asked: Asked) -> None:
    task, world = asked
    truth = solve_task(task, world)
    assert measure_distance(task, truth, truth, world) == Distance(0, wrong_day=False)


def test_a_task_is_told_with_its_brackets(asked: Asked) -> None:
    task, world = asked
    told = describe_task(task, world.building)
    if task.place is not None:
        assert world.building.plan.places[task.place].name in told
    assert "None" not in told


def test_an_answer_without_what_is_asked_for_is_refused(asked: Asked) -> None:
    task, world = asked
    for answer in (
        TaskAnswer(),
        TaskAnswer(count=-1, place=-1, day=-1, tick=-1),
        TaskAnswer(10**6, 10**6, 10**6, 10**6),
    ):
        with pytest.raises(ValueError, match="the answer"):
            measure_distance(task, answer, solve_task(task, world), world)


def test_ranks_are_how_many_regions_are_more_occupied(draw: Callable[[int], Building]) -> None:
    building = draw(1)
    world = PrivateDays(building, draw_planted_events(building, number=0))
    task = GameTask(TaskKind.NIGHT, None, 1, None, None, None)
    nights = world.count_nights(1)
    regions = building.plan.regions
    for rank in (0, 1, 5):
        region = regions[int(np.argsort(-nights, kind="stable")[rank])]
        expected = int((nights > np.sort(nights)[-1 - rank]).sum())
        assert measure_distance(task, TaskAnswer(place=region), solve_task(task, world), world).error == expected
    evening = world.count_place(regions[0])[1, 216:].sum() + world.count_place(regions[0])[2, :72].sum()
    assert nights[0] == evening


@pytest.mark.parametrize(
    ("kind", "error", "wrong_day", "true_count", "seconds", "rounds", "points"),
    [
        # 25 % of the true count, and 5 at least
        (TaskKind.EXCESS, 0, False, 40, 0, 0, 100.0),
        (TaskKind.EXCESS, 5, False, 40, 0, 0, 50.0),
        (TaskKind.EXCESS, 10, False, 40, 0, 0, 0.0),
        (TaskKind.EXCESS, 4, False, 8, 0, 0, 20.0),
        (TaskKind.EXCESS, 93, False, 18, 0, 10, 0.0),
        # three ranks
        (TaskKind.NIGHT, 1, False, None, 0, 0, 66.67),
        (TaskKind.NIGHT, 3, False, None, 0, 0, 0.0),
        # twelve ticks
        (TaskKind.SENSOR, 3, False, None, 0, 0, 75.0),
        (TaskKind.EVENT, 6, False, None, 0, 0, 50.0),
        # six ticks, and half on a wrong day
        (TaskKind.MEETING, 3, False, None, 0, 0, 50.0),
        (TaskKind.MEETING, 3, True, None, 0, 0, 25.0),
        (TaskKind.MEETING, 0, True, None, 0, 0, 50.0),
        # time: half of the points at 120 seconds, and no less
        (TaskKind.NIGHT, 0, False, None, 60, 0, 75.0),
        (TaskKind.NIGHT, 0, False, None, 120, 0, 50.0),
        (TaskKind.NIGHT, 0, False, None, 500, 0, 50.0),
        # rounds: a tenth more each, and double at most
        (TaskKind.NIGHT, 0, False, None, 0, 3, 130.0),
        (TaskKind.NIGHT, 0, False, None, 0, 10, 200.0),
        (TaskKind.NIGHT, 0, False, None, 0, 60, 200.0),
        (TaskKind.NIGHT, 1, False, None, 60, 5, 75.0),
    ],
)
def test_points(
    kind: TaskKind,
    error: int,
    wrong_day: bool,
    true_count: int | None,
    seconds: float,
    rounds: int,
    points: float,
) -> None:
    distance = Distance(error, wrong_day)
    assert (
        score_answer(kind, distance, TaskAnswer(count=true_count), seconds=seconds, rounds_done=rounds).points == points
    )
