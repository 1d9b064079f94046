"""Caps on one question, and the loss that the balances still admit."""

from dataclasses import dataclass

from accountant.charges import Amounts, Charge
from accountant.errors import BalanceScope
from accountant.unit_balance import UnitRoom
from mechanisms.threshold.renyi import Curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps that hold for one question. None means no cap; tables with a privacy unit must have `per_unit_nano`.

    `per_table_nano` caps the sum over all questions on one table of what each can cost: one whole unit, or (for unit
    "row") any one key; `own_per_table_nano` has the tables with a cap of their own instead. A question whose worst
    case per key is above `approval_above_nano` needs the owner's approval.

    With a `delta` the balances of a unit, everybody's and an analyst's own, may count Rényi divergences: their caps
    then hold except for that probability. None: they are sums.

    `apart`: analysts are accounted for one by one, as caps of their own need; then what the shared balances have left
    for one of them counts the others' questions at their worst case, so that it tells nothing of their outcomes.
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

    Below zero where a charge that needs nothing would not fit either.
    """

    epsilon_nano: int
    unit_epsilon_nano: int | None

    def admits(self, amounts: Amounts) -> bool:
        """Return True if the amounts fit."""
        unit_fits = self.unit_epsilon_nano is None or amounts.unit_epsilon_nano <= self.unit_epsilon_nano
        return amounts.epsilon_nano <= self.epsilon_nano and unit_fits


@dataclass(frozen=True, slots=True)
class BalanceLeft:
    """The rest of one balance, of the key that has least left if it is kept per key, and the cap in force.

    `unit` is there for balances of a whole unit.
    """

    scope: BalanceScope
    left_nano: int
    cap_nano: int
    unit: UnitRoom | None = None

    def count_more(self, needed_nano: int, curve: Curve | None) -> int | None:
        """Return the number of further questions that fit, each of this size; None for no limit."""
        if needed_nano == 0:
            return None
        if self.unit is not None:
            return self.unit.count_more(needed_nano, curve)
        return max(0, self.left_nano // needed_nano)


@dataclass(frozen=True, slots=True)
class Headroom:
    """The charges that the balances admit: by the analyst's own amounts and the cap per question, and by shared ones.

    `balances` has each balance with a cap by itself; the cap per question is none, as nothing is ever spent of it.
    `by_curve`: the charge that was asked about would be charged to units by its Rényi curve, which leaves more room.
    """

    own: BalanceRoom
    shared: BalanceRoom
    separates_analysts: bool
    balances: tuple[BalanceLeft, ...]
    uses_curve: bool = False

    @property
    def plain(self) -> BalanceRoom:
        """For a question that continues nothing."""
        caps = [room.unit_epsilon_nano for room in (self.own, self.shared) if room.unit_epsilon_nano is not None]
        return BalanceRoom(min(self.own.epsilon_nano, self.shared.epsilon_nano), min(caps, default=None))

    @property
    def epsilon_nano(self) -> int:
        """The largest epsilon per key of a question that continues nothing."""
        return self.plain.epsilon_nano

    @property
    def unit_epsilon_nano(self) -> int | None:
        """The largest per-unit sum of a question that continues nothing (None: no cap)."""
        return self.plain.unit_epsilon_nano

    def admits(self, charge: Charge) -> bool:
        """Return True if a charge over the same keys fits."""
        everybody = charge.known_amounts if self.separates_analysts else charge.shared_amounts
        if charge.renyi is not None and self._admits_curve(charge, charge.renyi):
            return True
        return self.own.admits(charge.own_amounts) and (not charge.shared or self.shared.admits(everybody))

    def find_largest(self, groups: int, *, in_cell: int, by_curve: bool) -> int:
        """Return the largest epsilon per key of a question that continues nothing.

        One unit bears that of `groups` keys, and a cell that of `in_cell`.

        `by_curve`: its noise may be charged in Rényi divergences. Then it is what fits whatever its noise is, and a
        little more may fit than that.
        """
        unit = self.unit_epsilon_nano
        of_cell = self.epsilon_nano // in_cell
        pure = of_cell if unit is None else min(of_cell, unit // groups)
        if not by_curve or not any(one.unit is not None for one in self.balances):
            return pure
        most = [of_cell]
        for one in self.balances:
            if one.unit is not None:
                most.append(one.unit.find_largest_by_curve(groups))
            elif one.scope is BalanceScope.PER_TABLE:
                most.append(one.left_nano // max(groups, in_cell))
        return max(pure, min(most))

    def _admits_curve(self, charge: Charge, curve: Curve) -> bool:
        needed = charge.own_amounts
        return needed.epsilon_nano <= self.epsilon_nano and all(
            (needed.table_nano if one.unit is None else one.unit.find_needed(needed.unit_epsilon_nano, curve))
            <= one.left_nano
            for one in self.balances
            if one.unit is not None or one.scope is BalanceScope.PER_TABLE
        )
