"""Rankings at their worst cases: as often wrong as the law summed up by hand says, and never more than promised.

Each case raises a false alarm with probability 2e-7 at most: a binomial count leaves its quantiles at 1e-7 on either
side. The seeds are fixed. At full size rates twice as large as promised would be found out, at quick gross
mistakes are.
"""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.formula import Integers
from mechanisms.ranking.calibration import ONE_LOOK, SCHEDULE, RankingCalibration, RankingSchedule, calibrate_ranking
from mechanisms.ranking.ranking_task import RankingTask
from mechanisms.ranking.run import rank_keys
from tests.effort import cases, rounds
from tests.mechanisms.ranking.law_by_hand import overtaken
from tests.seeded_noise import SeededNoise

ALARM = 1e-7
FAR = 10**9
SCHEDULES = {"one look": ONE_LOOK, "looks": SCHEDULE}
Wrong = Callable[[Integers], bool]


def calibrated(keys: int, limit: int, schedule: RankingSchedule) -> RankingCalibration:
    task = RankingTask(keys=keys, limit=limit, descending=True, sensitivity=1, tolerance=20, fnr=0.05, fpr=0.1)
    return calibrate_ranking(task, schedule=schedule)


def runs_of(keys: int) -> int:
    return rounds(4_000, quick=150) if keys < 100 else rounds(1_000, quick=25)


def wrong_of(calibration: RankingCalibration, values: Integers, wrong: Wrong, *, runs: int, seed: int) -> int:
    noise = NoiseAhead(SeededNoise(seed))
    return sum(
        wrong(rank_keys(calibration, values, taking_part=None, keeps_path=False, noise=noise).ranked_keys)
        for _ in range(runs)
    )


def check(calibration: RankingCalibration, count: int, *, runs: int, last: float, promised: float) -> None:
    """One look's chance is attained to within what early looks may add or, where they settle it sooner, take away."""
    task = calibration.task
    early = (
        sum(
            float(
                overtaken(
                    look.rate, behind=max(1, task.keys - task.limit), ahead=task.limit, distance=look.settled_gap + 1
                )
            )
            for look in calibration.looks
        )
        if task.keys > task.limit
        else promised - last
    )
    assert last <= promised
    assert stats.binom.ppf(ALARM, runs, max(0.0, last - early)) <= count
    assert count <= stats.binom.isf(ALARM, runs, min(promised, last + early))


@pytest.mark.parametrize(("keys", "limit", "looks"), cases([10, 500], [1, 5, 20], SCHEDULES, quick=6))
def test_a_key_far_enough_below_is_returned_as_seldom_as_promised(keys: int, limit: int, looks: str) -> None:
    """It stands first in the domain, so that it wins ties, a tolerance below the `limit` greatest, which are equal; all
    others are far below. Where all keys are returned: it stands before one that is a tolerance above it."""
    calibration = calibrated(keys, limit, SCHEDULES[looks])
    task, rate = calibration.task, calibration.noise_rate
    values = np.full(keys, -FAR)
    everything = limit >= keys
    values[1 : 2 if everything else limit + 1] = 0
    values[0] = -task.tolerance
    if everything:
        values[2:] = -FAR * np.arange(1, keys - 1)
    runs = runs_of(keys)
    count = wrong_of(
        calibration,
        values,
        (lambda ranked: bool(ranked[0] == 0)) if everything else (lambda ranked: bool(0 in ranked)),
        runs=runs,
        seed=60 + limit,
    )
    last = float(overtaken(rate, behind=1, ahead=1 if everything else limit, distance=task.tolerance))
    promised = calibration.swap_rate if everything else calibration.fpr
    check(calibration, count, runs=runs, last=last, promised=promised)


@pytest.mark.parametrize(
    ("sizes", "looks"), cases([(10, 1), (10, 5), (500, 1), (500, 5), (500, 20)], SCHEDULES, quick=5)
)
def test_a_key_far_enough_above_is_missed_as_seldom_as_promised(sizes: tuple[int, int], looks: str) -> None:
    """It stands last in the domain, so that it loses ties, a tolerance above all others but the greatest, which are far
    above."""
    keys, limit = sizes
    calibration = calibrated(keys, limit, SCHEDULES[looks])
    task = calibration.task
    values = np.zeros(keys, dtype=np.int64)
    values[: limit - 1] = FAR * np.arange(1, limit)
    values[-1] = task.tolerance
    runs = runs_of(keys)
    count = wrong_of(calibration, values, lambda ranked: keys - 1 not in ranked, runs=runs, seed=80 + limit)
    last = float(overtaken(calibration.noise_rate, behind=keys - limit, ahead=1, distance=task.tolerance))
    check(calibration, count, runs=runs, last=last, promised=calibration.fnr)
