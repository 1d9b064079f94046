"""The auditor passes published tables, and flags them with half of their noise.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

from fractions import Fraction

from mechanisms.audit.subjects import TABLE
from mechanisms.audit.table_subjects import audit_tables, draw_tables
from tests.effort import rounds
from tests.seeded_noise import SeededNoise


def test_a_table_passes() -> None:
    """8,000 tables from either database of each pair."""
    report = TABLE.run(samples=rounds(100_000, quick=8_000), noise=SeededNoise(81))
    assert report is not None
    assert (report.subject, report.is_flagged, report.is_conclusive) == (TABLE.subject, False, True)
    assert report.claimed_epsilon in (1.0, 2.0)
    assert TABLE.relative_duration > 0


def test_a_table_with_noise_for_one_row_of_a_unit_is_flagged() -> None:
    """A unit has two rows in a cell: it loses twice what is claimed."""
    sharper = draw_tables(SeededNoise(82), epsilon=Fraction(2))
    report = audit_tables(samples=rounds(100_000, quick=8_000), noise=SeededNoise(83), draw=sharper)
    assert report.is_flagged
    assert report.epsilon_lower > 1.25 * report.claimed_epsilon
