"""The law of two noises, one of them multiplied, against sums over all values of the second."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.noise import discrete_laplace
from mechanisms.noise.weighted_sum import compute_lower_tail, compute_upper_tail
from tests.effort import examples


def summed(rate: float, value: int, times: int, beside: float) -> float:
    """The same tail, value by value; what is left out weighs e^-90."""
    most = int(90 / beside) + 2
    return math.fsum(
        discrete_laplace.compute_mass(beside, other) * discrete_laplace.compute_upper_tail(rate, value - times * other)
        for other in range(-most, most + 1)
    )


@examples(200)
@given(
    rate=st.floats(0.02, 4.0),
    beside=st.floats(0.02, 4.0),
    times=st.integers(-40, 40),
    value=st.integers(-300, 600),
)
def test_a_tail_is_the_sum_over_the_other_noise(rate: float, beside: float, times: int, value: int) -> None:
    found = compute_upper_tail(rate, value, times=times, beside=beside)
    assert found == pytest.approx(summed(rate, value, times, beside), rel=1e-11, abs=1e-36)
    assert compute_lower_tail(rate, -value, times=times, beside=beside) == found


@pytest.mark.parametrize(("rate", "times"), [(0.25, 4), (0.125, 8), (1.0, 1), (0.5, -2)])
def test_noises_of_one_width_are_no_special_case(rate: float, times: int) -> None:
    """Where `times * rate` is the other rate, to the last digit and next to it, a quotient is 0 / 0."""
    for value in (1, 7, 40):
        exact = summed(rate, value, times, abs(times) * rate)
        for nudge in (1.0, 1.0 + 1e-15, 1.0 - 1e-12):
            assert compute_upper_tail(rate, value, times=times, beside=abs(times) * rate * nudge) == pytest.approx(
                exact, rel=1e-9
            )
