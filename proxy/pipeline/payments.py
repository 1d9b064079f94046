"""The payment of a question, as its analyst sees it: the charge, and the remaining balances."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from accountant.balances.filter import find_headroom
from accountant.balances.fold import Balances
from accountant.charges import MOST_CAP_NANO, NANO, ROW_UNIT, Charge
from accountant.errors import BalanceScope, LedgerError
from accountant.limits import BalanceLeft, Headroom, Limits
from planner.explain.payment import ChargeForm, Payer, Payment, RemainingBalance
from planner.functionals.cells import find_cell_reach
from proxy.open_policy.service import Service
from proxy.pipeline.claim import Claim, count_groups_of_unit
from proxy.report.limit_names import name_limit

_PAYERS = {
    BalanceScope.PER_PREDICATE: Payer.GROUP,
    BalanceScope.ANALYST_PER_PREDICATE: Payer.GROUP,
    BalanceScope.PER_UNIT: Payer.UNIT,
    BalanceScope.ANALYST_PER_UNIT: Payer.UNIT,
    BalanceScope.PER_TABLE: Payer.TABLE,
}


def make_payment(claim: Claim, charge: Charge, room: Headroom, *, new_noise_room: Headroom) -> Payment | None:
    """Return the cost of a charge, with the remaining balances. Return None if no balance counts the charge.

    Guarantee: EXPLAIN and `keyhole.budget` show the same remaining balances to the same analyst. They are for a further
    question with new noise, which every balance counts. The charge for a stored answer, or for earlier noise, may count
    only on the analyst's own balances.

    Parameters:
        claim: the question as it was asked, with the limits in force.
        room: what remains of the balances that count the charge.
        new_noise_room: what remains of all balances, for a further question with new noise.
    """
    plan, most_nano = claim.plan, claim.limits.per_query_nano
    counted = [one for one in room.balances if charge.shared or one.scope not in _SHARED]
    if not counted:
        return None
    further, scope = _count_further_questions(
        charge, new_noise_room.balances, forms=(False, charge.is_by_curve), most_nano=most_nano
    )
    return Payment(
        group=charge.epsilon_nano / NANO,
        unit=None if charge.family.unit == ROW_UNIT else charge.unit_epsilon_nano / NANO,
        groups=count_groups_of_unit(plan),
        covers_all_cells=find_cell_reach(plan.question).reaches_other_groups,
        unit_text=plan.question.table.unit_text,
        left=tuple(_list_tightest(counted)),
        further_questions=further,
        limit_name="" if scope is None else name_limit(scope, is_session_cap=claim.is_capped_by_session),
        form=_describe_form(charge, room, counted),
    )


def make_payment_after_answer(service: Service, claim: Claim, charge: Charge) -> Payment | None:
    """Return the payment of a charge that was just made, with the balances that remain after it.

    Return None if no balance counts the charge. Return None too if the ledger fails, because the answer is already
    charged and is sent anyway.
    """
    another = replace(charge, path_continuation=None)
    try:
        room = service.ledger.find_known_headroom(another, claim.limits)
        whole = replace(another, shared=True)
        new_noise_room = room if charge.shared else service.ledger.find_known_headroom(whole, claim.limits)
    except LedgerError:
        return None
    return make_payment(claim, another, room, new_noise_room=new_noise_room)


def find_headroom_of_all(service: Service, charge: Charge, limits: Limits, *, room: Headroom) -> Headroom:
    """Return what remains of all balances for a charge, even of those that do not count it.

    Parameters:
        room: what remains of the balances that count the charge.

    Raises:
        LedgerError: if the ledger does not answer.
    """
    return room if charge.shared else service.ledger.find_headroom(replace(charge, shared=True), limits)


def count_fitting_questions(claim: Claim, *, payer: Payer | None = None) -> int:
    """Return how many questions like a claim fit, at their worst case, into balances of which nothing is spent.

    Parameters:
        payer: whose balances count, None for all of them.
    """
    room = find_headroom(Balances(), claim.charge, claim.limits)
    fitting, _ = _count_further_questions(
        claim.charge,
        [one for one in room.balances if payer in (None, _PAYERS[one.scope])],
        forms=(False, claim.charge.is_by_curve),
        most_nano=claim.limits.per_query_nano,
    )
    return MOST_CAP_NANO if fitting is None else fitting


_SHARED = (BalanceScope.PER_PREDICATE, BalanceScope.PER_UNIT, BalanceScope.PER_TABLE)


def _list_tightest(balances: Sequence[BalanceLeft]) -> Iterator[RemainingBalance]:
    for payer in Payer:
        of = [one for one in balances if _PAYERS[one.scope] is payer]
        if of:
            least = min(of, key=lambda one: one.left_nano)
            yield RemainingBalance(payer, least.left_nano / NANO, least.cap_nano / NANO)


def _describe_form(charge: Charge, room: Headroom, balances: Sequence[BalanceLeft]) -> ChargeForm | None:
    units = (None if one.unit_room is None else one.unit_room.delta for one in balances)
    cells = (None if one.cell_room is None else one.cell_room.delta for one in balances)
    unit = None if charge.renyi is None else next((delta for delta in units if delta is not None), None)
    cell = None if charge.cell_renyi is None else next((delta for delta in cells if delta is not None), None)
    if charge.epsilon_nano == 0 or (unit is None and cell is None):
        return None
    pure = _count_further_questions(charge, balances, forms=(False,), most_nano=None)[0] or 0
    return ChargeForm(
        unit_delta=unit,
        group_delta=cell,
        uses_curve=room.uses_curve,
        pure_further=pure,
        gives_back_looks=bool(charge.looks),
    )


def _count_further_questions(
    charge: Charge, balances: Sequence[BalanceLeft], *, forms: Sequence[bool], most_nano: int | None
) -> tuple[int | None, BalanceScope | None]:
    """Return how many further questions with this charge fit, and the balance that limits them.

    All further questions are charged alike, by their curves or by their pure loss: the best of `forms`, where True is
    by curve. Both results are None if no balance limits them.
    """
    needed = {
        Payer.GROUP: charge.epsilon_nano,
        Payer.UNIT: charge.unit_epsilon_nano,
        Payer.TABLE: charge.own_amounts.table_nano,
    }
    if charge.epsilon_nano == 0:
        return None, None
    if most_nano is not None and charge.epsilon_nano > most_nano:
        return 0, BalanceScope.PER_QUERY
    found: list[tuple[int, BalanceScope]] = []
    for uses_curve in forms:
        of_each = [
            (one, one.count_further_questions(charge, amount_nano=needed[_PAYERS[one.scope]], uses_curve=uses_curve))
            for one in balances
        ]
        counts = [(count, one.scope) for one, count in of_each if count is not None]
        if counts:
            found.append(min(counts, key=lambda one: one[0]))
    return max(found, key=lambda one: one[0], default=(0 if balances else None, None))
