"""Readings of cells on noise that earlier questions left: their contract, what they reveal, and what that costs."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.formula import AllOf, Integers
from mechanisms.keyhole.noise_continuation import (
    MOST_RATES,
    Continuation,
    NoisyParts,
    decide_on_known_values,
    decide_on_refined_paths,
    decide_with_all_revealed,
    plan_on_paths,
)
from mechanisms.keyhole.noisy_cells import read_noisy_cells
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.keyhole.progressive import Progressive
from mechanisms.noise.noise_sum import WeightedNoise, merge_equal_noises
from mechanisms.protocol import OWN_CELL, Calibration, CommonSums, DecisionTask, NoisePath, Outcome, Unachievable
from mechanisms.threshold.joint_loss import compute_joint_loss, expose_functional_sets, list_sum_rates
from tests.effort import examples
from tests.mechanisms.keyhole.cell_worlds import (
    Part,
    above,
    below,
    cell_task,
    common_sums,
    difference,
    kinds_of_keys,
    lag,
    shared_rates,
    total,
)
from tests.mechanisms.noise.convolved import exact_tail
from tests.seeded_noise import SeededNoise

MECHANISMS = (Keyhole(), Progressive())
ROUNDING = 1e-13  # of a tail by convolution
MONTHS = 6
READINGS: dict[str, list[Part]] = {
    "a share": [(0, 10, OWN_CELL), (0, -3, total(0))],
    "another share": [(0, 10, OWN_CELL), (0, -2, total(0))],
    "a difference": difference(MONTHS),
    "growth": [(0, 5, OWN_CELL), (0, -6, lag(MONTHS))],
    "two sums": [(0, 1, OWN_CELL), (1, -3, lag(MONTHS))],
    "the other sum": [(1, 1, OWN_CELL), (1, -1, lag(MONTHS))],
}


def question(reading: str, tolerance: int, *, sensitivities: tuple[int, ...] = (3, 1)) -> DecisionTask:
    """One threshold on a reading of two sums over some months."""
    common = common_sums((MONTHS,), READINGS[reading], sensitivities=sensitivities)
    return cell_task(common, above(0, 0, tolerance))


def months(keys: int = MONTHS) -> Integers:
    return np.random.default_rng(5).integers(0, 1000, (2, keys)).astype(np.int64)


def asked(task: DecisionTask, *, seed: int = 3) -> Outcome:
    return Keyhole().decide(Keyhole().calibrate(task), months(), noise=SeededNoise(seed))


def laid(task: DecisionTask, paths: Sequence[NoisePath | None]) -> Continuation | None:
    return plan_on_paths(Keyhole().calibrate(task), tuple(paths))


def path_at(*rates: Fraction, keys: int = MONTHS) -> NoisePath:
    """A path whose values are of no matter."""
    every = np.zeros((len(rates), keys), dtype=np.int64)
    return NoisePath(rates=rates, values=every, reached=np.full(keys, len(rates), dtype=np.int8))


def check_contract(made: Calibration) -> None:
    """Hold one literal's exact error rates against its contract, with the noise of every key by convolution."""
    (test,), common = made.tests, made.task.common
    assert common is not None
    rates = shared_rates(made)
    for kind in kinds_of_keys(common, 0):
        noises = merge_equal_noises([WeightedNoise(times, count, rates[place]) for place, times, count in kind])
        assert exact_tail(noises, test.shift + 1) <= made.task.fnr + ROUNDING
        assert exact_tail(noises, test.tolerance - test.shift + 1) <= made.task.fpr + ROUNDING


@examples(120, quick=25)
@given(
    first=st.sampled_from(sorted(READINGS)),
    second=st.sampled_from(sorted(READINGS)),
    tolerances=st.tuples(st.integers(20, 400), st.integers(20, 400)),
)
def test_a_later_question_keeps_its_contract_at_whatever_rates_are_stored(
    first: str, second: str, tolerances: tuple[int, int]
) -> None:
    paths = asked(question(first, tolerances[0])).paths
    task = question(second, tolerances[1])
    found = laid(task, paths)
    needed = list_sum_rates(Keyhole().calibrate(task))
    if found is None:
        assert all(path is None or not rate for path, rate in zip(paths, needed, strict=True))
        return
    check_contract(found.calibration)
    for rate, need, path in zip(list_sum_rates(found.calibration), needed, paths, strict=True):
        stored = () if path is None else path.rates
        assert rate in (*stored, need)
        assert bool(rate) == bool(need)
    known = decide_on_known_values(found, noise=SeededNoise(1))
    is_there = [path is not None for path, need in zip(paths, needed, strict=True) if need]
    assert (known is not None) == (found.fresh_worst == 0.0)
    assert known is None or all(is_there)


def test_another_factor_is_read_off_the_same_values() -> None:
    first = asked(question("a share", 100))
    found = laid(question("another share", 120), first.paths)
    assert found is not None
    assert found.fresh_worst == found.public_fresh_worst == 0.0
    known = decide_on_known_values(found, noise=SeededNoise(1))
    assert known is not None
    assert known.fresh is not None
    assert not known.fresh.any()
    assert known.paths == ()
    path = first.paths[0]
    assert path is not None
    read = read_noisy_cells(found.calibration, {0: path.values[0]}, keys=MONTHS)
    assert known.passed.tolist() == read.passed.tolist()
    assert set(known.epsilon) == {found.calibration.worst_case_epsilon}
    # refining reads the same values, whatever the data and the seed
    again = decide_on_refined_paths(found, months() + 500, noise=SeededNoise(8))
    assert again.passed.tolist() == known.passed.tolist()
    assert again.fresh is not None
    assert not again.fresh.any()
    assert again.paths[0] is not None
    assert again.paths[0].values.tolist() == path.values.tolist()


def test_wider_noise_is_never_read_for_a_sharper_question() -> None:
    """It is refined, at the price of the difference; what was stored stays as it was."""
    first, sharp = asked(question("a share", 200)), question("another share", 40)
    found = laid(sharp, first.paths)
    assert found is not None
    assert decide_on_known_values(found, noise=SeededNoise(1)) is None
    old, new = first.paths[0], list_sum_rates(found.calibration)[0]
    assert old is not None
    assert new == list_sum_rates(Keyhole().calibrate(sharp))[0] > old.rates[0]
    done = decide_on_refined_paths(found, months(), noise=SeededNoise(9))
    path = done.paths[0]
    assert path is not None
    assert path.rates == (old.rates[0], new)
    assert path.values[0].tolist() == old.values[0].tolist()
    assert path.reached.tolist() == [2] * MONTHS
    assert done.fresh is not None
    assert done.fresh == pytest.approx([float(new - old.rates[0]) * 3] * MONTHS)
    assert np.all(done.fresh <= found.fresh_worst)
    assert set(done.epsilon) == {found.calibration.worst_case_epsilon}
    read = read_noisy_cells(found.calibration, {0: path.values[1]}, keys=MONTHS)
    assert done.passed.tolist() == read.passed.tolist()


def test_refined_cells_have_the_law_of_new_noise() -> None:
    """20,000 cells; the rate of zeros at the finer level by an exact binomial test. False alarm 1e-9."""
    keys = 20_000
    common = common_sums((keys,), [(0, 10, OWN_CELL), (0, -1, total(0))], sensitivities=(1,))
    wide, sharp = (Keyhole().calibrate(cell_task(common, above(0, 0, tolerance))) for tolerance in (60_000, 30_000))
    values = np.zeros((1, keys), dtype=np.int64)
    found = plan_on_paths(sharp, Keyhole().decide(wide, values, noise=SeededNoise(4)).paths)
    assert found is not None
    path = decide_on_refined_paths(found, values, noise=SeededNoise(5)).paths[0]
    assert path is not None
    rate = float(list_sum_rates(found.calibration)[0])
    zeros, chance = int(np.count_nonzero(path.values[-1] == 0)), (1 - np.exp(-rate)) / (1 + np.exp(-rate))
    assert stats.binomtest(zeros, keys, chance).pvalue > 1e-9
    assert abs(float(path.values[-1].mean())) < 7 * float(path.values[-1].std()) / keys**0.5


def test_a_sum_that_is_missing_gets_new_noise_and_the_other_is_read() -> None:
    first, both = asked(question("a share", 30)), question("two sums", 300)
    assert first.paths[1] is None
    found = laid(both, first.paths)
    assert found is not None
    assert decide_on_known_values(found, noise=SeededNoise(1)) is None
    done, needed = decide_on_refined_paths(found, months(), noise=SeededNoise(2)), list_sum_rates(found.calibration)
    assert done.fresh == pytest.approx([float(needed[1])] * MONTHS)
    assert [path and path.rates for path in done.paths] == [first.paths[0] and first.paths[0].rates, (needed[1],)]


def test_finer_noise_of_one_sum_makes_up_for_wider_noise_of_another() -> None:
    """The contract is what counts, and it is held at the stored rates."""
    task = question("two sums", 300)
    first, second = list_sum_rates(Keyhole().calibrate(task))
    found = laid(task, (path_at(4 * first), path_at(second * Fraction(99, 100))))
    assert found is not None
    check_contract(found.calibration)
    assert list_sum_rates(found.calibration) == (4 * first, second * Fraction(99, 100))
    assert decide_on_known_values(found, noise=SeededNoise(1)) is not None
    far = laid(task, (path_at(4 * first), path_at(second / 3)))
    assert far is not None
    assert list_sum_rates(far.calibration) == (4 * first, second)


def test_the_coarsest_rate_that_is_fine_enough_is_read() -> None:
    """An analyst with a cap is charged for what is read: nothing finer is, though it is there."""
    task = question("a share", 100)
    (rate, _) = list_sum_rates(Keyhole().calibrate(task))
    rates = (rate / 2, rate * 2, rate * 3)
    values = np.zeros((3, MONTHS), dtype=np.int64)
    values[1, 0] = values[2, 1] = 10_000  # as if the noise had changed its mind
    found = laid(task, (NoisePath(rates, values, np.full(MONTHS, 3, dtype=np.int8)), None))
    assert found is not None
    assert list_sum_rates(found.calibration)[0] == rate * 2
    assert found.calibration.worst_case_epsilon == pytest.approx(float(rate * 2) * 3)
    for known in (
        decide_on_known_values(found, noise=SeededNoise(1)),
        decide_on_refined_paths(found, months(), noise=SeededNoise(1)),
    ):
        assert known is not None
        assert known.passed.tolist() == [True] + [False] * (MONTHS - 1)


def test_stored_noise_that_saves_nothing_is_left_alone() -> None:
    task = question("a share", 100)
    assert laid(task, (None, path_at(Fraction(9)))) is None  # of a sum that the question does not read
    assert laid(task, (None, None)) is None
    full = path_at(*(Fraction(one, 10**6) for one in range(1, MOST_RATES + 1)))
    assert laid(task, (full, None)) is None
    with pytest.raises(ValueError, match="for each part"):
        laid(task, (path_at(Fraction(1)),))


def test_values_that_some_cells_lack_are_not_known() -> None:
    task = question("a share", 100)
    rate = list_sum_rates(Keyhole().calibrate(task))[0]
    path = path_at(rate)
    missing = replace(path, reached=np.array([1, 1, 0, 1, 1, 1], dtype=np.int8))
    for stored, is_known in ((path, True), (missing, False)):
        found = laid(task, (stored, None))
        assert found is not None
        assert (decide_on_known_values(found, noise=SeededNoise(1)) is not None) == is_known
    found = laid(task, (missing, None))
    assert found is not None
    done = decide_on_refined_paths(found, months(), noise=SeededNoise(2))
    assert done.fresh is not None
    assert np.flatnonzero(done.fresh).tolist() == [2]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda one: one.name)
def test_every_way_to_decide_leaves_the_values_it_read(mechanism: Keyhole | Progressive) -> None:
    calibration = mechanism.calibrate(question("a share", 100))
    rate = list_sum_rates(calibration)[0]
    for done in (
        mechanism.decide(calibration, months(), noise=SeededNoise(6)),
        decide_with_all_revealed(calibration, months(), noise=SeededNoise(6)),
    ):
        path, other = done.paths
        assert other is None
        assert path is not None
        assert path.rates == (rate,)
        assert path.reached.tolist() == [1] * MONTHS
        drawn = SeededNoise(6).draw_discrete_laplace(rate=rate, size=MONTHS)
        assert path.values[0].tolist() == (months()[0] + drawn).tolist()
    assert mechanism.decide(calibration, months(), noise=SeededNoise(6), keeps_paths=False).paths == ()
    parts = NoisyParts.from_calibration(calibration)
    assert parts.reveals_all
    assert [test.rate for test in parts.tests] == [rate, 0]


@examples(60, quick=10)
@given(tolerances=st.tuples(*[st.integers(20, 300)] * 3), is_apart=st.booleans())
def test_a_chain_of_questions_costs_a_cell_its_finest_values(tolerances: tuple[int, ...], is_apart: bool) -> None:
    """The first loss and all fresh ones add up to the joint loss at the finest rates, to rounding; never to less."""
    sets = expose_functional_sets(((0,), (1,)), functionals=2) if is_apart else None
    common = common_sums((MONTHS,), READINGS["two sums"], difference(MONTHS), sensitivities=(3, 1), exposures=sets)
    paths: tuple[NoisePath | None, ...] = (None, None)
    lost = np.zeros(MONTHS)
    for number, tolerance in enumerate(tolerances):
        formula = AllOf((above(0, 0, tolerance), below(1, 5, 2 * tolerance)))
        try:
            calibration = Keyhole().calibrate(cell_task(common, formula))
        except Unachievable:
            assume(False)
        found = plan_on_paths(calibration, paths)
        noise = SeededNoise(number)
        if found is None:
            done = Keyhole().decide(calibration, months(), noise=noise)
            lost += done.epsilon
        else:
            done = decide_on_refined_paths(found, months(), noise=noise)
            assert done.fresh is not None
            lost += done.fresh
        paths = tuple(new or old for new, old in zip(done.paths, paths, strict=True))
    finest = [path.rates[-1] if path is not None else Fraction(0) for path in paths]
    least = float(
        compute_joint_loss([rate * size for rate, size in zip(finest, (3, 1), strict=True)], common.exposures)
    )
    assert np.all(lost >= least * (1 - 1e-12))
    if not is_apart:
        assert lost == pytest.approx([least] * MONTHS)


def test_common_sums_of_a_group_alone_leave_nothing() -> None:
    """Their noise is drawn for the keys that are still open, and no path says so."""
    common: CommonSums = replace(common_sums((3,), [(0, 1, OWN_CELL)]), cells=(), shape=())
    made = Keyhole().calibrate(cell_task(common, above(0, 5, 9)))
    assert plan_on_paths(made, (None,)) is None
    assert Keyhole().decide(made, np.zeros((1, 3), dtype=np.int64), noise=SeededNoise(1)).paths == ()
