"""Rényi divergences of discrete Laplace noise: the loss of one privacy unit through many noisy values at once.

Guarantee: `compute_curve` of a calibration bounds, at every order of `ORDERS`, the Rényi divergence in either direction
between everything that a question reveals of one key with and without one unit, when each value is drawn once, at its
finest rate; divergences of keys and of questions chosen in turn add up, and `convert_to_epsilon` makes an (epsilon,
delta) bound of their sum. Proof: docs/proofs/renyi.md.

| here | in the proof |
|---|---|
| rate | r |
| moved | Delta, by how much one unit changes the value |
| order | a |

References: Mironov 2017 (Rényi differential privacy); Canonne, Kamath, Steinke 2020, proposition 12; Feldman and Zrnic
2021, theorem 4.5.
"""

from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from mechanisms.protocol import Calibration
from mechanisms.threshold.joint_loss import list_sum_rates

ORDERS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 40, 80)
"""The public grid of orders, fixed before any question. Those between cost a tenth of epsilon at most; more of them
would take more of delta."""

Curve: TypeAlias = tuple[int, ...]
"""By order, a divergence in 1e-9, rounded up."""

_Parts: TypeAlias = tuple[tuple[Fraction, Fraction], ...]

NO_CURVE: Curve = (0,) * len(ORDERS)

_DIGITS = 60  # of logarithms: the least rates, 4e-15, leave thirty of them
_EXACT = Context(prec=_DIGITS)
_ROUNDED = Decimal("1e-30")  # far more than what is lost to rounding, far less than 1e-9


def compute_divergence(*, rate: Fraction, moved: Fraction, order: int) -> Decimal:
    """Return the Rényi divergence, in nats, between discrete Laplace noise and the same noise shifted by `moved`.

    Guarantee: exact to thirty digits for a whole `moved`, and the convex interpolation for others. Never above `rate *
    moved`.

    Parameters:
        rate: of the noise `P(K = j) ~ exp(-rate |j|)`, per unit of the value; at least that of
            `mechanisms.noise.exact`, or 0 for a value that is not revealed at all.
        moved: the shift of the noise, at least 0.
        order: at least 2.

    The pure loss is one; at order two the divergence is less:

    >>> round(compute_divergence(rate=Fraction(1, 100), moved=Fraction(100), order=2), 4)
    Decimal('0.6191')
    """
    if rate == 0 or moved == 0:
        return Decimal(0)
    with localcontext(_EXACT):
        pure = _convert_to_decimal(rate) * _convert_to_decimal(moved)
        q = (-_convert_to_decimal(rate)).exp()
        between = (-(2 * order - 1) * _convert_to_decimal(rate)).exp()
        front = (1 - q) / (1 + q)
        up = front * (1 / (1 - q) + between / (1 - between))
        down = front * (1 / (1 - q) - 1 / (1 - between))
        # exp((order - 1) * pure) is taken out, so that no exponential is large
        power = (up + down * (-(2 * order - 1) * pure).exp()).ln() + (order - 1) * pure
        return min(max(power / (order - 1), Decimal(0)), pure)


def bound_divergence(*, epsilon: Decimal, order: int) -> Decimal:
    """Return the largest Rényi divergence that a pure loss of `epsilon` allows.

    Randomised response has this divergence.

    >>> round(bound_divergence(epsilon=Decimal(1), order=2), 4)
    Decimal('0.7353')
    """
    if epsilon <= 0:
        return Decimal(0)
    with localcontext(_EXACT):
        low = (-(2 * order - 1) * epsilon).exp()
        power = (1 + low).ln() - (1 + (-epsilon).exp()).ln() + (order - 1) * epsilon
        return min(power / (order - 1), epsilon)


def compute_curve(calibration: Calibration, *, groups: int) -> Curve:
    """Return the loss of one privacy unit at each Rényi order, with all noise drawn at the finest rates.

    Guarantee: for one noisy value per functional (or common sum) and key at the rates of the calibration's tests, with
    all coarser values on its path, and one unit in `groups` keys: `groups` times the pointwise maximum over the
    exposures of the sum of the values' divergences; never more than the pure loss. A calibration's own divergences of
    one key replace that maximum.

    Parameters:
        calibration: of a mechanism that reads one noise path per functional and key, and no other noise, or that brings
            its divergences.
    """
    if calibration.divergences:
        with localcontext(_EXACT):
            return tuple(to_nano(groups * divergence) for divergence in calibration.divergences)
    parts = _list_sum_parts(calibration) if calibration.task.common is not None else _list_test_parts(calibration)
    with localcontext(_EXACT):
        pure = Decimal(calibration.worst_case_epsilon)
        return tuple(
            to_nano(groups * min(pure, max((_sum_divergences(values, order) for values in parts), default=Decimal(0))))
            for order in ORDERS
        )


def _list_test_parts(calibration: Calibration) -> list[_Parts]:
    """Return for each exposure the rates of the tests' noise, with the distances by which a unit moves their values."""
    task, tests = calibration.task, calibration.tests
    return [
        tuple(
            (test.rate, part * sensitivity if test.block == 1 else Fraction(part > 0))
            for part, test, sensitivity in zip(exposure, tests, task.sensitivities, strict=True)
            if test.rate and part
        )
        for exposure in task.exposures
    ]


def _list_sum_parts(calibration: Calibration) -> list[_Parts]:
    """Return for each exposure the rates of the common sums' noise, with the distances by which a unit moves the sums.

    If a calibration has common sums, nothing else has noise.
    """
    common, rates = calibration.task.common, list_sum_rates(calibration)
    assert common is not None
    return [
        tuple(
            (rate, part * sensitivity)
            for part, rate, sensitivity in zip(exposure, rates, common.sensitivities, strict=True)
            if rate and part
        )
        for exposure in common.exposures
    ]


@lru_cache(maxsize=256)
def bound_curve(epsilon_nano: int, *, groups: int) -> Curve:
    """Return the largest Rényi curve of any question in which each group loses `epsilon_nano`.

    One unit is in `groups` groups.
    """
    with localcontext(_EXACT):
        epsilon = Decimal(epsilon_nano).scaleb(-9)
        return tuple(to_nano(groups * bound_divergence(epsilon=epsilon, order=order)) for order in ORDERS)


@lru_cache(maxsize=64)
def convert_to_epsilon(delta: float) -> Curve:
    """Return, by order, the term to add to a sum of divergences to get an epsilon that holds with `delta`, in 1e-9.

    Guarantee: each order has an equal part of `delta`, so that the order may be chosen afterwards.
    """
    with localcontext(_EXACT):
        part = Decimal(delta) / len(ORDERS)
        return tuple(
            to_nano((Decimal(order - 1) / order).ln() - (part.ln() + Decimal(order).ln()) / (order - 1))
            for order in ORDERS
        )


@lru_cache(maxsize=64)
def convert_to_tail_bound(delta: float) -> Curve:
    """Return, by order, the term to add to a sum of divergences to get a bound on the outcome's own loss, in 1e-9.

    The bound is on one direction and fails with probability `delta` at most.
    """
    with localcontext(_EXACT):
        part = Decimal(delta) / len(ORDERS)
        return tuple(to_nano(-part.ln() / (order - 1)) for order in ORDERS)


def to_nano(nats: Decimal) -> int:
    """Convert nats to 1e-9 epsilon, as a whole number, rounded up."""
    with localcontext(_EXACT):
        return int(((nats + _ROUNDED) * 10**9).to_integral_value(ROUND_CEILING)) if nats > 0 else 0


@lru_cache(maxsize=4096)
def _compute_cached_divergence(rate: Fraction, moved: Fraction, order: int) -> Decimal:
    return compute_divergence(rate=rate, moved=moved, order=order)


def _sum_divergences(values: tuple[tuple[Fraction, Fraction], ...], order: int) -> Decimal:
    with localcontext(_EXACT):
        return sum((_compute_cached_divergence(rate, moved, order) for rate, moved in values), start=Decimal(0))


def _convert_to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
