"""Formulas watched by their distance on adversarial streams: missed and false as often as the law says.

A count within a band, a count of one unit above and of another below its cut, and both of two counts. Streams are as
close as they may be at every look, on one side of a band and on the other in turn; jump just inside at any look after
values as far away as possible; or pass through, in for a single look. 20,000 windows each at full size; a count leaves
its binomial quantiles at 1e-8 on either side, so that all tests together raise a false alarm with probability 1e-6 at
most. The seeds are fixed.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from mechanisms.alarm.run import compute_chances_by_look
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import AllOf, Cut, Formula, Integers
from mechanisms.published.sparse_vector import compute_signed_distance
from mechanisms.standing.distance import StandingDistance, calibrate_distance
from mechanisms.standing.standing_task import StandingTask
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.effort import cases, rounds
from tests.seeded_noise import SeededNoise

ALARM = 1e-8
LOOKS, CUT, TOLERANCE, WIDTH = 8, 200, 20, 100
FNR, FPR = 0.05, 0.1
COARSE = 5  # of the second functional: units that one privacy unit changes it by

BAND = AllOf((Cut(0, CUT, above=True, tolerance=TOLERANCE), Cut(0, CUT + WIDTH, above=False, tolerance=TOLERANCE)))
APART = AllOf((Cut(0, CUT, above=True, tolerance=TOLERANCE), Cut(1, CUT, above=False, tolerance=COARSE * TOLERANCE)))
BOTH = AllOf((Cut(0, CUT, above=True, tolerance=TOLERANCE), Cut(1, CUT, above=True, tolerance=COARSE * TOLERANCE)))
LOWEST, HIGHEST = CUT - TOLERANCE, CUT + WIDTH + TOLERANCE + 1  # just false for the relaxed band
INSIDE, OUTSIDE = CUT + 1, CUT + WIDTH + 1

Stream = Sequence[tuple[int, int]]


def calibrated(formula: Formula, kind: str) -> StandingDistance:
    return calibrate_distance(
        StandingTask(
            formula=formula,
            sensitivities=(1, COARSE),
            exposures=expose_all_functionals(2),
            regimes=(Regime.COMING_AND_GOING,) * 2,
            least_values=(0, 0),
            looks=LOOKS,
            fnr=FNR,
            fpr=FPR,
            progressive=kind == "ladder",
            monotone=False,
        )
    )


def alerted_at(standing: StandingDistance, stream: Stream, *, seed: int) -> Integers:
    """For each window, when its key came into the answer, 0 for never."""
    noise, windows = SeededNoise(seed), rounds(20_000, quick=800)
    found, state = np.zeros(windows, dtype=np.int64), standing.draw_state(keys=windows, noise=noise)
    for look, values in enumerate(stream, 1):
        seen = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], windows, axis=1)
        looked = standing.take_look(state, seen, look=look, noise=noise)
        found[looked.alerted & (found == 0)] = look
        state = looked.state
    return found


def by_law(standing: StandingDistance, stream: Stream) -> list[float]:
    """The chance of an alarm, not of a ladder, to have rung by each look."""
    distances = compute_signed_distance(
        standing.task.formula, np.array(stream, dtype=np.int64).T, weights=standing.functional_weights
    )
    return list(compute_chances_by_look(standing.alarm.ladders[0].rungs[-1], distances.tolist()))


def check(count: int, *, chance: float, promised: float, kind: str) -> None:
    """An alarm errs as its law says; a ladder at most as promised."""
    windows = rounds(20_000, quick=800)
    if kind == "ladder":
        assert count <= stats.binom.isf(ALARM, windows, promised)
        return
    assert chance <= promised * (1 + 1e-12)
    assert stats.binom.ppf(ALARM, windows, chance) <= count <= stats.binom.isf(ALARM, windows, chance)


NEARLY: list[tuple[Formula, Stream]] = [
    (BAND, [(LOWEST, 0)] * LOOKS),
    (BAND, [(HIGHEST, 0)] * LOOKS),
    (BAND, [(LOWEST, 0), (HIGHEST, 0)] * (LOOKS // 2)),
    (APART, [(LOWEST, 0), (9 * CUT, CUT + COARSE * TOLERANCE + 1)] * (LOOKS // 2)),
    (BOTH, [(LOWEST, 9 * CUT), (9 * CUT, CUT - COARSE * TOLERANCE)] * (LOOKS // 2)),
]


@pytest.mark.parametrize(("place", "kind"), cases(range(len(NEARLY)), ["alarm", "ladder"], quick=5))
def test_what_is_just_within_the_tolerance_alerts_as_seldom_as_promised(place: int, kind: str) -> None:
    """The last two pass one threshold at each look by far, and never both at once."""
    formula, stream = NEARLY[place]
    standing = calibrated(formula, kind)
    wrong = int(np.count_nonzero(alerted_at(standing, stream, seed=60 + place)))
    check(wrong, chance=by_law(standing, stream)[-1], promised=FPR, kind=kind)


@pytest.mark.parametrize("kind", ["alarm", "ladder"])
@pytest.mark.parametrize("look", [1, 5, LOOKS])
def test_a_single_look_just_inside_is_missed_as_seldom_as_promised(look: int, kind: str) -> None:
    """Before and after it the count is far from its band, on either side."""
    standing = calibrated(BAND, kind)
    stream = [(0, 0)] * (look - 1) + [(INSIDE, 0)] + [(9 * CUT, 0)] * (LOOKS - look)
    found = alerted_at(standing, stream, seed=70 + look)
    late = int(np.count_nonzero((found == 0) | (found > look)))
    check(late, chance=1 - by_law(standing, stream)[look - 1], promised=FNR, kind=kind)


@pytest.mark.parametrize("formula", [APART, BOTH], ids=["apart", "both"])
def test_two_values_just_inside_are_missed_as_seldom_as_promised(formula: Formula) -> None:
    standing = calibrated(formula, "alarm")
    stream = [(0, 9 * CUT if formula is APART else 0)] * 4 + [(INSIDE, CUT + (formula is BOTH))] * 4
    found = alerted_at(standing, stream, seed=80)
    late = int(np.count_nonzero((found == 0) | (found > 5)))
    check(late, chance=1 - by_law(standing, stream)[4], promised=FNR, kind="alarm")
