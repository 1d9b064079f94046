"""Alarms on adversarial streams: missed and false as often as the law says, and never more than promised.

Three streams, each the worst of its kind: every value just within what may ring wrongly; a jump to just above the cut
at any look, after values as far below as possible; and a ramp that passes the cut. 20,000 windows each at full size;
a count leaves its binomial quantiles at 1e-8 on either side, so that the three regimes and three streams together raise
a false alarm with probability 1e-6 at most. The seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats

from mechanisms.alarm.calibration import AlarmCalibration
from mechanisms.alarm.run import compute_chances_by_look, draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Integers
from tests.effort import rounds
from tests.mechanisms.alarm.law_by_hand import calibrated
from tests.seeded_noise import SeededNoise

ALARM = 1e-8
LOOKS, CUT, TOLERANCE = 8, 200, 20


def rung_at(calibration: AlarmCalibration, values: Integers, *, seed: int) -> Integers:
    """For each of some windows, a row of values, the look at which the alarm rang."""
    noise = SeededNoise(seed)
    states = draw_alarms(keys=len(values), noise=noise)
    for look in range(1, LOOKS + 1):
        states = look_at_values(calibration, states, values[:, look - 1], look=look, noise=noise)
    return np.array([state.rang_at for state in states])


def windows() -> int:
    return rounds(20_000, quick=1_200)


def check(count: int, chance: float, *, promised: float, tight: bool = False) -> None:
    """The chance of the law, by hand elsewhere; at the worst case it is what was promised."""
    assert chance <= promised * (1 + 1e-12)
    if tight:
        assert chance > 0.999999 * promised
    assert stats.binom.ppf(ALARM, windows(), chance) <= count <= stats.binom.isf(ALARM, windows(), chance)


@pytest.mark.parametrize("regime", Regime)
def test_values_that_stay_just_within_the_tolerance_ring_as_seldom_as_promised(regime: Regime) -> None:
    made = calibrated(regime, looks=LOOKS, cut=CUT, tolerance=TOLERANCE, least=0)
    stream = [CUT - TOLERANCE] * LOOKS
    rung = rung_at(made, np.tile(stream, (windows(), 1)), seed=40)
    check(int(np.count_nonzero(rung)), compute_chances_by_look(made, stream)[-1], promised=0.1, tight=True)


@pytest.mark.parametrize("regime", Regime)
def test_a_jump_at_any_look_is_missed_as_seldom_as_promised(regime: Regime) -> None:
    """The window's looks before the jump are as low as values can be, so that nothing of what came before helps."""
    made = calibrated(regime, looks=LOOKS, cut=CUT, tolerance=TOLERANCE, least=0)
    jump = np.arange(windows()) % LOOKS
    values = np.where(np.arange(LOOKS) >= jump[:, np.newaxis], CUT + 1, 0)
    rung = rung_at(made, values, seed=41)
    missed = int(np.count_nonzero((rung == 0) | (rung > jump + 1)))
    check(missed, 1 - compute_chances_by_look(made, [0] * (LOOKS - 1) + [CUT + 1])[-1], promised=0.05, tight=True)


@pytest.mark.parametrize("regime", Regime)
def test_a_ramp_rings_early_within_the_tolerance_and_is_hardly_missed(regime: Regime) -> None:
    made = calibrated(regime, looks=LOOKS, cut=CUT, tolerance=TOLERANCE, least=0)
    stream = [CUT + 1 + 5 * (look - 5) for look in range(LOOKS)]
    rung = rung_at(made, np.tile(stream, (windows(), 1)), seed=42)
    chances = compute_chances_by_look(made, stream)
    check(int(np.count_nonzero((rung == 0) | (rung > 6))), 1 - chances[5], promised=0.05)
    check(int(np.count_nonzero(rung == 0)), 1 - chances[-1], promised=0.05)
