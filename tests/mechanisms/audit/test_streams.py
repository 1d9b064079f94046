"""The auditor passes the mechanisms for streams and flags broken ones, printed pruning among them.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from mechanisms.audit.auditor import AuditReport, Neighbours, audit_subject, claim_always
from mechanisms.audit.stream_subjects import StreamTwins, audit_stream, list_twins, pair_streams
from mechanisms.audit.subjects import STREAMED, PlannedAudit, plan_audits
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise
from mechanisms.streams.hierarchy import Hierarchy, prune_parts_of_small
from mechanisms.streams.pegasus import Pegasus
from mechanisms.streams.phs_pegasus import PhsPegasus, find_small_aggregations
from mechanisms.streams.stream_names import STREAMS
from tests.effort import cases, is_quick, rounds
from tests.mechanisms.streams.given_noise import GivenNoise
from tests.seeded_noise import SeededNoise

COMPARED = 8  # aggregations of a path that have parts
EVENT = 5  # what an event adds, so that noise of whole numbers is close to continuous noise
PATH = Hierarchy(parents=tuple(range(-1, COMPARED)))

Prune = Callable[[Integers, Noise], Booleans]


def prune_as_printed(aggregates: Integers, noise: Noise) -> Booleans:
    """Algorithm 18 with beta 0 and a claim of 1: fresh noise at half of it on each count and on each threshold."""
    drawn = noise.draw_discrete_laplace(rate=Fraction(1, 2 * EVENT), size=2 * aggregates.size).reshape(
        2, *aggregates.shape
    )
    return np.asarray(aggregates + drawn[0] < drawn[1], dtype=np.bool_)


def prune_corrected(aggregates: Integers, noise: Noise) -> Booleans:
    """The same claim, shared by all that are compared."""
    return find_small_aggregations(PATH, aggregates, rate=Fraction(1, COMPARED * EVENT), prune_below=0, noise=noise)


def audit_pruning(prune: Prune, *, samples: int, seed: int) -> AuditReport:
    """How deep a path is pruned whose counts are all those of one event, or 0."""
    noise = SeededNoise(seed)

    def draw(count: int) -> Callable[[int], Integers]:
        def depth(size: int) -> Integers:
            small = prune(np.full((size, COMPARED + 1), count, dtype=np.int64), noise)
            pruned: Integers = prune_parts_of_small(PATH, small).pruned.astype(np.int64)
            return np.asarray(pruned.sum(axis=1)[:, np.newaxis], dtype=np.int64)

        return depth

    pair = Neighbours("one event and none", claim_always(draw(EVENT), epsilon=1.0), claim_always(draw(0), epsilon=1.0))
    return audit_subject("pruning", [pair], samples=samples)


def test_pruning_as_printed_is_flagged() -> None:
    """It loses 1.681 (continuous noise: 1.733) where 1 is claimed, on an event of probability .026, of which
    100,000 draws prove more than 1, and 800,000 more than 1.45. The bound exceeds the truth with probability 1e-6."""
    report = audit_pruning(prune_as_printed, samples=rounds(800_000, quick=100_000), seed=101)
    assert report.is_flagged
    assert report.epsilon_lower > (1.0 if is_quick() else 1.45)
    assert report.epsilon_lower < 1.75


def test_pruning_as_corrected_passes() -> None:
    report = audit_pruning(prune_corrected, samples=rounds(160_000, quick=80_000), seed=102)
    assert not report.is_flagged
    assert report.is_conclusive


@pytest.mark.parametrize("planned", STREAMED, ids=lambda planned: planned.mechanism)
def test_mechanisms_for_streams_pass_and_could_have_failed(planned: PlannedAudit) -> None:
    """At full size 12,500 streams from either database; 1,000 at quick say less."""
    (audited,) = plan_audits([planned.mechanism])
    assert audited == planned
    report = audited.run(samples=rounds(50_000, quick=4_000), noise=SeededNoise(103))
    assert report is not None
    assert not report.is_flagged
    assert report.is_conclusive or is_quick()
    assert audited.relative_duration > 0


def test_every_mechanism_that_reads_counts_is_audited() -> None:
    assert set(list_twins()) == set(STREAMS) - {"zeros"}
    assert all(twins.mechanism.name == name for name, found in list_twins().items() for twins in found)


class Sharper(GivenNoise):
    """Noise at four times the rate that is asked for."""

    def __init__(self, source: Noise) -> None:
        super().__init__()
        self.source = source

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        return self.source.draw_discrete_laplace(rate=4 * rate, size=size)


@pytest.mark.parametrize("name", [name for (name,) in cases(list_twins(), quick=5)])
def test_much_too_little_noise_is_flagged(name: str) -> None:
    """Four times the rate of each draw: 2,000 streams from either database are enough."""
    assert audit_stream(name, samples=2_000, noise=Sharper(SeededNoise(104))).is_flagged


class NoTestNoise(GivenNoise):
    """The Grouper's noise on its deviations is left out: one noisy threshold for exact deviations."""

    def __init__(self, source: Noise) -> None:
        super().__init__()
        self.source = source

    def draw_discrete_laplace(self, *, rate: Fraction, size: int) -> Integers:
        if rate == Fraction(1, 8):
            return np.zeros(size, dtype=np.int64)
        return self.source.draw_discrete_laplace(rate=rate, size=size)


def test_groups_without_noise_on_their_deviations_are_flagged() -> None:
    """8,000 streams from either database. The deviations of 0, 2, 1 are 2 and 2, so that no threshold closes the group
    at the third tick; those of 0, 2, 2 are 2 and 8/3, and one in thirteen does."""
    pegasus = Pegasus(epsilon=Fraction(2), sensitivity=1, grouper_share=Fraction(1, 2), theta_factor=Fraction(1, 2))
    assert pegasus.grouper.deviation_rate == Fraction(1, 8)
    pair = pair_streams(StreamTwins(pegasus, (0, 2, 1), 2), noise=NoTestNoise(SeededNoise(105)))
    assert audit_subject("groups", [pair], samples=8_000).is_flagged


def test_losses_of_pruned_levels_are_not_spent_twice() -> None:
    """What is pruned would cost again if it were released all the same: shares of a path are the height at most."""
    mechanism = list_twins()["phs_pegasus"][0].mechanism
    assert isinstance(mechanism, PhsPegasus)
    rates = [mechanism.pruned.compute_perturber_rate(share) for share in (1, 2, 3)]
    part = mechanism.pruned.pegasus.grouper_epsilon
    assert [rate + part for rate in rates] == [Fraction(share, 3) for share in (1, 2, 3)]
