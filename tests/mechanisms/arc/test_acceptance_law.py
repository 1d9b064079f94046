"""The acceptance law against its formula, and the speeds and cut-offs that are known beforehand."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.arc.acceptance_law import AcceptanceLaw, compute_laplace_slope, find_speed
from tests.effort import examples

SCALE = 1 << 64
SHARES = st.floats(1e-9, 0.45)


def spelled(law: AcceptanceLaw, x: float) -> float:
    """The law as it is written down: a squared sine, and an exponential whose slope of the logarithm goes on."""
    zero = -math.pi / (2 * law.speed)
    begins = (2 / law.speed) * math.atan(law.speed / law.slope)
    if x > 0:
        return 1 - spelled(law, -x)
    if x >= zero + begins:
        return math.sin(law.speed * (x - zero) / 2) ** 2
    return math.sin(law.speed * begins / 2) ** 2 * math.exp(-law.slope * (zero + begins - x))


@given(speed=st.floats(0.001, 0.5), over=st.floats(1.05, 8.0), start=st.fractions(-200, 100, max_denominator=7))
def test_the_table_is_the_law(speed: float, over: float, start: Fraction) -> None:
    law = AcceptanceLaw(speed=speed, slope=over * speed)
    found = law.tabulate(start, 120, scale=SCALE)
    for place, value in enumerate(found):
        assert value / SCALE == pytest.approx(spelled(law, float(start + place)), rel=1e-10, abs=1e-17)
    assert found == sorted(found)


@given(fnr=SHARES, fpr=SHARES, over=st.floats(1.1, 4.0))
@examples(200)
def test_the_law_rises_from_one_rate_to_the_other_within_one(fnr: float, fpr: float, over: float) -> None:
    slope = over * compute_laplace_slope(fnr=fnr, fpr=fpr)
    law = AcceptanceLaw(speed=find_speed(fnr=fnr, fpr=fpr, slope=slope).speed, slope=slope)
    start = law.find_position(fpr)
    assert spelled(law, start) == pytest.approx(fpr, rel=1e-9)
    assert spelled(law, -(start + 1)) == pytest.approx(fnr, rel=1e-9)


@given(speed=st.floats(0.01, 0.3), over=st.floats(1.05, 5.0))
def test_no_logarithm_changes_by_more_than_the_slope(speed: float, over: float) -> None:
    law = AcceptanceLaw(speed=speed, slope=over * speed)
    steps = [spelled(law, 0.05 * place) for place in range(-400, 401)]
    for before, after in pairwise(steps):
        assert math.log(after / before) <= 0.05 * law.slope * (1 + 1e-9)


def test_speeds_and_cut_offs_known_beforehand() -> None:
    """With tolerances of a hundred units, rates .05 and .1 of which the last look has 92 %, and 1.5 Laplace slopes."""
    slope = 1.5 * compute_laplace_slope(fnr=0.05, fpr=0.1) / 100
    last = AcceptanceLaw(speed=find_speed(fnr=0.046, fpr=0.092, slope=100 * slope).speed / 100, slope=slope)
    assert last.slope == pytest.approx(0.058680345, abs=5e-10)
    assert last.speed == pytest.approx(0.021820024, abs=5e-10)
    for part, accepting, rejecting in ((0.1, 875.27, -1093.40), (0.3, 225.09, -364.47)):
        look = last.stretch(part)
        assert -100 - look.find_position(0.004) == pytest.approx(accepting, abs=0.005)
        assert look.find_position(0.002) == pytest.approx(rejecting, abs=0.005)


def test_without_feet_the_speed_is_the_angle_between_the_rates() -> None:
    """Twice the difference of the arcs: 2.047 for .05 and .1, where Laplace noise needs 3.912."""
    assert find_speed(fnr=0.05, fpr=0.1, slope=1e3).speed == pytest.approx(2.047, abs=0.0005)
    feet = find_speed(fnr=0.001, fpr=0.001, slope=1.5 * compute_laplace_slope(fnr=0.001, fpr=0.001))
    assert feet.speed == pytest.approx(3.87, abs=0.005)


@given(fnr=st.floats(1e-6, 0.6), fpr=st.floats(1e-6, 0.35), over=st.floats(1.1, 4.0))
@examples(200)
def test_derivatives_of_the_speed(fnr: float, fpr: float, over: float) -> None:
    """Against differences: by the logarithms of both rates, and by the slope."""
    slope = over * compute_laplace_slope(fnr=fnr, fpr=fpr)
    found = find_speed(fnr=fnr, fpr=fpr, slope=slope)
    by = 1e-5
    for derivative, low, high in (
        (found.by_fnr, (fnr * math.exp(-by), fpr, slope), (fnr * math.exp(by), fpr, slope)),
        (found.by_fpr, (fnr, fpr * math.exp(-by), slope), (fnr, fpr * math.exp(by), slope)),
        (found.by_slope, (fnr, fpr, slope - by), (fnr, fpr, slope + by)),
    ):
        before, after = (find_speed(fnr=one[0], fpr=one[1], slope=one[2]).speed for one in (low, high))
        assert derivative == pytest.approx((after - before) / (2 * by), rel=1e-3, abs=1e-6)
