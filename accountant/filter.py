"""The stopping rule: a question starts only when its worst case fits into every balance (M10's statement).

All balances are compared before one of them refuses, so a refusal does the same work whichever balance is short.
References: docs/proofs/accounting.md, theorem 1.
"""

import numpy as np

from accountant.errors import LedgerMisuse, OverBudget, Scope
from accountant.fold import Account, Balances, Known
from accountant.model import MOST_NANO_PER_CHARGE, ROW_UNIT, Charge, Left, Limits, NanoArray
from accountant.sums import MOST_CELLS, partition_of


def check_fits(balances: Balances, charge: Charge, limits: Limits) -> None:
    """Return when the charge fits.

    Raises `OverBudget` for the first balance, in the order of `Scope`, that has less left than the charge needs, and
    `LedgerMisuse` when the charge cannot be accounted for at all.
    """
    _check_accountable(balances, charge, limits)
    for scope, left in [(scope, left) for scope, left in _left_by_scope(balances, charge, limits) if left is not None]:
        needed = charge.unit_epsilon_nano if scope in _UNIT_SCOPES else charge.epsilon_nano
        short = int(np.count_nonzero(left < needed))
        if short:
            total = charge.cells.size
            raise OverBudget(
                scope=scope,
                needed_nano=needed,
                left_nano=max(0, int(left.min())),
                short_keys=short if left.size == total else total,
                total_keys=total,
            )


def what_fits(balances: Balances, charge: Charge, limits: Limits) -> Left:
    """The largest charge over the same keys that `check_fits` would let pass, whatever the charge's own amounts."""
    _check_accountable(balances, charge, limits)
    epsilon: list[int] = []
    unit: list[int] = []
    for scope, left in _left_by_scope(balances, charge, limits):
        if left is not None:
            (unit if scope in _UNIT_SCOPES else epsilon).append(max(0, int(left.min())))
    return Left(epsilon_nano=min([*epsilon, MOST_NANO_PER_CHARGE]), unit_epsilon_nano=min(unit, default=None))


_UNIT_SCOPES = (Scope.PER_UNIT, Scope.ANALYST_PER_UNIT)


def _left_by_scope(balances: Balances, charge: Charge, limits: Limits) -> list[tuple[Scope, NanoArray | None]]:
    """What is left in each balance: per key, or one number for all keys; None where no cap applies."""
    everybody = balances.known_to(charge.analyst) if limits.apart else balances.shared
    own = balances.account(charge.analyst)
    has_unit = charge.family.unit != ROW_UNIT
    shared = charge.shared
    return [
        (Scope.PER_QUERY, _flat(limits.per_query_nano)),
        (Scope.PER_PREDICATE, _keys_left(everybody, charge, limits.per_predicate_nano if shared else None)),
        (Scope.PER_UNIT, _flat(limits.per_unit_nano if shared and has_unit else None, everybody.unit_nano)),
        (Scope.ANALYST_PER_PREDICATE, _keys_left(own, charge, limits.analyst_per_predicate_nano)),
        (Scope.ANALYST_PER_UNIT, _flat(limits.analyst_per_unit_nano if has_unit else None, own.unit_nano)),
    ]


def _flat(limit_nano: int | None, spent_nano: int = 0) -> NanoArray | None:
    return None if limit_nano is None else np.array([limit_nano - spent_nano], dtype=np.int64)


def _keys_left(account: Account | Known, charge: Charge, limit_nano: int | None) -> NanoArray | None:
    return None if limit_nano is None else limit_nano - account.spent_on(charge.family, charge.cells)


def _check_accountable(balances: Balances, charge: Charge, limits: Limits) -> None:
    if charge.family.unit != ROW_UNIT and charge.shared and limits.per_unit_nano is None:
        raise LedgerMisuse("a table with a privacy unit needs a cap per unit")
    partition = partition_of(charge.family)
    axes = [values for _, values in charge.cells.columns]
    for account in (balances.shared, balances.account(charge.analyst)):
        sums = account.tables.get(charge.family.table, {}).get(partition)
        if sums is not None and sums.cells_after(axes) > MOST_CELLS:
            raise LedgerMisuse(f"a partition of more than {MOST_CELLS} cells")
