"""The cost of a question: per group and per privacy unit, what is left of both, and how often that fits."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from planner.explain.rounded_numbers import at_least, at_most, plain


class Payer(StrEnum):
    """Whose balance it is: one group's, one privacy unit's over all groups, or a whole table's."""

    GROUP = "group"
    UNIT = "unit"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Left:
    """The rest of one balance, of the group that has least if there are many, and its cap. In epsilon."""

    of: Payer
    epsilon: float
    cap: float


@dataclass(frozen=True, slots=True)
class UnitForm:
    """The count of the question in a privacy unit's balance, if the policy has a `delta`.

    `by_curve`: in Rényi divergences; else as a plain sum, of which `pure_further` such questions fit.
    """

    delta: float
    by_curve: bool
    pure_further: int

    @property
    def sentence(self) -> str:
        """For EXPLAIN."""
        if not self.by_curve:
            return (
                "one unit is charged a plain sum, since no more such questions would fit in Rényi divergences. If it "
                "loses less in the end, the difference comes back."
            )
        return (
            "one unit is charged in Rényi divergences, since more such questions fit (as a plain sum "
            f"{self.pure_further:,}). Its cap then holds except with a delta of {self.delta:g}. All noise is drawn at "
            "once, every group is charged in full, and nothing comes back."
        )


@dataclass(frozen=True, slots=True)
class Payment:
    """The highest cost of a question, in epsilon, and the rest of the balances of those who pay.

    Guarantee: a function of the question, the policy and the ledger, as the asking analyst may see it. The worst cases
    of `further` more questions at the same price over the same groups fit into every balance that counts over
    questions; since most groups lose less than the worst case, more may fit in the end.

    `group` is the most that one group loses, or with `everywhere` any cell of all tables with the same units; `unit`
    the most that one privacy unit (`unit_text`) loses, which is that of `groups` groups (None: each row is a unit by
    itself); what its balance counts of that, `unit_form` says (None: all of it). `left` has one balance at most of each
    payer, the tightest. `further` is None for what costs nothing, else `limit` is the name of the limit that it comes
    from.
    """

    group: float
    unit: float | None
    groups: int
    unit_text: str
    left: tuple[Left, ...]
    further: int | None
    limit: str = ""
    unit_form: UnitForm | None = None
    everywhere: bool = False

    @property
    def cost(self) -> str:
        """`at most 0.37 epsilon for a group, 4.44 for one (household_id) in 12 groups`."""
        payer = "presence in any cell" if self.everywhere else "a group"
        cost = f"at most {_epsilon(self.group)} epsilon for {payer}"
        if self.unit is None:
            return cost
        within = f" in {self.groups} groups" if self.groups > 1 else ""
        by_itself = " by itself" if self.unit_form is not None and self.unit_form.by_curve else ""
        return f"{cost}, {_epsilon(self.unit)} for one ({self.unit_text}){within}{by_itself}"

    @property
    def balance(self) -> str:
        """`left 2.9 of 4 and 3.6 of 8`, in the order of the payers; nothing where no cap counts."""
        parts = [
            f"{plain(Decimal(at_least(max(0.0, one.epsilon))))} of {plain(Decimal(at_least(one.cap)))}"
            f"{' of the table' if one.of is Payer.TABLE else ''}"
            for one in self.left
        ]
        if len(parts) > 2:
            parts = [", ".join(parts[:-1]), parts[-1]]
        return f"left {' and '.join(parts)}" if parts else ""

    def after(self) -> str:
        """Return the sentence for an answer that was just charged."""
        match self.further:
            case None:
                room = ""
            case 0:
                room = "no further question like this"
            case more:
                room = f"at least {more:,} more like this fit{'s' if more == 1 else ''}"
        return self._sentence(room)

    def before(self) -> str:
        """Return the same for a question that was not asked yet."""
        match self.further:
            case None:
                room = ""
            case 0:
                room = "too little for it"
            case more:
                room = f"enough for {'it' if more == 1 else f'at least {more:,} like it'}"
        return self._sentence(room)

    def _sentence(self, room: str) -> str:
        if room and self.limit:
            room = f"{room} (limit: {self.limit})"
        told = ": ".join(part for part in (self.balance, room) if part) if self.left else ""
        return "; ".join(part for part in (self.cost, told) if part) + "."

    def document(self, *, asked: bool) -> dict[str, Any]:
        """Return the payment for a program; `asked`: it was charged already."""
        return {
            "sentence": self.after() if asked else self.before(),
            "group_at_most": self.group,
            "unit_at_most": self.unit,
            "groups_of_one_unit": None if self.unit is None else self.groups,
            "left": [{"of": one.of.value, "epsilon": one.epsilon, "cap": one.cap} for one in self.left],
            "further_questions": self.further,
            "limit": self.limit or None,
            "unit_delta": None if self.unit_form is None or not self.unit_form.by_curve else self.unit_form.delta,
        }


def _epsilon(epsilon: float) -> str:
    return plain(Decimal(at_most(epsilon)))
