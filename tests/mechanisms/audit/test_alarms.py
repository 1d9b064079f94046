"""The auditor passes alarms and flags broken ones.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from mechanisms.alarm.calibration import AlarmCalibration, calibrate_alarm
from mechanisms.alarm.ladder import LadderCalibration, LadderState, sum_losses_so_far
from mechanisms.alarm.run import draw_alarms, look_at_values
from mechanisms.alarm.shapes import Regime
from mechanisms.alarm.weights import compute_weight
from mechanisms.audit import alarms
from mechanisms.audit.alarms import Watcher, make_audited_alarm, pair_ladders, pair_windows, watch_windows
from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject, claim_always
from mechanisms.audit.subjects import ALARM, plan_audits
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from tests.effort import is_quick, rounds
from tests.seeded_noise import SeededNoise

ORDINARY = calibrate_alarm(replace(make_audited_alarm(Regime.GROWING).task, tolerance=4))
"""An alarm that claims 1.0, so that a few thousand windows refute it."""


def audit_windows(calibration: AlarmCalibration, watch: Watcher, *, samples: int, seed: int) -> AuditReport:
    return audit_subject("alarm", [pair_windows(calibration, watch, noise=SeededNoise(seed))], samples=samples)


@pytest.mark.parametrize("regime", Regime)
def test_an_alarm_passes_and_could_have_failed(regime: Regime) -> None:
    """At full size 20,000 windows from either database; then it proves more than half of what is claimed."""
    report = audit_windows(make_audited_alarm(regime), watch_windows, samples=rounds(20_000, quick=1_200), seed=81)
    assert not report.is_flagged
    assert report.is_conclusive
    assert is_quick() or report.epsilon_lower > 0.55 * report.claimed_epsilon


def test_a_ladder_passes_and_could_have_failed() -> None:
    report = audit_subject("ladder", [pair_ladders(noise=SeededNoise(82))], samples=rounds(20_000, quick=1_200))
    assert not report.is_flagged
    assert report.is_conclusive


def test_the_planned_audit_is_of_alarms() -> None:
    report = ALARM.run(samples=rounds(64_000, quick=2_400), noise=SeededNoise(83))
    assert report is not None
    assert (report.subject, report.is_flagged, report.is_conclusive) == (ALARM.subject, False, True)
    assert ALARM.relative_duration > 0
    assert plan_audits([ALARM.mechanism]) == (ALARM,)


@pytest.mark.parametrize("regime", Regime)
def test_charging_too_little_is_flagged(regime: Regime) -> None:
    """At full size half of what growing values are charged, and others as if they grew; less at quick."""
    made = make_audited_alarm(regime)
    part = 0.4 if is_quick() else 0.5 if regime is Regime.GROWING else 1.0
    cheap = replace(made, worst_case_epsilon=part * float(made.rate))
    assert audit_windows(cheap, watch_windows, samples=rounds(20_000, quick=1_600), seed=84).is_flagged


def with_new_numbers(calibration: AlarmCalibration, values: Integers, *, noise: Noise, forgetful: bool) -> Integers:
    """A secret number of its own for each look; and, as a window would that is begun anew, a total of its own."""
    states = draw_alarms(keys=len(values), noise=noise)
    for look, seen in enumerate(values.T, 1):
        fresh = draw_alarms(keys=len(values), noise=noise)
        states = tuple(
            state if state.rang_at else replace(new, total_weight=0 if forgetful else state.total_weight)
            for state, new in zip(states, fresh, strict=True)
        )
        states = look_at_values(calibration, states, seen + 1, look=look, noise=noise)
    return np.array([state.rang_at for state in states], dtype=np.int64)


@pytest.mark.parametrize("forgetful", [False, True], ids=["new numbers", "a window begun anew"])
def test_new_numbers_in_a_window_are_flagged(forgetful: bool) -> None:
    """Values one higher than in the audit, at which an alarm is as likely to ring as not."""
    watch = partial(with_new_numbers, forgetful=forgetful)
    assert audit_windows(ORDINARY, watch, samples=rounds(20_000, quick=2_000), seed=85).is_flagged


def audit_rows(
    rang_at: Callable[[int, int, Noise], Integers], *, epsilon: float, samples: int, seed: int
) -> AuditReport:
    """What is seen of some windows without a row and with it."""

    def release_of(row: int) -> Release:
        noise = SeededNoise(seed + row)
        return claim_always(lambda samples: rang_at(samples, row, noise), epsilon=epsilon)

    pair = Neighbours(description="a row more", first=release_of(0), second=release_of(1))
    return audit_subject("broken", [pair], samples=samples)


def test_a_total_computed_anew_is_flagged() -> None:
    """A row that comes before the last look is counted for the earlier ones, too; and then for the last one alone."""
    looks, value = 4, -3
    calibration = calibrate_alarm(replace(ORDINARY.task, looks=looks))

    def watch(samples: int, row: int, noise: Noise, *, anew: bool) -> Integers:
        states = draw_alarms(keys=samples, noise=noise)
        for look in range(1, looks):
            states = look_at_values(calibration, states, np.full(samples, value), look=look, noise=noise)
        if anew:
            total = (looks - 1) * compute_weight(calibration.rate, value + row - calibration.lowest_value)
            states = tuple(state if state.rang_at else replace(state, total_weight=total) for state in states)
        states = look_at_values(calibration, states, np.full(samples, value + row), look=looks, noise=noise)
        return np.array([[state.rang_at] for state in states], dtype=np.int64)

    epsilon, samples = calibration.worst_case_epsilon, rounds(20_000, quick=2_400)
    assert audit_rows(partial(watch, anew=True), epsilon=epsilon, samples=samples, seed=86).is_flagged
    assert not audit_rows(partial(watch, anew=False), epsilon=epsilon, samples=samples, seed=86).is_flagged


def test_one_number_for_two_thresholds_is_flagged() -> None:
    """Two alarms for cuts one apart, against the loss of both: that both ring at the second look is impossible without
    the row, for the first look's total has passed the lower threshold before the second's reaches the higher one."""
    other, near = calibrate_alarm(replace(ORDINARY.task, cut=1)), -2

    def watch(samples: int, row: int, noise: Noise, *, numbers: int) -> Integers:
        drawn = [draw_alarms(keys=samples, noise=noise) for _ in range(numbers)]
        columns = []
        for calibration, states in zip((ORDINARY, other), (drawn[0], drawn[-1]), strict=True):
            for look, value in ((1, near), (2, near + row)):
                states = look_at_values(calibration, states, np.full(samples, value), look=look, noise=noise)
            columns.append([state.rang_at for state in states])
        return np.array(columns, dtype=np.int64).T.copy()

    epsilon, samples = ORDINARY.worst_case_epsilon + other.worst_case_epsilon, rounds(20_000, quick=6_000)
    assert audit_rows(partial(watch, numbers=1), epsilon=epsilon, samples=samples, seed=88).is_flagged
    samples = rounds(20_000, quick=1_000)
    assert not audit_rows(partial(watch, numbers=2), epsilon=epsilon, samples=samples, seed=88).is_flagged


def test_a_ladder_that_charges_its_first_rung_alone_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every window is charged for the first rung alone, whether or not it climbed."""

    def forget(calibration: LadderCalibration, state: LadderState) -> float:
        return sum_losses_so_far(calibration, replace(state, rungs=state.rungs[:1]))

    monkeypatch.setattr(alarms, "sum_losses_so_far", forget)
    assert audit_subject(
        "ladder", [pair_ladders(noise=SeededNoise(90))], samples=rounds(20_000, quick=1_200)
    ).is_flagged
