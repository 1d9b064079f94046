"""The auditor passes the charge of a cell that several answers read, and flags charges and noise that take it apart.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

import pytest

from mechanisms.audit.calendar_cells import audit_calendar_cells
from mechanisms.audit.subjects import CELLS, plan_audits
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from tests.effort import rounds
from tests.mechanisms.audit.broken import ApartForEachMonth, HalfOfACell
from tests.seeded_noise import SeededNoise


def test_a_cell_is_charged_once_whatever_reads_it() -> None:
    """100,000 calendars from either database, at quick 20,000. Most of the claim is proved lost."""
    report = CELLS.run(samples=rounds(100_000, quick=20_000), noise=SeededNoise(93))
    assert report is not None
    assert (report.subject, report.is_flagged, report.is_conclusive) == (CELLS.subject, False, True)
    assert report.epsilon_lower > 0.75 * report.claimed_epsilon
    assert CELLS.relative_duration > 0
    assert plan_audits([CELLS.mechanism]) == (CELLS,)


@pytest.mark.parametrize(
    "broken", [ApartForEachMonth(Progressive()), HalfOfACell(Keyhole())], ids=["fresh noise", "half a charge"]
)
def test_fresh_noise_for_each_answer_and_half_a_charge_are_flagged(broken: ApartForEachMonth) -> None:
    """20,000 calendars from either database; as always, what is flagged is wrong with a probability below 1e-6."""
    report = audit_calendar_cells(broken, samples=20_000, noise=SeededNoise(94))
    assert report.is_flagged
    assert report.epsilon_lower > 1.05 * report.claimed_epsilon
