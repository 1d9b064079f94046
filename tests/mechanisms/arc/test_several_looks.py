"""Arc looks with early ones: exact laws of whole answers, losses after each look, and what far keys cost."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from accountant.unit_balance import NO_UNIT_LOSS
from mechanisms.arc.one_look import Arc
from mechanisms.arc.several_looks import ArcLooks
from mechanisms.formula import TRUE, Cut, evaluate_formula, list_literals, relax_formula
from mechanisms.protocol import Calibration, Unachievable
from mechanisms.three_valued import settle_formula
from mechanisms.threshold.renyi import ORDERS, compute_curve
from tests.effort import rounds
from tests.mechanisms.arc.test_one_look import FORMULAS, MANY, make_task
from tests.seeded_noise import SeededNoise

Verdict = Mapping[tuple[int, int, bool], int]
Path = tuple[Fraction, int, bool]
"""Of one key: a path's probability, the number of looks, and whether it is returned."""


def list_paths(calibration: Calibration, values: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Path]]:
    """Yield every path of looks at one key, by all verdicts in their order, from the tables alone."""
    tests = {
        (cut.functional, cut.cut, cut.above): test
        for cut, test in zip(calibration.task.list_literals(), calibration.occurrences, strict=True)
    }
    formula = calibration.task.formula

    def settle(known: Verdict) -> int:
        verdicts = {
            cut: np.array([known[cut.functional, cut.cut, cut.above]], dtype=np.int8) for cut in list_literals(formula)
        }
        return int(settle_formula(formula, verdicts, keys=1)[0])

    def extend(
        known: Verdict, look: int, chance: Fraction, taken: tuple[int, ...]
    ) -> Iterator[tuple[tuple[int, ...], Path]]:
        settled = settle(known)
        if settled:
            yield taken, (chance, look, settled == 1)
            return
        open_literals = [literal for literal in tests if not known[literal]]
        tables = [(*tests[literal].early_tables, tests[literal].table)[look] for literal in open_literals]
        for verdicts in product((-1, 0, 1), repeat=len(open_literals)):
            part = chance
            for literal, table, verdict in zip(open_literals, tables, verdicts, strict=True):
                functional, cut, above = literal
                distance = values[functional] - cut if above else cut + 1 - values[functional]
                assert table is not None
                accepted, rejected = table.compute_acceptance(distance), table.compute_rejection(distance)
                # entries of a last table are of 2**64, of which none is left
                part *= {1: accepted, -1: rejected, 0: 1 - accepted - rejected}[verdict]
            if part:
                found = {**known, **dict(zip(open_literals, verdicts, strict=True))}
                yield from extend(found, look + 1, part, (*taken, *verdicts))

    yield from extend(dict.fromkeys(tests, 0), 0, Fraction(1), ())


def compute_returned(calibration: Calibration, values: tuple[int, ...]) -> Fraction:
    return sum((path[0] for _, path in list_paths(calibration, values) if path[2]), start=Fraction(0))


@pytest.mark.parametrize("name", sorted(FORMULAS))
def test_both_rates_hold_exactly(name: str) -> None:
    calibration = ArcLooks().calibrate(make_task(FORMULAS[name]))
    formula, relaxed = FORMULAS[name], relax_formula(FORMULAS[name])
    edges = ((60, 80, 81, 100, 101, 300, 301, 330, 331), (20, 39, 40, 41, 49, 50, 51, 59, 60))
    for values in list(product(*edges))[:: 5 - rounds(4, quick=1)]:

        def holds(cut: Cut, values: tuple[int, ...] = values) -> np.ndarray:
            value = values[cut.functional]
            return np.array([value > cut.cut if cut.above else value <= cut.cut])

        returned = compute_returned(calibration, values)
        if evaluate_formula(formula, holds, keys=1)[0]:
            assert returned >= 1 - Fraction(0.05)
        if not evaluate_formula(relaxed, holds, keys=1)[0]:
            assert returned <= Fraction(0.1)


@pytest.mark.parametrize("name", ["one", "and", "either"])
def test_over_all_paths_the_looks_that_ran_are_paid(name: str) -> None:
    """The mean of `exp((a-1) (L - curve of the looks that ran))` over all paths is at most one, for all neighbours."""
    calibration = ArcLooks().calibrate(make_task(FORMULAS[name]))
    after = [np.zeros(len(ORDERS)), *(np.array(one.divergences, dtype=float) for one in calibration.after_looks)]
    pure = [0.0, *(one.epsilon for one in calibration.after_looks)]
    largest = too_cheap = 0.0
    tried = [(90, 45), (100, 50), (310, 49), (81, 40), (101, 51), (70, 45)]
    for values in tried[: rounds(len(tried), quick=3)]:
        for change in ((1, 1), (1, 0), (-1, -1), (-1, 1)):
            moved = tuple(value + more for value, more in zip(values, change, strict=True))
            here, there = (dict(list_paths(calibration, each)) for each in (values, moved))
            assert here.keys() == there.keys()
            means, refunded = np.zeros((2, len(ORDERS)))
            for path, (chance, looks, _) in here.items():
                ratio = np.log(float(there[path][0])) - np.log(float(chance))
                assert abs(ratio) <= pure[looks] + 1e-9
                # under the moved value, of the ratio of it to this one
                means += float(there[path][0]) * np.exp((np.array(ORDERS) - 1) * (ratio - after[looks]))
                refunded += float(there[path][0]) * np.exp((np.array(ORDERS) - 1) * (ratio - after[looks - 1]))
            assert np.all(means <= 1 + 1e-9), (values, change, means)
            largest, too_cheap = max(largest, float(means.max())), max(too_cheap, float(refunded.max()))
    assert largest > 0.9
    assert too_cheap > 1.001  # a look that ran and was given back


def test_answers_and_losses_are_those_of_the_paths() -> None:
    """For each value the share that is returned, and that of each number of looks, in 200,000 draws: 5.5 sigma."""
    calibration = ArcLooks().calibrate(make_task(FORMULAS["either"]))
    number = rounds(200_000, quick=20_000)
    losses = [one.epsilon for one in calibration.after_looks]
    for seed, values in enumerate(((90, 45), (60, 55), (101, 20), (315, 50))):
        aggregates = np.repeat(np.array(values, dtype=np.int64)[:, None], number, axis=1)
        outcome = ArcLooks().decide(calibration, aggregates, noise=SeededNoise(seed))
        paths = [path for _, path in list_paths(calibration, values)]
        expected: dict[tuple[str, int], float] = {("returned", 1): float(sum(path[0] for path in paths if path[2]))}
        expected |= {("looks", look): float(sum(path[0] for path in paths if path[1] == look)) for look in (1, 2, 3)}
        found = {("returned", 1): outcome.passed.mean()}
        found |= {("looks", look): (outcome.epsilon == losses[look - 1]).mean() for look in (1, 2, 3)}
        for what, share in expected.items():
            assert abs(found[what] - share) <= 5.5 * (share * (1 - share) / number) ** 0.5 + 1e-12, (values, what)
        assert set(np.unique(outcome.epsilon)) <= set(losses)


def test_far_keys_take_one_look_and_the_worst_case_is_that_of_all() -> None:
    calibration = ArcLooks().calibrate(make_task(Cut(0, 5000, above=True, tolerance=100)))
    aggregates = np.array([[0, 100, 20_000, 10**6, 4950], [0] * 5], dtype=np.int64)
    outcome = ArcLooks().decide(calibration, aggregates, noise=SeededNoise(1))
    assert outcome.passed[:4].tolist() == [False, False, True, True]
    assert np.all(outcome.epsilon[:4] == calibration.after_looks[0].epsilon)
    assert calibration.worst_case_epsilon == calibration.after_looks[-1].epsilon
    assert calibration.divergences == calibration.after_looks[-1].divergences


def test_questions_below_a_cap_known_beforehand() -> None:
    """Tolerance 100, rates .05 and .1, 52 groups, cap 8, delta 1e-9: 44 in the worst case, 52 by one look alone."""
    task = make_task(Cut(0, 1000, above=True, tolerance=100))
    found = []
    for mechanism in (ArcLooks(), Arc()):
        curve = compute_curve(mechanism.calibrate(task), groups=52)
        found.append(NO_UNIT_LOSS.count_further_questions(10**12, curve, cap_nano=8 * 10**9, delta=1e-9))
    assert found == [44, 52]


def test_refusals() -> None:
    with pytest.raises(Unachievable):  # an early look at these rates would leave nothing undecided
        ArcLooks().calibrate(make_task(MANY, fnr=0.49, fpr=0.49))
    assert not ArcLooks().calibrate(make_task(Cut(0, 5, above=True, tolerance=1))).notes


def test_constant_formulas_cost_nothing() -> None:
    calibration = ArcLooks().calibrate(make_task(TRUE))
    outcome = ArcLooks().decide(calibration, np.zeros((2, 3), dtype=np.int64), noise=SeededNoise(1))
    assert calibration.worst_case_epsilon == 0.0
    assert outcome.passed.all()
    assert not outcome.epsilon.any()


def test_predicates_are_settled_in_returned_keys_alone() -> None:
    """A key is open until its formula is settled, and if it is returned until its predicates are."""
    far, near = Cut(0, 5000, above=True, tolerance=100), Cut(1, 5000, above=True, tolerance=100)
    calibration = ArcLooks().calibrate(make_task(far, predicates=(near,)))
    losses = [one.epsilon for one in calibration.after_looks]
    # returned with a predicate at its threshold, not returned, and returned with a predicate that is far
    values = np.repeat(np.array([[20_000, 0, 20_000], [4950, 4950, 20_000]], dtype=np.int64), 2_000, axis=1)
    outcome = ArcLooks().decide(calibration, values, noise=SeededNoise(3))
    taken = np.searchsorted(losses, outcome.epsilon).reshape(3, 2_000) + 1
    assert taken[0].mean() > 2.5
    assert set(taken[1]) == set(taken[2]) == {1}
    (held,) = (predicate.reshape(3, 2_000) for predicate in outcome.predicates)
    assert 0.1 < held[0].mean() < 0.9
    assert not held[1].any()
    assert held[2].all()


@pytest.mark.parametrize("rate", [0.4, 0.49, 0.4999])
@pytest.mark.parametrize("mechanism", [Arc(), ArcLooks()], ids=["arc", "arc_looks"])
def test_large_rates_need_no_long_tables(mechanism: Arc | ArcLooks, rate: float) -> None:
    """Tables grow without bound as both rates approach a half: they are refused, or within a million entries."""
    task = make_task(Cut(0, 100, above=True, tolerance=10**6), fnr=rate, fpr=rate)
    try:
        calibration = mechanism.calibrate(task)
    except Unachievable:
        return
    tables = [(*test.early_tables, test.table) for test in calibration.occurrences]
    assert all(table is not None and table.accepted.size <= 1 << 20 for one in tables for table in one)
