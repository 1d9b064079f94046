"""Rankings that are cut in several places, or in partitions: promises at their worst cases, and the same answers as of
one partition at a time.

Each statistical case raises a false alarm with probability 1e-7 at most: a binomial count exceeds its quantile at 1e-7.
The seeds are fixed. At full size rates twice as large as promised would be found out.
"""

from dataclasses import replace
from math import ceil
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.ranking.calibration import (
    ONE_LOOK,
    SCHEDULE,
    calibrate_ranking,
    count_charged_groups,
    find_ranking_tolerance,
)
from mechanisms.ranking.ranking_task import RankingTask
from mechanisms.ranking.run import rank_keys
from tests.effort import rounds
from tests.mechanisms.ranking.law_by_hand import overtaken
from tests.seeded_noise import SeededNoise

ALARM = 1e-7
FAR = 10**9
RUNS = rounds(6_000, quick=200)
TASK = RankingTask(keys=12, limit=6, descending=True, sensitivity=1, tolerance=20, fnr=0.05, fpr=0.1)
WINDOW = replace(TASK, offset=3)
CUT = replace(TASK, limit=12, allows_any_cut=True)


def often(task: RankingTask, values: list[int], within: tuple[int, int], key: int, *, seed: int) -> int:
    """How often a key stands at one of the places from the first up to the second, counted from 0."""
    noise, calibration = NoiseAhead(SeededNoise(seed)), calibrate_ranking(task)
    first, past = within
    runs = (
        rank_keys(calibration, np.array(values), taking_part=None, keeps_path=False, noise=noise) for _ in range(RUNS)
    )
    return sum(key in found.ranked_keys[first:past] for found in runs)


def check(count: int, *, promised: float) -> None:
    assert count <= stats.binom.isf(ALARM, RUNS, promised)


def test_a_key_within_a_window_is_missed_as_seldom_as_promised() -> None:
    """It is a tolerance behind the first three, which are equal, and a tolerance ahead of the seventh to last."""
    values = [0, *[20] * 3, -9, -9, *[-20] * 6]
    inside = often(WINDOW, values, (3, 6), 0, seed=1)
    check(RUNS - inside, promised=WINDOW.fnr)


@pytest.mark.parametrize(
    "values",
    [
        [-20, *[FAR] * 3, 0, 0, 0, *[-FAR] * 5],  # behind the sixth
        [*[0] * 9, *[FAR] * 2, 20],  # ahead of the fourth, and loses ties
    ],
)
def test_a_key_outside_a_window_is_returned_as_seldom_as_promised(values: list[int]) -> None:
    key = 0 if values[0] == -20 else 11
    check(often(WINDOW, values, (3, 6), key, seed=2), promised=WINDOW.fpr)


@pytest.mark.parametrize("ends", [(0, 1), (0, 3), (3, 6), (9, 12), (11, 12)])
def test_wherever_all_are_cut_a_key_stands_on_the_wrong_side_as_seldom_as_promised(ends: tuple[int, int]) -> None:
    """Between two places it is a tolerance away from equal keys beyond both, and loses all ties behind."""
    first, past = ends
    ahead, behind = [20] * first, [-20] * (12 - past)
    values = [*ahead, *[0] * (past - first), *behind]
    key = past - 1
    inside = often(CUT, values, ends, key, seed=3 + first)
    check(RUNS - inside, promised=min(CUT.fnr, CUT.fpr))


@pytest.mark.parametrize("task", [WINDOW, CUT, replace(WINDOW, limit=12), replace(WINDOW, offset=1, limit=2)])
def test_each_way_of_standing_on_a_wrong_side_is_bounded_by_the_law_summed_by_hand(task: RankingTask) -> None:
    calibration = calibrate_ranking(task)
    assert not calibration.looks
    for behind, ahead, chance in task.overtaking_events:
        exact = float(overtaken(calibration.noise_rate, behind=behind, ahead=ahead, distance=task.tolerance))
        assert exact <= chance
    assert calibration.fnr <= task.fnr
    assert calibration.fpr <= task.fpr


def test_what_a_cut_passes_over_is_known_in_public() -> None:
    for task in (replace(TASK, offset=6), replace(TASK, offset=12, limit=20)):
        assert calibrate_ranking(task).worst_case_epsilon == 0.0


Partitioned: TypeAlias = tuple[int, list[tuple[int, bool]], bool, bool, int]
partitioned = st.tuples(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(-40, 40), st.booleans()), min_size=5, max_size=5),
    st.booleans(),
    st.booleans(),
    st.integers(0, 6),
)


@given(partitioned, st.integers(0, 1 << 20))
def test_partitions_are_ranked_as_each_would_be_alone(asked: Partitioned, seed: int) -> None:
    """Without noise that matters: values are a thousand apart where they differ. Every key's loss is its own."""
    parts, drawn, descending, looks, limit = asked
    numbers = np.tile(np.arange(parts), 5)
    values = np.concatenate([[value * 1000 * (part + 1) for part in range(parts)] for value, _ in drawn])
    values += np.arange(values.size) * 40_000_000  # no ties
    takes_part = np.repeat([one for _, one in drawn], parts)
    task = replace(TASK, keys=5, limit=limit, descending=descending, partitions=parts)
    calibration = calibrate_ranking(task, schedule=SCHEDULE if looks else ONE_LOOK)
    noise = SeededNoise(seed)
    found = rank_keys(calibration, values, taking_part=takes_part, keeps_path=False, noise=noise, partition=numbers)
    wanted: list[int] = []
    places: list[int] = []
    for part in range(parts):
        members = np.flatnonzero(takes_part & (numbers == part))
        order = members[np.argsort(-values[members] if descending else values[members])][:limit]
        wanted += order.tolist()
        places += range(1, order.size + 1)
    assert found.ranked_keys.tolist() == wanted
    assert found.places.tolist() == places
    assert (found.epsilon <= calibration.worst_case_epsilon).all()
    assert not found.epsilon[~takes_part].any()
    alone = [part for part in range(parts) if np.count_nonzero(takes_part & (numbers == part)) < 2]
    assert not found.epsilon[np.isin(numbers, alone)].any()


def test_a_unit_pays_for_as_many_keys_of_each_partition_as_are_returned() -> None:
    task = replace(TASK, limit=1, partitions=4)
    assert count_charged_groups(task, groups=3, signed=False) == 3
    assert count_charged_groups(task, groups=48, signed=False) == 4
    assert count_charged_groups(task, groups=48, signed=True) == 8


@given(
    st.integers(2, 400),
    st.integers(1, 500),
    st.sampled_from([1, 50, 100_000]),
    st.floats(0.001, 8.0),
    st.booleans(),
)
def test_a_price_gives_the_least_tolerance_in_two_digits(
    keys: int, limit: int, sensitivity: int, epsilon: float, any_cut: bool
) -> None:
    task = replace(TASK, keys=keys, limit=limit, sensitivity=sensitivity, allows_any_cut=any_cut)
    found = find_ranking_tolerance(task, epsilon=epsilon)
    assert _digits(found) <= 2
    assert calibrate_ranking(replace(task, tolerance=found)).worst_case_epsilon <= epsilon * (1 + 1e-9)
    if found > 20:  # of less a whole number is far from the next
        sharper = ceil(found / 1.3)
        assert calibrate_ranking(replace(task, tolerance=sharper), schedule=ONE_LOOK).worst_case_epsilon > epsilon / 1.1


def _digits(number: int) -> int:
    return len(str(number).rstrip("0"))
