"""A privacy auditor that can fail: it looks for an event that tells neighbouring databases apart better than claimed.

From half of the draws it learns which transcripts speak for which database and chooses a few events by likelihood
ratio; on the other, fresh half it bounds the events' probabilities (Clopper-Pearson, Bonferroni over pairs, directions
and events) and from them epsilon from below. A lower bound above the claim is a violation; a bound below it is no
proof, which only docs/proofs/ gives.

Ex-post losses are audited too: an event made of transcripts that claim a loss of `e` at most must not be more
than `exp(e)` times as probable on either database.

References: MATHS M12. Proof of the bound: Clopper-Pearson intervals hold together by the union bound, and `P(E) <=
exp(epsilon) P'(E)` for every event of an `epsilon`-private mechanism.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers, cuts
from mechanisms.joint_loss import all_at_once, sets_at_once
from mechanisms.protocol import Calibration, DecisionTask, Epsilons, Exposure, Mechanism, Noise, Unachievable
from mechanisms.registry import MECHANISMS

FALSE_ALARM = 1e-6
"""The probability that `audit` flags a private subject, over all its comparisons."""

_CUTS = 24
_LEVELS = 4
_MOST_CLAIMS = 32
_DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
_MIDDLE = (0.5,)
_COST_OF_A_QUESTION = 16
_RUN_KEYS = 3
_CROWD = 6
_NEARLY, _FAR_FALSE, _FAR = 2, 40, 60
_KEYS_INDEPENDENT = frozenset(
    (
        "keyhole",
        "tslm",
        "nlm",
        "naive",
        "probe_one_phase",
        "ppwlm",
        "mim",
        "mim_baseline",
        "mim_progressive",
        "progressive",
    )
)


@dataclass(frozen=True, slots=True)
class Transcripts:
    """Draws of everything a subject reveals: `seen` has shape (samples, width), `claimed` the loss claimed by each."""

    seen: Integers
    claimed: Epsilons


Release = Callable[[int], Transcripts]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two databases that differ by one privacy unit, as two sources of transcripts of a wanted number."""

    description: str
    first: Release
    second: Release


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found: the event that refutes the claim furthest or, if none does, the one that reveals most.

    With probability `1 - false_alarm` the subject's loss on that event is at least `epsilon_lower`; `claimed_epsilon`
    is what it claimed for the event's transcripts. `samples` counts the draws from each database of each pair.
    """

    subject: str
    claimed_epsilon: float
    epsilon_lower: float
    neighbours: str
    samples: int
    comparisons: int
    false_alarm: float

    @property
    def flagged(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon_lower > self.claimed_epsilon


def released(draw: Callable[[int], Integers], *, epsilon: float) -> Release:
    """A subject that claims the same loss for every transcript, from a function that draws transcripts alone.

    Parameters:
        draw: gives int64 of shape (samples, width) for a number of samples, each independent of the others.
        epsilon: the claim.
    """

    def release(samples: int) -> Transcripts:
        return Transcripts(seen=draw(samples), claimed=np.full(samples, epsilon))

    return release


def audit(
    subject: str,
    pairs: Sequence[Neighbours],
    *,
    samples: int,
    false_alarm: float = FALSE_ALARM,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Look for a violation of the subject's claimed losses.

    Guarantee: a private subject is flagged with probability `false_alarm` at most, over all pairs, directions
    and events.

    Parameters:
        pairs: at least one.
        samples: draws from each database of each pair, half for choosing events and half for measuring them; >= 2.
        progress: called with each pair's description before it is drawn.

    Raises:
        ValueError: no pair or fewer than two samples.

    References: MATHS M12.
    """
    if not pairs or samples < 2:
        raise ValueError("an audit needs a pair of databases and at least two draws from each")
    comparisons = len(pairs) * 2 * _LEVELS
    error = false_alarm / (2 * comparisons)
    half = samples // 2
    found: list[tuple[float, float, str]] = []
    for pair in pairs:
        if progress is not None:
            progress(f"{subject}: {pair.description}")
        lower = _audit_pair(pair, half=half, error=error)
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


def audit_mechanism(
    mechanism: Mechanism,
    task: DecisionTask,
    *,
    samples: int,
    noise: Noise,
    subject: str = "",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit a mechanism's answers and the losses it reports, near the thresholds, all functionals moved at once.

    One key's aggregates move by one privacy unit, others stay. Mechanisms that decide each key by itself are drawn as
    many keys at once; of others every draw is a question of three keys, one for every 16 of `samples`, and the
    transcript is the whole answer; they are drawn in the middle of the bands alone. Where the loss covers the whole
    question, a unit in all of six keys moves them, the last against the others: that is what a sparse vector's noisy
    threshold and its positives have to hide at once.

    Raises:
        Unachievable: the mechanism cannot calibrate the task.
    """
    calibration = mechanism.calibrate(task)
    alone = mechanism.name in _KEYS_INDEPENDENT
    source = _single_keys if alone else _whole_questions
    pairs = [
        Neighbours(
            description=f"values {before} and {after}",
            first=source(mechanism, calibration, before, after, noise),
            second=source(mechanism, calibration, after, before, noise),
        )
        for before, after in critical_neighbours(task, depths=_DEPTHS if alone else _MIDDLE)
    ]
    return audit(
        subject or mechanism.name,
        pairs,
        samples=samples if alone else max(2, samples // _COST_OF_A_QUESTION),
        progress=progress,
    )


def audit_all(
    *,
    samples: int,
    noise: Noise,
    mechanisms: Iterable[Mechanism] = (),
    progress: Callable[[str], None] | None = None,
) -> tuple[AuditReport, ...]:
    """Audit every mechanism on five questions: one condition, coarse units, two conditions joined by AND and by OR, and
    one whose rows move sums by parts of their sensitivities or, where filters are disjoint, not at all.

    Parameters:
        samples: as for `audit`; 100000 finds noise that is a quarter too small where keys are decided one by one, and
            noise that is half of what it should be where each draw is a whole question.
        mechanisms: those registered when none are given.
        progress: called with the mechanism's name, the question and the databases being drawn.

    Questions that a mechanism cannot answer are left out.
    """
    reports = []
    for mechanism in tuple(mechanisms) or tuple(MECHANISMS.values()):
        for question, task in audit_tasks().items():
            subject = f"{mechanism.name}, {question}"
            try:
                report = audit_mechanism(
                    mechanism, task, samples=samples, noise=noise, subject=subject, progress=progress
                )
            except Unachievable:
                continue
            reports.append(report)
    return tuple(reports)


def audit_tasks() -> dict[str, DecisionTask]:
    """The questions of `audit_all`: small tolerances, so that losses are large enough to tell apart."""
    first = Cut(functional=0, cut=20, above=True, tolerance=4)
    second = Cut(functional=1, cut=30, above=False, tolerance=4)
    together, apart = all_at_once(2), sets_at_once(((0,), (1,)), functionals=2)
    sums = tuple(Cut(functional=f, cut=40, above=True, tolerance=8) for f in range(3))
    whole, half, nothing = Fraction(1), Fraction(1, 2), Fraction(0)
    parts: tuple[Exposure, ...] = ((whole, half, nothing), (half, whole, nothing), (nothing, nothing, whole))

    def task(
        formula: Formula,
        sensitivities: tuple[int, ...],
        exposures: tuple[Exposure, ...],
        blocks: frozenset[int] | None = None,
    ) -> DecisionTask:
        return DecisionTask(
            formula=formula,
            sensitivities=sensitivities,
            exposures=exposures,
            fnr=0.05,
            fpr=0.1,
            blocks=blocks,
            most_positives=1,
        )

    return {
        "one condition": task(first, (1,), all_at_once(1)),
        "coarse units": task(first, (3,), all_at_once(1)),
        "both of two": task(AllOf((first, second)), (1, 1), together),
        "either of two apart": task(AnyOf((first, second)), (1, 1), apart),
        "parts of sums": task(AllOf(sums), (4, 4, 4), parts, blocks=frozenset()),
    }


def critical_neighbours(
    task: DecisionTask, *, depths: Sequence[float] = _DEPTHS
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """One key's values near every threshold, and the same after one privacy unit moved all it can move at once.

    All literals stand alike in their bands, from just false beyond the tolerance to just true, and move together,
    inward or outward, each by its part of an exposure. Where there are several exposures, the functionals that one does
    not move stand at either end of their bands, so that an AND or an OR turns on the others. `depths` lie in [0, 1], 0
    just true.
    """
    functionals = range(len(task.sensitivities))
    bands = {cut.functional: cut for cut in cuts(task.formula)}

    def at(functional: int, depth: float) -> int:
        cut = bands.get(functional)
        if cut is None:
            return 0
        distance = 1 - round(depth * (cut.tolerance + 1))
        return cut.cut + distance if cut.above else cut.cut + 1 - distance

    def inward(functional: int) -> int:
        return (1 if bands[functional].above else -1) if functional in bands else 0

    seen = set()
    for exposure in task.exposures:
        together = {functional for functional in functionals if exposure[functional]}
        for depth in depths:
            for elsewhere in (0.0, 1.0):
                values = tuple(at(f, depth if f in together else elsewhere) for f in functionals)
                for side in (1, -1):
                    step = [side * inward(f) * int(task.sensitivities[f] * exposure[f]) for f in functionals]
                    moved = tuple(value + by for value, by in zip(values, step, strict=True))
                    if moved != values and frozenset((values, moved)) not in seen:
                        seen.add(frozenset((values, moved)))
                        yield values, moved


Values = tuple[int, ...]


def _single_keys(
    mechanism: Mechanism, calibration: Calibration, values: Values, neighbour: Values, noise: Noise
) -> Release:
    del neighbour

    def release(samples: int) -> Transcripts:
        aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], samples, axis=1)
        outcome = mechanism.decide(calibration, aggregates, noise=noise)
        return Transcripts(
            seen=np.column_stack((outcome.passed.astype(np.int64), outcome.epsilon.view(np.int64))),
            claimed=outcome.epsilon,
        )

    return release


def _whole_questions(
    mechanism: Mechanism, calibration: Calibration, values: Values, neighbour: Values, noise: Noise
) -> Release:
    """The first key has the values, the others only just hold in either database; a crowd moves all at once.

    A mechanism that may deny a question gets one that it mostly answers, most keys being false beyond doubt, and of the
    others' answers their number is seen.
    """
    deniable = calibration.deniable
    if calibration.whole_question:
        keys = [values] * (_CROWD - 1) + [neighbour]
    elif deniable:
        keys = [values] + [_at(calibration.task, 0)] * _NEARLY + [_at(calibration.task, -_FAR)] * _FAR_FALSE
    else:
        keys = [values] + [next(critical_neighbours(calibration.task))[0]] * (_RUN_KEYS - 1)

    def release(samples: int) -> Transcripts:
        aggregates = np.array(keys, dtype=np.int64).T.copy()
        outcomes = [mechanism.decide(calibration, aggregates, noise=noise) for _ in range(samples)]
        epsilon = np.array([outcome.epsilon for outcome in outcomes])
        if deniable:
            answers = [(outcome.passed[0], outcome.passed.sum(), outcome.denied) for outcome in outcomes]
            seen = np.column_stack((np.array(answers, dtype=np.int64), epsilon[:, :1].view(np.int64)))
        else:
            passed = np.array([outcome.passed for outcome in outcomes], dtype=np.int64)
            seen = np.column_stack((passed, epsilon.view(np.int64)))
        return Transcripts(seen=seen, claimed=epsilon[:, 0].copy())

    return release


def _at(task: DecisionTask, distance: int) -> Values:
    """One key's values with every literal at a distance: 1 just true, 0 just false."""
    bands = {cut.functional: cut for cut in cuts(task.formula)}
    return tuple(
        0 if cut is None else (cut.cut + distance if cut.above else cut.cut + 1 - distance)
        for cut in (bands.get(functional) for functional in range(len(task.sensitivities)))
    )


@dataclass(frozen=True, slots=True)
class _Event:
    """Transcripts (by code), and the most loss that they claim."""

    members: Integers
    claimed: float


def _audit_pair(pair: Neighbours, *, half: int, error: float) -> list[tuple[float, float]]:
    """Lower bounds of epsilon with the claims they are to be compared with, both directions."""
    learned = pair.first(half), pair.second(half)
    fresh = pair.first(half), pair.second(half)
    codes = _coded([draws.seen for draws in (*learned, *fresh)])
    claims = np.zeros(1 + max(int(code.max()) for code in codes))
    for code, draws in zip(codes, learned, strict=False):
        np.maximum.at(claims, code, draws.claimed)
    counts = [np.bincount(code, minlength=claims.size) for code in codes]
    found = []
    for ours, theirs in ((0, 1), (1, 0)):
        for event in _chosen(counts[ours], counts[theirs], claims, error=error):
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


def _chosen(counts: Integers, rival: Integers, claims: Epsilons, *, error: float) -> list[_Event]:
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
    return [event for _, _, event in events[:_LEVELS]]


def _coded(draws: Sequence[Integers]) -> list[Integers]:
    """Each transcript as one small number, the same for equal transcripts of all draws."""
    every = np.concatenate(draws)
    codes = np.zeros(len(every), dtype=np.int64)
    for column in every.T:
        values, places = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * values.size + places, return_inverse=True)
    return np.split(codes, np.cumsum([len(draw) for draw in draws])[:-1])
