"""The auditor passes formulas of alarms and flags broken ones.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.alarm.shapes import Regime
from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject, claim_always
from mechanisms.audit.standing import (
    Watched,
    make_audited_alarms,
    make_audited_distance,
    make_audited_trend,
    pair_compared_windows,
    pair_either,
    pair_formulas,
    pair_one_value_streams,
    pair_signed_streams,
    pair_two_value_streams,
    watch_keys,
)
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers
from mechanisms.protocol import Epsilons, Noise
from mechanisms.standing.alarms import calibrate_standing_alarms
from mechanisms.standing.distance import calibrate_distance
from mechanisms.standing.standing_streams import watch_by_stream
from mechanisms.threshold.joint_loss import expose_functional_sets
from tests.effort import cases, is_quick, rounds
from tests.seeded_noise import SeededNoise

LATE_NEAR, LATE_FAR = -10, -100
APART = expose_functional_sets([[0], [1]], functionals=2)


def report_on(pair: Neighbours, *, quick: int) -> AuditReport:
    return audit_subject("standing", [pair], samples=rounds(20_000, quick=quick))


@pytest.mark.parametrize("place", range(8))
def test_a_formula_of_alarms_passes_and_could_have_failed(place: int) -> None:
    """At full size 20,000 windows from either database, which prove more than half of what is claimed."""
    report = report_on(list(pair_formulas(noise=SeededNoise(70 + place)))[place], quick=600)
    assert not report.is_flagged
    assert is_quick() or report.epsilon_lower > 0.5 * report.claimed_epsilon


@pytest.mark.parametrize("pair", [pair_two_value_streams, pair_either])
def test_charging_the_largest_of_losses_that_one_unit_has_together_is_flagged(pair: object) -> None:
    """A unit that raises both values against a loss for units that raise one of them."""
    standing = make_audited_alarms(AllOf if pair is pair_two_value_streams else AnyOf, exposures=APART)
    assert callable(pair)
    assert report_on(pair(standing, watch_keys, noise=SeededNoise(76)), quick=3_200).is_flagged


def test_charging_a_row_for_one_of_two_windows_that_compare_it_is_flagged() -> None:
    def watch(standing: Watched, values: Integers, noise: Noise) -> tuple[Integers, Epsilons]:
        seen, spent = watch_keys(standing, values, noise)
        return seen, spent / (4 if is_quick() else 2)

    pair = pair_compared_windows(make_audited_trend(), watch, noise=SeededNoise(79))
    assert report_on(pair, quick=2_400).is_flagged


def test_ladders_whose_windows_are_charged_a_quarter_are_flagged() -> None:
    def watch(standing: Watched, values: Integers, noise: Noise) -> tuple[Integers, Epsilons]:
        seen, spent = watch_keys(standing, values, noise)
        return seen, spent / 4

    pair = pair_two_value_streams(make_audited_alarms(AllOf, progressive=True), watch, noise=SeededNoise(77))
    assert report_on(pair, quick=1_200).is_flagged


@pytest.mark.parametrize("regime", [Regime.SIGNED, Regime.COMING_AND_GOING])
def test_a_distance_charged_as_if_it_only_grew_is_flagged(regime: Regime) -> None:
    """At full size the loss of an alarm of that rate on growing values, of which these make three times and twice as
    much; less at quick."""
    part = (0.4 if is_quick() else 1.0) / regime.loss_factor

    def watch(standing: Watched, values: Integers, noise: Noise) -> tuple[Integers, Epsilons]:
        seen, spent = watch_keys(standing, values, noise)
        return seen, spent * part

    pair = pair_signed_streams if regime is Regime.SIGNED else pair_one_value_streams
    assert report_on(pair(make_audited_distance(regime), watch, noise=SeededNoise(78)), quick=1_600).is_flagged


@pytest.mark.parametrize("anew", [True, False], ids=["all looks anew", "the last look alone"])
@pytest.mark.parametrize("whole", [False, True], ids=["an alarm each", "a distance"])
def test_totals_of_a_formula_computed_anew_with_late_rows_are_flagged(whole: bool, anew: bool) -> None:
    """A unit that comes before the last look raises both values of that look, as is right; computed anew from all rows
    that are there by then, those of the looks before as well. What had alerted stays. The last look's own values are so
    low that hardly any alarm rings at it, but for what the looks before it are made to weigh."""
    formula: Formula = AnyOf(tuple(Cut(functional, 0, above=True, tolerance=14) for functional in (0, 1)))
    task = replace(make_audited_alarms(AnyOf).task, formula=formula, regimes=(Regime.COMING_AND_GOING,) * 2)
    standing: Watched = calibrate_distance(replace(task, monotone=False)) if whole else calibrate_standing_alarms(task)

    def release_of(more: int, noise: Noise) -> Release:
        def draw(samples: int) -> Integers:
            drawn = standing.draw_state(keys=samples, noise=noise)
            known = np.full((task.looks, 2, samples), LATE_NEAR, dtype=np.int64)
            known[-1] = LATE_FAR
            alerted_at = replay(standing, drawn, known[:-1], noise)
            known[0 if anew else -1 :] += more
            last = replay(standing, drawn, known, noise) > 0
            alerted_at[last & (alerted_at == 0)] = task.looks
            return alerted_at[:, np.newaxis]

        return claim_always(draw, epsilon=standing.worst_case_epsilon)

    pair = Neighbours("a late unit", release_of(0, SeededNoise(92)), release_of(1, SeededNoise(93)))
    assert report_on(pair, quick=1_200).is_flagged == anew


def replay(standing: Watched, state: bytes, values: Integers, noise: Noise) -> Integers:
    """When each window's key came into the answer, on a state that was drawn; the draw decides, so that what is played
    again on the same values is the same."""
    alerted_at = np.zeros(values.shape[2], dtype=np.int64)
    for look, seen in enumerate(values, 1):
        looked = standing.take_look(state, seen, look=look, noise=noise)
        alerted_at[looked.alerted & (alerted_at == 0)] = look
        state = looked.state
    return alerted_at


@pytest.mark.parametrize(
    ("name", "charged"),
    cases(["pegasus", "pegasus_window_sum", "tick_laplace", "binary_tree", "signed_tree"], [1, 4], quick=6),
)
def test_a_unit_in_several_ticks_loses_what_its_changes_sum_to(name: str, charged: int) -> None:
    """A unit of two, one of them in either of two ticks, against the loss of two in one; a quarter of it is flagged, on
    5,000 runs even of the mechanism that shows least.

    What is seen is whether each estimate is below the smaller value, at it, or above.
    """
    task = replace(
        make_audited_alarms(AllOf).task, sensitivities=(2, 2), formula=Cut(0, 0, above=True, tolerance=0), looks=2
    )
    stream = watch_by_stream(task, name=name, epsilon=Fraction(2)).streams[0]

    def release_of(step: int, noise: Noise) -> Release:
        def draw(samples: int) -> Integers:
            states, seen = (stream.start(),) * samples, []
            for _ in range(2):
                tick = stream.advance(states, np.full(samples, step, dtype=np.int64), noise=noise)
                states = tick.states
                seen.append([1 if estimate >= 1 else -1 if estimate < 0 else 0 for estimate in tick.estimates])
            return np.array(seen, dtype=np.int64).T.copy()

        return claim_always(draw, epsilon=float(stream.epsilon) / charged)

    pair = Neighbours("one more in each of two ticks", release_of(0, SeededNoise(90)), release_of(1, SeededNoise(91)))
    assert report_on(pair, quick=5_000 if charged > 1 else 2_000).is_flagged == (charged > 1)
