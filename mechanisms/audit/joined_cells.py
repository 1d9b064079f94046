"""Cells of joined tables as subjects of an audit: a person's rows in one cell change all groups of the person.

A person is in three wards, and all of the person's tests are on one day. A question by ward joins stays with tests.
Without that day's tests it loses the person in all three wards. The claim is the charge of the ledger to the cell of
that day: the losses of all three wards, or twice that if totals can have either sign.

Proof: docs/proofs/cells.md, docs/proofs/audit.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject
from mechanisms.audit.events import Transcripts
from mechanisms.audit.worst_cases import MIDDLE, Values, list_critical_neighbours, make_audit_tasks, widen_tolerances
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, Mechanism, Noise

WARDS = 3
"""Groups of the question that the person is in: as many as declared."""
MOST_EPSILON_OF_A_WARD = 0.4  # with more of a ward the claim for both signs is beyond what so few draws can refute

Claim: TypeAlias = Callable[[Epsilons, int], Epsilons]
"""From the losses of the person's groups, of shape (draws, groups), and 2 if totals change their sign, else 1."""


def claim_all_groups(losses: Epsilons, times: int) -> Epsilons:
    """Return the loss that the ledger charges to a cell of a joined table, if all groups may read the cell."""
    charged: Epsilons = times * losses.sum(axis=1)
    return charged


def audit_joined_cells(
    mechanism: Mechanism,
    *,
    samples: int,
    noise: Noise,
    claim: Claim = claim_all_groups,
    subject: str = "join",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit a person's presence in one cell of a joined table, from the answers for the person's groups.

    Parameters:
        mechanism: decides keys one by one.
        samples: as for `audit`.
        claim: the rule of charging cells.
    """
    pairs = []
    for name, times in (("one condition", 1), ("coarse units", 2)):
        task = widen_tolerances(mechanism, make_audit_tasks()[name], most_epsilon=MOST_EPSILON_OF_A_WARD)
        calibration = mechanism.calibrate(task)
        for values, moved in _list_neighbours(task, times):
            first, second = (_make_release(mechanism, calibration, one, times, claim, noise) for one in (values, moved))
            description = f"{WARDS} wards of values {values} and {moved}"
            pairs.append(Neighbours(description=description, first=first, second=second))
    return audit_subject(subject, pairs, samples=samples, progress=progress)


def _list_neighbours(task: DecisionTask, times: int) -> Iterator[tuple[Values, Values]]:
    """Yield the values of a ward with the cell and without it. They differ by `times` the sensitivity."""
    moving = replace(task, sensitivities=tuple(times * most for most in task.sensitivities))
    yield from list_critical_neighbours(moving, depths=MIDDLE)


def _make_release(
    mechanism: Mechanism, calibration: Calibration, values: Values, times: int, claim: Claim, noise: Noise
) -> Release:
    def release(samples: int) -> Transcripts:
        aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], samples * WARDS, axis=1)
        outcome = mechanism.decide(calibration, aggregates, noise=noise)
        return Transcripts(
            revealed_values=outcome.passed.astype(np.int64).reshape(samples, WARDS),
            claimed_losses=claim(outcome.epsilon.reshape(samples, WARDS), times),
        )

    return release
