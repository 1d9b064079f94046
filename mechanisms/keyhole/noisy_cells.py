"""Decisions on the noisy cells of a question: drawn by itself, or read off values that earlier questions left.

Each sum has one noisy value in every cell. A question leaves them as noise paths of the sums. A later question that
reads the same sums in the same cells is decided on them, and reveals only finer values that it needs beyond.

Proof: docs/proofs/cell_readings.md, docs/proofs/reuse.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mechanisms.formula import Booleans, Cut, Integers, evaluate_formula
from mechanisms.keyhole.cell_means import decide_means
from mechanisms.keyhole.contract import list_mentioned_functionals, make_idle_test
from mechanisms.keyhole.exact_means import compare_exact_means
from mechanisms.keyhole.noisy_values import NoisyValues
from mechanisms.keyhole.taken_cells import (
    compare_cells,
    find_unknown,
    list_averaged_groups,
    look_up_parts,
    read_cells,
)
from mechanisms.protocol import Calibration, CommonSums, Epsilons, FunctionalTest, Noise, NoisePath, Outcome
from mechanisms.threshold.joint_loss import compute_joint_losses, list_sum_rates
from mechanisms.threshold.one_shot import round_up_to_float


def decide_on_cells(calibration: Calibration, sums: Integers, *, noise: Noise, keeps_paths: bool = False) -> Outcome:
    """Decide every key on one noisy value for every sum and cell. Every cell is charged the worst case.

    Guarantee: that of `read_noisy_cells`, so a cell's loss is at most `worst_case_epsilon`, whatever the readings.

    Parameters:
        sums: exact values, int64, shape (sums, keys), keys in row-major order of the key space.
        keeps_paths: True to return the noisy values, which later questions may read. Every path has one level.
    """
    keys = sums.shape[1]
    rates = list_sum_rates(calibration)
    drawn = {
        place: sums[place] + noise.draw_discrete_laplace(rate=rate, size=keys)
        for place, rate in enumerate(rates)
        if rate
    }
    paths = (
        NoisePath((rate,), drawn[place][np.newaxis], np.ones(keys, dtype=np.int8)) if rate else None
        for place, rate in enumerate(rates)
    )
    found = read_noisy_cells(calibration, drawn, keys=keys)
    return replace(found, paths=tuple(paths) if keeps_paths else ())


def read_noisy_cells(calibration: Calibration, drawn: Mapping[int, Integers], *, keys: int) -> Outcome:
    """Decide every key on already drawn noisy values of the sums, whose rates are those of the calibration.

    Guarantee: a function of the noisy cells alone. A literal whose reading lacks a cell, such as the first month's
    difference, is NULL. A sum without noise cancels out of every reading, and is read as 0.
    """
    task, common = calibration.task, calibration.task.common
    assert common is not None
    noisy = {place: drawn.get(place, np.zeros(keys, np.int64)) for place in range(len(common.sensitivities))}
    sums_alone = [one for one in list_mentioned_functionals(task) if common.find_pair(one) is None]
    read = {one: read_cells(common, one, noisy) for one in sums_alone}

    def test_literal(cut: Cut) -> Booleans:
        if common.find_pair(cut.functional) is not None:
            parts, there = zip(*look_up_parts(common, cut.functional, noisy), strict=True)
            groups = list_averaged_groups(common, cut.functional, noisy)
            held = decide_means(calibration.tests[cut.functional], cut, parts, groups)
            return np.asarray(held & np.all(there, axis=0), dtype=np.bool_)
        values, present = read[cut.functional]
        held = compare_cells(common, cut, values, calibration.tests[cut.functional].shift)
        return np.asarray(held & present, dtype=np.bool_)

    passed, *predicates = (evaluate_formula(formula, test_literal, keys=keys) for formula in task.formulas)
    unknown = find_unknown(common, task.predicates, test_literal, keys=keys)
    return Outcome(
        passed=passed,
        epsilon=np.full(keys, calibration.worst_case_epsilon),
        predicates=tuple(passed & one for one in predicates),
        unknown=tuple(passed & one for one in unknown),
    )


def decide_on_cell_paths(
    calibration: Calibration, sums: Integers, paths: Sequence[NoisePath | None], *, noise: Noise, keeps_paths: bool
) -> Outcome:
    """Decide every key on stored noisy cells, and reveal the further values that the calibration's rates need.

    Guarantee: the loss of all revealed values of a sum in a cell is that of the finest level reached there. `epsilon`
    is the loss of all values that the question reads, `fresh` that of the values that it is the first to reveal.

    Parameters:
        sums: exact values, shape (sums, keys), of the same data as the paths.
        paths: for each sum its path at all keys, or None for new noise.
    """
    common = calibration.task.common
    assert common is not None
    keys = sums.shape[1]
    everywhere = np.ones(keys, dtype=np.bool_)
    grown: dict[int, NoisePath] = {}
    fresh: dict[int, Epsilons] = {}
    for place, test in enumerate(list_sum_tests(calibration)):
        if test.rate:
            values = NoisyValues(test, sums[place], paths[place], common.sensitivities[place], keeps_path=True)
            values.reveal_look(0, values.choose_keys(everywhere), noise=noise)
            path = values.make_path()
            assert path is not None, "noise on sums is kept"
            grown[place], fresh[place] = path, values.compute_fresh_loss()
    found = read_noisy_cells(calibration, _read_levels(calibration, grown), keys=keys)
    added = np.minimum(compute_joint_losses(fresh, common.exposures, keys=keys), calibration.worst_case_epsilon)
    left = tuple(grown.get(place) for place in range(len(sums))) if keeps_paths else ()
    return replace(found, fresh=added, paths=left)


def decide_on_known_cells(calibration: Calibration, paths: Sequence[NoisePath | None]) -> Outcome | None:
    """Decide every key on stored noisy cells alone. Return None if a value is missing that the question reads."""
    for rate, path in zip(list_sum_rates(calibration), paths, strict=True):
        if rate and (path is None or rate not in path.rates or int(path.reached.min()) <= path.rates.index(rate)):
            return None
    read = {place: path for place, path in enumerate(paths) if path is not None}
    keys = next(iter(read.values())).reached.size
    found = read_noisy_cells(calibration, _read_levels(calibration, read), keys=keys)
    return replace(found, fresh=np.zeros(keys))


def list_sum_tests(calibration: Calibration) -> tuple[FunctionalTest, ...]:
    """Return for each sum a test with one look at the rate of the sum's noise, and no threshold."""
    common = calibration.task.common
    assert common is not None
    return tuple(
        replace(make_idle_test(calibration.task), epsilon=round_up_to_float(rate * sensitivity), rate=rate)
        for rate, sensitivity in zip(list_sum_rates(calibration), common.sensitivities, strict=True)
    )


def _read_levels(calibration: Calibration, paths: Mapping[int, NoisePath]) -> dict[int, Integers]:
    """Return the noisy values of every sum at its rate in the calibration."""
    rates = list_sum_rates(calibration)
    return {place: path.values[path.rates.index(rates[place])] for place, path in paths.items() if rates[place]}


def evaluate_literal(common: CommonSums, cut: Cut, sums: Integers) -> Booleans:
    """Return True for each key for which a literal holds on exact sums. Only for owners and tests."""
    exact, pair = dict(enumerate(sums)), common.find_pair(cut.functional)
    if pair is None:
        values, present = read_cells(common, cut.functional, exact)
        return np.asarray(compare_cells(common, cut, values) & present, dtype=np.bool_)
    parts, there = zip(*look_up_parts(common, cut.functional, exact), strict=True)
    groups = list_averaged_groups(common, cut.functional, exact)
    sign, known = compare_exact_means(pair, parts, groups)
    return np.asarray(cut.evaluate(sign) & known & np.all(there, axis=0), dtype=np.bool_)
