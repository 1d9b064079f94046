"""Questions charged to a copy of the balances, as the ledger would charge them at their worst; nothing is written.

Guarantee: charges that fit one after the other here are granted by the ledger in that order, whatever the questions
answer, as long as nobody else asks and no data version or policy changes. Each is kept at its worst case, of which the
ledger gives back what an answer did not cost; and everything is checked and folded by the very code of the ledger.
With a `delta` in the limits that is what to expect, and no guarantee: which questions are charged by their Rényi curve
follows from what is left, and what was given back may change it.
References: docs/proofs/accounting.md, theorem 9.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from accountant.balances.dependencies import Knowledge, assume_nothing
from accountant.balances.filter import choose_form, find_headroom, find_shortage
from accountant.balances.fold import Balances
from accountant.charges import Amounts, Charge, PathState, Spent
from accountant.errors import OverBudget
from accountant.events.events import Committed, Reserved
from accountant.limits import Headroom, Limits

_AT = datetime(1970, 1, 1, tzinfo=UTC)  # balances do not depend on when


@dataclass(slots=True)
class Rehearsal:
    """Balances that may be spent without anybody losing anything. `names` counts the charges made so far."""

    _balances: Balances
    tables: frozenset[str]
    knowledge: Knowledge = assume_nothing
    charge_count: int = 0

    @staticmethod
    def from_nothing(tables: frozenset[str], *, knowledge: Knowledge) -> "Rehearsal":
        """Return balances of which nothing is spent."""
        return Rehearsal(Balances(), tables=tables, knowledge=knowledge)

    def copy(self) -> "Rehearsal":
        """Return a copy, which begins where this one stands."""
        return replace(self, _balances=self._balances.copy(self.tables))

    @property
    def unit_nano(self) -> int:
        """Return the loss of one unit, as a plain sum."""
        return self._balances.shared.unit.pure_nano

    def find_shortage(self, charge: Charge, limits: Limits) -> OverBudget | None:
        """Return the first balance that does not cover a charge now; None if it fits.

        Raise `LedgerMisuse` as `check_fits` does.
        """
        return find_shortage(self._balances, charge, limits, knowledge=self.knowledge)

    def find_headroom(self, charge: Charge, limits: Limits) -> Headroom:
        """Return the largest charge that would still fit over the charge's keys."""
        return find_headroom(self._balances, charge, limits, knowledge=self.knowledge)

    def choose_form(self, charge: Charge, limits: Limits) -> Charge:
        """Return the charge as it would be made now: by its Rényi curve if that leaves a unit more room, else plain."""
        return choose_form(self._balances, charge, limits, knowledge=self.knowledge)

    def is_approved(self, question: str) -> bool:
        """Return True if the owner approved the question of this fingerprint."""
        return question in self._balances.approved

    def spend(
        self,
        charge: Charge,
        limits: Limits,
        *,
        own: Spent | None = None,
        fresh: Amounts | None = None,
        leaving: Iterable[str] = (),
        reading: tuple[PathState, ...] = (),
    ) -> str:
        """Reserve a charge that fits and commit it; the name of its reservation, which is that of the paths it leaves.

        Parameters:
            own: what it costs its analyst (None: all that it reserves).
            fresh: what it costs everybody, where it continues paths (None: all that it reserves).
            leaving: identities of the paths that it leaves. `reading`: the states that it was answered from.
        """
        charge = self.choose_form(charge, limits)
        self.charge_count += 1
        name = f"rehearsed {self.charge_count}"
        worst = _make_uniform(charge.own_amounts) if own is None else own
        if charge.path_continuation is not None:
            worst = replace(worst, fresh=_make_uniform(charge.path_continuation.shared if fresh is None else fresh))
        self._balances.apply(Reserved(name, _AT, charge))
        self._balances.apply(
            Committed(
                name, _AT, worst, None, None, paths=tuple((identity, "") for identity in leaving), reading=reading
            )
        )
        return name


def _make_uniform(amounts: Amounts) -> Spent:
    return Spent.from_uniform(amounts.epsilon_nano, unit_epsilon_nano=amounts.unit_epsilon_nano)
