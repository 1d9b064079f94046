"""The smallest tolerance that an epsilon allows, for a threshold question, a ranking and an alarm.

References: docs/proofs/optimal_test.md, docs/proofs/ranking.md, docs/proofs/alarm.md.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from mechanisms.alarm.calibration import AlarmCalibration, AlarmTask, calibrate_alarm
from mechanisms.alarm.shapes import Regime
from mechanisms.protocol import FunctionalTest, Unachievable
from mechanisms.ranking.calibration import ONE_LOOK, RankingCalibration, calibrate_ranking
from mechanisms.ranking.ranking_task import RankingTask
from mechanisms.threshold.one_shot import calibrate_test

FNR, FPR = 0.05, 0.1
"""Of every answer of Keyhole's in the playground: missed, and returned wrongly."""

_MOST_TOLERANCE = 1 << 20  # people: ends a search; an epsilon of 1e-5 affords less

Found = TypeVar("Found")


@lru_cache(maxsize=256)
def find_affordable_test(epsilon: Fraction) -> FunctionalTest:
    """Return the threshold test with the smallest tolerance that costs at most `epsilon`.

    Raises:
        ValueError: an epsilon that is too small for any.

    >>> [find_affordable_test(Fraction(1, inverse)).tolerance for inverse in (10, 1)]
    [39, 3]
    """

    def calibrate(tolerance: int) -> FunctionalTest:
        return calibrate_test(sensitivity=1, tolerance=tolerance, fnr=FNR, fpr=FPR, allow_block=False)

    return _find_least_fitting(0, calibrate, lambda test: test.epsilon <= epsilon)


@lru_cache(maxsize=256)
def find_affordable_ranking(epsilon: Fraction, *, keys: int) -> RankingCalibration:
    """Return the ranking with the smallest tolerance that costs at most `epsilon`.

    The ranking returns the first of `keys` keys.

    Raises:
        ValueError: an epsilon that is too small for any.
    """

    def calibrate(tolerance: int) -> RankingCalibration:
        return calibrate_ranking(
            RankingTask(keys=keys, limit=1, descending=True, sensitivity=1, tolerance=tolerance, fnr=FNR, fpr=FPR),
            schedule=ONE_LOOK,
        )

    return _find_least_fitting(1, calibrate, lambda found: found.worst_case_epsilon <= epsilon)


@lru_cache(maxsize=256)
def find_affordable_alarm(epsilon: Fraction, *, looks: int, cut: int, regime: Regime) -> AlarmCalibration:
    """Return the alarm with the smallest tolerance that costs at most `epsilon` over `looks` looks.

    Raises:
        ValueError: an epsilon that is too small for any.
    """

    def calibrate(tolerance: int) -> AlarmCalibration:
        return calibrate_alarm(
            AlarmTask(
                looks=looks,
                cut=cut,
                tolerance=tolerance,
                sensitivity=1,
                fnr=FNR,
                fpr=FPR,
                regime=regime,
                least_value=None,
            )
        )

    return _find_least_fitting(0, calibrate, lambda found: found.worst_case_epsilon <= epsilon)


def _find_least_fitting(least: int, calibrate: Callable[[int], Found], fits: Callable[[Found], bool]) -> Found:
    """Return the fitting calibration with the smallest tolerance from `least` on, by doubling and bisection.

    Wider tolerances cost less.
    """

    def attempt(tolerance: int) -> Found | None:
        try:
            found = calibrate(tolerance)
        except Unachievable:
            return None
        return found if fits(found) else None

    low, high = least - 1, max(1, least)
    best = attempt(high)
    while best is None:
        low, high = high, 2 * high
        if high > _MOST_TOLERANCE:
            raise ValueError("no tolerance is large enough for this epsilon")
        best = attempt(high)
    while high - low > 1:
        middle = (low + high) // 2
        found = attempt(middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return best
