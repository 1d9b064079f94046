"""The auditor flags PriBRP as printed and the partition of DAWA's public code, and passes what Keyhole has of them.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from mechanisms.audit.auditor import AuditReport, Neighbours, audit_subject, claim_always
from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.diagnostics.interval_partition import compute_noise_scale
from mechanisms.diagnostics.pribrp import merge_bins, summarise_bin
from mechanisms.diagnostics.private_edges import find_edges
from mechanisms.formula import Integers
from tests.effort import rounds
from tests.mechanisms.audit.printed_diagnostics import draw_partitions, printed_sum, public_reach
from tests.seeded_noise import SeededNoise

ONE = Fraction(1)


def audited(
    subject: str, draw: Callable[[Integers], tuple[int, ...]], here: Integers, there: Integers, *, samples: int
) -> AuditReport:
    def many(counts: Integers) -> Callable[[int], Integers]:
        return lambda number: np.array([draw(counts) for _ in range(number)], dtype=np.int64)

    pair = Neighbours(
        description="a row more or less",
        first=claim_always(many(here), epsilon=1.0),
        second=claim_always(many(there), epsilon=1.0),
    )
    return audit_subject(subject, [pair], samples=samples)


def bins() -> tuple[Integers, Integers]:
    """Ten rows in cells 900 to 929 of 1,024, and one more at the end."""
    counts = np.zeros((1024, 2), dtype=np.int64)
    counts[[900, 910, 920], 1] = 3
    counts[929, 0] = 1
    more = counts.copy()
    more[929, 0] += 1
    return counts, more


def test_pribrp_as_printed_is_flagged() -> None:
    """At total epsilon 1 that one sum claims .175; alone it loses 5.4, of which far more than 1 is proved."""
    noise = NoiseAhead(SeededNoise(71))
    epsilon = Fraction(7, 10)

    def draw(counts: Integers) -> tuple[int, ...]:
        return (printed_sum(counts, 900, 930, epsilon=epsilon, noise=noise) // 100,)

    report = audited("pribrp", draw, *bins(), samples=rounds(20_000, quick=4_000))
    assert report.is_flagged
    assert report.epsilon_lower > 1


def test_pribrp_repaired_passes() -> None:
    """All three numbers of a bin, for epsilon 1; what is seen are their sides of the middle."""
    noise = NoiseAhead(SeededNoise(72))

    def draw(counts: Integers) -> tuple[int, ...]:
        found = summarise_bin(counts, 900, 930, epsilon=ONE, noise=noise)
        return (int(found.size > 10), int(found.score * found.size) // 400, int(found.outcome * 4))

    report = audited("pribrp", draw, *bins(), samples=rounds(40_000, quick=2_500))
    assert not report.is_flagged


def test_merging_passes() -> None:
    noise = NoiseAhead(SeededNoise(73))

    def draw(sizes: Integers) -> tuple[int, ...]:
        found = merge_bins(sizes, (0, 1, 2, 3, 4, 5), least=9, epsilon=ONE, noise=noise)
        return (found + (0,) * 6)[:6]

    sizes = np.array([2, 3, 3, 1, 8])
    report = audited("merging", draw, sizes + (np.arange(5) == 1), sizes, samples=rounds(40_000, quick=2_000))
    assert not report.is_flagged


@pytest.mark.parametrize("printed", [True, False])
def test_a_partition_as_in_the_public_code_is_flagged_and_the_repaired_one_passes(printed: bool) -> None:
    """Counts 5, 5, 5, 5 and one more in the third: {1, 2} {3} {4} is ten times as likely. The printed loss is 2.3."""
    noise = SeededNoise(74)

    def draw_from(counts: list[int]) -> Callable[[int], Integers]:
        reach = partial(public_reach if printed else compute_noise_scale, cells=4)
        return lambda samples: draw_partitions(
            np.array(counts), reach=reach, floor=printed, samples=samples, noise=noise
        )

    pair = Neighbours(
        description="a row more in the third cell",
        first=claim_always(draw_from([5, 5, 6, 5]), epsilon=1.0),
        second=claim_always(draw_from([5, 5, 5, 5]), epsilon=1.0),
    )
    report = audit_subject("partition", [pair], samples=rounds(400_000, quick=20_000))
    assert report.is_flagged == printed
    assert (report.epsilon_lower > 1.2) == printed


def test_medians_of_medians_pass() -> None:
    noise = NoiseAhead(SeededNoise(76))

    def draw(counts: Integers) -> tuple[int, ...]:
        found = find_edges(counts, levels=2, epsilon=2 * ONE, most_rows=2, noise=noise)
        return (found + (0,) * 5)[:5]

    here, there = np.array([1, 0, 0, 0, 2, 0]), np.array([0, 0, 0, 0, 2, 0])
    report = audited("edges", draw, here, there, samples=rounds(100_000, quick=1_200))
    assert not report.is_flagged
