"""The auditor passes what a cell of a joined table is charged, and flags charges that forget a ward or a sign.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

import pytest

from mechanisms.audit.joined_cells import Claim, audit_joined_cells
from mechanisms.audit.subjects import JOIN
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.protocol import Mechanism
from tests.effort import rounds
from tests.seeded_noise import SeededNoise


def test_a_cell_is_charged_all_groups_of_its_unit() -> None:
    """100,000 questions from either database, at quick 20,000."""
    report = JOIN.run(samples=rounds(100_000, quick=20_000), noise=SeededNoise(91))
    assert report is not None
    assert (report.subject, report.is_flagged, report.is_conclusive) == (JOIN.subject, False, True)
    assert report.epsilon_lower > 0.6 * report.claimed_epsilon
    assert JOIN.relative_duration > 0


@pytest.mark.parametrize("mechanism", [Keyhole(), Progressive()], ids=lambda one: one.name)
@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(lambda losses, times: times * losses.max(axis=1), id="one ward"),
        pytest.param(lambda losses, _: losses.sum(axis=1), id="one sign"),
    ],
)
def test_a_charge_of_one_ward_or_one_sign_is_flagged(mechanism: Mechanism, claim: Claim) -> None:
    report = audit_joined_cells(mechanism, samples=20_000, noise=SeededNoise(92), claim=claim)
    assert report.is_flagged
    assert report.epsilon_lower > 1.3 * report.claimed_epsilon
