"""The continuation of noise paths: a later question about the same values costs only the finer noise that it adds.

`plan_on_paths` fits a calibrated question's tests to the rates of the paths, from public inputs alone.
`decide_on_known_values` decides the question if the known values suffice. `decide_on_refined_paths` also reveals
missing values. A functional without a path gets new noise in the same run.

| here | meaning |
|---|---|
| known | revealed by an earlier question |
| fresh | revealed by this question first |
| public fresh | the rates above the path's finest, whichever of its values were revealed |

Proof: docs/proofs/reuse.md.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from mechanisms.apportionment.keyhole import Shares
from mechanisms.formula import Integers
from mechanisms.keyhole.cell_readings import calibrate_at_rates
from mechanisms.keyhole.common_sums import decide_on_sums
from mechanisms.keyhole.contract import compute_exact_epsilon, keep_contract, list_task_tolerances
from mechanisms.keyhole.noisy_cells import decide_on_cell_paths, decide_on_known_cells, list_sum_tests
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive, find_empty_groups, find_two_sided_functionals
from mechanisms.keyhole.run_looks import (
    decide_on_fresh_noise,
    decide_on_paths,
    decide_without_new_noise,
    price_unrevealed_values,
)
from mechanisms.protocol import (
    Calibration,
    DecisionTask,
    Epsilons,
    Exposure,
    FunctionalTest,
    Noise,
    NoisePath,
    Outcome,
    Unachievable,
)
from mechanisms.threshold.joint_loss import compute_joint_loss, compute_joint_losses, list_sum_rates
from mechanisms.threshold.one_shot import round_up_to_float
from mechanisms.threshold.path_tests import calibrate_one_shot_on_path, calibrate_three_zone_on_path

MOST_RATES = 64
"""A path of so many rates is not made longer."""

CONTINUABLE = MappingProxyType({mechanism.name: mechanism for mechanism in (Progressive(), Keyhole())})
"""The mechanisms that leave noise paths and can continue them."""

Paths: TypeAlias = tuple[NoisePath | None, ...]


@dataclass(frozen=True, slots=True)
class NoisyParts:
    """The parts of a question that have their own noise: its functionals, or the sums that its readings use.

    `tests` has the test that looks at each part, and `sensitivities` its sensitivity. `exposures` are those of the
    parts, as in `DecisionTask`. With `reveals_all` every value is revealed in every key, whatever the values are.
    """

    tests: tuple[FunctionalTest, ...]
    sensitivities: tuple[int, ...]
    exposures: tuple[Exposure, ...]
    reveals_all: bool

    @staticmethod
    def from_calibration(calibration: Calibration) -> "NoisyParts":
        """Return the parts of a calibrated question."""
        task, common = calibration.task, calibration.task.common
        if common is not None and common.cells:
            return NoisyParts(list_sum_tests(calibration), common.sensitivities, common.exposures, reveals_all=True)
        everything = calibration.mechanism == Keyhole.name
        return NoisyParts(calibration.tests, task.sensitivities, task.exposures, reveals_all=everything)


@dataclass(frozen=True, slots=True)
class Continuation:
    """A question whose looks are at the rates of stored noise paths.

    The contract of `calibration` holds if the question and the paths' rates were fixed before the noise was seen. Its
    worst case is the loss of all values that the question reads, known or new: the analyst's own loss. `paths` has for
    each of `parts` the path to continue, or None for new noise. `fresh_by_key` is the most loss that the question can
    add for each key, given the values revealed before. `fresh_worst` is the largest of these. `public_fresh_worst` is
    the joint loss of the rates above the paths' finest ones, and depends on public rates alone. A key that stopped
    early in an earlier question may exceed it, but never the reservations of all questions together.
    """

    calibration: Calibration
    parts: NoisyParts
    paths: Paths
    fresh_by_key: Epsilons
    fresh_worst: float
    public_fresh_worst: float


def plan_on_paths(calibration: Calibration, paths: Paths) -> Continuation | None:
    """Return the question with looks that continue these paths. Return None if no path saves loss.

    Guarantee: the calibration's contract, checked again. The choice and the use of paths depend on the contract and
    the paths' rates alone, not on their values. A path is not used if refining it to the needed rate costs more than
    new noise.

    Parameters:
        calibration: made by its mechanism.
        paths: for each of its `NoisyParts` the path, or None. All are for the calibration's keys in their order, and
            for the exact values that the data has now.

    Raises:
        ValueError: the paths are not one per part, or of different numbers of keys.

    References: docs/proofs/reuse.md.
    """
    mechanism = CONTINUABLE.get(calibration.mechanism)
    task = calibration.task
    if mechanism is None or (task.common is not None and not task.common.cells):
        return None
    number = len(NoisyParts.from_calibration(calibration).tests)
    if len(paths) != number or len({path.reached.size for path in paths if path is not None}) > 1:
        raise ValueError("there is one path or None for each part with noise, all of the same keys")
    if task.common is not None:
        return _lay_cells_on_paths(calibration, paths)
    used = {cut.functional for cut in task.list_literals()}
    tests = calibration.tests
    laid: dict[int, NoisePath] = {}
    for functional, path in enumerate(paths):
        if path is None or functional not in used:
            continue
        try:
            test = _calibrate_on_path(
                calibration.mechanism, task, functional, path, tests[functional].fnr, tests[functional].fpr
            )
        except Unachievable:
            continue
        if _price_above_path(test, path, task.sensitivities[functional]) < compute_exact_epsilon(
            tests[functional], task.sensitivities[functional]
        ):
            laid[functional] = path
    if not laid:
        return None
    anew = mechanism.make_kind(task)

    def calibrate(functional: int, fnr: float, fpr: float) -> FunctionalTest:
        if functional in laid:
            return _calibrate_on_path(calibration.mechanism, task, functional, laid[functional], fnr, fpr)
        return anew.calibrate(functional, fnr, fpr)

    kind = replace(anew, calibrate=calibrate)
    shares = Shares(fnr=tuple(test.fnr for test in tests), fpr=tuple(test.fpr for test in tests))
    try:
        found = keep_contract(calibration.mechanism, task, kind, shares)
    except Unachievable:
        return None
    found = replace(found, notes=calibration.notes, compared=calibration.compared)
    return _make_continuation(found, tuple(laid.get(functional) for functional in range(len(tests))))


def _lay_cells_on_paths(calibration: Calibration, paths: Paths) -> Continuation | None:
    """Return a reading of several cells on the paths of its sums, or None if no path saves loss.

    A sum is read at the coarsest rate of its path that is as fine as new noise. If there is none, the finest rate is
    tried, since another sum may have finer noise than it needs. If that breaks the contract, the path is refined.
    """
    needed = list_sum_rates(calibration)
    laid = tuple(path if rate else None for rate, path in zip(needed, paths, strict=True))
    if all(path is None for path in laid):
        return None
    for may_be_wider in (True, False):
        rates = [
            rate if path is None else _choose_rate(path, rate, may_be_wider=may_be_wider)
            for rate, path in zip(needed, laid, strict=True)
        ]
        if any(path is not None and _is_too_long(path, rate) for rate, path in zip(rates, laid, strict=True)):
            return None
        try:
            return _make_continuation(calibrate_at_rates(calibration, rates), laid)
        except Unachievable:
            continue
    return None


def _choose_rate(path: NoisePath, needed: Fraction, *, may_be_wider: bool) -> Fraction:
    """Return the rate at which a path is read for a sum that needs a rate."""
    fine = [rate for rate in path.rates if rate >= needed]
    if fine:
        return fine[0]
    return path.rates[-1] if may_be_wider else needed


def _is_too_long(path: NoisePath, rate: Fraction) -> bool:
    return rate not in path.rates and len(path.rates) >= MOST_RATES


def decide_on_known_values(continuation: Continuation, *, noise: Noise) -> Outcome | None:
    """Decide every key on known values. Return None if the known values may leave a key undecided.

    Guarantee: the answer is the one `decide_on_refined_paths` gives; nothing is revealed, so the fresh losses are
    zero, and there are no new paths. The noise only decides values exactly on a boundary, and is not read if the
    result is None. The result is None or not depending on what other questions have revealed. If analysts' balances
    are separate, call this only if that is public, as it is for paths that only one-shot questions have made.
    """
    calibration, paths = continuation.calibration, continuation.paths
    if calibration.task.common is not None:
        return decide_on_known_cells(calibration, paths)
    return decide_without_new_noise(calibration, paths, looks_at_everything=continuation.parts.reveals_all, noise=noise)


def decide_on_refined_paths(
    continuation: Continuation,
    aggregates: Integers,
    *,
    noise: Noise,
    reads_known_first: bool = False,
    keeps_paths: bool = True,
) -> Outcome:
    """Decide every key. Refine its paths if the known values leave it undecided.

    Guarantee: the loss of everything that was ever revealed of a functional on one path is that of the finest level
    its key has reached. `fresh` is what this run adds, `epsilon` what the question has read. Neither exceeds its worst
    case.

    Parameters:
        aggregates: exact values, shape (parts, keys), within +-2**62; of the same data as the paths.
        reads_known_first: read all known values of every functional before refining any. This saves fresh loss in
            questions about several functionals. But `epsilon` then reveals what other questions have read, so do not
            use it if analysts' balances are separate.
        keeps_paths: True to return the paths with the new values. They must be stored if they are to be continued
            again.
    """
    calibration, paths = continuation.calibration, continuation.paths
    if calibration.task.common is not None:
        return decide_on_cell_paths(calibration, aggregates, paths, noise=noise, keeps_paths=keeps_paths)
    return decide_on_paths(
        calibration,
        aggregates,
        paths,
        looks_at_everything=continuation.parts.reveals_all,
        reads_known_first=reads_known_first,
        keeps_paths=keeps_paths,
        noise=noise,
    )


def decide_with_all_revealed(
    calibration: Calibration, aggregates: Integers, *, noise: Noise, keeps_paths: bool = True
) -> Outcome:
    """Decide every key on fresh noise, and count all of it as revealed, up to the finest rate of every functional.

    Guarantee: the answer has the law of the mechanism's own `decide`, since a look that is not needed decides nothing;
    every key's loss is the worst case. The noise depends on no earlier value of the run, so that its Rényi divergence
    is that of its finest values.

    Raises:
        ValueError: a mechanism that leaves no noise paths.

    References: docs/proofs/renyi.md.
    """
    if calibration.mechanism not in CONTINUABLE:
        raise ValueError("only noise on paths can be drawn in full")
    if calibration.task.common is not None:
        found = decide_on_sums(calibration, aggregates, noise=noise, keeps_paths=keeps_paths)
        return replace(found, epsilon=np.full_like(found.epsilon, calibration.worst_case_epsilon))
    return decide_on_fresh_noise(
        calibration, aggregates, looks_at_everything=True, keeps_paths=keeps_paths, noise=noise
    )


def _calibrate_on_path(
    mechanism: str, task: DecisionTask, functional: int, path: NoisePath, fnr: float, fpr: float
) -> FunctionalTest:
    near = list_task_tolerances(task)[functional]
    sensitivity = task.sensitivities[functional]
    if mechanism == Keyhole.name:
        test = calibrate_one_shot_on_path(path.rates, sensitivity=sensitivity, tolerance=near, fnr=fnr, fpr=fpr)
    else:
        test = calibrate_three_zone_on_path(
            path.rates,
            sensitivity=sensitivity,
            tolerance=near,
            fnr=fnr,
            fpr=fpr,
            is_two_sided=functional in find_two_sided_functionals(task),
            empty=find_empty_groups(task, functional, near),
        )
    further = sum(rate not in path.rates for rate in (*(look.rate for look in test.looks), test.rate))
    if further and len(path.rates) + further > MOST_RATES:
        raise Unachievable("the path has too many rates already", functional=functional)
    return test


def _price_above_path(test: FunctionalTest, path: NoisePath, sensitivity: int) -> Fraction:
    """Return the epsilon of the rates above a path's finest rate."""
    return max(Fraction(0), test.rate - path.rates[-1]) * sensitivity


def _make_continuation(calibration: Calibration, paths: Paths) -> Continuation:
    parts = NoisyParts.from_calibration(calibration)
    keys = next(path.reached.size for path in paths if path is not None)
    left: dict[int, Epsilons] = {}
    above: list[Fraction] = []
    for place, (test, path, sensitivity) in enumerate(zip(parts.tests, paths, parts.sensitivities, strict=True)):
        scale = sensitivity if test.block == 1 else 1
        above.append(test.rate * scale if path is None else _price_above_path(test, path, sensitivity))
        if test.rate:
            left[place] = price_unrevealed_values(path, test.rate, sensitivity=scale, keys=keys)
    by_key = np.minimum(compute_joint_losses(left, parts.exposures, keys=keys), calibration.worst_case_epsilon)
    return Continuation(
        calibration=calibration,
        parts=parts,
        paths=paths,
        fresh_by_key=by_key,
        fresh_worst=float(by_key.max(initial=0.0)),
        public_fresh_worst=round_up_to_float(compute_joint_loss(above, parts.exposures)),
    )
