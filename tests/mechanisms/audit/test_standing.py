"""The auditor passes formulas of alarms and flags broken ones.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

import pytest

from mechanisms.audit.auditor import AuditReport, Neighbours, audit
from mechanisms.audit.standing import (
    audited_standing,
    pair_both,
    pair_either,
    pair_formulas,
    watch_keys,
)
from mechanisms.formula import AllOf, AnyOf, Integers
from mechanisms.protocol import Epsilons, Noise
from mechanisms.standing.alarms import StandingAlarms
from mechanisms.threshold.joint_loss import sets_at_once
from tests.effort import is_quick, rounds
from tests.seeded_noise import SeededNoise

APART = sets_at_once([[0], [1]], functionals=2)


def report_on(pair: Neighbours, *, quick: int) -> AuditReport:
    return audit("standing", [pair], samples=rounds(20_000, quick=quick))


@pytest.mark.parametrize("place", range(5))
def test_a_formula_of_alarms_passes_and_could_have_failed(place: int) -> None:
    """At full size 20,000 windows from either database, which prove more than half of what is claimed."""
    report = report_on(list(pair_formulas(noise=SeededNoise(70 + place)))[place], quick=600)
    assert not report.flagged
    assert is_quick() or report.epsilon_lower > 0.5 * report.claimed_epsilon


@pytest.mark.parametrize("pair", [pair_both, pair_either])
def test_charging_the_largest_of_losses_that_one_unit_has_together_is_flagged(pair: object) -> None:
    """A unit that raises both values against a loss for units that raise one of them."""
    standing = audited_standing(AllOf if pair is pair_both else AnyOf, exposures=APART)
    assert callable(pair)
    assert report_on(pair(standing, watch_keys, noise=SeededNoise(76)), quick=3_200).flagged


def test_ladders_whose_windows_are_charged_a_quarter_are_flagged() -> None:
    def watch(standing: StandingAlarms, values: Integers, noise: Noise) -> tuple[Integers, Epsilons]:
        seen, spent = watch_keys(standing, values, noise)
        return seen, spent / 4

    pair = pair_both(audited_standing(AllOf, progressive=True), watch, noise=SeededNoise(77))
    assert report_on(pair, quick=1_200).flagged
