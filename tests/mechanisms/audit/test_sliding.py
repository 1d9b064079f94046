"""The auditor passes noise that is drawn once a tick, and flags what breaks its proof.

False alarms as in the audit: 1e-6 a report; the seeds are fixed.
"""

import numpy as np
import pytest

from mechanisms.audit.auditor import AuditReport, Neighbours, audit
from mechanisms.audit.sliding import audited_sliding, pair_sliding, pair_sliding_windows, watch_answers
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.standing.sliding_noise import SlidingNoise
from tests.effort import rounds
from tests.seeded_noise import SeededNoise


def _report(pair: Neighbours, *, quick: int = 3_000) -> AuditReport:
    return audit("sliding", [pair], samples=rounds(20_000, quick=quick))


@pytest.mark.parametrize("place", range(2))
def test_noise_drawn_once_passes_and_could_have_failed(place: int) -> None:
    report = _report(list(pair_sliding_windows(noise=SeededNoise(60 + place)))[place])
    assert (report.flagged, report.conclusive) == (False, True)


@pytest.mark.parametrize(("window", "block"), [(2, 1), (4, 2)])
def test_a_quarter_of_the_loss_is_flagged(window: int, block: int) -> None:
    pair = pair_sliding(audited_sliding(window, block), watch_answers, noise=SeededNoise(62), charged=0.25)
    assert _report(pair).flagged


def test_noise_drawn_anew_at_each_look_is_flagged() -> None:
    """An event in four windows, each with noise of its own, loses up to four times as much."""

    def watch(sliding: SlidingNoise, values: Integers, noise: Noise) -> Integers:
        columns = []
        for look, one in enumerate(values, 1):
            state = sliding.draw(keys=values.shape[1], noise=noise)
            columns.append(sliding.look(state, one[np.newaxis, :], look=look, noise=noise).alerted)
        return np.array(columns, dtype=np.int64).T.copy()

    pair = pair_sliding(audited_sliding(8, 1), watch, noise=SeededNoise(63), charged=0.5)
    honest = pair_sliding(audited_sliding(8, 1), watch_answers, noise=SeededNoise(64), charged=0.5)
    assert _report(pair, quick=20_000).flagged
    assert not _report(honest).flagged


def test_rows_that_count_after_the_first_look_at_their_tick_are_flagged() -> None:
    """One that is there at the second of its two looks alone: that look's noise has to be larger than both of its
    neighbours' allow, which is twice as unlikely, by logarithm, as one event may make it."""
    sliding = audited_sliding(2, 1)
    assert _report(pair_sliding(sliding, watch_answers, noise=SeededNoise(65), late=1), quick=12_000).flagged
