"""The events that tell two databases apart best, chosen on half of the draws and measured on the other.

Proof: docs/proofs/audit.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mechanisms.formula import Integers
from mechanisms.protocol import Epsilons

LEVELS = 4
"""How many events `bounds` measures in each direction."""

_CUTS = 24  # events tried for each claim, by growing probability
_MOST_CLAIMS = 32  # of the claimed losses, spread evenly: each is another set of events to look at


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Draws of everything a subject reveals: `seen` has shape (samples, width), `claimed` the loss claimed by each."""

    seen: Integers
    claimed: Epsilons


@dataclass(frozen=True, slots=True)
class _Event:
    """Transcripts (by code), and the most loss that they claim."""

    members: Integers
    claimed: float


def bounds(
    learned: tuple[Transcripts, Transcripts], fresh: tuple[Transcripts, Transcripts], *, error: float
) -> list[tuple[float, float]]:
    """Lower bounds of epsilon with the claims they are to be compared with, both directions.

    Parameters:
        learned, fresh: draws from two neighbouring databases, for choosing events and for measuring them; all as many.
        error: the failure probability of each Clopper-Pearson bound.
    """
    half = len(fresh[0].claimed)
    codes = _number_transcripts([draws.seen for draws in (*learned, *fresh)])
    claims = np.zeros(1 + max(int(code.max()) for code in codes))
    for code, draws in zip(codes, learned, strict=False):
        np.maximum.at(claims, code, draws.claimed)
    counts = [np.bincount(code, minlength=claims.size) for code in codes]
    found = []
    for ours, theirs in ((0, 1), (1, 0)):
        for event in _choose_events(counts[ours], counts[theirs], claims, error=error):
            hits, rival_hits = (int(counts[2 + side][event.members].sum()) for side in (ours, theirs))
            found.append((epsilon_from_below(hits, rival_hits, samples=half, error=error), event.claimed))
    return found


def epsilon_from_below(hits: int, rival_hits: int, *, samples: int, error: float) -> float:
    """`ln(P(E) / P'(E))` at least, with probability `1 - 2 error`, from an event's counts; never below zero.

    Parameters:
        hits, rival_hits: how many of `samples` draws from either database fell into the event.
        error: the failure probability of each of the two Clopper-Pearson bounds.
    """
    if hits == 0:
        return 0.0
    lower = float(stats.beta.ppf(error, hits, samples - hits + 1))
    upper = float(stats.beta.isf(error, rival_hits + 1, samples - rival_hits)) if rival_hits < samples else 1.0
    return max(0.0, math.log(lower / upper)) if lower > 0.0 else 0.0


def _choose_events(counts: Integers, rival: Integers, claims: Epsilons, *, error: float) -> list[_Event]:
    """The most promising events for our database, among the best transcripts that claim so much at most."""
    samples = int(counts.sum())
    order = np.lexsort((-counts, -(counts + 0.5) / (rival + 0.5)))
    order = order[counts[order] + rival[order] > 0]
    distinct = np.unique(claims[order])
    events = []
    for claim in distinct[np.unique(np.linspace(0, distinct.size - 1, _MOST_CLAIMS).astype(np.int64))]:
        inside = order[claims[order] <= claim]
        hits, rivals = np.cumsum(counts[inside]), np.cumsum(rival[inside])
        candidates = np.unique(np.searchsorted(hits, hits[-1] * np.geomspace(1e-4, 1.0, _CUTS)))
        bounds = [epsilon_from_below(int(hits[k]), int(rivals[k]), samples=samples, error=error) for k in candidates]
        best = int(np.argmax(bounds))
        event = _Event(members=inside[: candidates[best] + 1], claimed=float(claim))
        events.append((bounds[best] - float(claim), bounds[best], event))
    events.sort(key=lambda found: found[:2], reverse=True)
    return [event for _, _, event in events[:LEVELS]]


def _number_transcripts(draws: Sequence[Integers]) -> list[Integers]:
    """Each transcript as one small number, the same for equal transcripts of all draws."""
    every = np.concatenate(draws)
    codes = np.zeros(len(every), dtype=np.int64)
    for column in every.T:
        values, places = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * values.size + places, return_inverse=True)
    return np.split(codes, np.cumsum([len(draw) for draw in draws])[:-1])
