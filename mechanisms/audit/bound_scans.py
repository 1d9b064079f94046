"""Scans for a private bound as subjects of an audit. A transcript is the released candidate.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from mechanisms.audit.auditor import AuditReport, Neighbours, audit_subject, claim_always
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.publishing.private_bounds import (
    BoundScan,
    calibrate_scan,
    find_first_passing_candidate,
    list_candidates,
)


def make_audited_scan() -> BoundScan:
    """Return a scan that an audit can refute with few draws: epsilon 1, a dozen candidates, a large target."""
    return calibrate_scan(list_candidates(13), epsilon=Fraction(1), units=1000, cut=Fraction(1, 20))


def audit_scan(
    scan: BoundScan,
    *,
    samples: int,
    noise: Noise,
    subject: str = "bounds",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit the index that a scan releases, for counts near the target.

    The added unit lies between the first two candidates, between two in the middle, or beyond all but the last. The
    first case attains the proof's bound.

    Parameters:
        scan: has four candidates or more, and a positive target.
        samples: as for `audit`.

    Raises:
        ValueError: there are fewer candidates, or the scan could release only the first.
    """
    number = len(scan.candidates)
    if number < 4 or scan.target < 1:
        raise ValueError("an audited scan has four candidates or more and a target above zero")
    flat = (*[scan.target] * (number - 1), 0)
    falling = (*(max(0, scan.target + 2 - place) for place in range(number - 1)), 0)
    pairs = []
    for beyond, moved in ((flat, 1), (falling, number // 2), (flat, number - 1)):
        more = tuple(count + (place < moved) for place, count in enumerate(beyond))
        pairs.append(
            Neighbours(
                description=f"a unit beyond {moved} of {number} candidates, or none",
                first=claim_always(_make_draw(scan, more, noise), epsilon=float(scan.epsilon)),
                second=claim_always(_make_draw(scan, beyond, noise), epsilon=float(scan.epsilon)),
            )
        )
    return audit_subject(subject, pairs, samples=samples, progress=progress)


def _make_draw(scan: BoundScan, beyond: tuple[int, ...], noise: Noise) -> Callable[[int], Integers]:
    def draw(samples: int) -> Integers:
        counts = np.tile(np.array(beyond, dtype=np.int64), (samples, 1))
        found = find_first_passing_candidate(counts, target=scan.target, rate=scan.epsilon / 2, noise=noise)
        return found[:, np.newaxis]

    return draw
