"""No outcome of a window is more than `exp(loss)` times as probable with a privacy unit as without: in fractions.

All streams of three looks on a small grid, and drawn ones of any size, among them values far above the cut, where
the chances are tiny and have to keep the bound all the same. The law is that of `law_by_hand`; what is
computed here with floats is only how close to the bound the closest outcome comes.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.alarm.calibration import AlarmCalibration
from mechanisms.alarm.run import compute_chances_by_look
from mechanisms.alarm.shapes import Regime
from tests.effort import cases, examples
from tests.mechanisms.alarm.law_by_hand import (
    calibrated,
    outcomes_by_hand,
    outcomes_of_totals,
    rung_by_hand,
    weight_by_hand,
    within,
)

Stream = Sequence[int]
GRID = range(-3, 4)
RISING = ((0, 0, 1), (0, 1, 1), (1, 1, 1))
EITHER = tuple(product((0, 1), repeat=3))
SIGNED = tuple(product((-1, 0, 1), repeat=3))


def moved(values: Stream, change: Stream) -> list[int]:
    return [value + by for value, by in zip(values, change, strict=True)]


def loss_between(ours: Iterable[Fraction], theirs: Iterable[Fraction], loss: Fraction) -> tuple[float, float]:
    """The logarithms of the least and of the greatest quotient, which are certainly within the loss."""
    found = []
    for mine, other in zip(ours, theirs, strict=True):
        assert within(mine, other, loss)
        assert within(other, mine, loss)
        found.append(math.log(mine / other) if mine != other else 0.0)
    return min(found), max(found)


def streams(*, quick: int) -> list[tuple[int, ...]]:
    return cases(GRID, GRID, GRID, quick=quick)


def worst(calibration: AlarmCalibration, changes: Iterable[Stream], *, quick: int) -> float:
    return max(
        max(-low, high)
        for values in streams(quick=quick)
        for change in changes
        for low, high in [
            loss_between(
                outcomes_by_hand(calibration, moved(values, change)),
                outcomes_by_hand(calibration, values),
                calibration.loss,
            )
        ]
    )


def test_growing_values_lose_the_rate_and_no_more() -> None:
    made = calibrated()
    found = worst(made, RISING, quick=60)
    assert math.isclose(found, 2.50531764704813, rel_tol=1e-12)
    assert math.isclose(float(made.loss), 2.50531764704813, rel_tol=1e-12)


def test_values_that_come_and_go_lose_twice_the_rate_at_most() -> None:
    made = calibrated(Regime.COMING_AND_GOING)
    assert 0.5 * float(made.loss) < worst(made, EITHER, quick=30) <= float(made.loss)


def test_values_of_either_sign_lose_three_times_the_rate_at_most() -> None:
    made = calibrated(Regime.SIGNED)
    assert 0.5 * float(made.loss) < worst(made, SIGNED, quick=10) <= float(made.loss)


@pytest.mark.parametrize("tolerance", [1, 6])
def test_an_event_in_two_epochs_of_a_sliding_window_loses_twice_the_rate_at_most(tolerance: int) -> None:
    """It is in the last `late` looks of the one and in the first of the other; the epochs' draws are independent."""
    made = calibrated(Regime.SLIDING, tolerance=tolerance)
    closest = 0.0
    for late in range(4):
        ends = []
        for change in ((0,) * (3 - late) + (1,) * late, (1,) * (3 - late) + (0,) * late):
            found = [
                loss_between(outcomes_by_hand(made, moved(values, change)), outcomes_by_hand(made, values), made.loss)
                for values in streams(quick=12)
            ]
            ends.append((min(low for low, _ in found), max(high for _, high in found)))
        closest = max(closest, -sum(low for low, _ in ends), sum(high for _, high in ends))
    assert 0.4 * float(made.loss) < closest <= float(made.loss) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("regime", "values", "change"),
    [
        (Regime.COMING_AND_GOING, [-60, -15], [0, 1]),
        (Regime.COMING_AND_GOING, [60, 30], [1, 0]),
        (Regime.SIGNED, [60, 40], [1, -1]),
    ],
    ids=["nothing before", "far above, and then less", "up and down"],
)
def test_each_bound_is_nearly_reached(regime: Regime, values: Stream, change: Stream) -> None:
    """So no regime could be charged less: in each a window of two looks loses all but a few thousandths."""
    made = calibrated(regime, looks=2, tolerance=9)
    low, high = loss_between(outcomes_by_hand(made, moved(values, change)), outcomes_by_hand(made, values), made.loss)
    assert max(-low, high) > 0.995 * float(made.loss)


def test_charging_growing_values_for_values_that_fall_would_be_wrong() -> None:
    """What a unit adds falls back to nothing, without counting the highest value so far: nearly twice the rate."""
    made = calibrated(looks=2, tolerance=9)
    totals = [
        [weight_by_hand(made.rate, value - made.lowest_value) for value in values] for values in ([61, 30], [60, 30])
    ]
    ours, theirs = (outcomes_of_totals(made, [one, one + two]) for one, two in totals)
    assert math.log(theirs[1] / ours[1]) > 1.99 * float(made.loss)
    # with it, a broken promise costs what coming and going costs
    kept = [outcomes_by_hand(made, values) for values in ([61, 30, 61], [60, 30, 61])]
    loss_between(kept[0], kept[1], 2 * made.loss)


def test_weights_that_stop_growing_would_be_wrong() -> None:
    """Values from some point on all weigh the same: then a unit lifts early looks and not late ones."""
    made = calibrated(looks=40, tolerance=9)
    most = 60

    def outcomes(values: Stream) -> list[Fraction]:
        totals, total = [], 0
        for value in values:
            total += weight_by_hand(made.rate, min(value, most) - made.lowest_value)
            totals.append(total)
        return outcomes_of_totals(made, totals)

    values = [most - 1] * 39 + [most]
    ours, theirs = outcomes([value + 1 for value in values]), outcomes(values)
    assert math.log(theirs[39] / ours[39]) > 1.9 * float(made.loss)
    loss_between(outcomes_by_hand(made, [value + 1 for value in values]), outcomes_by_hand(made, values), made.loss)


@given(
    st.sampled_from(list(Regime)),
    st.integers(0, 12),
    st.integers(1, 5),
    st.lists(st.integers(-60, 400), min_size=1, max_size=6),
    st.data(),
)
@examples(400, quick=25)
def test_drawn_streams_keep_the_bound(
    regime: Regime, tolerance: int, sensitivity: int, values: list[int], data: st.DataObject
) -> None:
    """Also values hundreds above the cut, where an outcome has a chance of 1e-100, and changes of several units. A
    sliding window's events are in one epoch, so that one epoch's loss is at most the whole one."""
    made = calibrated(regime, looks=len(values), tolerance=tolerance, sensitivity=sensitivity, least=-60 - sensitivity)
    low = -sensitivity if regime is Regime.SIGNED else 0
    change = data.draw(st.lists(st.integers(low, sensitivity), min_size=len(values), max_size=len(values)))
    if regime is Regime.GROWING:
        change = sorted(change)
    if regime is Regime.SLIDING:
        change = [max(change) if first else 0 for first in (by > 0 for by in sorted(change, reverse=True))]
    loss_between(outcomes_by_hand(made, moved(values, change)), outcomes_by_hand(made, values), made.loss)


@pytest.mark.parametrize("regime", Regime)
def test_what_runs_has_this_law(regime: Regime) -> None:
    made = calibrated(regime)
    for values in streams(quick=20):
        totals_of = compute_chances_by_look(made, values)
        by_hand = outcomes_by_hand(made, values)
        assert math.isclose(1 - totals_of[-1], by_hand[-1], abs_tol=1e-15)
        assert math.isclose(totals_of[0], by_hand[0], abs_tol=1e-15)
        assert math.isclose(totals_of[2] - totals_of[1], by_hand[2], abs_tol=1e-15)


def test_a_total_that_is_computed_anew_would_be_wrong() -> None:
    """A row that comes late changes what earlier looks would have seen. Only rows known at a look may count for it."""
    looks, value = 24, -5
    made = calibrated(tolerance=9, looks=looks)
    plain, with_it = (weight_by_hand(made.rate, value + by - made.lowest_value) for by in (0, 1))
    as_of_its_look = [plain * look for look in range(1, looks)] + [plain * (looks - 1) + with_it]
    anew = [plain * look for look in range(1, looks)] + [with_it * looks]
    never = [plain * look for look in range(1, looks + 1)]
    kept, broken, theirs = (outcomes_of_totals(made, totals) for totals in (as_of_its_look, anew, never))
    assert all(within(*pair, made.loss) for pair in zip(kept, theirs, strict=True))
    assert math.log(broken[-2] / theirs[-2]) > 3.5 * float(made.loss)


def test_one_draw_for_two_thresholds_would_be_wrong() -> None:
    """Two alarms on one functional with one number: outcomes of both together lose far more than two alarms do, and
    some are possible on one side only."""
    made = calibrated(tolerance=9, looks=2)
    other = made.threshold_step * weight_by_hand(made.rate, 3) // 2**127  # a threshold three higher

    def outcomes(values: Stream) -> dict[tuple[int, int], Fraction]:
        totals = [weight_by_hand(made.rate, values[0] - made.lowest_value)]
        totals.append(totals[0] + weight_by_hand(made.rate, values[1] - made.lowest_value))
        rung = [
            *rung_by_hand(made, totals),
            *rung_by_hand(made, [total * made.threshold_step // other for total in totals]),
        ]
        ends = sorted({Fraction(0), *rung, Fraction(1)})
        found: dict[tuple[int, int], Fraction] = {}
        for low, high in pairwise(ends):
            first, second = (sum(low >= one for one in rung[at : at + 2]) for at in (0, 2))
            found[first, second] = found.get((first, second), Fraction(0)) + high - low
        return found

    # the higher threshold is reached at the second look where the lower one was at the first, or it is not
    ours, theirs = outcomes([0, 3]), outcomes([0, 2])
    both = {outcome: (ours.get(outcome, 0), theirs.get(outcome, 0)) for outcome in ours.keys() | theirs.keys()}
    losses = [abs(math.log(mine / other)) if mine and other else math.inf for mine, other in both.values()]
    assert max(losses) > 2 * float(made.loss)
