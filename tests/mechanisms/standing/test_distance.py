"""Formulas watched by their distance: what they cost, that the distance says what the formula does, and what stays."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.alarm.calibration import AlarmCalibration, price_alarm
from mechanisms.alarm.shapes import Regime
from mechanisms.alarm.weights import compute_weight
from mechanisms.formula import (
    FALSE,
    TRUE,
    AllOf,
    AnyOf,
    Cut,
    Formula,
    Integers,
    evaluate_formula,
    list_literals,
    relax_formula,
)
from mechanisms.protocol import Exposure, Unachievable
from mechanisms.published.sparse_vector import compute_signed_distance
from mechanisms.standing.alarms import StandingAlarms, calibrate_standing_alarms
from mechanisms.standing.distance import (
    StandingDistance,
    calibrate_cheapest_early,
    calibrate_distance,
    find_distance_regime,
    list_early_mechanisms,
)
from mechanisms.standing.standing_protocol import Standing
from mechanisms.standing.standing_task import StandingTask
from mechanisms.threshold.joint_loss import expose_all_functionals
from tests.in_turn import in_turn
from tests.seeded_noise import SeededNoise

GROWING, COMING, SIGNED = Regime.GROWING, Regime.COMING_AND_GOING, Regime.SIGNED


def above(functional: int, cut: int = 400, tolerance: int = 39) -> Cut:
    return Cut(functional, cut, above=True, tolerance=tolerance)


def below(functional: int, cut: int = 600, tolerance: int = 39) -> Cut:
    return Cut(functional, cut, above=False, tolerance=tolerance)


BETWEEN, BOTH = AllOf((above(0), below(0))), AllOf((above(0), above(1)))


def watched(
    formula: Formula,
    *,
    regimes: tuple[Regime, Regime] = (GROWING, GROWING),
    sensitivities: tuple[int, int] = (1, 1),
    looks: int = 24,
    progressive: bool = False,
) -> StandingTask:
    return StandingTask(
        formula=formula,
        sensitivities=sensitivities,
        exposures=expose_all_functionals(2),
        regimes=regimes,
        least_values=(0, 0),
        looks=looks,
        fnr=0.05,
        fpr=0.1,
        progressive=progressive,
        monotone=False,
    )


PRICES = [
    (below(0), GROWING, GROWING),
    (below(0), COMING, COMING),
    (above(0), SIGNED, SIGNED),
    (AnyOf((AllOf((below(1),)),)), GROWING, GROWING),
    (BETWEEN, GROWING, SIGNED),
    (AnyOf((above(0), below(1))), GROWING, SIGNED),
    (BOTH, GROWING, COMING),
    (BOTH, COMING, COMING),
    (AnyOf((below(0), below(1))), COMING, COMING),
    (BOTH, SIGNED, SIGNED),
]


@in_turn(("formula", "values", "regime"), PRICES)
def test_one_alarm_is_paid_for_however_many_thresholds_there_are(
    formula: Formula, values: Regime, regime: Regime
) -> None:
    task = watched(formula, regimes=(values, values))
    found = calibrate_distance(task)
    assert found.distance_regime is find_distance_regime(task) is regime
    price = price_alarm(looks=24, fnr=0.05, fpr=0.1, regime=regime)
    assert found.worst_case_epsilon * 40 == pytest.approx(price, rel=1e-12)
    assert found.fnr <= 0.05
    assert 0.1 * (1 - 1e-9) < found.fpr <= 0.1


def test_the_worst_ratio_of_a_change_to_a_tolerance_is_paid_for() -> None:
    """Values of other units cost what the dearer threshold does by itself, but for whole-number weights."""
    mixed = AllOf((above(0, tolerance=39), above(1, 20_000, 1999)))
    found = calibrate_distance(watched(mixed, regimes=(SIGNED, SIGNED), sensitivities=(1, 25)))
    alone = calibrate_distance(watched(above(0), regimes=(SIGNED, SIGNED)))
    assert alone.worst_case_epsilon <= found.worst_case_epsilon < 1.03 * alone.worst_case_epsilon


def literals(most: int = 6) -> st.SearchStrategy[Formula]:
    return st.builds(Cut, st.integers(0, 1), st.integers(-most, most), above=st.booleans(), tolerance=st.integers(0, 4))


formulas = st.recursive(
    literals(),
    lambda inner: st.builds(
        lambda join, children: join(tuple(children)),
        st.sampled_from([AllOf, AnyOf]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
numbers = st.lists(st.integers(-14, 14), min_size=2, max_size=2)
regimes_of_two = st.tuples(*[st.sampled_from([GROWING, COMING, SIGNED])] * 2)


def seen_by_alarm(found: StandingDistance, values: Integers) -> Integers:
    """What the alarm is shown, by an alarm that is told of it."""
    told: list[Integers] = []

    class Telling(type(found.alarm)):  # type: ignore[misc]
        __slots__ = ()

        def take_look(self, state: bytes, seen: Integers, **others: object) -> object:
            told.append(seen[0])
            return super().take_look(state, seen, **others)

    inner = found.alarm
    telling = Telling(**{name: getattr(inner, name) for name in type(inner).__slots__})
    noise = SeededNoise(1)
    replace(found, alarm=telling).take_look(
        inner.draw_state(keys=values.shape[1], noise=noise), values, look=1, noise=noise
    )
    return told[0]


@given(formulas, st.tuples(st.integers(1, 5), st.integers(1, 5)), regimes_of_two, numbers, st.data())
def test_the_distance_is_the_formula_and_moves_as_its_regime_says(
    formula: Formula,
    sensitivities: tuple[int, int],
    regimes: tuple[Regime, Regime],
    values: list[int],
    data: st.DataObject,
) -> None:
    """Above the alarm's cut where the formula is true and nowhere else, below its lowered cut where the relaxed one is
    false, and with one unit no further than the sensitivity, in one direction unless the regime is signed."""
    found = calibrate_distance(watched(formula, regimes=regimes, sensitivities=sensitivities, looks=1))
    task = found.alarm.ladders[0].task
    changes = [
        data.draw(st.integers(-most if regime is SIGNED else 0, most))
        for regime, most in zip(regimes, sensitivities, strict=True)
    ]
    exact = np.array([values, np.add(values, changes)], dtype=np.int64).T
    before, after = seen_by_alarm(found, exact).tolist()
    truth = evaluate_formula(formula, lambda one: one.evaluate(exact[one.functional]), keys=2)
    relaxed = evaluate_formula(relax_formula(formula), lambda one: one.evaluate(exact[one.functional]), keys=2)
    assert (before > task.cut) == truth[0]
    assert relaxed[0] or before <= task.cut - task.tolerance
    assert abs(after - before) <= task.sensitivity
    if found.distance_regime is not SIGNED:
        upwards = next(list_literals(formula)).above
        assert (after >= before) if upwards else (after <= before)


def outcome_chances(alarm: AlarmCalibration, distances: list[int]) -> list[Fraction]:
    """The chance to ring at each look, and never, to 400 binary digits; no value is the highest so far but itself."""
    total, chances = 0, [0]
    for distance in distances:
        total += compute_weight(alarm.rate, max(0, distance - alarm.lowest_value))
        chances.append(alarm.task.regime.draw_shape.compute_chance(total, alarm.threshold_step, bits=400))
    return [Fraction(late - early, 1 << 400) for early, late in zip(chances, [*chances[1:], 1 << 400], strict=True)]


@pytest.mark.parametrize(
    ("formula", "regime"),
    [(AllOf((above(0, 0, 3), below(1, 0, 3))), SIGNED), (AllOf((above(0, 0, 3), above(1, 0, 3))), COMING)],
)
def test_no_outcome_of_growing_values_changes_by_more_than_the_loss(formula: Formula, regime: Regime) -> None:
    """Two looks, all pairs of growing values around the cuts, a unit that comes at the first or at the second look."""
    found = calibrate_distance(watched(formula, looks=2))
    assert found.distance_regime is regime
    alarm = found.alarm.ladders[0].rungs[0]
    grows = [(early, late) for early, late in product((-9, -4, -2, 0, 2), repeat=2) if early <= late]
    units = [(0, 1), (1, 1), (0, 0)]
    worst = 0.0
    for first, second in product(grows, repeat=2):
        values = np.array([first, second], dtype=np.int64)
        for one, other in product(units, repeat=2):
            more = values + np.array([one, other], dtype=np.int64)
            here, there = (
                outcome_chances(
                    alarm, compute_signed_distance(formula, seen, weights=found.functional_weights).tolist()
                )
                for seen in (values, more)
            )
            ratios = [abs(np.log(float(p / q))) for p, q in zip(here, there, strict=True)]
            worst = max(worst, *ratios)
    assert 0.5 * found.worst_case_epsilon < worst <= found.worst_case_epsilon * (1 + 1e-12)


@pytest.mark.parametrize("regime", [GROWING, COMING, SIGNED])
def test_a_threshold_by_itself_is_its_alarm_and_below_it_the_mirrored_one(regime: Regime) -> None:
    """The same loss, and with the same secret digits the same looks."""
    task = watched(above(0), regimes=(regime, regime))
    plain, up = calibrate_standing_alarms(replace(task, monotone=True)), calibrate_distance(task)
    down = calibrate_distance(replace(task, formula=below(0, -401)))
    assert plain.worst_case_epsilon == up.worst_case_epsilon == down.worst_case_epsilon
    three: tuple[Standing, ...] = (plain, up, down)
    states = [one.draw_state(keys=60, noise=SeededNoise(1)) for one in three]
    for look in (1, 5, 18, 24):
        values = np.tile(np.arange(60, dtype=np.int64) * look // 2, (2, 1))
        seen = [
            one.take_look(state, values * sign, look=look, noise=SeededNoise(2))
            for one, state, sign in zip(three, states, (1, 1, -1), strict=True)
        ]
        states = [one.state for one in seen]
        assert seen[0].alerted.tolist() == seen[1].alerted.tolist() == seen[2].alerted.tolist()
    assert 0 < seen[0].alerted.sum() < 60


@pytest.mark.parametrize("progressive", [False, True])
def test_an_alert_stays_where_the_formula_is_false_again(progressive: bool) -> None:
    """A count that passes through its band, one that stays below it, and one that is beyond it at once."""
    found = calibrate_distance(watched(BETWEEN, progressive=progressive))
    noise = SeededNoise(11)
    state = found.draw_state(keys=3, noise=noise)
    assert found.compute_spent_losses(state).tolist() == [0.0] * 3
    came = []
    for look, passing in enumerate((0, 500, 5000), 1):
        values = np.array([[passing, 0, 5000]] * 2, dtype=np.int64)
        looked = found.take_look(state, values, look=look, noise=noise)
        state = looked.state
        came.append(looked.alerted.tolist())
    assert came == [[False] * 3, [True, False, False], [True, False, False]]
    spent = found.compute_spent_losses(state)
    assert np.all(spent <= found.worst_case_epsilon)
    assert bool(spent[1] < found.worst_case_epsilon) is progressive


def test_a_look_that_is_repeated_on_the_same_state_is_the_same_look() -> None:
    found = calibrate_distance(watched(BETWEEN))
    drawn = found.draw_state(keys=50, noise=SeededNoise(5))
    values = np.tile(np.arange(370, 420, dtype=np.int64), (2, 1))
    first, again = (found.take_look(drawn, values, look=3, noise=SeededNoise(seed)) for seed in (1, 2))
    assert first.state == again.state
    assert 0 < first.alerted.sum() < 50


def test_a_state_belongs_to_one_formula() -> None:
    """Two bands are as wide and as dear: the alarms on their distances are the same."""
    one, other = (calibrate_distance(watched(AllOf((above(0, cut), below(0, 2 * cut))))) for cut in (400, 500))
    assert one.alarm.ladders == other.alarm.ladders
    with pytest.raises(ValueError, match="not the states"):
        other.compute_spent_losses(one.draw_state(keys=3, noise=SeededNoise(1)))


def test_values_of_others_are_refused() -> None:
    found = calibrate_distance(watched(BETWEEN))
    state = found.draw_state(keys=3, noise=SeededNoise(1))
    for shape in ((1, 3), (2, 2), (3, 3)):
        with pytest.raises(ValueError, match="functional"):
            found.take_look(state, np.zeros(shape, dtype=np.int64), look=1, noise=SeededNoise(1))


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (watched(TRUE), "no distance"),
        (watched(FALSE), "no distance"),
        (watched(BETWEEN, regimes=(Regime.SLIDING, GROWING)), "do not slide"),
        (replace(watched(BETWEEN), fnr=0.5, fpr=0.5), "promise nothing"),
    ],
)
def test_what_has_no_distance_to_watch_is_refused(task: StandingTask, said: str) -> None:
    with pytest.raises(Unachievable, match=said):
        calibrate_cheapest_early(task)


def test_a_tolerance_out_of_reach_names_no_functional() -> None:
    with pytest.raises(Unachievable) as refused:
        calibrate_distance(replace(watched(AllOf((above(0), below(1, 9, 0)))), fnr=1e-200, fpr=1e-200))
    assert refused.value.functional is None


def test_a_task_says_which_of_both_it_is() -> None:
    assert isinstance(calibrate_cheapest_early(watched(BOTH)), StandingDistance)
    one = replace(watched(above(0)), monotone=True)
    assert list_early_mechanisms(one) == (calibrate_standing_alarms(one),)


DISJOINT = ((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))


@pytest.mark.parametrize(
    ("formula", "exposures", "taken", "prices"),
    [
        (BOTH, expose_all_functionals(2), StandingDistance, (12.741, 15.566)),
        (AnyOf(BOTH.children), expose_all_functionals(2), StandingDistance, (12.741, 15.566)),
        (BOTH, DISJOINT, StandingAlarms, (7.783, 12.741)),
        (AllOf((above(0), above(0, 500))), expose_all_functionals(2), StandingDistance, (12.741, 15.566)),
        (AllOf((above(0), above(1, tolerance=3999))), expose_all_functionals(2), StandingAlarms, (7.217, 12.741)),
    ],
)
def test_of_both_ways_of_watching_what_stays_true_the_cheaper_is_taken(
    formula: Formula, exposures: tuple[Exposure, ...], taken: type[Standing], prices: tuple[float, float]
) -> None:
    """Where one unit moves both values one alarm on the whole is; where it moves either, or one hardly costs, it is
    not. Both keep the same contract."""
    task = replace(watched(formula), monotone=True, exposures=exposures)
    found = list_early_mechanisms(task)
    assert isinstance(found[0], taken)
    assert calibrate_cheapest_early(task) == found[0]
    assert [one.worst_case_epsilon * 40 for one in found] == pytest.approx(prices, abs=0.001)
    assert all(one.fnr <= task.fnr and one.fpr <= task.fpr for one in found)


def test_where_one_way_cannot_keep_the_contract_the_other_is_taken() -> None:
    """Twelve thresholds have a twelfth of the rates each, beyond what an alarm can keep; the whole has all of them."""
    formula = AllOf(tuple(above(0, 400 + place, tolerance=0) for place in range(12)))
    task = replace(watched(formula), monotone=True, fnr=1e-15, fpr=1e-15)
    with pytest.raises(Unachievable):
        calibrate_standing_alarms(task)
    (found,) = list_early_mechanisms(task)
    assert isinstance(found, StandingDistance)
    with pytest.raises(Unachievable):
        list_early_mechanisms(replace(task, fnr=1e-200, fpr=1e-200))
