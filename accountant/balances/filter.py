"""The stopping rule: a question starts only when its worst case fits into every balance.

Proof: docs/proofs/accounting.md, theorem 1.

Each balance is compared with its own amount: the analyst's own with all that the question tells, the shared ones with
what is news to everybody together, as far as that is public where analysts are accounted for one by one. All balances
are compared before one of them refuses, so a refusal does the same work whichever balance is short.
References: docs/proofs/accounting.md, theorems 1 and 6.
"""

import numpy as np

from accountant.balances.account import Account, KnownAccount
from accountant.balances.cell_sums import MOST_CELLS, charged_to
from accountant.balances.dependencies import Knowledge, nothing_known
from accountant.balances.fold import Balances
from accountant.balances.grants import in_force
from accountant.errors import BalanceScope, LedgerMisuse, NotApproved, OverBudget, too_many_cells
from accountant.limits import BalanceLeft, BalanceRoom, Headroom, Limits
from accountant.model import MOST_NANO_PER_CHARGE, ROW_UNIT, Charge, NanoArray


def check_fits(balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = nothing_known) -> None:
    """Return when the charge fits. `knowledge` is what is publicly known of the tables' columns.

    Raises `OverBudget` for the first balance, in the order of `BalanceScope`, that has less left than the charge needs,
    `LedgerMisuse` when the charge cannot be accounted for at all, and `NotApproved`.
    """
    check_accountable(balances, charge, limits)
    by_scope = _left_by_scope(balances, charge, limits, knowledge)
    for scope, left in [(scope, left) for scope, left in by_scope if left is not None]:
        needed = _amount_needed(scope, charge, limits)
        short = int(np.count_nonzero(left < needed))
        if short:
            total = charge.cells.size
            raise OverBudget(
                scope=scope,
                needed_nano=needed,
                left_nano=max(0, int(left.min())),
                short_keys=short if left.size == total else total,
                total_keys=total,
                short=left.reshape(-1) < needed if left.size == total else None,
            )


def find_shortage(
    balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = nothing_known
) -> OverBudget | None:
    """What `check_fits` raises for a balance that is short; None where the charge fits."""
    try:
        check_fits(balances, charge, limits, knowledge=knowledge)
    except OverBudget as short:
        return short
    return None


def check_approved(balances: Balances, charge: Charge, limits: Limits) -> None:
    """Raise `NotApproved` when the charge is above the owner's threshold and its question was never approved."""
    above = limits.approval_above_nano
    if above is not None and charge.epsilon_nano > above and charge.question not in balances.approved:
        raise NotApproved(question=charge.question, needed_nano=charge.epsilon_nano, above_nano=above)


def what_fits(balances: Balances, charge: Charge, limits: Limits, *, knowledge: Knowledge = nothing_known) -> Headroom:
    """The largest charges over the same keys that `check_fits` would let pass, whatever the charge's own amounts."""
    check_accountable(balances, charge, limits)
    least = {
        scope: int(left.min())
        for scope, left in _left_by_scope(balances, charge, limits, knowledge)
        if left is not None
    }
    per_unit_scopes = _UNIT_SCOPES if charge.family.unit == ROW_UNIT else (*_UNIT_SCOPES, BalanceScope.PER_TABLE)

    def room(scopes: tuple[BalanceScope, ...]) -> BalanceRoom:
        per_key = [left for scope, left in least.items() if scope in scopes and scope not in per_unit_scopes]
        per_unit = [left for scope, left in least.items() if scope in scopes and scope in per_unit_scopes]
        return BalanceRoom(min([*per_key, MOST_NANO_PER_CHARGE]), min(per_unit, default=None))

    caps = _caps_by_scope(in_force(limits, balances.grants.values(), table=charge.family.table, analyst=charge.analyst))
    kept = tuple(
        BalanceLeft(scope, left, cap)
        for scope, left in least.items()
        if scope is not BalanceScope.PER_QUERY and (cap := caps[scope]) is not None
    )
    return Headroom(own=room(_OWN_SCOPES), shared=room(_SHARED_SCOPES), apart=limits.apart, balances=kept)


_UNIT_SCOPES = (BalanceScope.PER_UNIT, BalanceScope.ANALYST_PER_UNIT)
_OWN_SCOPES = (BalanceScope.PER_QUERY, BalanceScope.ANALYST_PER_PREDICATE, BalanceScope.ANALYST_PER_UNIT)
_SHARED_SCOPES = (BalanceScope.PER_PREDICATE, BalanceScope.PER_UNIT, BalanceScope.PER_TABLE)


def _caps_by_scope(caps: Limits) -> dict[BalanceScope, int | None]:
    return {
        BalanceScope.PER_QUERY: caps.per_query_nano,
        BalanceScope.PER_PREDICATE: caps.per_predicate_nano,
        BalanceScope.PER_UNIT: caps.per_unit_nano,
        BalanceScope.PER_TABLE: caps.per_table_nano,
        BalanceScope.ANALYST_PER_PREDICATE: caps.analyst_per_predicate_nano,
        BalanceScope.ANALYST_PER_UNIT: caps.analyst_per_unit_nano,
    }


def _amount_needed(scope: BalanceScope, charge: Charge, limits: Limits) -> int:
    amounts = charge.own_amounts
    if scope in _SHARED_SCOPES:
        amounts = charge.known_amounts if limits.apart else charge.shared_amounts
    if scope is BalanceScope.PER_TABLE:
        return amounts.table_nano
    return amounts.unit_epsilon_nano if scope in _UNIT_SCOPES else amounts.epsilon_nano


def _left_by_scope(
    balances: Balances, charge: Charge, limits: Limits, knowledge: Knowledge
) -> list[tuple[BalanceScope, NanoArray | None]]:
    """What is left in each balance: per key, or one number for all keys; None where no cap applies.

    Where analysts are accounted for one by one, refunds of the asker's that this very charge withdraws count no longer:
    they may have been spent elsewhere since.
    """
    everybody = balances.known_to(charge.analyst) if limits.apart else balances.shared
    again = balances.counted_again(charge) if limits.apart else Account()
    own = balances.account(charge.analyst)
    table = charge.family.table
    has_unit = charge.family.unit != ROW_UNIT
    shared = charge.shared
    caps = in_force(limits, balances.grants.values(), table=table, analyst=charge.analyst)
    keys_left = _keys_left(everybody, charge, caps.per_predicate_nano if shared else None, knowledge)
    if keys_left is not None and again.tables:
        keys_left = keys_left - again.spent_on(charge.family, charge.cells)
    of_unit = everybody.unit_nano + again.unit_nano
    of_table = everybody.spent_on_table(table) + again.spent_on_table(table)
    return [
        (BalanceScope.PER_QUERY, _flat(caps.per_query_nano)),
        (BalanceScope.PER_PREDICATE, keys_left),
        (BalanceScope.PER_UNIT, _flat(caps.per_unit_nano if shared and has_unit else None, of_unit)),
        (BalanceScope.PER_TABLE, _flat(caps.per_table_nano if shared else None, of_table)),
        (BalanceScope.ANALYST_PER_PREDICATE, _keys_left(own, charge, caps.analyst_per_predicate_nano, knowledge)),
        (BalanceScope.ANALYST_PER_UNIT, _flat(caps.analyst_per_unit_nano if has_unit else None, own.unit_nano)),
    ]


def _flat(limit_nano: int | None, spent_nano: int = 0) -> NanoArray | None:
    return None if limit_nano is None else np.array([limit_nano - spent_nano], dtype=np.int64)


def _keys_left(
    account: Account | KnownAccount, charge: Charge, limit_nano: int | None, knowledge: Knowledge
) -> NanoArray | None:
    if limit_nano is None:
        return None
    return limit_nano - account.spent_on(charge.family, charge.cells, knowledge=knowledge)


def check_accountable(balances: Balances, charge: Charge, limits: Limits) -> None:
    """Raise `LedgerMisuse` for a charge that no balance can hold."""
    if charge.family.unit != ROW_UNIT and charge.shared and limits.per_unit_nano is None:
        raise LedgerMisuse("a table with a privacy unit needs a cap per unit")
    partition, axes = charged_to(charge)
    for account in (balances.shared, balances.account(charge.analyst)):
        sums = account.tables.get(charge.family.table, {}).get(partition)
        if sums is not None and sums.cells_after(axes) > MOST_CELLS:
            raise too_many_cells(MOST_CELLS)
