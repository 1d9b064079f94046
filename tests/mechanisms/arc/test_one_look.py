"""The mechanism: contracts on the answers, charges over exposures, refusals, and broken copies that audits find."""

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from accountant.unit_balance import NO_UNIT_LOSS, UnitRoom
from mechanisms.apportionment.equal_split import split_bound_equally
from mechanisms.arc.divergences import compute_divergences, compute_pure_loss
from mechanisms.arc.literal_tests import Literals, LookChoice, find_price
from mechanisms.arc.look_table import BlockGrid, choose_slope, decide_by_words, make_last_look, make_looks
from mechanisms.arc.one_look import Arc, calibrate_with_slope
from mechanisms.arc.several_looks import ArcLooks
from mechanisms.audit.auditor import Neighbours, Release, audit_subject
from mechanisms.audit.events import Transcripts
from mechanisms.audit.many_groups import GROUPS, audit_many_groups
from mechanisms.audit.subjects import audit_mechanism
from mechanisms.audit.worst_cases import make_audit_tasks, widen_tolerances
from mechanisms.formula import AllOf, AnyOf, Cut, Formula, Integers, evaluate_formula, relax_formula
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.protocol import (
    Calibration,
    CommonSums,
    DecisionTask,
    Exposure,
    FunctionalTest,
    LookTable,
    Noise,
    Outcome,
    Unachievable,
    Words,
)
from mechanisms.threshold.joint_loss import expose_all_functionals, expose_functional_sets
from mechanisms.threshold.renyi import ORDERS, compute_curve, to_nano
from tests.effort import rounds
from tests.seeded_noise import SeededNoise

MANY, FEW = Cut(0, 100, above=True, tolerance=20), Cut(0, 300, above=False, tolerance=30)
LARGE, SMALL = Cut(1, 50, above=True, tolerance=10), Cut(1, 49, above=False, tolerance=10)
FORMULAS: dict[str, Formula] = {
    "one": MANY,
    "below": FEW,
    "and": AllOf((MANY, LARGE)),
    "or": AnyOf((MANY, LARGE)),
    "band": AllOf((MANY, FEW)),
    "either": AnyOf((AllOf((MANY, LARGE)), AllOf((FEW, SMALL)))),
}


def make_task(formula: Formula, **others: object) -> DecisionTask:
    given: dict[str, object] = {
        "formula": formula,
        "sensitivities": (1, 1),
        "exposures": expose_all_functionals(2),
        "fnr": 0.05,
        "fpr": 0.1,
    }
    return DecisionTask(**given | others)  # type: ignore[arg-type]


def compute_chance(calibration: Calibration, values: tuple[int, ...]) -> Fraction:
    """The exact probability that a key with these values is returned, over all outcomes of its literals."""
    tests: dict[Cut, FunctionalTest] = dict(zip(calibration.task.list_literals(), calibration.occurrences, strict=True))
    accepted = {}
    for cut, test in tests.items():
        assert test.table is not None
        value = values[cut.functional]
        accepted[cut] = test.table.compute_acceptance(value - cut.cut if cut.above else cut.cut + 1 - value)
    total = Fraction(0)
    for outcomes in product((False, True), repeat=len(tests)):
        held = dict(zip(tests, outcomes, strict=True))
        if evaluate_formula(calibration.task.formula, lambda cut: np.array([held[cut]]), keys=1)[0]:  # noqa: B023
            total += math.prod(
                (accepted[cut] if yes else 1 - accepted[cut] for cut, yes in held.items()), start=Fraction(1)
            )
    return total


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("sensitivities", [(1, 1), (7, 90)])
def test_both_rates_hold_exactly(name: str, sensitivities: tuple[int, ...]) -> None:
    """At all values near the thresholds. One literal uses its rates to the full."""
    task = make_task(FORMULAS[name], sensitivities=sensitivities)
    calibration = Arc().calibrate(task)
    relaxed = relax_formula(task.formula)
    worst = [Fraction(0), Fraction(0)]
    for values in product((79, 80, 81, 100, 101, 102, 200, 300, 301, 330, 331), (39, 40, 41, 49, 50, 51, 59, 60, 61)):
        column = np.array(values, dtype=np.int64)[:, np.newaxis]

        def holds(cut: Cut, column: Integers = column) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
            return cut.evaluate(column[cut.functional])

        chance = compute_chance(calibration, values)
        if evaluate_formula(task.formula, holds, keys=1)[0]:
            worst[0] = max(worst[0], 1 - chance)
        if not evaluate_formula(relaxed, holds, keys=1)[0]:
            worst[1] = max(worst[1], chance)
    assert worst[0] <= task.fnr
    assert worst[1] <= task.fpr
    if name in ("one", "below"):
        assert worst[0] >= 0.97 * task.fnr
        assert worst[1] >= 0.97 * task.fpr


def test_answers_have_the_tables_probabilities() -> None:
    """100,000 keys of each kind; false alarm below 1e-6 for all of them: five standard deviations and more."""
    task = make_task(AllOf((MANY, LARGE)), predicates=(LARGE,))
    calibration = Arc().calibrate(task)
    for values in ((101, 51), (90, 70), (120, 45)):
        aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], 100_000, axis=1)
        outcome = Arc().decide(calibration, aggregates, noise=SeededNoise(3))
        chance = float(compute_chance(calibration, values))
        assert outcome.passed.mean() == pytest.approx(chance, abs=5.5 * math.sqrt(chance * (1 - chance) / 100_000))
        # one look serves the formula and the predicate, so a returned key has it
        assert np.array_equal(outcome.predicates[0], outcome.passed)
        assert np.all(outcome.epsilon == calibration.worst_case_epsilon)
        assert outcome.paths == ()


@pytest.mark.parametrize("above", [True, False])
@pytest.mark.parametrize("cut", [0, 2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_the_farthest_values_are_decided_as_the_ends_of_the_table(cut: int, above: bool) -> None:
    """Differences of 64 bits would overflow. Another decision than that of the exact literal has a chance of 2**-50."""
    task = make_task(Cut(functional=0, cut=cut, above=above, tolerance=50))
    values = [one for one in (-(2**63), -(2**62), 0, 2**62, 2**63 - 1) if abs(one - cut) > 2**61]
    for mechanism in (Arc(), ArcLooks()):
        calibration = mechanism.calibrate(task)
        outcome = mechanism.decide(calibration, np.array([values], dtype=np.int64), noise=SeededNoise(1))
        assert outcome.passed.tolist() == [value > cut if above else value <= cut for value in values]


def test_predicates_and_literals_below_a_threshold_have_the_tables_probabilities() -> None:
    """100,000 keys just within and just beyond both thresholds. False alarm below 1e-6."""
    few, low = Cut(0, 300, above=False, tolerance=20), Cut(1, 50, above=False, tolerance=10)
    calibration = Arc().calibrate(make_task(few, predicates=(low,)))
    for values, likely in (((300, 50), 0.95**2), ((300, 61), 0.95 * 0.1), ((321, 50), 0.1 * 0.95)):
        aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], 100_000, axis=1)
        outcome = Arc().decide(calibration, aggregates, noise=SeededNoise(5))
        of_few = 0.95 if values[0] == 300 else 0.1
        assert outcome.passed.mean() == pytest.approx(of_few, abs=5.5 * math.sqrt(of_few * (1 - of_few) / 100_000))
        (shown,) = outcome.predicates
        assert shown.mean() == pytest.approx(likely, abs=5.5 * math.sqrt(likely * (1 - likely) / 100_000))
        assert not np.any(shown & ~outcome.passed)


def list_distribution(calibration: Calibration, values: tuple[int, ...]) -> list[Fraction]:
    """The probabilities of all outcomes of the literals, which is more than the answer tells."""
    parts = []
    for cut, test in zip(calibration.task.list_literals(), calibration.occurrences, strict=True):
        assert test.table is not None
        value = values[cut.functional]
        yes = test.table.compute_acceptance(value - cut.cut if cut.above else cut.cut + 1 - value)
        parts.append((yes, 1 - yes))
    return [math.prod(one, start=Fraction(1)) for one in product(*parts)]


HALF = Fraction(1, 2)
PARTS: tuple[tuple[tuple[Exposure, ...], tuple[int, int]], ...] = (
    (expose_all_functionals(2), (3, 2)),
    (((Fraction(1), HALF), (HALF, Fraction(1))), (4, 6)),
    (((Fraction(1), Fraction(0)), (HALF, Fraction(1))), (70, 130)),
)


@pytest.mark.parametrize(("exposures", "sensitivities"), PARTS)
def test_the_charge_bounds_every_change_that_the_exposures_cover(
    exposures: tuple[Exposure, ...], sensitivities: tuple[int, int]
) -> None:
    """By brute force: all changes under mixtures of the exposures, at values around both bands."""
    first, second = (Cut(f, 500, above=bool(f), tolerance=4 * sensitivities[f]) for f in range(2))
    task = make_task(AnyOf((first, second)), exposures=exposures, sensitivities=sensitivities, blocks=frozenset())
    calibration = Arc().calibrate(task)
    mixed = [
        tuple(one * (1 - t) + other * t for one, other in zip(exposures[0], exposures[-1], strict=True))
        for t in (Fraction(0), HALF / 2, HALF, Fraction(1))
    ]
    changes = {
        tuple(sign * math.floor(part * most) for sign, part, most in zip(signs, parts, sensitivities, strict=True))
        for parts in mixed
        for signs in product((1, -1), repeat=2)
    }
    generator = np.random.default_rng(4)
    found = dict.fromkeys((2, 8, 40), Decimal(0))
    pure = 0.0
    for _ in range(rounds(400, quick=60)):
        values = tuple(int(500 + most * generator.uniform(-9, 9)) for most in sensitivities)
        for change in changes:
            one = list_distribution(calibration, values)
            other = list_distribution(calibration, tuple(map(sum, zip(values, change, strict=True))))
            pure = max(pure, max(math.log(p / q) for p, q in zip(one, other, strict=True)))
            for order in found:
                moment = math.fsum(
                    math.exp(order * math.log(p) - (order - 1) * math.log(q)) for p, q in zip(one, other, strict=True)
                )
                found[order] = max(found[order], Decimal(math.log(moment) / (order - 1)))
    for order, largest in found.items():
        claimed = calibration.divergences[ORDERS.index(order)]
        assert 0.3 * float(claimed) < largest <= claimed + Decimal("1e-12")
    assert 0.4 * calibration.worst_case_epsilon < pure <= calibration.worst_case_epsilon


def test_disjoint_functionals_cost_the_larger_and_others_the_sum() -> None:
    apart, together = expose_functional_sets(((0,), (1,)), functionals=2), expose_all_functionals(2)
    alone = Arc().calibrate(make_task(MANY)).divergences
    formula = AnyOf((MANY, replace(LARGE, tolerance=20)))
    either, both = (Arc().calibrate(make_task(formula, exposures=one)).divergences for one in (apart, together))
    for one, larger, sum_ in zip(alone, either, both, strict=True):
        # in an OR the fpr is divided
        assert one < larger
        assert sum_ == pytest.approx(2 * larger, rel=Decimal("1e-3"))


@pytest.mark.parametrize(
    ("groups", "rates", "tolerance", "by_noise", "by_looks"),
    [
        (52, (0.05, 0.1), 100, 16, 52),
        (52, (0.01, 0.01), 100, 4, 21),
        (52, (0.001, 0.001), 100, 1, 12),
        (52, (0.05, 0.1), 50, 4, 12),
        (12, (0.05, 0.1), 100, 72, 227),
        (12, (0.05, 0.1), 25, 5, 12),
    ],
)
def test_questions_below_a_cap(
    groups: int, rates: tuple[float, float], tolerance: int, by_noise: int, by_looks: int
) -> None:
    """A cap of 8 with a delta of 1e-9, for questions that are all different."""
    task = make_task(replace(MANY, cut=1000, tolerance=tolerance), fnr=rates[0], fpr=rates[1])
    room = UnitRoom(NO_UNIT_LOSS, 8 * 10**9, 1e-9)
    for mechanism, fit in ((Keyhole(), by_noise), (Arc(), by_looks)):
        calibration = mechanism.calibrate(task)
        pure = to_nano(groups * Decimal(calibration.worst_case_epsilon))
        assert room.count_further_questions(pure, compute_curve(calibration, groups=groups)) == fit


def test_several_thresholds_of_one_functional_are_charged_each() -> None:
    calibration = Arc().calibrate(make_task(AllOf((MANY, FEW))))
    tables = [test.table for test in calibration.occurrences]
    assert len(tables) == 2
    assert all(table is not None for table in tables)
    summed = [sum(rows) for rows in zip(*(compute_divergences(table, 1) for table in tables if table), strict=True)]
    assert list(calibration.divergences) == pytest.approx(summed, rel=Decimal("1e-30"))
    assert calibration.tests[0].epsilon == pytest.approx(calibration.worst_case_epsilon)
    assert calibration.tests[1].rate == 0


def test_a_literal_with_two_tolerances_is_tested_for_the_narrower() -> None:
    wide = replace(MANY, tolerance=50)
    for formula, predicate in ((MANY, wide), (wide, MANY)):
        calibration = Arc().calibrate(make_task(formula, predicates=(predicate,)))
        first, second = (test.table for test in calibration.occurrences)
        assert first is second
        assert first is not None
        assert first.compute_acceptance(-MANY.tolerance) <= 0.1


def test_the_price_is_convex_enough_and_near_the_table() -> None:
    """What apportionment minimises: near half of the divergence at the order two, and convex in logarithms of rates."""
    grid = BlockGrid.from_contract(sensitivity=1, tolerance=60, in_full=True)
    for fnr, fpr in ((0.05, 0.1), (0.01, 0.01), (0.001, 0.2)):
        price, by_fnr, by_fpr = find_price(grid=grid, fnr=fnr, fpr=fpr, multiple=1.5)
        slope = choose_slope(grid=grid, fnr=fnr, fpr=fpr, multiple=1.5)
        table = make_last_look(grid=grid, fnr=fnr, fpr=fpr, slope=slope)
        assert 2 * price == pytest.approx(float(compute_divergences(table, 1)[0]), rel=0.1)
        assert by_fnr < 0
        assert by_fpr < 0
        for step in (1.2, 2.0):
            less, more = (find_price(grid=grid, fnr=fnr * by, fpr=fpr, multiple=1.5)[0] for by in (1 / step, step))
            assert less + more >= 2 * price * (1 - 2e-3)


def test_apportioned_rates_beat_an_equal_split() -> None:
    """Of two conditions whose tolerances differ fourfold, the narrow one gets more of the rates."""
    narrow, wide = Cut(0, 100, above=True, tolerance=15), Cut(1, 500, above=True, tolerance=60)
    found = Arc().calibrate(make_task(AllOf((narrow, wide))))
    literals = Literals.from_task(found.task)
    halves = split_bound_equally(bound=0.05, occurrences=2)
    equal = [literals.calibrate(place, halves[place], 0.1, looks=LookChoice(1.5)).table for place in range(2)]
    summed = sum(compute_divergences(table, 1)[0] for table in equal if table is not None)
    assert found.divergences[0] < summed * Decimal("0.95")
    assert found.tests[0].fnr > 2 * found.tests[1].fnr


def test_a_steeper_foot_is_cheaper_by_its_curve_and_dearer_by_its_pure_loss() -> None:
    task = make_task(replace(MANY, tolerance=100))
    gentle, steep = (calibrate_with_slope(task, multiple=multiple) for multiple in (1.25, 2.0))
    assert steep.divergences[3] < gentle.divergences[3]
    assert steep.worst_case_epsilon > gentle.worst_case_epsilon
    assert compute_curve(steep, groups=52) < compute_curve(gentle, groups=52)


def test_a_whole_sensitivity_a_step_is_cheaper() -> None:
    task = make_task(MANY, sensitivities=(9, 1))
    finer = replace(task, exposures=(*task.exposures, (HALF, Fraction(1))), blocks=frozenset())
    assert Arc().calibrate(task).divergences[0] < Arc().calibrate(finer).divergences[0]


def test_refusals_name_another_mechanism() -> None:
    sums = CommonSums(
        sensitivities=(1, 1), exposures=expose_all_functionals(2), readings=(((0, 1),), ((1, 1),)), scales=(1, 1)
    )
    for task in (
        make_task(MANY, common=sums),
        make_task(MANY, predicates=(MANY, replace(MANY, cut=200))),
        make_task(MANY, fnr=1e-16),
    ):
        with pytest.raises(Unachievable) as refused:
            Arc().calibrate(task)
        assert refused.value.instead == "progressive"


def test_constant_formulas_cost_nothing() -> None:
    calibration = Arc().calibrate(make_task(AllOf(())))
    assert calibration.worst_case_epsilon == 0.0
    assert set(compute_curve(calibration, groups=52)) == {0}
    assert Arc().decide(calibration, np.zeros((2, 3), dtype=np.int64), noise=SeededNoise(1)).passed.all()


class _WithTables(Arc):
    """A broken copy: it claims the honest loss, and decides by other tables."""

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        tests = tuple(replace(test, table=self.change(test)) for test in calibration.occurrences)
        return super().decide(replace(calibration, occurrences=tests), aggregates, noise=noise)

    def change(self, test: FunctionalTest) -> LookTable:
        raise NotImplementedError


class _WithoutFeet(_WithTables):
    def change(self, test: FunctionalTest) -> LookTable:
        grid = BlockGrid.from_contract(sensitivity=1, tolerance=test.tolerance, in_full=True)
        return make_last_look(grid=grid, fnr=test.fnr, fpr=test.fpr, slope=50.0)


class _Faster(_WithTables):
    """A speed for half of the tolerance."""

    def change(self, test: FunctionalTest) -> LookTable:
        grid = BlockGrid.from_contract(sensitivity=1, tolerance=test.tolerance // 2, in_full=True)
        slope = choose_slope(grid=grid, fnr=test.fnr, fpr=test.fpr, multiple=1.5)
        return make_last_look(grid=grid, fnr=test.fnr, fpr=test.fpr, slope=slope)


@pytest.mark.parametrize(("subject", "is_flagged"), [(Arc(), False), (_WithoutFeet(), True), (_Faster(), True)])
def test_audits_find_broken_tables(subject: Arc, is_flagged: bool) -> None:
    """20,000 draws a pair of values, in the band and beyond it. False alarm 1e-6."""
    task = widen_tolerances(Arc(), make_audit_tasks()["one condition"], most_epsilon=0.8)
    report = audit_mechanism(subject, task, samples=20_000, noise=SeededNoise(8))
    assert report.is_flagged == is_flagged
    assert report.is_conclusive


@pytest.mark.parametrize("is_honest", [True, False])
def test_audits_find_a_curve_that_is_too_small(is_honest: bool) -> None:
    """10,000 draws of 40 groups. False alarm 1e-6. The mean loss is half of what is lost at so large a delta."""
    task = widen_tolerances(Arc(), make_audit_tasks()["one condition"], most_epsilon=0.3)

    def claim_mean(calibration: Calibration) -> float:
        return GROUPS * float(calibration.divergences[0]) / 2

    claim = None if is_honest else claim_mean
    report = audit_many_groups(Arc(), task, samples=10_000, noise=SeededNoise(9), claim=claim)
    assert report.is_conclusive
    assert report.is_flagged != is_honest


def release_looks(looks: tuple[LookTable, ...], distance: int, *, noise: Noise, has_own_words: bool) -> Release:
    """Transcripts of all looks until one decides: the verdict of each that ran."""

    def release(samples: int) -> Transcripts:
        seen, claimed = np.zeros((samples, len(looks)), dtype=np.int64), np.zeros(samples)
        is_open = np.ones(samples, dtype=np.bool_)
        words: Words = noise.draw_words(size=samples)
        for place, table in enumerate(looks):
            if has_own_words:
                words = noise.draw_words(size=samples)
            accepted, rejected = decide_by_words(table, np.full(samples, distance), words)
            seen[:, place] = np.where(is_open, 1 + accepted - rejected.astype(np.int64), 3)
            claimed += np.where(is_open, float(compute_pure_loss(table, 1)), 0.0)
            is_open &= ~(accepted | rejected)
        return Transcripts(revealed_values=seen, claimed_losses=claimed)

    return release


@pytest.mark.parametrize("has_own_words", [True, False])
def test_audits_find_looks_on_the_same_words(has_own_words: bool) -> None:
    """50,000 draws a pair. An early look charged only where the next ones ran. False alarm 1e-6."""
    grid = BlockGrid.from_contract(sensitivity=1, tolerance=12, in_full=True)
    slope = choose_slope(grid=grid, fnr=0.05, fpr=0.1, multiple=1.5)
    looks = make_looks(grid=grid, fnr=0.05, fpr=0.1, slope=slope, early=(0.5,), early_share=0.6)
    noise = SeededNoise(12)
    pairs = [
        Neighbours(
            description=f"distances {distance} and {distance + 1}",
            first=release_looks(looks, distance, noise=noise, has_own_words=has_own_words),
            second=release_looks(looks, distance + 1, noise=noise, has_own_words=has_own_words),
        )
        for distance in range(-22, 10, 2)
    ]
    report = audit_subject("looks", pairs, samples=50_000)
    assert report.is_flagged != has_own_words
