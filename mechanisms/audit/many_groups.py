"""The audit of (epsilon, delta) for one privacy unit in many groups of a question whose noise is drawn in full.

A transcript has for each functional the sum, over the groups, of how much nearer the finest values are to one database
than to the other. This is the most informative statistic. Without noisy values it is the number of groups that pass.
Proofs: docs/proofs/renyi.md, docs/proofs/arc.md, docs/proofs/audit.md.
"""

from collections.abc import Callable

import numpy as np

from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject
from mechanisms.audit.events import Transcripts
from mechanisms.audit.worst_cases import MIDDLE, Values, list_critical_neighbours
from mechanisms.formula import Integers
from mechanisms.keyhole.noise_continuation import CONTINUABLE, decide_with_all_revealed
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Noise
from mechanisms.threshold.renyi import compute_curve, convert_to_epsilon

GROUPS = 40  # of one unit: so many that the pure sum is far above what any audit can prove
DELTA = 0.05  # so large that what exceeds it is drawn often enough; the claim is one for every delta
MOST_EPSILON_OF_A_GROUP = 0.3  # with more of a group a unit's claim is beyond what so few draws can refute
MOST_EPSILON_OF_A_LOOK = 0.6  # an arc look's pure loss is farther above its curve, so it takes more of it to be noticed

_KEYS_AT_ONCE = 1 << 21  # bounds memory


def claim_by_curve(calibration: Calibration, *, groups: int, delta: float) -> float:
    """Return the balance of a unit that was charged for this question only, by Rényi curves with a delta."""
    by_curve = map(sum, zip(compute_curve(calibration, groups=groups), convert_to_epsilon(delta), strict=True))
    return min(groups * calibration.worst_case_epsilon, min(by_curve) / 1e9)


def audit_many_groups(
    mechanism: Mechanism,
    task: DecisionTask,
    *,
    samples: int,
    noise: Noise,
    claim: Callable[[Calibration], float] | None = None,
    subject: str = "",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit a question about `GROUPS` groups that one unit is in, with `DELTA`. Parameters as for `audit_mechanism`.

    Parameters:
        mechanism: one that leaves noise paths, or that brings its divergences.
        claim: the claim for a unit, by default `claim_by_curve`.

    Raises:
        Unachievable: the mechanism cannot calibrate the task.
    """
    calibration = mechanism.calibrate(task)
    epsilon = claim_by_curve(calibration, groups=GROUPS, delta=DELTA) if claim is None else claim(calibration)
    pairs = [
        Neighbours(
            description=f"{GROUPS} groups of values {before} and {after}",
            first=_make_release(mechanism, calibration, before, (before, after), epsilon, noise),
            second=_make_release(mechanism, calibration, after, (before, after), epsilon, noise),
        )
        for before, after in list_critical_neighbours(task, depths=MIDDLE)
    ]
    return audit_subject(subject or mechanism.name, pairs, samples=samples, delta=DELTA, progress=progress)


def _make_release(
    mechanism: Mechanism,
    calibration: Calibration,
    values: Values,
    neighbours: tuple[Values, Values],
    epsilon: float,
    noise: Noise,
) -> Release:
    def draw(samples: int) -> Integers:
        aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], samples * GROUPS, axis=1)
        if mechanism.name not in CONTINUABLE:
            passed = mechanism.decide(calibration, aggregates, noise=noise).passed.reshape(samples, GROUPS)
            counts: Integers = np.count_nonzero(passed, axis=1).reshape(samples, 1).astype(np.int64)
            return counts
        paths = decide_with_all_revealed(calibration, aggregates, noise=noise).paths
        told = [
            (np.abs(path.values[-1] - second) - np.abs(path.values[-1] - first)).reshape(samples, GROUPS).sum(axis=1)
            for path, first, second in zip(paths, *neighbours, strict=True)
            if path is not None
        ]
        return np.column_stack(told)

    def release(samples: int) -> Transcripts:
        part = max(1, _KEYS_AT_ONCE // GROUPS)
        seen = np.concatenate([draw(min(part, samples - start)) for start in range(0, samples, part)])
        return Transcripts(revealed_values=seen, claimed_losses=np.full(samples, epsilon))

    return release
