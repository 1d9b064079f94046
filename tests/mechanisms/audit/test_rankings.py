"""The auditor passes rankings and flags broken ones.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.audit.auditor import AuditReport, audit_subject
from mechanisms.audit.rankings import AUDITED_LOOKS, Ranker, pair_rankings
from mechanisms.audit.subjects import RANKING, plan_audits
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise
from mechanisms.ranking import run
from mechanisms.ranking.calibration import RankingCalibration, RankingLook, RankingSchedule
from mechanisms.ranking.run import Ranking, rank_keys
from tests.effort import is_quick, rounds
from tests.seeded_noise import SeededNoise


def audit_pair(
    rank: Ranker, *, samples: int, seed: int, schedule: RankingSchedule = AUDITED_LOOKS, place: int = 0
) -> AuditReport:
    """One pair of databases alone: as many draws are found out by it as by all of them, in a third of the time."""
    pair = pair_rankings(rank, schedule=schedule, noise=SeededNoise(seed))[place]
    return audit_subject("ranking", [pair], samples=samples)


@pytest.mark.parametrize("place", range(5))
def test_a_ranking_passes_and_could_have_failed(place: int) -> None:
    """At full size 10,000 rankings from either database; 800 at quick are enough where a key is near the others."""
    report = audit_pair(rank_keys, samples=rounds(10_000, quick=800), seed=71, place=place)
    assert not report.is_flagged
    assert report.is_conclusive or (is_quick() and place > 0)


def sharpened(
    calibration: RankingCalibration,
    aggregates: Integers,
    *,
    taking_part: Booleans | None,
    keeps_path: bool,
    noise: Noise,
    partition: Integers | None = None,
) -> Ranking:
    """Noise half as wide as is claimed."""
    looks = tuple(RankingLook(rate=2 * look.rate, settled_gap=look.settled_gap // 2) for look in calibration.looks)
    sharper = replace(calibration, noise_rate=2 * calibration.noise_rate, looks=looks)
    found = rank_keys(
        sharper, aggregates, taking_part=taking_part, keeps_path=keeps_path, noise=noise, partition=partition
    )
    return replace(found, epsilon=found.epsilon / 2)


def told_at_the_first_look(
    calibration: RankingCalibration,
    aggregates: Integers,
    *,
    taking_part: Booleans | None,
    keeps_path: bool,
    noise: Noise,
    partition: Integers | None = None,
) -> Ranking:
    """Only the first look is charged, however far a key went."""
    found = rank_keys(
        calibration, aggregates, taking_part=taking_part, keeps_path=keeps_path, noise=noise, partition=partition
    )
    return replace(found, epsilon=np.minimum(found.epsilon, float(calibration.revealed_rates[0])))


def stopped_by_the_truth(
    calibration: RankingCalibration,
    aggregates: Integers,
    *,
    taking_part: Booleans | None,
    keeps_path: bool,
    noise: Noise,
    partition: Integers | None = None,
) -> Ranking:
    """Looks stop where the true values, and not the noisy ones, lie further apart than the gap."""
    distance = np.abs(aggregates[1:] - aggregates[0]).min()
    settled = [look for look in calibration.looks if distance >= look.settled_gap]
    cut = replace(calibration, looks=(), noise_rate=settled[0].rate) if settled else calibration
    found = rank_keys(cut, aggregates, taking_part=taking_part, keeps_path=keeps_path, noise=noise, partition=partition)
    return replace(found, epsilon=np.full(aggregates.size, float(cut.noise_rate)))


def charged_for_one_value(
    calibration: RankingCalibration,
    aggregates: Integers,
    *,
    taking_part: Booleans | None,
    keeps_path: bool,
    noise: Noise,
    partition: Integers | None = None,
) -> Ranking:
    """A cell is charged for its own value, and not for the other one that reads it."""
    found = rank_keys(
        calibration, aggregates, taking_part=taking_part, keeps_path=keeps_path, noise=noise, partition=partition
    )
    return replace(found, epsilon=found.epsilon / 2)


@pytest.mark.parametrize(
    ("rank", "place"),
    [(sharpened, 0), (told_at_the_first_look, 0), (stopped_by_the_truth, 1), (charged_for_one_value, 4)],
    ids=["sharpened", "told at the first look", "stopped by the truth", "charged for one value"],
)
def test_broken_rankings_are_flagged(rank: Ranker, place: int) -> None:
    assert audit_pair(rank, samples=rounds(4_000, quick=900), seed=72, place=place).is_flagged


def test_fresh_noise_at_each_look_is_flagged(monkeypatch: pytest.MonkeyPatch) -> None:
    """All values of a key tell together, where the finest should tell what all do."""

    def draw_anew(value: Integers, *, coarse: Fraction, fine: Fraction, noise: Noise) -> Integers:
        del coarse
        return noise.draw_discrete_laplace(rate=fine, size=value.size)

    sharp = RankingSchedule(rates=(Fraction(3, 4), Fraction(7, 8)), shares=(0.02, 0.02))
    monkeypatch.setattr(run, "refine_noise", draw_anew)
    assert audit_pair(rank_keys, samples=rounds(8_000, quick=1_400), seed=73, schedule=sharp).is_flagged


def test_the_planned_audit_is_of_rankings() -> None:
    """At quick too few draws to say anything; at full size it could have failed."""
    report = RANKING.run(samples=rounds(64_000, quick=1_600), noise=SeededNoise(74))
    assert report is not None
    assert (report.subject, report.is_flagged) == (RANKING.subject, False)
    assert report.is_conclusive or is_quick()
    assert RANKING.relative_duration > 0
    assert plan_audits([RANKING.mechanism]) == (RANKING,)
