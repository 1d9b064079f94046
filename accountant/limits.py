"""Caps on one question, and the loss that the balances still admit."""

from dataclasses import dataclass

from accountant.charges import Amounts, Charge
from accountant.errors import BalanceScope
from accountant.unit_balance import UnitRoom
from mechanisms.threshold.renyi import Curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps that hold for one question. None means no cap; tables with a privacy unit must have `per_unit_nano`.

    `per_table_nano` caps the sum over all questions on one table of each one's cost: to one whole unit, or (for unit
    "row") to any one key. `own_per_table_nano` has the tables with another cap. A question whose worst case per key is
    above `approval_above_nano` needs the owner's approval.

    With a `delta`, the balances of a unit, everybody's and an analyst's own, may count Rényi divergences. Their caps
    then hold except with that probability. Without one, they are sums.

    `separates_analysts` means that analysts are accounted for separately, as caps of their own require. The rest of a
    shared balance for one analyst then counts the others' questions at their worst case. So it reveals nothing of
    their outcomes.
    """

    per_predicate_nano: int
    per_unit_nano: int | None
    per_query_nano: int | None
    analyst_per_predicate_nano: int | None
    analyst_per_unit_nano: int | None
    separates_analysts: bool
    per_table_nano: int | None = None
    delta: float | None = None
    approval_above_nano: int | None = None
    own_per_table_nano: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BalanceRoom:
    """The room that is left: the largest uniform `epsilon_nano` per key, and the largest per-unit sum (None: no cap).

    It is below zero if not even a charge of zero would fit.
    """

    epsilon_nano: int
    unit_epsilon_nano: int | None

    def admits_amounts(self, amounts: Amounts) -> bool:
        """Return True if the amounts fit."""
        unit_fits = self.unit_epsilon_nano is None or amounts.unit_epsilon_nano <= self.unit_epsilon_nano
        return amounts.epsilon_nano <= self.epsilon_nano and unit_fits


@dataclass(frozen=True, slots=True)
class BalanceLeft:
    """The rest of one balance, and the cap in force. A balance per key counts the key that has least left.

    `unit_room` is set for balances of a whole unit.
    """

    scope: BalanceScope
    left_nano: int
    cap_nano: int
    unit_room: UnitRoom | None = None

    def count_further_questions(self, needed_nano: int, curve: Curve | None) -> int | None:
        """Return the number of further questions that fit, each of this size; None for no limit."""
        if needed_nano == 0:
            return None
        if self.unit_room is not None:
            return self.unit_room.count_further_questions(needed_nano, curve)
        return max(0, self.left_nano // needed_nano)


@dataclass(frozen=True, slots=True)
class Headroom:
    """The largest charges that still fit, below the analyst's own caps and below the shared ones.

    `balances` has each balance with a cap. The cap per question is not among them, as nothing is ever spent of it.
    `uses_curve` means that the given charge would be charged to units by its Rényi curve, which leaves more room.
    """

    analyst_room: BalanceRoom
    shared_room: BalanceRoom
    separates_analysts: bool
    balances: tuple[BalanceLeft, ...]
    uses_curve: bool = False

    @property
    def room_without_paths(self) -> BalanceRoom:
        """The room for a question that continues no noise path."""
        caps = [
            room.unit_epsilon_nano
            for room in (self.analyst_room, self.shared_room)
            if room.unit_epsilon_nano is not None
        ]
        return BalanceRoom(min(self.analyst_room.epsilon_nano, self.shared_room.epsilon_nano), min(caps, default=None))

    @property
    def epsilon_nano(self) -> int:
        """The largest epsilon per key of a question that continues nothing."""
        return self.room_without_paths.epsilon_nano

    @property
    def unit_epsilon_nano(self) -> int | None:
        """The largest per-unit sum of a question that continues nothing (None: no cap)."""
        return self.room_without_paths.unit_epsilon_nano

    def admits_charge(self, charge: Charge) -> bool:
        """Return True if a charge over the same keys fits."""
        everybody = charge.known_amounts if self.separates_analysts else charge.shared_amounts
        if charge.renyi is not None and self._admits_curve(charge, charge.renyi):
            return True
        return self.analyst_room.admits_amounts(charge.own_amounts) and (
            not charge.shared or self.shared_room.admits_amounts(everybody)
        )

    def find_largest_epsilon(self, groups: int, *, in_cell: int, uses_curve: bool) -> int:
        """Return the largest epsilon per key of a question that continues nothing.

        One unit is charged for `groups` keys, and one cell for `in_cell` keys.

        `uses_curve` means that its noise may be charged in Rényi divergences. The result then fits for any noise of the
        question, and for some a little more would fit.
        """
        unit = self.unit_epsilon_nano
        of_cell = self.epsilon_nano // in_cell
        pure = of_cell if unit is None else min(of_cell, unit // groups)
        if not uses_curve or not any(one.unit_room is not None for one in self.balances):
            return pure
        most = [of_cell]
        for one in self.balances:
            if one.unit_room is not None:
                most.append(one.unit_room.find_largest_by_curve(groups))
            elif one.scope is BalanceScope.PER_TABLE:
                most.append(one.left_nano // max(groups, in_cell))
        return max(pure, min(most))

    def _admits_curve(self, charge: Charge, curve: Curve) -> bool:
        needed = charge.own_amounts
        return needed.epsilon_nano <= self.epsilon_nano and all(
            (
                needed.table_nano
                if one.unit_room is None
                else one.unit_room.compute_needed_amount(needed.unit_epsilon_nano, curve)
            )
            <= one.left_nano
            for one in self.balances
            if one.unit_room is not None or one.scope is BalanceScope.PER_TABLE
        )
