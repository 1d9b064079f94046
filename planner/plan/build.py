"""From a question to its plan: minimise, calibrate, rewrite, compare. Public inputs alone, deterministic, no I/O."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import TypeAlias

from mechanisms.formula import FALSE, TRUE, Cut, Formula, cuts
from mechanisms.keyhole.one_shot import better_in_blocks, single_literals
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Unachievable
from mechanisms.registry import MECHANISMS, compare
from mechanisms.threshold.joint_loss import all_at_once
from planner.errors import KeyholeError
from planner.functionals.identity import functional_identity
from planner.functionals.sensitivity import JointSensitivity, joint_sensitivity
from planner.functionals.unit_rows import canonical_rows
from planner.lower.dialects.model import Dialect
from planner.lower.scan import rewrite
from planner.plan.identity import fingerprint
from planner.plan.minimise import minimise
from planner.plan.shareable_noise import shareable, shareable_foreseen
from planner.question.model import Question
from planner.question.plan import Minimised, Plan, Rewritten, Sharing
from planner.question.public_knowledge import knowledge

CACHED_PLANS = 128  # one question is planned by EXPLAIN, by its run and when it is asked again
_TENTHS = range(1, 1001)  # of a percent
_RATES = (*(Decimal(n) / 1000 for n in range(1, 10)), *(Decimal(n) / 100 for n in range(1, 46)))
_DOUBLINGS = 12  # of a tolerance, up to 2,048 steps: each try is a calibration, made only to word a hint
_WORTH_A_WHOLE_STEP = 1.2  # blocks a fifth cheaper are tried at a whole step: a judgement, as the cheapest wins anyway

OtherWay: TypeAlias = Callable[[Question, Calibration], bool]

NOT_MINIMISED = "more than twelve thresholds: the formula is folded, not minimised; it may cost more than it had to"
ALWAYS_TRUE = "the condition holds for every group whatever the data: all keys are returned, nothing is read or spent"
ALWAYS_FALSE = "the condition holds for no group whatever the data: no key is returned, nothing is read or spent"


def plan(question: Question, *, dialect: Dialect) -> Plan:
    """Everything that will be computed, decided and charged for a question, before any data is touched.

    Guarantee: depends on the question and the dialect alone; equal inputs give equal plans (kept for the last
    `CACHED_PLANS` questions).

    Parameters:
        question: as the analyst put it, resolved against the policy.
        dialect: of the source that will answer.

    Raises:
        KeyholeError: KH303 when the mechanism cannot meet the contract, with a tolerance that would do.
    """
    return _plan(question, dialect)


@lru_cache(maxsize=CACHED_PLANS)
def _plan(question: Question, dialect: Dialect) -> Plan:
    reduced, minimised = _reduced(question)
    calibration, sharing = _calibrated(reduced)
    constant = not reduced.functionals
    return Plan(
        asked=question,
        question=reduced,
        minimised=minimised,
        calibration=calibration,
        rewritten=Rewritten(dialect=dialect.name, sql="") if constant else rewrite(reduced, dialect=dialect),
        compared=_compared(question),
        fingerprint=fingerprint(reduced),
        warnings=(*question.warnings, *_warnings(question, minimised), *calibration.notes),
        sharing=sharing,
    )


def no_other_way(_question: Question, _calibration: Calibration) -> bool:
    """A question that costs more than what is left does not fit."""
    return False


def smallest_tolerance(
    asked: Callable[[str], Question], *, epsilon: float, otherwise: OtherWay = no_other_way
) -> str | None:
    """The smallest percentage tolerance with which a question costs at most `epsilon`, as `keyhole.tolerance` text.

    Guarantee: planned with the returned tolerance, the worst case is at most `epsilon`, or there is the other way; None
    when 100 % is not enough. At most eleven calibrations are made, whatever the question.

    Parameters:
        asked: the question with a given tolerance; a refusal counts as "does not fit".
        epsilon: what a key may cost.
        otherwise: whether a question, minimised and calibrated, fits although it costs more.
    """
    tenths = _first_that_fits(
        len(_TENTHS),
        lambda step: _fits(lambda: asked(_percent(_TENTHS[step])), epsilon=epsilon, otherwise=otherwise),
    )
    return None if tenths is None else _percent(_TENTHS[tenths])


def smallest_fnr(
    asked: Callable[[float], Question], *, epsilon: float, otherwise: OtherWay = no_other_way
) -> str | None:
    """The smallest false-negative rate (0.001 to 0.45) with which a question costs at most `epsilon`, as text.

    Guarantee and parameters as for `smallest_tolerance`, with at most eight calibrations.
    """
    rate = _first_that_fits(
        len(_RATES), lambda step: _fits(lambda: asked(float(_RATES[step])), epsilon=epsilon, otherwise=otherwise)
    )
    return None if rate is None else str(_RATES[rate])


def _first_that_fits(steps: int, fits: Callable[[int], bool]) -> int | None:
    """The first step that fits, looked for by halving: what is returned has been tried."""
    if not fits(steps - 1):
        return None
    low, high = 0, steps - 1
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _fits(asked: Callable[[], Question], *, epsilon: float, otherwise: OtherWay) -> bool:
    try:
        reduced, _ = _reduced(asked())
        calibration, _ = _chosen(MECHANISMS[reduced.accuracy.mechanism], reduced)
    except (KeyholeError, Unachievable):
        return False
    return calibration.worst_case_epsilon <= epsilon or otherwise(reduced, calibration)


def _percent(tenths: int) -> str:
    whole, tenth = divmod(tenths, 10)
    return f"{whole}.{tenth}%" if tenth else f"{whole}%"


def _reduced(question: Question) -> tuple[Question, Minimised]:
    """The question that is computed: canonical order, minimal formula, no functional that the formula does not need."""
    order = sorted(range(len(question.functionals)), key=lambda index: functional_identity(question.functionals[index]))
    places = {old: new for new, old in enumerate(order)}
    functionals = tuple(question.functionals[index] for index in order)
    asked = question.formula if question.keys.size else FALSE
    minimised = minimise(_renumbered(asked, places))
    needed = sorted({cut.functional for cut in cuts(minimised.formula)})
    kept = {old: new for new, old in enumerate(needed)}
    minimised = Minimised(
        formula=_renumbered(minimised.formula, kept),
        implicants=tuple(tuple(_moved(cut, kept) for cut in term) for term in minimised.implicants),
        clauses=tuple(tuple(_moved(cut, kept) for cut in clause) for clause in minimised.clauses),
        exact=minimised.exact,
    )
    reduced = replace(
        question,
        functionals=tuple(functionals[index] for index in needed),
        formula=minimised.formula,
        atoms=tuple(
            replace(atom, functional=kept[places[atom.functional]])
            for atom in question.atoms
            if places[atom.functional] in kept
        ),
    )
    return canonical_rows(reduced), minimised


def _renumbered(formula: Formula, places: dict[int, int]) -> Formula:
    return formula.mapped(lambda literal: _moved(literal, places))


def _moved(cut: Cut, places: dict[int, int]) -> Cut:
    return replace(cut, functional=places[cut.functional])


def _calibrated(question: Question) -> tuple[Calibration, Sharing | None]:
    mechanism = MECHANISMS[question.accuracy.mechanism]
    try:
        return _chosen(mechanism, question)
    except Unachievable as refusal:
        if refusal.instead is not None:
            raise KeyholeError(
                "KH303",
                f"mechanism {question.accuracy.mechanism} does not take this question: {refusal.reason}",
                hint=f"SET keyhole.mechanism = '{refusal.instead}';",
            ) from None
        raise KeyholeError(
            "KH303",
            f"the accuracy asked for cannot be reached: {refusal.reason}",
            detail=f"Rates fnr {question.accuracy.fnr:g} and fpr {question.accuracy.fpr:g}, "
            f"tolerance {question.accuracy.tolerance}, mechanism {question.accuracy.mechanism}.",
            hint=_reachable(question),
        ) from None


def _chosen(mechanism: Mechanism, question: Question) -> tuple[Calibration, Sharing | None]:
    """The cheapest calibration, or one that costs little more and leaves noise to share. Raises `Unachievable`."""
    joint = joint_sensitivity(question)
    first = _task(question, joint)
    blocks = _could_be_in_blocks(first)
    assert first.blocks is not None
    found = shareable_foreseen(mechanism, question, joint, first) if blocks <= first.blocks else None
    return found or shareable(mechanism, question, joint, _cheapest(mechanism, first, joint, blocks))


def _cheapest(
    mechanism: Mechanism, first: DecisionTask, joint: JointSensitivity, blocks: frozenset[int]
) -> Calibration:
    """The sound calibration with the least worst case: the first, or one with more of `blocks`.

    Raises `Unachievable` where every way of asking does.
    """
    sound: list[Calibration] = []

    def attempt(task: DecisionTask) -> Calibration | Unachievable:
        try:
            calibration = mechanism.calibrate(task)
        except Unachievable as refusal:
            return refusal
        if not _unsafe_blocks(calibration):
            sound.append(calibration)
        return calibration

    assert first.blocks is not None
    last = attempt(first)
    if not blocks <= first.blocks:
        last = attempt(replace(first, exposures=joint.exposures(blocks), blocks=blocks))
        if isinstance(last, Calibration):
            worth = first.blocks | better_in_blocks(last, by=_WORTH_A_WHOLE_STEP)
            if first.blocks < worth < blocks:
                attempt(replace(first, exposures=joint.exposures(worth), blocks=worth))
    if not sound:
        assert isinstance(last, Unachievable)
        raise last
    return min(sound, key=lambda calibration: calibration.worst_case_epsilon)


def _task(question: Question, joint: JointSensitivity) -> DecisionTask:
    """The question as numbers, with noise on block indices where that costs no other functional anything.

    A row that moves a *sum* by a small part moves its *block index* by a whole step all the same, and so does a unit
    that splits its rows, under a cap of several, between disjoint filters. Where those who move at all move in full,
    blocks are free; else functionals with noise on block indices are charged in full, the others by their parts.
    """
    task = DecisionTask(
        formula=question.formula,
        sensitivities=tuple(functional.sensitivity for functional in question.functionals),
        exposures=joint.exposures(),
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
        most_positives=question.accuracy.most_positives,
        knowledge=knowledge(question),
    )
    return replace(task, blocks=joint.free_blocks(_could_be_in_blocks(task)))


def _could_be_in_blocks(task: DecisionTask) -> frozenset[int]:
    """The functionals with one literal whose blocks are more than one step wide."""
    alone = single_literals(replace(task, blocks=None))
    return frozenset(index for index in alone if task.sensitivities[index] > 1)


def _unsafe_blocks(calibration: Calibration) -> bool:
    """Whether a mechanism put noise on block indices where only sums may be counted on."""
    task = calibration.task
    return task.blocks is not None and any(
        test.block > 1 and index not in task.blocks and not all(exposure[index] == 1 for exposure in task.exposures)
        for index, test in enumerate(calibration.tests)
    )


def _reachable(question: Question) -> str:
    """A setting with which the contract can be met, found by trying."""
    accuracy = question.accuracy
    if accuracy.fnr + accuracy.fpr >= 1:
        return "SET keyhole.fnr = 0.05;  and  SET keyhole.fpr = 0.1;"
    for tolerance in (1 << doubling for doubling in range(_DOUBLINGS)):
        wider = replace(question, formula=_widened(question.formula, tolerance))
        try:
            MECHANISMS[accuracy.mechanism].calibrate(_task(wider, joint_sensitivity(wider)))
        except Unachievable:
            continue
        return f"SET keyhole.tolerance = '{_in_users_unit(question, tolerance)}';"
    if accuracy.most_positives is not None:
        return "Lower keyhole.most_positives, or widen keyhole.tolerance."
    return "Widen keyhole.tolerance, or choose higher keyhole.fnr and keyhole.fpr."


def _widened(formula: Formula, tolerance: int) -> Formula:
    return formula.mapped(lambda literal: replace(literal, tolerance=max(literal.tolerance, tolerance)))


def _in_users_unit(question: Question, steps: int) -> str:
    """An absolute tolerance that is at least `steps` integer steps on every functional, in the analyst's unit."""
    widest = max(functional.unit_size * steps / functional.rows for functional in question.functionals)
    rounded = widest.quantize(Decimal("0.001"), rounding="ROUND_UP")
    return format(rounded.normalize(), "f")


def _compared(question: Question) -> MappingProxyType[str, float]:
    """What the published mechanisms would reserve for the formula as typed, for the same contract."""
    task = DecisionTask(
        formula=question.formula,
        sensitivities=tuple(functional.sensitivity for functional in question.functionals),
        exposures=all_at_once(len(question.functionals)),
        fnr=question.accuracy.fnr,
        fpr=question.accuracy.fpr,
    )
    return MappingProxyType(compare(task, question.formula))


def _warnings(question: Question, minimised: Minimised) -> Iterator[str]:
    if not minimised.exact:
        yield NOT_MINIMISED
    if question.keys.size and any(True for _ in cuts(question.formula)):
        if minimised.formula == TRUE:
            yield ALWAYS_TRUE
        if minimised.formula == FALSE:
            yield ALWAYS_FALSE
