"""The balance of one privacy unit: a sum of pure losses, some of which may count as Rényi divergences instead.

Guarantee: suppose that a reservation is granted only if `find_balance` of everything reserved is at most the cap. Then
all that was drawn is (cap, delta)-differentially private for one whole unit with a `delta`, and cap-DP without one.

Proof: docs/proofs/renyi.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

from accountant.charges import MOST_CAP_NANO
from mechanisms.threshold.renyi import NO_CURVE, Curve, bound_curve, convert_to_epsilon, convert_to_tail_bound

# how finely what fits is searched for: 1e-4 epsilon of a group, less than one is told; ten exponentials an order
_STEP_NANO = 100_000


@dataclass(frozen=True, slots=True)
class UnitLoss:
    """The loss of one unit, in 1e-9 epsilon.

    `pure_nano` is the sum of all pure losses. `in_curve_nano` is the part of that sum from questions that were charged
    by their Rényi curve. `curve` is the sum of these curves.
    """

    pure_nano: int
    in_curve_nano: int = 0
    curve: Curve = NO_CURVE

    def add_question(self, nano: int, curve: Curve | None) -> "UnitLoss":
        """Return the loss after one more question of pure loss `nano`, charged by `curve` if that is not None."""
        more = UnitLoss(self.pure_nano + nano, self.in_curve_nano, self.curve)
        return more if curve is None else more.move_to_curves(nano, curve, times=1)

    def move_to_curves(self, nano: int, curve: Curve, *, times: int) -> "UnitLoss":
        """Return the same pure sum, with `times` questions of pure loss `nano` moved to the curve."""
        return UnitLoss(
            self.pure_nano,
            self.in_curve_nano + times * nano,
            tuple(known + times * more for known, more in zip(self.curve, curve, strict=True)),
        )

    def subtract(self, other: "UnitLoss") -> "UnitLoss":
        """Return the loss without another one that is part of it."""
        return UnitLoss(
            self.pure_nano - other.pure_nano,
            self.in_curve_nano - other.in_curve_nano,
            tuple(known - less for known, less in zip(self.curve, other.curve, strict=True)),
        )

    def find_balance(self, delta: float | None) -> int:
        """Return the balance: the pure sum, or if smaller the pure rest plus the curve's epsilon for `delta`.

        >>> UnitLoss(7, 5).find_balance(None)
        7
        """
        return self._compute_least_balance(None if delta is None else convert_to_epsilon(delta))

    def bound_odds_change(self, delta: float | None) -> int:
        """Return a bound, in 1e-9, on the change of the logarithm of anybody's odds, up or down.

        The bound fails with probability `delta` at most.
        """
        return self._compute_least_balance(None if delta is None else convert_to_tail_bound(delta / 2))

    def count_further_questions(self, nano: int, curve: Curve | None, *, cap_nano: int, delta: float | None) -> int:
        """Return the number of further questions with this loss and curve that fit below a cap."""
        counts = [_count_fits(cap_nano - self.pure_nano, nano)]
        if delta is not None and (curve is not None or self.in_curve_nano):
            rest = cap_nano - (self.pure_nano - self.in_curve_nano)
            each = (nano,) * len(self.curve) if curve is None else curve
            counts += [
                _count_fits(rest - known - added, more)
                for known, added, more in zip(self.curve, convert_to_epsilon(delta), each, strict=True)
            ]
        return max(counts)

    def _compute_least_balance(self, added: Curve | None) -> int:
        if added is None or not self.in_curve_nano:
            return self.pure_nano
        rest = self.pure_nano - self.in_curve_nano
        return min(self.pure_nano, *(rest + known + more for known, more in zip(self.curve, added, strict=True)))


def _count_fits(left: int, each: int) -> int:
    if left < 0:
        return 0
    return left // each if each else MOST_CAP_NANO


NO_UNIT_LOSS = UnitLoss(0)


@dataclass(frozen=True, slots=True)
class UnitRoom:
    """A unit's loss below a cap."""

    loss: UnitLoss
    cap_nano: int
    delta: float | None

    @property
    def left_nano(self) -> int:
        """Return the rest of the cap; below zero if the cap was lowered."""
        return self.cap_nano - self.loss.find_balance(self.delta)

    def compute_needed_amount(self, charge_nano: int, curve: Curve | None) -> int:
        """Return the amount by which a question raises the balance."""
        return self.loss.add_question(charge_nano, curve).find_balance(self.delta) - self.loss.find_balance(self.delta)

    def count_further_questions(self, charge_nano: int, curve: Curve | None) -> int:
        """Return the number of further questions like this that fit."""
        return self.loss.count_further_questions(charge_nano, curve, cap_nano=self.cap_nano, delta=self.delta)

    def find_largest_by_curve(self, groups: int) -> int:
        """Return the largest loss of a group, in 1e-9, that fits by its curve.

        One unit is charged for `groups` groups. The result fits for any noise of the question. Return 0 without a
        delta.
        """
        if self.delta is None or self.left_nano <= 0:
            return 0
        return search_largest_by_curve(
            lambda nano: self.compute_needed_amount(groups * nano, bound_curve(nano, groups=groups)) <= self.left_nano,
            cap_nano=self.cap_nano,
        )


def search_largest_by_curve(fits: Callable[[int], bool], *, cap_nano: int) -> int:
    """Return the largest loss of a group, in 1e-9, that fits below a cap. Return 0 if none does."""
    low, high = 0, cap_nano // _STEP_NANO + 1
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle * _STEP_NANO):
            low = middle
        else:
            high = middle
    return low * _STEP_NANO
