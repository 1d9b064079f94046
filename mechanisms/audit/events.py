"""The events that distinguish two databases best, chosen on half of the draws and measured on the other half.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from mechanisms.formula import Integers
from mechanisms.protocol import Epsilons

LEVELS = 4
"""How many events `bound_epsilon` measures in each direction."""

_CUTS = 24  # events tried for each claim, by growing probability
_MOST_CODES = 1 << 62  # codes of transcripts stay 64-bit integers
_SPARSEST = 4  # counts kept for each draw at most, of values that need not occur: more room against a sort
_LEAST_CLAIM = 1e-12  # stands for a claim of zero where others are compared with it
_MOST_CLAIMS = 32  # of the claimed losses, spread evenly: each is another set of events to look at


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Draws of all that a subject reveals, with the loss that each draw claims.

    `revealed_values` has shape (samples, width), `claimed_losses` shape (samples,). The claim is part of a transcript,
    so `revealed_values` need not contain it.
    """

    revealed_values: Integers
    claimed_losses: Epsilons


@dataclass(frozen=True, slots=True)
class _Event:
    """A set of transcripts, by their codes, and the largest loss that they claim."""

    transcript_codes: Integers
    largest_claim: float


def bound_epsilon(
    learned: tuple[Transcripts, Transcripts],
    fresh: tuple[Transcripts, Transcripts],
    *,
    error: float,
    delta: float = 0.0,
) -> list[tuple[float, float]]:
    """Return lower bounds of epsilon in both directions, each with the claimed loss to compare it with.

    Each comes with the claim to compare it with.

    Parameters:
        learned, fresh: draws from two neighbouring databases, for choosing events and for measuring them; equally many.
        error: the failure probability of each Clopper-Pearson bound.
        delta: that of the claims.
    """
    half = len(fresh[0].claimed_losses)
    codes = _number_transcripts(
        [np.column_stack((draws.revealed_values, draws.claimed_losses.view(np.int64))) for draws in (*learned, *fresh)]
    )
    claims = np.zeros(1 + max(int(code.max()) for code in codes))
    for code, draws in zip(codes, learned, strict=False):
        np.maximum.at(claims, code, draws.claimed_losses)
    counts = [np.bincount(code, minlength=claims.size) for code in codes]
    found: list[tuple[float, float]] = []
    for ours, theirs in ((0, 1), (1, 0)):
        events = _choose_events(counts[ours], counts[theirs], claims, error=error, delta=delta)
        hits, rival_hits = (
            np.array([counts[2 + side][event.transcript_codes].sum() for event in events]) for side in (ours, theirs)
        )
        lower = bound_epsilon_from_counts(hits, rival_hits, samples=half, error=error, delta=delta)
        found += zip(lower.tolist(), (event.largest_claim for event in events), strict=True)
    return found


def bound_epsilon_from_counts(
    hits: Integers, rival_hits: Integers, *, samples: int, error: float, delta: float = 0.0
) -> Epsilons:
    """Return a lower bound on `ln((P(E) - delta) / P'(E))` from each event's counts.

    It holds with probability `1 - 2 error`, and is never below zero.

    Parameters:
        hits, rival_hits: how many of `samples` draws from either database fell into the event; of one shape.
        error: the failure probability of each of the two Clopper-Pearson bounds.
    """
    lower, upper = np.zeros(hits.shape), np.ones(hits.shape)
    some, most = hits > 0, rival_hits < samples
    lower[some] = special.betaincinv(hits[some], samples - hits[some] + 1, error)
    upper[most] = special.betainccinv(rival_hits[most] + 1, samples - rival_hits[most], error)
    return np.log(np.maximum(1.0, (lower - delta) / upper))


def _choose_events(counts: Integers, rival: Integers, claims: Epsilons, *, error: float, delta: float) -> list[_Event]:
    """Return the events that are the best evidence for one database against its rival.

    For each of some claims, only transcripts that claim at most as much are used.
    """
    samples = int(counts.sum())
    order = np.lexsort((-counts, -(counts + 0.5) / (rival + 0.5)))
    order = order[counts[order] + rival[order] > 0]
    distinct = np.unique(claims[order])
    events = []
    for claim in distinct[np.unique(np.linspace(0, distinct.size - 1, _MOST_CLAIMS).astype(np.int64))]:
        inside = order[claims[order] <= claim]
        hits, rivals = np.cumsum(counts[inside]), np.cumsum(rival[inside])
        candidates = np.unique(np.searchsorted(hits, hits[-1] * np.geomspace(1e-4, 1.0, _CUTS)))
        tried = hits[candidates], rivals[candidates]
        lower = bound_epsilon_from_counts(*tried, samples=samples, error=error, delta=delta)
        best = int(np.argmax(lower))
        event = _Event(transcript_codes=inside[: candidates[best] + 1], largest_claim=float(claim))
        # by the part of the claim that it proves: differences would prefer what claims and proves nothing
        events.append((lower[best] / max(claim, _LEAST_CLAIM), event))
    events.sort(key=lambda found: found[0], reverse=True)
    return [event for _, event in events[:LEVELS]]


def _number_transcripts(draws: Sequence[Integers]) -> list[Integers]:
    """Assign numbers to the transcripts, which are rows. Equal transcripts of all draws get the same number.

    Columns are packed into one integer, one after the other, as long as there is room.
    """
    every = np.concatenate(draws)
    codes, values = np.zeros(len(every), dtype=np.int64), 1
    for column in every.T:
        own, spread = _number_values(column)
        if values * spread > _MOST_CODES:
            codes, values = _number_values(codes)
        codes, values = codes * spread + own, values * spread
    return np.split(_number_values(codes)[0], np.cumsum([len(draw) for draw in draws])[:-1])


def _number_values(column: Integers) -> tuple[Integers, int]:
    """Assign numbers to the values of a column.

    Return the numbers and a bound above them, a few times the column's length at most.
    """
    low, high = int(column.min()), int(column.max())
    if high - low < _SPARSEST * column.size:
        return column - low, high - low + 1
    distinct, places = np.unique(column, return_inverse=True)
    return places, distinct.size
