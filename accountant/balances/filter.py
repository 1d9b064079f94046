"""The stopping rule: a question starts only when its worst case fits into every balance.

Proof: docs/proofs/accounting.md, theorem 1.

Each balance is compared with its own amount. The analyst's own balances count all that the answer reveals. The shared
balances count only what is new to everybody together. If analysts are accounted for separately, they count only the
public part of it. All balances are compared before one of them refuses, so a refusal does the same work whichever
balance is short.
References: docs/proofs/accounting.md, theorems 1 and 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from accountant.balances.account import Account, KnownAccount
from accountant.balances.cell_sums import MOST_CELLS, find_charged_cells
from accountant.balances.dependencies import Knowledge, assume_nothing
from accountant.balances.fold import Balances
from accountant.balances.grants import apply_grants
from accountant.charges import MOST_NANO_PER_CHARGE, ROW_UNIT, Charge, NanoArray
from accountant.errors import BalanceScope, LedgerMisuse, NotApproved, OverBudget, refuse_cells
from accountant.limits import BalanceLeft, BalanceRoom, Headroom, Limits
from accountant.unit_balance import UnitRoom, leaves_more_room


def check_fits(balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = assume_nothing) -> Charge:
    """Return the charge in its final form, if it fits into every balance.

    It keeps its Rényi curve if that leaves a unit more room. `knowledge` gives the public dependencies of the tables'
    columns.

    Raise `OverBudget` for the first balance, in the order of `BalanceScope`, that has less left than the charge needs.
    Raise `LedgerMisuse` if no balance can hold the charge.
    """
    check_accountable(balances, charge, limits)
    left_of = _compute_remaining_balances(balances, charge, limits, knowledge)
    charge = left_of.choose_form(charge, limits)
    for scope, left in left_of.by_scope.items():
        needed = left_of.compute_needed_amount(scope, charge, limits)
        short = int(np.count_nonzero(left < needed))
        if short:
            total = charge.cells.key_count
            raise OverBudget(
                scope=scope,
                needed_nano=needed,
                left_nano=max(0, int(left.min())),
                short_keys=short if left.size == total else total,
                total_keys=total,
                short=left.reshape(-1) < needed if left.size == total else None,
            )
    return charge


def choose_form(balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = assume_nothing) -> Charge:
    """Return the charge in the form of `check_fits`, without checking that it fits. Raise `LedgerMisuse` as it does."""
    check_accountable(balances, charge, limits)
    return (
        charge
        if charge.renyi is None
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
    least = {scope: int(left.min()) for scope, left in left_of.by_scope.items()}
    per_unit_scopes = _UNIT_SCOPES if charge.family.unit == ROW_UNIT else (*_UNIT_SCOPES, BalanceScope.PER_TABLE)

    def room(scopes: tuple[BalanceScope, ...]) -> BalanceRoom:
        per_key = [left for scope, left in least.items() if scope in scopes and scope not in per_unit_scopes]
        per_unit = [left for scope, left in least.items() if scope in scopes and scope in per_unit_scopes]
        return BalanceRoom(min([*per_key, MOST_NANO_PER_CHARGE]), min(per_unit, default=None))

    caps = _list_caps(apply_grants(limits, balances.grants.values(), table=charge.family.table, analyst=charge.analyst))
    kept = tuple(
        BalanceLeft(scope, left, cap, left_of.units.get(scope))
        for scope, left in least.items()
        if scope is not BalanceScope.PER_QUERY and (cap := caps[scope]) is not None
    )
    return Headroom(
        analyst_room=room(_OWN_SCOPES),
        shared_room=room(_SHARED_SCOPES),
        separates_analysts=limits.separates_analysts,
        balances=kept,
        uses_curve=left_of.choose_form(charge, limits).renyi is not None,
    )


_UNIT_SCOPES = (BalanceScope.PER_UNIT, BalanceScope.ANALYST_PER_UNIT)
_OWN_SCOPES = (BalanceScope.PER_QUERY, BalanceScope.ANALYST_PER_PREDICATE, BalanceScope.ANALYST_PER_UNIT)
_SHARED_SCOPES = (BalanceScope.PER_PREDICATE, BalanceScope.PER_UNIT, BalanceScope.PER_TABLE)


def _list_caps(caps: Limits) -> dict[BalanceScope, int | None]:
    return {
        BalanceScope.PER_QUERY: caps.per_query_nano,
        BalanceScope.PER_PREDICATE: caps.per_predicate_nano,
        BalanceScope.PER_UNIT: caps.per_unit_nano,
        BalanceScope.PER_TABLE: caps.per_table_nano,
        BalanceScope.ANALYST_PER_PREDICATE: caps.analyst_per_predicate_nano,
        BalanceScope.ANALYST_PER_UNIT: caps.analyst_per_unit_nano,
    }


def _compute_needed_amount(scope: BalanceScope, charge: Charge, limits: Limits) -> int:
    amounts = charge.own_amounts
    if scope in _SHARED_SCOPES:
        amounts = charge.known_amounts if limits.separates_analysts else charge.shared_amounts
    if scope is BalanceScope.PER_TABLE:
        return amounts.table_nano
    return amounts.unit_epsilon_nano if scope in _UNIT_SCOPES else amounts.epsilon_nano


@dataclass(frozen=True, slots=True)
class _BalancesLeft:
    """The rest of each balance with a cap: per key, or one number for all keys; for units the parts that make it up."""

    by_scope: Mapping[BalanceScope, NanoArray]
    units: Mapping[BalanceScope, UnitRoom]

    def compute_needed_amount(self, scope: BalanceScope, charge: Charge, limits: Limits) -> int:
        """Return the amount that a charge needs of one balance."""
        amount = _compute_needed_amount(scope, charge, limits)
        return self.units[scope].compute_needed_amount(amount, charge.renyi) if scope in self.units else amount

    def choose_form(self, charge: Charge, limits: Limits) -> Charge:
        """Return the charge with its Rényi curve if that leaves more room, otherwise without.

        The choice depends only on balances that the asking analyst may know.
        """
        if charge.renyi is None:
            return charge
        rooms = [(room, _compute_needed_amount(scope, charge, limits)) for scope, room in self.units.items()]
        ends = []
        for scope, left in self.by_scope.items():
            amount = _compute_needed_amount(scope, charge, limits)
            if amount and scope is not BalanceScope.PER_QUERY and scope not in self.units:
                ends.append(int(left.min()) // amount)
        at_most = max(0, min(ends)) if ends else None
        return charge if leaves_more_room(rooms, charge, at_most=at_most) else replace(charge, renyi=None)


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
    has_unit = charge.family.unit != ROW_UNIT
    shared = charge.shared
    caps = apply_grants(limits, balances.grants.values(), table=table, analyst=charge.analyst)
    keys_left = _compute_remaining_key_losses(everybody, charge, caps.per_predicate_nano if shared else None, knowledge)
    if keys_left is not None and again.tables:
        keys_left = keys_left - again.bound_losses(charge.family, charge.cells)
    of_unit = everybody.unit_loss.add_question(again.unit_loss.pure_nano, None)
    units = {
        scope: UnitRoom(loss, cap, caps.delta)
        for scope, loss, cap in (
            (BalanceScope.PER_UNIT, of_unit, caps.per_unit_nano if shared else None),
            (BalanceScope.ANALYST_PER_UNIT, own.unit_loss, caps.analyst_per_unit_nano),
        )
        if has_unit and cap is not None
    }
    of_table = everybody.read_table_loss(table) + again.read_table_loss(table)
    found = {
        BalanceScope.PER_QUERY: _subtract_from_limit(caps.per_query_nano),
        BalanceScope.PER_PREDICATE: keys_left,
        BalanceScope.PER_UNIT: _compute_remaining_unit_loss(units.get(BalanceScope.PER_UNIT)),
        BalanceScope.PER_TABLE: _subtract_from_limit(caps.per_table_nano if shared else None, of_table),
        BalanceScope.ANALYST_PER_PREDICATE: _compute_remaining_key_losses(
            own, charge, caps.analyst_per_predicate_nano, knowledge
        ),
        BalanceScope.ANALYST_PER_UNIT: _compute_remaining_unit_loss(units.get(BalanceScope.ANALYST_PER_UNIT)),
    }
    return _BalancesLeft({scope: left for scope, left in found.items() if left is not None}, units)


def _compute_remaining_unit_loss(room: UnitRoom | None) -> NanoArray | None:
    return None if room is None else _subtract_from_limit(room.left_nano)


def _subtract_from_limit(limit_nano: int | None, spent_nano: int = 0) -> NanoArray | None:
    return None if limit_nano is None else np.array([limit_nano - spent_nano], dtype=np.int64)


def _compute_remaining_key_losses(
    account: Account | KnownAccount, charge: Charge, limit_nano: int | None, knowledge: Knowledge
) -> NanoArray | None:
    if limit_nano is None:
        return None
    return limit_nano - account.bound_losses(charge.family, charge.cells, knowledge=knowledge)


def check_accountable(balances: Balances, charge: Charge, limits: Limits) -> None:
    """Raise `LedgerMisuse` for a charge that no balance can hold."""
    if charge.family.unit != ROW_UNIT and charge.shared and limits.per_unit_nano is None:
        raise LedgerMisuse("a table with a privacy unit needs a cap per unit")
    partition, axes = find_charged_cells(charge)
    for account in (balances.shared, balances.find_account(charge.analyst)):
        sums = account.tables.get(charge.family.table, {}).get(partition)
        if sums is not None and sums.count_cells_with_axes(axes) > MOST_CELLS:
            raise refuse_cells(MOST_CELLS)
