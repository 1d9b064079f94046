"""The stopping rule: a question starts only when its worst case fits into every balance.

Proof: docs/proofs/accounting.md, theorem 1.

Each balance is compared with its own amount. The analyst's own balances count all that the answer reveals. The shared
balances count only what is new to everybody together. If analysts are accounted for separately, they count only the
public part of it. All balances are compared before one of them refuses, so a refusal does the same work whichever
balance is short.
References: docs/proofs/accounting.md, theorems 1 and 6.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from accountant.balances.account import Account
from accountant.balances.cell_sums import MOST_CELLS, find_charged_cells
from accountant.balances.dependencies import Knowledge, assume_nothing
from accountant.balances.fold import Balances
from accountant.balances.grants import apply_grants
from accountant.cell_balance import CellLosses, CellRoom
from accountant.charges import MOST_NANO_PER_CHARGE, ROW_UNIT, Charge, NanoArray
from accountant.errors import BalanceScope, LedgerMisuse, NotApproved, OverBudget, refuse_cells
from accountant.limits import BalanceLeft, BalanceRoom, Headroom, Limits
from accountant.unit_balance import UnitRoom
from mechanisms.formula import Booleans


def check_fits(balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = assume_nothing) -> Charge:
    """Return the charge in its final form, if it fits into every balance.

    It keeps its Rényi curves if that leaves more room. `knowledge` gives the public dependencies of the tables'
    columns.

    Raise `OverBudget` for the first balance, in the order of `BalanceScope`, that has less left than the charge needs.
    Raise `LedgerMisuse` if no balance can hold the charge.
    """
    check_accountable(balances, charge, limits)
    left_of = _compute_remaining_balances(balances, charge, limits, knowledge)
    charge = left_of.choose_form(charge, limits)
    for scope in left_of.by_scope:
        short = left_of.find_short_keys(scope, charge, limits)
        if short.any():
            one, total = left_of.make_balance(scope), charge.cells.key_count
            amount = _compute_needed_amount(scope, charge, limits)
            raise OverBudget(
                scope=scope,
                needed_nano=one.compute_needed_amount(charge, amount_nano=amount, uses_curve=True),
                left_nano=max(0, one.left_nano),
                short_keys=int(np.count_nonzero(short)) if short.size == total else total,
                total_keys=total,
                short=short.reshape(-1) if short.size == total else None,
            )
    return charge


def choose_form(balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = assume_nothing) -> Charge:
    """Return the charge in the form of `check_fits`, without checking that it fits.

    Raise `LedgerMisuse` if no balance can hold the charge.
    """
    check_accountable(balances, charge, limits)
    return (
        charge
        if not charge.is_by_curve
        else _compute_remaining_balances(balances, charge, limits, knowledge).choose_form(charge, limits)
    )


def find_shortage(
    balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = assume_nothing
) -> OverBudget | None:
    """Return the error that `check_fits` would raise for a short balance; None if the charge fits."""
    try:
        check_fits(balances, charge, limits, knowledge=knowledge)
    except OverBudget as short:
        return short
    return None


def check_approved(balances: Balances, charge: Charge, limits: Limits) -> None:
    """Raise `NotApproved` when the charge is above the owner's threshold and its question was never approved."""
    above = limits.approval_above_nano
    if above is not None and charge.epsilon_nano > above and charge.question not in balances.approved:
        raise NotApproved(
            question=charge.question,
            needed_nano=charge.epsilon_nano,
            above_nano=above,
            declined=balances.declined.get(charge.question),
        )


def find_headroom(
    balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = assume_nothing
) -> Headroom:
    """Return the largest charges over the charge's keys that `check_fits` would let pass.

    The amounts in `charge` do not matter.
    """
    check_accountable(balances, charge, limits)
    left_of = _compute_remaining_balances(balances, charge, limits, knowledge)
    every = tuple(map(left_of.make_balance, left_of.by_scope))
    least = {one.scope: one.left_nano for one in every}
    per_unit_scopes = _UNIT_SCOPES if charge.family.unit == ROW_UNIT else (*_UNIT_SCOPES, BalanceScope.PER_TABLE)

    def room(scopes: tuple[BalanceScope, ...]) -> BalanceRoom:
        per_key = [left for scope, left in least.items() if scope in scopes and scope not in per_unit_scopes]
        per_unit = [left for scope, left in least.items() if scope in scopes and scope in per_unit_scopes]
        return BalanceRoom(min([*per_key, MOST_NANO_PER_CHARGE]), min(per_unit, default=None))

    return Headroom(
        analyst_room=room(_OWN_SCOPES),
        shared_room=room(_SHARED_SCOPES),
        separates_analysts=limits.separates_analysts,
        balances=tuple(one for one in every if one.scope is not BalanceScope.PER_QUERY),
        uses_curve=left_of.choose_form(charge, limits).is_by_curve,
        query_room_nano=least.get(BalanceScope.PER_QUERY, MOST_NANO_PER_CHARGE),
    )


_UNIT_SCOPES = (BalanceScope.PER_UNIT, BalanceScope.ANALYST_PER_UNIT)
_OWN_SCOPES = (BalanceScope.PER_QUERY, BalanceScope.ANALYST_PER_PREDICATE, BalanceScope.ANALYST_PER_UNIT)
_SHARED_SCOPES = (BalanceScope.PER_PREDICATE, BalanceScope.PER_UNIT, BalanceScope.PER_TABLE)


def _compute_needed_amount(scope: BalanceScope, charge: Charge, limits: Limits) -> int:
    amounts = charge.own_amounts
    if scope in _SHARED_SCOPES:
        amounts = charge.known_amounts if limits.separates_analysts else charge.shared_amounts
    if scope is BalanceScope.PER_TABLE:
        return amounts.table_nano
    return amounts.unit_epsilon_nano if scope in _UNIT_SCOPES else amounts.epsilon_nano


@dataclass(frozen=True, slots=True)
class _BalancesLeft:
    """The rest of each balance with a cap.

    `by_scope` has it per key, or one number for all keys, and `caps` the caps in force. `units` and `cells` have the
    parts that make up the balances of units, and those of cells with a `cell_delta`.
    """

    by_scope: Mapping[BalanceScope, NanoArray]
    caps: Mapping[BalanceScope, int]
    units: Mapping[BalanceScope, UnitRoom]
    cells: Mapping[BalanceScope, CellLosses]
    cell_delta: float | None

    def make_balance(self, scope: BalanceScope) -> BalanceLeft:
        """Return one balance, for the key with the least left."""
        cap, losses = self.caps[scope], self.cells.get(scope)
        return BalanceLeft(
            scope=scope,
            left_nano=int(self.by_scope[scope].min()),
            cap_nano=cap,
            unit_room=self.units.get(scope),
            cell_room=None
            if losses is None or self.cell_delta is None
            else CellRoom.from_losses(losses, cap_nano=cap, delta=self.cell_delta),
        )

    def find_short_keys(self, scope: BalanceScope, charge: Charge, limits: Limits) -> Booleans:
        """Return the keys for which one balance has less left than a charge needs; one value if all are alike."""
        amount = _compute_needed_amount(scope, charge, limits)
        if scope in self.cells:
            after = self.cells[scope].find_balances(self.cell_delta, nano=amount, curve=charge.cell_renyi)
            return after > self.caps[scope]
        if scope in self.units:
            amount = self.units[scope].compute_needed_amount(amount, charge.renyi)
        return self.by_scope[scope] < amount

    def choose_form(self, charge: Charge, limits: Limits) -> Charge:
        """Return the charge with its Rényi curves if more charges like it then fit, otherwise without.

        If as many fit, the pure loss may turn out smaller, and its noise can be refined. The choice depends only on
        balances that the asking analyst may know.
        """
        if not charge.is_by_curve:
            return charge
        balances = [self.make_balance(scope) for scope in self.by_scope if scope is not BalanceScope.PER_QUERY]

        def count(*, uses_curve: bool) -> int:
            found = (
                one.count_further_questions(
                    charge, amount_nano=_compute_needed_amount(one.scope, charge, limits), uses_curve=uses_curve
                )
                for one in balances
            )
            return min((one for one in found if one is not None), default=0)

        return charge if count(uses_curve=True) > count(uses_curve=False) else charge.without_curves()


def _compute_remaining_balances(
    balances: Balances, charge: Charge, limits: Limits, knowledge: Knowledge
) -> _BalancesLeft:
    """Return the amount left in each balance with a cap, in the order of `BalanceScope`.

    If analysts are accounted for separately, the analyst's refunds that this charge withdraws are not counted: they may
    have been spent on other questions since.
    """
    everybody = balances.make_known_account(charge.analyst) if limits.separates_analysts else balances.shared
    again = balances.sum_withdrawn_refunds(charge) if limits.separates_analysts else Account()
    own = balances.find_account(charge.analyst)
    table = charge.family.table
    in_force = apply_grants(limits, balances.grants.values(), table=table, analyst=charge.analyst)
    left: dict[BalanceScope, NanoArray] = {}
    caps: dict[BalanceScope, int] = {}
    units: dict[BalanceScope, UnitRoom] = {}
    cells: dict[BalanceScope, CellLosses] = {}
    for scope, cap in _list_caps(in_force, charge):
        account = own if scope in (BalanceScope.ANALYST_PER_PREDICATE, BalanceScope.ANALYST_PER_UNIT) else everybody
        more = Account() if account is own else again
        caps[scope] = cap
        if scope is BalanceScope.PER_QUERY:
            left[scope] = np.array([cap], dtype=np.int64)
        elif scope is BalanceScope.PER_TABLE:
            left[scope] = np.array([cap - account.read_table_loss(table) - more.read_table_loss(table)], dtype=np.int64)
        elif scope in _UNIT_SCOPES:
            loss = account.unit_loss.add_question(more.unit_loss.pure_nano, None)
            units[scope] = UnitRoom(loss, cap, in_force.delta)
            left[scope] = np.array([units[scope].left_nano], dtype=np.int64)
        else:
            losses = account.bound_losses_by_curve(
                charge.family, charge.cells, delta=in_force.cell_delta, knowledge=knowledge
            )
            if more.tables:
                losses = losses.add_pure(more.bound_losses(charge.family, charge.cells))
            if in_force.cell_delta is not None:
                cells[scope] = losses
            left[scope] = cap - losses.find_balances(in_force.cell_delta)
    return _BalancesLeft(left, caps, units, cells, in_force.cell_delta)


def _list_caps(caps: Limits, charge: Charge) -> Iterator[tuple[BalanceScope, int]]:
    """Yield each cap in force for a charge, in the order of `BalanceScope`."""
    shared, has_unit = charge.shared, charge.family.unit != ROW_UNIT
    for scope, cap, is_in_force in (
        (BalanceScope.PER_QUERY, caps.per_query_nano, True),
        (BalanceScope.PER_PREDICATE, caps.per_predicate_nano, shared),
        (BalanceScope.PER_UNIT, caps.per_unit_nano, shared and has_unit),
        (BalanceScope.PER_TABLE, caps.per_table_nano, shared),
        (BalanceScope.ANALYST_PER_PREDICATE, caps.analyst_per_predicate_nano, True),
        (BalanceScope.ANALYST_PER_UNIT, caps.analyst_per_unit_nano, has_unit),
    ):
        if cap is not None and is_in_force:
            yield scope, cap


def check_accountable(balances: Balances, charge: Charge, limits: Limits) -> None:
    """Raise `LedgerMisuse` for a charge that no balance can hold."""
    if charge.family.unit != ROW_UNIT and charge.shared and limits.per_unit_nano is None:
        raise LedgerMisuse("a table with a privacy unit needs a cap per unit")
    partition, axes = find_charged_cells(charge)
    for account in (balances.shared, balances.find_account(charge.analyst)):
        sums = account.tables.get(charge.family.table, {}).get(partition)
        if sums is not None and sums.count_cells_with_axes(axes) > MOST_CELLS:
            raise refuse_cells(MOST_CELLS)
