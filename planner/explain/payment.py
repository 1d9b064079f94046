"""The cost of a question per group and per privacy unit, the balances that are left, and how often that cost fits."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from planner.explain.rounded_numbers import spell_number, write_ceiling, write_floor


class Payer(StrEnum):
    """The kind of a balance: of one group, of one privacy unit over all groups, or of a whole table."""

    GROUP = "group"
    UNIT = "unit"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class RemainingBalance:
    """The rest of one balance and its cap, in epsilon.

    If a question has many groups, it is the group with the least rest.
    """

    payer: Payer
    epsilon: float
    cap: float


@dataclass(frozen=True, slots=True)
class ChargeForm:
    """The way in which the balances of a unit and of groups are charged, if the policy has a delta for them.

    If it `uses_curve`, the charge is in Rényi divergences; else it is a plain sum. `unit_delta` and `group_delta` are
    None if that balance is always a plain sum. `pure_further` is the number of equal questions that would still fit as
    plain sums. If it `gives_back_looks`, a group is charged only for the looks that it has had.
    """

    unit_delta: float | None
    group_delta: float | None
    uses_curve: bool
    pure_further: int
    gives_back_looks: bool = False

    @property
    def label(self) -> str:
        """The balances that it is about, as EXPLAIN names them."""
        if self.group_delta is None:
            return "Unit"
        return "Groups" if self.unit_delta is None else "Unit, groups"

    @property
    def sentence(self) -> str:
        """The explanation of the charge, for EXPLAIN."""
        if self.group_delta is None:
            charged, caps = "one unit is", "Its cap then holds"
        else:
            charged, caps = (
                "each group is" if self.unit_delta is None else "one unit and each group are",
                "Caps then hold",
            )
        if not self.uses_curve:
            return (
                f"{charged} charged a plain sum, since no more such questions would fit in Rényi divergences. If it "
                "loses less in the end, the difference is refunded."
            )
        deltas = sorted({f"{delta:g}" for delta in (self.unit_delta, self.group_delta) if delta is not None})
        return (
            f"{charged} charged in Rényi divergences, since more such questions fit (as a plain sum "
            f"{self.pure_further:,}). {caps} except with a delta of {' and '.join(deltas)}. "
            + (
                "Looks that do not run are refunded."
                if self.gives_back_looks
                else "Every group is charged in full, and nothing is refunded."
            )
        )


@dataclass(frozen=True, slots=True)
class Payment:
    """The highest cost of a question, in epsilon, and the rest of the balances that it charges.

    Guarantee: a function of the question, the policy and the ledger, as the asking analyst may see it. The worst cases
    of `further_questions` more questions at the same price over the same groups fit into every balance that counts over
    questions; since most groups lose less than the worst case, more may fit in the end.

    `group` is the most that one group loses; if it `covers_all_cells`, the most that any cell of all tables with the
    same units loses. `unit` is the most that one privacy unit (`unit_text`) loses in `groups` groups, None if each row
    is a unit. `form` says how balances are charged, None for a plain charge. `left` has the tightest balance of
    each payer. `further_questions` is None if the question costs nothing; else `limit_name` names the limit that
    decides `further_questions`.
    """

    group: float
    unit: float | None
    groups: int
    unit_text: str
    left: tuple[RemainingBalance, ...]
    further_questions: int | None
    limit_name: str = ""
    form: ChargeForm | None = None
    covers_all_cells: bool = False

    @property
    def cost(self) -> str:
        """The cost in words: `at most 0.37 epsilon for a group, 4.44 for one (household_id) in 12 groups`."""
        curves = self.form if self.form is not None and self.form.uses_curve else None
        payer = "presence in any cell" if self.covers_all_cells else "a group"
        payer += " by itself" if curves is not None and curves.group_delta is not None else ""
        cost = f"at most {_write_epsilon(self.group)} epsilon for {payer}"
        if self.unit is None:
            return cost
        within = f" in {self.groups} groups" if self.groups > 1 else ""
        by_itself = " by itself" if curves is not None and curves.unit_delta is not None else ""
        return f"{cost}, {_write_epsilon(self.unit)} for one ({self.unit_text}){within}{by_itself}"

    @property
    def balance(self) -> str:
        """The balances in words: `left 2.9 of 4 and 3.6 of 8`, in the order of the payers; empty if there is no cap."""
        parts = [
            f"{spell_number(Decimal(write_floor(max(0.0, one.epsilon))))} of "
            f"{spell_number(Decimal(write_floor(one.cap)))}{' of the table' if one.payer is Payer.TABLE else ''}"
            for one in self.left
        ]
        if len(parts) > 2:
            parts = [", ".join(parts[:-1]), parts[-1]]
        return f"left {' and '.join(parts)}" if parts else ""

    def write_charged(self) -> str:
        """Return the sentence on the cost of an answer that was just charged."""
        match self.further_questions:
            case None:
                room = ""
            case 0:
                room = "no further question like this"
            case more:
                room = f"at least {more:,} more like this fit{'s' if more == 1 else ''}"
        return self._write_sentence(room)

    def write_price(self) -> str:
        """Return the sentence on the cost of a question that has not been asked yet."""
        match self.further_questions:
            case None:
                room = ""
            case 0:
                room = "too little for it"
            case more:
                room = f"enough for {'it' if more == 1 else f'at least {more:,} like it'}"
        return self._write_sentence(room)

    def _write_sentence(self, room: str) -> str:
        if room and self.limit_name:
            room = f"{room} (limit: {self.limit_name})"
        told = ": ".join(part for part in (self.balance, room) if part) if self.left else ""
        return "; ".join(part for part in (self.cost, told) if part) + "."

    def to_json(self, *, was_charged: bool) -> dict[str, Any]:
        """Return the payment as a JSON document. `was_charged` is True if it was charged already."""
        return {
            "sentence": self.write_charged() if was_charged else self.write_price(),
            "group_at_most": self.group,
            "unit_at_most": self.unit,
            "groups_of_one_unit": None if self.unit is None else self.groups,
            "left": [{"of": one.payer.value, "epsilon": one.epsilon, "cap": one.cap} for one in self.left],
            "further_questions": self.further_questions,
            "limit": self.limit_name or None,
            "unit_delta": None if self.form is None or not self.form.uses_curve else self.form.unit_delta,
            "group_delta": None if self.form is None or not self.form.uses_curve else self.form.group_delta,
        }


def _write_epsilon(epsilon: float) -> str:
    return spell_number(Decimal(write_ceiling(epsilon)))
