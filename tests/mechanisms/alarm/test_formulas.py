"""A formula of alarms that have rung keeps its rates where values never fall, in fractions."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from mechanisms.alarm.calibration import calibrate_alarm
from tests.effort import rounds
from tests.mechanisms.alarm.law_by_hand import calibrated, rung_by_hand, totals_by_hand

FNR, FPR, TOLERANCE, LOOKS = 0.06, 0.09, 2, 3
Formula = Callable[[bool, bool, bool], bool]
# with the literals' shares of either rate: sums over what makes a formula true, and over what makes it false
FORMULAS: dict[str, tuple[Formula, tuple[float, float, float], tuple[float, float, float]]] = {
    "a and b": (lambda a, b, c: a and b, (0.03, 0.03, 0.5), (0.09, 0.09, 0.5)),
    "a or b": (lambda a, b, c: a or b, (0.06, 0.06, 0.5), (0.045, 0.045, 0.5)),
    "a and (b or c)": (lambda a, b, c: a and (b or c), (0.03, 0.03, 0.03), (0.09, 0.045, 0.045)),
    "two of three": (lambda a, b, c: a + b + c >= 2, (0.03, 0.03, 0.03), (0.045, 0.045, 0.045)),
}
# values that never fall, below, in and above the band
RISING = list(combinations_with_replacement((-TOLERANCE - 1, -TOLERANCE, 0, 1), LOOKS))


def chance_held(formula: Formula, rung: tuple[Fraction, ...]) -> Fraction:
    """That the formula holds of three alarms that have rung with these chances, independently."""
    total = Fraction(0)
    for outcome in product((False, True), repeat=3):
        if formula(*outcome):
            part = Fraction(1)
            for chance, rings in zip(rung, outcome, strict=True):
                part *= chance if rings else 1 - chance
            total += part
    return total


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_of_alarms_keeps_both_rates(name: str) -> None:
    """Of 8,000 triples of streams, at quick every 23rd: at each look that is true, and over windows that stay false."""
    formula, fnr, fpr = FORMULAS[name]
    task = calibrated(looks=LOOKS, tolerance=TOLERANCE).task
    alarms = [calibrate_alarm(replace(task, fnr=one, fpr=other)) for one, other in zip(fnr, fpr, strict=True)]
    chances = [{values: rung_by_hand(alarm, totals_by_hand(alarm, values)) for values in RISING} for alarm in alarms]
    least, most = Fraction(1), Fraction(0)
    for streams in list(product(RISING, repeat=3))[:: rounds(1, quick=23)]:
        for look in range(LOOKS):
            rung = [chance[values][look] for chance, values in zip(chances, streams, strict=True)]
            held = chance_held(formula, (rung[0], rung[1], rung[2]))
            if formula(*(values[look] > 0 for values in streams)):
                least = min(least, held)
            if not formula(*(values[-1] > -TOLERANCE for values in streams)):
                most = max(most, held)
    assert 1 - Fraction(FNR) <= least < 1
    assert 0 < most <= Fraction(FPR)
