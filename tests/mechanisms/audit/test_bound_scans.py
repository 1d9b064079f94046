"""The auditor passes the scan for a private bound, flags it with half of its noise, and reads the product's own scan.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.audit.auditor import Neighbours, audit_subject, claim_always
from mechanisms.audit.bound_scans import audit_scan, make_audited_scan
from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.audit.subjects import SCAN
from mechanisms.formula import Integers
from mechanisms.publishing.private_bounds import BoundScan, run_scan
from tests.effort import rounds
from tests.mechanisms.audit.broken import SharperNoise
from tests.seeded_noise import SeededNoise


def test_a_scan_passes_in_both_directions_and_comes_near_its_claim() -> None:
    """40,000 scans from either database of each pair; the loss is attained, so the bound from below comes near."""
    report = audit_scan(make_audited_scan(), samples=rounds(200_000, quick=40_000), noise=SeededNoise(51))
    assert not report.is_flagged
    assert 0.8 < report.epsilon_lower <= report.claimed_epsilon == 1.0


def test_a_scan_with_all_of_epsilon_on_each_noise_is_flagged() -> None:
    """Its true loss is 2 where 1 is claimed; 10,000 scans prove 1.5, far beyond what chance could hide."""
    report = audit_scan(make_audited_scan(), samples=10_000, noise=SharperNoise(SeededNoise(52)))
    assert report.is_flagged
    assert report.epsilon_lower > 1.5


def test_the_planned_audit_is_of_the_scan() -> None:
    report = SCAN.run(samples=10_000, noise=SeededNoise(53))
    assert report is not None
    assert (report.subject, report.is_flagged, report.is_conclusive) == (SCAN.subject, False, True)
    assert SCAN.relative_duration > 0


@pytest.mark.parametrize("sharper", [False, True])
def test_the_released_index_itself(sharper: bool) -> None:
    """`run_scan`, one call for each of 1,500 draws: it passes, and with half of its noise it does not."""
    scan = make_audited_scan()
    noise = NoiseAhead(SharperNoise(SeededNoise(54)) if sharper else SeededNoise(54))

    def draw_from(beyond: tuple[int, ...]) -> Callable[[int], Integers]:
        def draw(samples: int) -> Integers:
            found = [run_scan(scan, beyond, noise=noise) for _ in range(samples)]
            return np.array(found, dtype=np.int64)[:, np.newaxis]

        return draw

    beyond = (scan.target,) * (len(scan.candidates) - 1) + (0,)
    pair = Neighbours(
        description="a unit between the first two, or none",
        first=claim_always(draw_from((beyond[0] + 1, *beyond[1:])), epsilon=1.0),
        second=claim_always(draw_from(beyond), epsilon=1.0),
    )
    report = audit_subject("above_threshold", [pair], samples=1_500)
    assert report.is_flagged == sharper
    assert report.is_conclusive


def test_a_scan_on_which_nothing_turns_is_not_audited() -> None:
    for candidates, cut in (((0, 1, 2), Fraction(1, 2)), ((0, 1, 2, 3), Fraction(1, 1000))):
        scan = BoundScan(candidates=candidates, epsilon=Fraction(1), unit_count=1000, cut_share=cut)
        with pytest.raises(ValueError, match="four candidates"):
            audit_scan(scan, samples=10, noise=SeededNoise(1))
