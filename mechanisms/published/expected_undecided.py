"""The number of keys that DPPWLM expects to be undecided after a further look, in closed form.

As published (equation 5.9), the next noisy value is the last one plus two independent Laplace variables, of the last
level (for the true value) and of the next one. With rates `a != b` their sum has the density `a b / (2 (a^2 - b^2)) *
(a exp(-b |t|) - b exp(-a |t|))`, hence for `t >= 0` and `a >= b` the upper tail

    P(X + Y > t) = exp(-b t) / 2 * (1 + b^2 / (a + b) * (1 - exp(-(a - b) t)) / (a - b)),

with the limit `exp(-a t) (2 + a t) / 4` for equal rates.

What is printed but does not hold: A.4's density has lost its rates from the exponents. And the model is not that of
the mechanism: with gradual release the last noisy value is the next one plus an increment that is zero with positive
probability, so given the last value the next one scatters less than two independent variables would. The estimate
only guides the choice of a level; no promise rests on it.

References: MIDE equation 5.9 and appendix A.1.2, equations A.4 and A.5.
"""

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


def expect_undecided(distances: Values, *, shift: float, previous_rate: float, next_rate: float) -> float:
    """Return the expected number of keys whose next noisy value is less than `shift` away from the threshold.

    Parameters as for `compute_undecided_chances`.
    """
    chances = compute_undecided_chances(distances, shift=shift, previous_rate=previous_rate, next_rate=next_rate)
    return float(chances.sum())


def compute_undecided_chances(
    distances: Values, *, shift: float | Values, previous_rate: float, next_rate: float | Values
) -> Values:
    """Return `P(z + X + Y in [-shift, shift])` per key, for independent Laplace X, Y of the two rates.

    Parameters:
        distances: the last noisy value less the threshold, `z`, shape (keys,).
        shift: half the width of the undecided zone at the next look, >= 0; for several next looks, shape (looks, 1).
        previous_rate, next_rate: > 0, per unit of the functional; the next rate of `shift`'s shape.
    """
    size = np.abs(distances)
    edges = np.stack((shift - size, shift + size))
    above, below = compute_tail_of_sum(edges, first_rate=previous_rate, second_rate=next_rate)
    return np.asarray(np.clip(1.0 - above - below, 0.0, 1.0))


def compute_tail_of_sum(bound: Values, *, first_rate: float, second_rate: float | Values) -> Values:
    """Return `P(X + Y > bound)` for independent Laplace variables of the two rates."""
    high, low = np.maximum(first_rate, second_rate), np.minimum(first_rate, second_rate)
    size = np.abs(bound)
    gap = (high - low) * size
    mean = np.where(gap > 0.0, -np.expm1(-gap) / np.where(gap > 0.0, gap, 1.0), 1.0)
    tail = 0.5 * np.exp(-low * size) * (1.0 + low * low / (high + low) * size * mean)
    return np.asarray(np.where(bound >= 0.0, tail, 1.0 - tail))
