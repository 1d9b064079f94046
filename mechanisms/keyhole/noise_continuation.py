"""The continuation of noise paths: a later question about the same values costs only the finer noise that it adds.

`lay_on_paths` fits a calibrated question's tests to the rates of the paths, from public inputs alone.
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
from mechanisms.keyhole.common_sums import decide_on_sums
from mechanisms.keyhole.contract import compute_exact_epsilon, keep_contract, list_task_tolerances
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive, find_empty_groups, find_two_sided
from mechanisms.keyhole.run_looks import decide_on_fresh_noise, decide_on_known, decide_on_paths, price_unread
from mechanisms.protocol import (
    Calibration,
    DecisionTask,
    Epsilons,
    FunctionalTest,
    Noise,
    NoisePath,
    Outcome,
    Unachievable,
)
from mechanisms.threshold.joint_loss import compute_joint_loss, compute_joint_losses
from mechanisms.threshold.one_shot import round_up_to_float
from mechanisms.threshold.path_tests import calibrate_one_shot_on_path, calibrate_three_zone_on_path

MOST_RATES = 64
"""A path of so many rates is not made longer."""

CONTINUABLE = MappingProxyType({mechanism.name: mechanism for mechanism in (Progressive(), Keyhole())})
"""The mechanisms that leave noise paths and can continue them."""

Paths: TypeAlias = tuple[NoisePath | None, ...]


@dataclass(frozen=True, slots=True)
class Continuation:
    """A question whose tests look at the rates of stored noise paths.

    The contract of `calibration` holds if the question and the paths' rates were fixed before the noise was seen. Its
    worst case is the loss of all values that the question reads, known or new: the analyst's own loss. `paths` has for
    each functional the path to continue, or None for new noise. `fresh_by_key` is the most loss that the question can
    add for each key, given the values revealed before. `fresh_worst` is the largest of these. `public_fresh_worst` is
    the joint loss of the rates above the paths' finest ones, and depends on public rates alone. A key that stopped
    early in an earlier question may exceed it, but never the reservations of all questions together.
    """

    calibration: Calibration
    paths: Paths
    fresh_by_key: Epsilons
    fresh_worst: float
    public_fresh_worst: float


def lay_on_paths(calibration: Calibration, paths: Paths) -> Continuation | None:
    """Return the question on these paths, or None if no path saves loss.

    Guarantee: the calibration's contract, verified anew. Which paths are used, and what for, depends on the contract
    and the paths' rates alone, not on their values. No path is read up to a rate that costs more above its finest than
    noise drawn anew.

    Parameters:
        calibration: made by its mechanism.
        paths: for each functional its path, or None. All are for the calibration's keys in their order, and for the
            exact values that the data has now.

    Raises:
        ValueError: the paths are not one per functional, or of different numbers of keys.

    References: docs/proofs/reuse.md.
    """
    mechanism = CONTINUABLE.get(calibration.mechanism)
    task = calibration.task
    if mechanism is None or task.common is not None:
        return None
    if len(paths) != len(task.sensitivities) or len({path.reached.size for path in paths if path is not None}) > 1:
        raise ValueError("there is one path or None for each functional, all of the same keys")
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


def decide_on_known_values(continuation: Continuation, *, noise: Noise) -> Outcome | None:
    """Decide every key on known values, or return None if that may leave a key open.

    Guarantee: the answer is the one `decide_on_refined_paths` gives; nothing is revealed, so the fresh losses are zero,
    and there are no new paths. The noise only tosses the coins of values on a boundary, and none where the result is
    None. Whether it
    is None depends on what other questions have revealed: where analysts' balances are kept apart, only to be asked
    where that is public, as it is for paths that one-shot questions alone have made.
    """
    everything = continuation.calibration.mechanism == Keyhole.name
    return decide_on_known(continuation.calibration, continuation.paths, looks_at_everything=everything, noise=noise)


def decide_on_refined_paths(
    continuation: Continuation,
    aggregates: Integers,
    *,
    noise: Noise,
    reads_known_first: bool = False,
    keeps_paths: bool = True,
) -> Outcome:
    """Decide every key, refining its paths if the known values do not settle it.

    Guarantee: all that was ever revealed of a functional on one path costs the finest level its key has reached;
    `fresh` is what this run adds, `epsilon` what the question has read. Neither exceeds its worst case.

    Parameters:
        aggregates: exact values, shape (functionals, keys), within +-2**62; of the same data as the paths.
        reads_known_first: read whatever is known of any functional before refining another. Saves fresh loss in
        questions
            about several functionals; but then `epsilon` tells what other questions have revealed, so never where
            analysts' own balances are kept apart.
        keeps_paths: True to return the paths with the new values. They must be stored if they are to be continued
            again.
    """
    return decide_on_paths(
        continuation.calibration,
        aggregates,
        continuation.paths,
        looks_at_everything=continuation.calibration.mechanism == Keyhole.name,
        reads_known_first=reads_known_first,
        keeps_paths=keeps_paths,
        noise=noise,
    )


def decide_in_full(
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
        found = decide_on_sums(calibration, aggregates, noise=noise)
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
            is_two_sided=functional in find_two_sided(task),
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
    task = calibration.task
    keys = next(path.reached.size for path in paths if path is not None)
    left: dict[int, Epsilons] = {}
    above: list[Fraction] = []
    for functional, (test, path, sensitivity) in enumerate(
        zip(calibration.tests, paths, task.sensitivities, strict=True)
    ):
        scale = sensitivity if test.block == 1 else 1
        above.append(test.rate * scale if path is None else _price_above_path(test, path, sensitivity))
        if test.rate:
            left[functional] = price_unread(path, test.rate, sensitivity=scale, keys=keys)
    by_key = np.minimum(compute_joint_losses(left, task.exposures, keys=keys), calibration.worst_case_epsilon)
    return Continuation(
        calibration=calibration,
        paths=paths,
        fresh_by_key=by_key,
        fresh_worst=float(by_key.max(initial=0.0)),
        public_fresh_worst=round_up_to_float(compute_joint_loss(above, task.exposures)),
    )
