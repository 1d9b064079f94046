"""A privacy auditor that can fail: it looks for an event that tells neighbouring databases apart better than claimed.

From half of the draws it learns which transcripts speak for which database and chooses a few events by likelihood
ratio; on the other, fresh half it bounds the events' probabilities (Clopper-Pearson, Bonferroni over pairs, directions
and events) and from them epsilon from below. A lower bound above the claim is a violation; a bound below it is no
proof, which only docs/proofs/ gives.

Ex-post losses are audited too: an event made of transcripts that claim a loss of `e` at most must not be more
than `exp(e)` times as probable on either database.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from mechanisms.audit.events import LEVELS, Transcripts, bounds
from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers, cuts
from mechanisms.keyhole.noise_continuation import CONTINUABLE, carry_on, continue_on
from mechanisms.protocol import Calibration, DecisionTask, Exposure, Mechanism, Noise, Unachievable
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import all_at_once, sets_at_once

FALSE_ALARM = 1e-6
"""The probability that `audit` flags a private subject, over all its comparisons."""

_DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)  # from just true to just false beyond the tolerance: all may reveal most
_MIDDLE = (0.5,)  # for mechanisms that are slow to draw
_COST_OF_A_QUESTION = 16  # draws of single keys that one draw of a whole question stands for
_RUN_KEYS = 3  # the one that moves and two for data-dependent choices to turn on
_CROWD = 6  # keys that one unit is in: five that move together and one against them
_NEARLY, _FAR_FALSE, _FAR = 2, 40, 60  # just false, far false, how far: uncertain ones are few
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


def claim_always(draw: Callable[[int], Integers], *, epsilon: float) -> Release:
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
        learned, fresh = ((pair.first(half), pair.second(half)) for _ in range(2))
        lower = bounds(learned, fresh, error=error)
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
    one whose rows move sums by parts of their sensitivities or, where filters are disjoint, not at all. Where a
    mechanism leaves noise paths, each question is audited together with a later one that continues them.

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
            if mechanism.name in CONTINUABLE:
                subject = f"{mechanism.name}, {question}, continued"
                reused = replace(task, blocks=frozenset())
                reports.append(
                    audit_reuse(mechanism, reused, samples=samples, noise=noise, subject=subject, progress=progress)
                )
    return tuple(reports)


def audit_reuse(
    mechanism: Mechanism,
    task: DecisionTask,
    *,
    samples: int,
    noise: Noise,
    subject: str = "",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit two questions on one noise path together: the second is sharper and continues what the first revealed.

    The transcript of a key is both answers and, for each functional, how far it was revealed and the finest value; what
    is claimed for it is the loss of the first question and the fresh loss of the second.

    Parameters as for `audit_mechanism`.

    Raises:
        Unachievable: the mechanism cannot calibrate the task or leaves no path that the second question could continue.
    """
    first, second = mechanism.calibrate(task), mechanism.calibrate(_sharper(task))

    def source(values: Values) -> Release:
        def release(samples: int) -> Transcripts:
            aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], samples, axis=1)
            before = mechanism.decide(first, aggregates, noise=noise)
            question = continue_on(second, before.paths)
            if question is None:
                raise Unachievable("the first question leaves nothing that the second could continue")
            after = carry_on(question, aggregates, noise=noise)
            claimed = before.epsilon + (after.epsilon if after.fresh is None else after.fresh)
            columns: list[Integers] = [before.passed.astype(np.int64), after.passed.astype(np.int64)]
            for path in after.paths:
                if path is not None:
                    columns += [path.reached.astype(np.int64), path.values[path.reached - 1, np.arange(samples)]]
            return Transcripts(seen=np.column_stack(columns), claimed=claimed)

        return release

    pairs = [
        Neighbours(description=f"values {before} and {after}", first=source(before), second=source(after))
        for before, after in critical_neighbours(task, depths=_MIDDLE)
    ]
    return audit(subject or f"{mechanism.name}, two questions", pairs, samples=samples, progress=progress)


def _sharper(task: DecisionTask) -> DecisionTask:
    """The task at thresholds one further, with half of the tolerances."""

    def sharpen(literal: Cut) -> Cut:
        return replace(literal, cut=literal.cut + 1, tolerance=literal.tolerance // 2)

    return replace(task, formula=task.formula.mapped(sharpen))


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
    ahead = NoiseAhead(noise)

    def release(samples: int) -> Transcripts:
        aggregates = np.array(keys, dtype=np.int64).T.copy()
        outcomes = [mechanism.decide(calibration, aggregates, noise=ahead) for _ in range(samples)]
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
