"""The rehearsal of charges on a copy of the balances, at their worst case. Nothing is written.

Guarantee: charges that fit one after the other here are granted by the ledger in that order, whatever the questions
answer, as long as nobody else asks and no data version or policy changes. Each charge stays at its worst case here,
while the ledger refunds the unspent part. The ledger's own code checks and folds everything. With a `delta` in the
limits this is an expectation and no guarantee: refunds may change which questions are charged by their Rényi curve.
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
    """A copy of the balances for trial charges. `charge_count` is the number of charges made so far."""

    _balances: Balances
    tables: frozenset[str]
    knowledge: Knowledge = assume_nothing
    charge_count: int = 0

    @staticmethod
    def with_empty_balances(tables: frozenset[str], *, knowledge: Knowledge) -> "Rehearsal":
        """Return a rehearsal whose balances are empty, as if nothing had ever been charged.

        `tables` are the tables that a copy of it keeps, and `knowledge` has their column dependencies.
        """
        return Rehearsal(Balances(), tables=tables, knowledge=knowledge)

    def copy(self) -> "Rehearsal":
        """Return a copy with the current balances."""
        return replace(self, _balances=self._balances.copy(self.tables))

    @property
    def unit_nano(self) -> int:
        """Return the loss of one unit, as a plain sum."""
        return self._balances.shared.unit_loss.pure_nano

    def find_shortage(self, charge: Charge, limits: Limits) -> OverBudget | None:
        """Return the first balance that does not cover a charge now; None if it fits.

        Raise `LedgerMisuse` as `check_fits` does.
        """
        return find_shortage(self._balances, charge, limits, knowledge=self.knowledge)

    def find_headroom(self, charge: Charge, limits: Limits) -> Headroom:
        """Return the largest charge that would still fit over the charge's keys."""
        return find_headroom(self._balances, charge, limits, knowledge=self.knowledge)

    def choose_form(self, charge: Charge, limits: Limits) -> Charge:
        """Return the charge in its final form: with its Rényi curve if that leaves a unit more room, else without."""
        return choose_form(self._balances, charge, limits, knowledge=self.knowledge)

    def is_approved(self, question: str) -> bool:
        """Return True if the owner approved the question of this fingerprint."""
        return question in self._balances.approved

    def spend_charge(
        self,
        charge: Charge,
        limits: Limits,
        *,
        own: Spent | None = None,
        fresh: Amounts | None = None,
        leaving: Iterable[str] = (),
        reading: tuple[PathState, ...] = (),
    ) -> str:
        """Reserve a charge that fits, commit it, and return the name of its reservation, which its paths have too.

        Parameters:
            own: the cost to its analyst (None: all that it reserves).
            fresh: the cost to everybody, if it continues paths (None: all that it reserves).
            leaving: identities of the paths that it stores.
            reading: the states of paths from which it was answered.
        """
        charge = self.choose_form(charge, limits)
        self.charge_count += 1
        name = f"rehearsed {self.charge_count}"
        worst = _make_uniform(charge.own_amounts) if own is None else own
        if charge.path_continuation is not None:
            worst = replace(
                worst, fresh=_make_uniform(charge.path_continuation.shared_loss if fresh is None else fresh)
            )
        self._balances.apply_event(Reserved(name, _AT, charge))
        self._balances.apply_event(
            Committed(
                name, _AT, worst, None, None, paths=tuple((identity, "") for identity in leaving), reading=reading
            )
        )
        return name


def _make_uniform(amounts: Amounts) -> Spent:
    return Spent.from_uniform(amounts.epsilon_nano, unit_epsilon_nano=amounts.unit_epsilon_nano)
