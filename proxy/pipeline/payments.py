"""What an analyst is told to have paid, or to pay: the charge beside what the balances have left for the analyst."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from accountant.errors import BalanceScope, LedgerError
from accountant.limits import BalanceLeft, Limits
from accountant.model import NANO, ROW_UNIT, Charge
from planner.explain.payment import Left, Payer, Payment
from planner.question.plan import Plan
from proxy.pipeline.claim import groups_that_add_up
from proxy.service.service import Service

_PAYERS = {
    BalanceScope.PER_PREDICATE: Payer.GROUP,
    BalanceScope.ANALYST_PER_PREDICATE: Payer.GROUP,
    BalanceScope.PER_UNIT: Payer.UNIT,
    BalanceScope.ANALYST_PER_UNIT: Payer.UNIT,
    BalanceScope.PER_TABLE: Payer.TABLE,
}


def payment_of(plan: Plan, charge: Charge, balances: Sequence[BalanceLeft], *, most_nano: int | None) -> Payment | None:
    """What a charge costs, beside balances that have that much left; None where nobody's balance counts it.

    Guarantee: what is left is what EXPLAIN and `keyhole.budget` say to the same analyst. `most_nano` is what one
    question may cost a group (None: no cap).
    """
    counted = [one for one in balances if charge.shared or one.scope not in _SHARED]
    if not counted:
        return None
    return Payment(
        group=charge.epsilon_nano / NANO,
        unit=None if charge.family.unit == ROW_UNIT else charge.unit_epsilon_nano / NANO,
        groups=groups_that_add_up(plan),
        unit_text=plan.question.table.unit_text,
        left=tuple(_tightest(counted)),
        further=_count_further(charge, counted, most_nano=most_nano),
    )


def payment_after(service: Service, plan: Plan, charge: Charge, limits: Limits) -> Payment | None:
    """What was just charged, and what is left now for another question at its price. None where nobody's balance
    counts it, and where the ledger is gone, since the answer is paid and told all the same."""
    another = replace(charge, continuing=None)
    try:
        room = service.ledger.left_for(another, limits)
    except LedgerError:
        return None
    return payment_of(plan, charge, room.balances, most_nano=limits.per_query_nano)


_SHARED = (BalanceScope.PER_PREDICATE, BalanceScope.PER_UNIT, BalanceScope.PER_TABLE)


def _tightest(balances: Sequence[BalanceLeft]) -> Iterator[Left]:
    for payer in Payer:
        of = [one for one in balances if _PAYERS[one.scope] is payer]
        if of:
            least = min(of, key=lambda one: one.left_nano)
            yield Left(payer, least.left_nano / NANO, least.cap_nano / NANO)


def _count_further(charge: Charge, balances: Sequence[BalanceLeft], *, most_nano: int | None) -> int | None:
    needed = {
        Payer.GROUP: charge.epsilon_nano,
        Payer.UNIT: charge.unit_epsilon_nano,
        Payer.TABLE: charge.own_amounts.table_nano,
    }
    if charge.epsilon_nano == 0:
        return None
    if most_nano is not None and charge.epsilon_nano > most_nano:
        return 0
    counts = [one.left_nano // needed[_PAYERS[one.scope]] for one in balances if needed[_PAYERS[one.scope]]]
    return max(0, min(counts)) if counts else None
