"""Formulas of alarms on adversarial streams: missed and false as often as the law says, and never more than promised.

Three kinds of streams, each the worst of its kind for both and for either of two values: as much as possible just
within what may ring wrongly all through a window; a jump to just above the cuts at any look, after values as far below
as possible; and a ramp that passes the cuts. 20,000 windows each at full size, as alarms and as ladders; a count leaves
its binomial quantiles at 1e-8 on either side, so that all tests together raise a false alarm with probability 1e-6 at
most. The seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats

from mechanisms.alarm.run import compute_chances_by_look
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import AllOf, AnyOf, Cut, Integers
from mechanisms.standing.alarms import StandingAlarms, calibrate_standing_alarms
from mechanisms.standing.standing_task import StandingTask
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.effort import rounds
from tests.seeded_noise import SeededNoise

ALARM = 1e-8
LOOKS, CUT, TOLERANCE = 8, 200, 20
FNR, FPR = 0.05, 0.1
FAR = 10 * CUT
both, either, kinds = pytest.param(AllOf, id="both"), pytest.param(AnyOf, id="either"), ["alarms", "ladders", "rising"]


def calibrated(join: type[AllOf] | type[AnyOf], kind: str) -> StandingAlarms:
    """`rising` values never fall, although a unit may raise and lower them, as of windows that are compared."""
    formula = join(tuple(Cut(functional, CUT, above=True, tolerance=TOLERANCE) for functional in (0, 1)))
    return calibrate_standing_alarms(
        StandingTask(
            formula=formula,
            sensitivities=(1, 1),
            exposures=expose_all_functionals(2),
            regimes=(Regime.SIGNED if kind == "rising" else Regime.GROWING,) * 2,
            least_values=(0, 0),
            looks=LOOKS,
            fnr=FNR,
            fpr=FPR,
            progressive=kind == "ladders",
        ),
        rises=kind == "rising",
    )


def windows() -> int:
    return rounds(20_000, quick=800)


def alerted_at(standing: StandingAlarms, values: Integers, *, seed: int) -> Integers:
    """For each window, when its key came into the answer, 0 for never; `values`: (looks, functionals, windows)."""
    noise = SeededNoise(seed)
    found, state = np.zeros(values.shape[2], dtype=np.int64), standing.draw_state(keys=values.shape[2], noise=noise)
    for look, seen in enumerate(values, 1):
        looked = standing.take_look(state, seen, look=look, noise=noise)
        found[looked.alerted & (found == 0)] = look
        state = looked.state
    return found


def rung(standing: StandingAlarms, stream: list[int]) -> list[float]:
    """The chance of one of two equal alarms to have rung by each look, of the last rung as if it had made all looks."""
    first, second = standing.ladders
    assert first.rungs[-1].rate == second.rungs[-1].rate
    return list(compute_chances_by_look(first.rungs[-1], stream))


def check(count: int, *, chance: float | None, promised: float) -> None:
    """Where there is one alarm for each literal its law says how often; a ladder errs at most as promised."""
    if chance is None:
        assert count <= stats.binom.isf(ALARM, windows(), promised)
        return
    assert chance <= promised * (1 + 1e-12)
    assert stats.binom.ppf(ALARM, windows(), chance) <= count <= stats.binom.isf(ALARM, windows(), chance)


@pytest.mark.parametrize("kind", kinds)
@pytest.mark.parametrize("join", [both, either])
def test_values_just_within_the_tolerance_alert_as_seldom_as_promised(
    join: type[AllOf] | type[AnyOf], kind: str
) -> None:
    """For both, one of them is far above all the time; for either, both are as high as they may be."""
    standing = calibrated(join, kind)
    other = FAR if join is AllOf else CUT - TOLERANCE
    values = np.tile(np.array([[CUT - TOLERANCE], [other]], dtype=np.int64), (LOOKS, 1, windows()))
    wrong = int(np.count_nonzero(alerted_at(standing, values, seed=50)))
    chance = rung(standing, [CUT - TOLERANCE] * LOOKS)[-1]
    chance = chance if join is AllOf else 1 - (1 - chance) ** 2
    check(wrong, chance=chance if kind != "ladders" else None, promised=FPR)


@pytest.mark.parametrize("kind", kinds)
@pytest.mark.parametrize("join", [both, either])
def test_a_jump_at_any_look_is_missed_as_seldom_as_promised(join: type[AllOf] | type[AnyOf], kind: str) -> None:
    """Before it, values are as low as they can be; for either, one of them stays so."""
    standing = calibrated(join, kind)
    jump = np.arange(windows()) % LOOKS
    jumps = np.where(np.arange(LOOKS)[:, np.newaxis] >= jump, CUT + 1, 0).astype(np.int64)
    values = np.stack([jumps, jumps if join is AllOf else np.zeros_like(jumps)], axis=1)
    found = alerted_at(standing, values, seed=51)
    missed = 1 - rung(standing, [0] * (LOOKS - 1) + [CUT + 1])[-1]
    missed = 1 - (1 - missed) ** 2 if join is AllOf else missed
    late = int(np.count_nonzero((found == 0) | (found > jump + 1)))
    check(late, chance=missed if kind != "ladders" else None, promised=FNR)


@pytest.mark.parametrize("kind", kinds)
@pytest.mark.parametrize("join", [both, either])
def test_a_ramp_is_hardly_missed(join: type[AllOf] | type[AnyOf], kind: str) -> None:
    standing = calibrated(join, kind)
    ramp = [CUT + 1 + 5 * (look - 5) for look in range(LOOKS)]
    values = np.tile(np.array(ramp, dtype=np.int64)[:, np.newaxis, np.newaxis], (1, 2, windows()))
    found = alerted_at(standing, values, seed=52)
    for look in (6, LOOKS):
        missed = 1 - rung(standing, ramp)[look - 1]
        missed = 1 - (1 - missed) ** 2 if join is AllOf else missed**2
        late = int(np.count_nonzero((found == 0) | (found > look)))
        check(late, chance=missed if kind != "ladders" else None, promised=FNR)


@pytest.mark.parametrize("first", [1, 3])
def test_a_value_that_does_not_change_is_missed_and_taken_as_one_look_says(first: int) -> None:
    """Beside a value far above its cut at all looks; the first look that is made may not be the window's first."""
    known = calibrated(AllOf, "alarms")
    standing = calibrate_standing_alarms(known.task, constant=frozenset({1}))
    moving, constant = standing.ladders
    assert (moving.task.looks, constant.task.looks) == (LOOKS, 1)
    assert standing.worst_case_epsilon < known.worst_case_epsilon
    for value, seed in ((CUT - TOLERANCE, 53), (CUT + 1, 54)):
        noise = SeededNoise(seed)
        state, alerted = standing.draw_state(keys=windows(), noise=noise), np.zeros(windows(), dtype=np.bool_)
        seen = np.array([[FAR], [value]], dtype=np.int64).repeat(windows(), axis=1)
        for look in range(first, LOOKS + 1):
            looked = standing.take_look(state, seen, look=look, noise=noise)
            assert look == first or np.array_equal(looked.alerted, alerted)
            state, alerted = looked.state, looked.alerted
        (chance,) = compute_chances_by_look(constant.rungs[0], [value])
        if value > CUT:
            check(windows() - int(alerted.sum()), chance=1 - chance, promised=FNR)
        else:
            check(int(alerted.sum()), chance=chance, promised=FPR)
