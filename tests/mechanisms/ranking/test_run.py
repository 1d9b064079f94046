"""Ranking keys: order, ties, masks, edges, and what is revealed on the way."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.ranking.calibration import ONE_LOOK, SCHEDULE, calibrate_ranking
from mechanisms.ranking.ranking_task import RankingTask
from mechanisms.ranking.run import rank_keys
from mechanisms.threshold.one_shot import round_up_to_float
from tests.effort import examples
from tests.mechanisms.ranking.chosen_noise import answer
from tests.seeded_noise import SeededNoise

TASK = RankingTask(keys=6, limit=3, descending=True, sensitivity=2, tolerance=10, fnr=0.05, fpr=0.1)
FAR = 10**9  # times any noise here: an answer on values so far apart is right but for less than 1e-300


def ordered(values: list[int], taking_part: list[int], *, limit: int, descending: bool) -> tuple[int, ...]:
    """As SQL would with the key domain's order for ties."""
    sign = -1 if descending else 1
    return tuple(sorted(taking_part, key=lambda key: (sign * values[key], key))[:limit])


@st.composite
def rankings(draw: st.DrawFn) -> tuple[RankingTask, list[int], list[int], bool]:
    keys = draw(st.integers(0, 12))
    values = draw(st.lists(st.integers(-60, 60) | st.integers(-(10**6), 10**6), min_size=keys, max_size=keys))
    taking_part = sorted(draw(st.sets(st.integers(0, max(0, keys - 1)), max_size=keys)) if keys else set())
    task = replace(TASK, keys=keys, limit=draw(st.integers(0, 14)), descending=draw(st.booleans()))
    return task, values, taking_part, draw(st.booleans())


@examples(200)
@given(rankings())
def test_without_noise_the_answer_is_the_true_one(asked: tuple[RankingTask, list[int], list[int], bool]) -> None:
    """Whatever the values, ties among them, the mask and the looks; and keys stop where gaps allow it."""
    task, values, taking_part, looks = asked
    calibration = calibrate_ranking(task, schedule=SCHEDULE if looks else ONE_LOOK)
    silence = [(0,) * len(calibration.revealed_rates)] * task.keys
    found = answer(calibration, values, silence, taking_part)
    assert found.ranked == ordered(values, taking_part, limit=task.limit, descending=task.descending)
    outside = set(range(task.keys)) - set(taking_part)
    assert all(found.reached[key] == 0 for key in outside)
    if task.limit and len(taking_part) > 1:
        assert all(found.reached[key] > 0 for key in taking_part)
    else:
        assert not any(found.reached)


@examples(100)
@given(rankings(), st.data())
def test_what_was_not_revealed_changes_nothing(
    asked: tuple[RankingTask, list[int], list[int], bool], data: st.DataObject
) -> None:
    """Two worlds that agree in all that was revealed in one of them are told alike; so how far a key goes is a function
    of released values alone, which the proof of the loss rests on."""
    task, values, taking_part, _ = asked
    calibration = calibrate_ranking(task)
    levels = len(calibration.revealed_rates)
    noises = st.lists(st.integers(-80, 80), min_size=levels, max_size=levels)
    paths = [tuple(data.draw(noises)) for _ in values]
    found = answer(calibration, values, paths, taking_part)
    others = [
        tuple(
            old if level < reached else new
            for level, (old, new) in enumerate(zip(path, data.draw(noises), strict=True))
        )
        for path, reached in zip(paths, found.reached, strict=True)
    ]
    assert answer(calibration, values, others, taking_part) == found


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("schedule", [SCHEDULE, ONE_LOOK])
def test_keys_far_apart_are_ranked_rightly_and_stop_at_the_first_look(descending: bool, schedule: object) -> None:
    task = replace(TASK, descending=descending)
    calibration = calibrate_ranking(task, schedule=SCHEDULE if schedule is SCHEDULE else ONE_LOOK)
    values = np.array([3, 1, 6, 2, 5, 4]) * FAR
    found = rank_keys(calibration, values, taking_part=None, keeps_path=True, noise=SeededNoise(1))
    assert found.ranked_keys.tolist() == ([2, 4, 5] if descending else [1, 3, 0])
    assert set(found.epsilon) == {round_up_to_float(calibration.revealed_rates[0] * task.sensitivity)}
    assert found.path is not None
    assert found.path.rates == calibration.revealed_rates
    assert set(found.path.reached) == {1}
    assert np.all(np.abs(found.path.values[0] - values) < FAR)
    assert not found.path.values[1:].any()


def test_only_keys_that_take_part_are_touched() -> None:
    """The mask's others would be first; with one key left, or none, nothing is looked at."""
    calibration = calibrate_ranking(TASK)
    values = np.array([9, 1, 8, 2, 7, 3]) * FAR
    for taking_part, expected in (([1, 3, 5], [5, 3, 1]), ([1, 5], [5, 1]), ([3], [3]), ([], [])):
        mask = np.isin(np.arange(6), taking_part)
        found = rank_keys(calibration, values, taking_part=mask, keeps_path=True, noise=SeededNoise(2))
        assert found.ranked_keys.tolist() == expected
        assert set(np.flatnonzero(found.epsilon)) == (set(taking_part) if len(taking_part) > 1 else set())
        assert (found.path is None) == (len(taking_part) < 2)


@pytest.mark.parametrize(("keys", "limit", "expected"), [(6, 0, []), (1, 3, [0]), (0, 3, [])])
def test_what_is_known_in_public_is_told_without_a_look(keys: int, limit: int, expected: list[int]) -> None:
    calibration = calibrate_ranking(replace(TASK, keys=keys, limit=limit))
    found = rank_keys(
        calibration, np.zeros(keys, dtype=np.int64), taking_part=None, keeps_path=True, noise=SeededNoise(3)
    )
    assert found.ranked_keys.tolist() == expected
    assert not found.epsilon.any()
    assert found.path is None


def test_all_keys_are_returned_where_the_limit_is_not_below_their_number() -> None:
    calibration = calibrate_ranking(replace(TASK, limit=9))
    values = np.zeros(6, dtype=np.int64)
    found = rank_keys(calibration, values, taking_part=None, keeps_path=False, noise=SeededNoise(4))
    assert sorted(found.ranked_keys.tolist()) == list(range(6))
    assert found.path is None
    assert found.epsilon.max() == calibration.worst_case_epsilon


def test_of_equal_values_noise_alone_decides() -> None:
    """Sixty rankings of six equal keys: each comes first in some. For other seeds one key in ten thousand would not."""
    calibration = calibrate_ranking(TASK, schedule=ONE_LOOK)
    noise, values = NoiseAhead(SeededNoise(5)), np.full(6, 17)
    firsts = {
        int(rank_keys(calibration, values, taking_part=None, keeps_path=False, noise=noise).ranked_keys[0])
        for _ in range(60)
    }
    assert firsts == set(range(6))


def test_losses_are_those_of_the_levels_reached_and_never_above_the_worst_case() -> None:
    """Counts that fall as one over the rank; what was revealed stands in the path and nothing else does."""
    task = RankingTask(keys=40, limit=4, descending=True, sensitivity=3, tolerance=100, fnr=0.05, fpr=0.1)
    calibration = calibrate_ranking(task)
    values = np.array([10_000 // (rank + 1) for rank in range(40)])
    found = rank_keys(calibration, values, taking_part=None, keeps_path=True, noise=SeededNoise(6))
    assert found.path is not None
    rates = (0, *calibration.revealed_rates)
    assert found.epsilon.tolist() == [
        round_up_to_float(rates[level] * 3) if level else 0.0 for level in found.path.reached
    ]
    assert found.epsilon.max() <= calibration.worst_case_epsilon
    assert len(set(found.epsilon)) > 2
    revealed = np.arange(len(calibration.revealed_rates))[:, np.newaxis] < found.path.reached
    assert not found.path.values[~revealed].any()


@pytest.mark.parametrize(("keys", "at_most"), [(30, 0.35), (500, 0.2)])
def test_keys_far_from_the_end_of_the_ranking_cost_little(keys: int, at_most: float) -> None:
    """The mean loss of a key, as a part of what it is with one look, over ten rankings of counts that fall as one over
    the rank; .25 and .13 in the proof's table."""
    task = RankingTask(keys=keys, limit=5, descending=True, sensitivity=1, tolerance=100, fnr=0.05, fpr=0.1)
    several, one = calibrate_ranking(task), calibrate_ranking(task, schedule=ONE_LOOK)
    values, noise = np.array([10_000 // (rank + 1) for rank in range(keys)]), SeededNoise(8)
    losses = [
        rank_keys(several, values, taking_part=None, keeps_path=False, noise=noise).epsilon.mean() for _ in range(10)
    ]
    assert np.mean(losses) < at_most * one.worst_case_epsilon


def test_other_numbers_of_keys_are_refused() -> None:
    calibration = calibrate_ranking(TASK)
    for values, mask in (
        (np.zeros(5, dtype=np.int64), None),
        (np.zeros(6, dtype=np.int64), np.ones(5, dtype=np.bool_)),
    ):
        with pytest.raises(ValueError, match="calibrated for"):
            rank_keys(calibration, values, taking_part=mask, keeps_path=False, noise=SeededNoise(7))
