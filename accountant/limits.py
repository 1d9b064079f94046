"""Caps on one question, and the loss that the balances still admit."""

from dataclasses import dataclass, field

from accountant.cell_balance import CellRoom
from accountant.charges import MOST_NANO_PER_CHARGE, Amounts, Charge
from accountant.errors import BalanceScope
from accountant.unit_balance import UnitRoom


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps that hold for one question. None means no cap; tables with a privacy unit must have `per_unit_nano`.

    `per_table_nano` caps the sum of the costs of all questions on one table. A question's cost is that to one whole
    unit, or (for unit "row") to the key that loses most. `own_per_table_nano` has the tables with another cap. A
    question whose worst case per key is above `approval_above_nano` needs the owner's approval.

    With a `delta`, the balances of a unit, everybody's and an analyst's own, may count Rényi divergences. Their caps
    then hold except with that probability. Without one, they are sums. `cell_delta` is the same for the balances of a
    cell.

    `separates_analysts` means that analysts are accounted for separately, as caps of their own require. The rest of a
    shared balance that is shown to an analyst then counts the others' questions at their worst case. So it reveals
    nothing of their outcomes.
    """

    per_predicate_nano: int
    per_unit_nano: int | None
    per_query_nano: int | None
    analyst_per_predicate_nano: int | None
    analyst_per_unit_nano: int | None
    separates_analysts: bool
    per_table_nano: int | None = None
    delta: float | None = None
    cell_delta: float | None = None
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
        """Return True if the room covers the amounts."""
        unit_fits = self.unit_epsilon_nano is None or amounts.unit_epsilon_nano <= self.unit_epsilon_nano
        return amounts.epsilon_nano <= self.epsilon_nano and unit_fits


@dataclass(frozen=True, slots=True)
class BalanceLeft:
    """The rest of one balance, and the cap in force. For a balance per key, it is that of the key with the least rest.

    `unit_room` is set for balances of a whole unit. `cell_room` is set for those of cells if they have a delta.
    """

    scope: BalanceScope
    left_nano: int
    cap_nano: int
    unit_room: UnitRoom | None = None
    cell_room: CellRoom | None = field(default=None, compare=False)

    def compute_needed_amount(self, charge: Charge, *, amount_nano: int, uses_curve: bool) -> int:
        """Return what a charge needs of the balance, if its amount there is `amount_nano`."""
        if self.unit_room is not None:
            return self.unit_room.compute_needed_amount(amount_nano, charge.renyi if uses_curve else None)
        if self.cell_room is not None:
            return self.cell_room.compute_needed_amount(amount_nano, charge.cell_renyi if uses_curve else None)
        return amount_nano

    def count_further_questions(self, charge: Charge, *, amount_nano: int, uses_curve: bool) -> int | None:
        """Return the number of further charges like this that fit, each of `amount_nano` here; None for no limit."""
        if amount_nano == 0:
            return None
        if self.unit_room is not None:
            return self.unit_room.count_further_questions(amount_nano, charge.renyi if uses_curve else None)
        if self.cell_room is not None:
            return self.cell_room.count_further_questions(amount_nano, charge.cell_renyi if uses_curve else None)
        return max(0, self.left_nano // amount_nano)


@dataclass(frozen=True, slots=True)
class Headroom:
    """The largest charges that still fit, below the analyst's own caps and below the shared ones.

    `balances` has each balance with a cap. The cap per question is not among them, as nothing is ever spent of it.
    `uses_curve` means that the given charge would be charged by its Rényi curves, which leaves more room. One question
    may cost `query_room_nano`.
    """

    analyst_room: BalanceRoom
    shared_room: BalanceRoom
    separates_analysts: bool
    balances: tuple[BalanceLeft, ...]
    uses_curve: bool = False
    query_room_nano: int = MOST_NANO_PER_CHARGE

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
        """The largest epsilon per key of a question that continues no noise path."""
        return self.room_without_paths.epsilon_nano

    @property
    def unit_epsilon_nano(self) -> int | None:
        """The largest per-unit sum of a question that continues no noise path (None: no cap)."""
        return self.room_without_paths.unit_epsilon_nano

    def admits_charge(self, charge: Charge) -> bool:
        """Return True if a charge over the same keys fits."""
        everybody = charge.known_amounts if self.separates_analysts else charge.shared_amounts
        if charge.is_by_curve and self._admits_curves(charge):
            return True
        return self.analyst_room.admits_amounts(charge.own_amounts) and (
            not charge.shared or self.shared_room.admits_amounts(everybody)
        )

    def find_largest_epsilon(self, groups: int, *, in_cell: int, uses_curve: bool) -> int:
        """Return the largest epsilon per key of a question that continues no noise path.

        One unit is charged for `groups` keys, and one cell for `in_cell` keys.

        `uses_curve` means that its noise may be charged in Rényi divergences. The result then fits for any kind of
        noise of the question. For some kinds, slightly more would fit.
        """
        unit = self.unit_epsilon_nano
        of_cell = self.epsilon_nano // in_cell
        pure = of_cell if unit is None else min(of_cell, unit // groups)
        if not uses_curve:
            return pure
        most = [self.query_room_nano // in_cell]
        for one in self.balances:
            if one.unit_room is not None:
                most.append(max(one.left_nano // groups, one.unit_room.find_largest_by_curve(groups)))
            elif one.cell_room is not None:
                most.append(max(one.left_nano // in_cell, one.cell_room.find_largest_by_curve(in_cell)))
            elif one.scope is BalanceScope.PER_TABLE:
                most.append(one.left_nano // max(groups, in_cell))
            else:
                most.append(one.left_nano // in_cell)
        return max(pure, min(most))

    def _admits_curves(self, charge: Charge) -> bool:
        """Return True if the charge fits by its curves. It is then charged in full to all balances."""
        amounts = charge.own_amounts
        needed = {
            BalanceScope.PER_UNIT: amounts.unit_epsilon_nano,
            BalanceScope.ANALYST_PER_UNIT: amounts.unit_epsilon_nano,
            BalanceScope.PER_TABLE: amounts.table_nano,
        }
        return amounts.epsilon_nano <= self.query_room_nano and all(
            one.compute_needed_amount(charge, amount_nano=needed.get(one.scope, amounts.epsilon_nano), uses_curve=True)
            <= one.left_nano
            for one in self.balances
        )
