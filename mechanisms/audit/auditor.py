"""A privacy auditor: it searches for an event that distinguishes neighbouring databases better than claimed.

From half of the draws it learns which transcripts are evidence for which database, and chooses a few events by
likelihood ratio. On the other half it bounds the events' probabilities (Clopper-Pearson, Bonferroni over pairs,
directions and events), and from them epsilon from below. A lower bound above the claim is a violation. A lower bound
below the claim proves nothing. Proofs are in docs/proofs/.

Ex-post losses are audited, too. An event of transcripts that each claim a loss of `e` at most must not be more than
`exp(e)` times as probable on one database as on the other.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.audit.events import LEVELS, Transcripts, bound_epsilon
from mechanisms.formula import Integers

FALSE_ALARM = 1e-6
"""The probability that `audit_subject` flags a private subject, over all its comparisons."""
LEAST_PROVED = 0.125
"""The part of its claim that an audit has to prove lost; not all, for some mechanisms claim more than they lose."""

Release = Callable[[int], Transcripts]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two databases that differ by one privacy unit, each as a function that draws transcripts."""

    description: str
    first: Release
    second: Release


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit: the event that refutes the claim furthest.

    If none refutes it, it is the event with the largest lower bound.

    With probability `1 - false_alarm` the subject's loss on that event is at least `epsilon_lower`. `claimed_epsilon`
    is the most that it claimed for the event's transcripts. `samples` counts the draws from each database of each pair.
    """

    subject: str
    claimed_epsilon: float
    epsilon_lower: float
    neighbours: str
    samples: int
    comparisons: int
    false_alarm: float

    @property
    def is_flagged(self) -> bool:
        """True if the claim is refuted."""
        return self.epsilon_lower > self.claimed_epsilon

    @property
    def is_conclusive(self) -> bool:
        """True if the audit would have refuted a claim of `LEAST_PROVED` times the actual claim.

        Otherwise the audit says nothing: its draws were too few, or never showed the tested event.
        """
        return self.epsilon_lower > LEAST_PROVED * self.claimed_epsilon


def claim_always(draw: Callable[[int], Integers], *, epsilon: float) -> Release:
    """Return a release that claims the loss `epsilon` for every transcript.

    Parameters:
        draw: gives int64 of shape (samples, width) for a number of samples, each independent of the others.
        epsilon: the claim.
    """

    def release(samples: int) -> Transcripts:
        return Transcripts(revealed_values=draw(samples), claimed_losses=np.full(samples, epsilon))

    return release


def audit_subject(
    subject: str,
    pairs: Sequence[Neighbours],
    *,
    samples: int,
    false_alarm: float = FALSE_ALARM,
    delta: float = 0.0,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Look for a violation of the subject's claimed losses.

    Guarantee: a private subject is flagged with probability `false_alarm` at most, over all pairs, directions
    and events.

    Parameters:
        pairs: at least one.
        samples: draws from each database of each pair, half for choosing events and half for measuring them; >= 2.
        delta: the claims are that `P(E) <= exp(e) P'(E) + delta`.
        progress: called with each pair's description before it is drawn.

    Raises:
        ValueError: no pair or fewer than two samples.
    """
    if not pairs or samples < 2:
        raise ValueError("an audit needs a pair of databases and at least two draws from each")
    comparisons = len(pairs) * 2 * LEVELS
    error = false_alarm / (2 * comparisons)
    half = samples // 2
    found: list[tuple[float, float, str]] = []
    for pair in pairs:
        if progress is not None:
            progress(f"{subject}: {pair.description}")
        learned, fresh = zip(_draw_halves(pair.first, half), _draw_halves(pair.second, half), strict=True)
        lower = bound_epsilon(learned, fresh, error=error, delta=delta)
        found += [(bound, claimed, pair.description) for bound, claimed in lower]
    bound, claimed, description = max(found, key=lambda event: (max(0.0, event[0] - event[1]), event[0]))
    return AuditReport(
        subject=subject,
        claimed_epsilon=claimed,
        epsilon_lower=bound,
        neighbours=description,
        samples=samples,
        comparisons=comparisons,
        false_alarm=false_alarm,
    )


def _draw_halves(release: Release, half: int) -> tuple[Transcripts, Transcripts]:
    """Draw the half for learning and the half for measuring in one call, since a small draw costs mostly its setup."""
    drawn = release(2 * half)
    return (
        Transcripts(revealed_values=drawn.revealed_values[:half], claimed_losses=drawn.claimed_losses[:half]),
        Transcripts(revealed_values=drawn.revealed_values[half:], claimed_losses=drawn.claimed_losses[half:]),
    )
