"""What one question may cost: the caps that hold for it, and what the balances still admit."""

from dataclasses import dataclass

from accountant.errors import BalanceScope
from accountant.model import Amounts, Charge


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The caps that hold for one question. None means no cap; tables with a privacy unit must have `per_unit_nano`.

    `per_table_nano` caps the sum over all questions on one table of what each can cost: one whole unit, or (for unit
    "row") any one key; `own_per_table_nano` has the tables with a cap of their own instead. A question whose worst
    case per key is above `approval_above_nano` needs the owner's approval.

    `apart`: analysts are accounted for one by one, as caps of their own need; then what the shared balances have left
    for one of them counts the others' questions at their worst case, so that it tells nothing of their outcomes.
    """

    per_predicate_nano: int
    per_unit_nano: int | None
    per_query_nano: int | None
    analyst_per_predicate_nano: int | None
    analyst_per_unit_nano: int | None
    apart: bool
    per_table_nano: int | None = None
    approval_above_nano: int | None = None
    own_per_table_nano: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BalanceRoom:
    """What still fits: the largest uniform `epsilon_nano` per key, and the largest per-unit sum (None: no cap).

    Below zero where a charge that needs nothing would not fit either.
    """

    epsilon_nano: int
    unit_epsilon_nano: int | None

    def admits(self, amounts: Amounts) -> bool:
        """Whether the amounts fit."""
        unit_fits = self.unit_epsilon_nano is None or amounts.unit_epsilon_nano <= self.unit_epsilon_nano
        return amounts.epsilon_nano <= self.epsilon_nano and unit_fits


@dataclass(frozen=True, slots=True)
class BalanceLeft:
    """What is left of one balance, of the key that has least left where it is kept per key, and the cap in force."""

    scope: BalanceScope
    left_nano: int
    cap_nano: int


@dataclass(frozen=True, slots=True)
class Headroom:
    """What the balances still admit: of the analyst's own amounts and the cap per question, and of the shared ones.

    `balances` has each balance with a cap by itself; the cap per question is none, as nothing is ever spent of it.
    """

    own: BalanceRoom
    shared: BalanceRoom
    apart: bool
    balances: tuple[BalanceLeft, ...]

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
        """Whether a charge over the same keys fits."""
        everybody = charge.known_amounts if self.apart else charge.shared_amounts
        return self.own.admits(charge.own_amounts) and (not charge.shared or self.shared.admits(everybody))
