"""The hints of a refusal for lack of budget: cheaper questions that fit. Each of them is really planned.

If no setting suffices and no other groups have budget, only the data owner can help. The hint then has the owner's
commands.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from accountant.charges import NANO, Charge, PathState
from accountant.errors import BalanceScope, LedgerError, OverBudget
from accountant.limits import Headroom
from mechanisms.protocol import Calibration
from planner.explain.balances import QuestionBalance, SharedNoise, StoredPayment
from planner.plan.affordable_settings import CostLimit
from planner.question.plan import Plan
from planner.question.question import Question
from planner.statements import settings
from proxy.open_policy.accounts import convert_to_nano
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline import claim as charging
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.advice.levers import ALL, Offer, find_offers, find_tolerance, raise_group_minimum
from proxy.pipeline.advice.other_groups import find_short_groups, find_unit_question
from proxy.pipeline.claim import (
    Claim,
    count_groups_of_unit,
    count_losses_in_cell,
    find_worst_amounts,
    find_worst_cell_curve,
    find_worst_curve,
)
from proxy.pipeline.messages import Asked
from proxy.pipeline.payments import find_headroom_of_all, make_payment

_CAPS = {
    BalanceScope.PER_PREDICATE: "predicate",
    BalanceScope.PER_UNIT: "unit",
    BalanceScope.PER_TABLE: "table",
    BalanceScope.ANALYST_PER_PREDICATE: "predicate",
    BalanceScope.ANALYST_PER_UNIT: "unit",
}
"""The names of `keyhole grant --cap` for the balance that is short."""
_OF_ANALYSTS = (BalanceScope.ANALYST_PER_PREDICATE, BalanceScope.ANALYST_PER_UNIT)


@dataclass(frozen=True, slots=True)
class _Advice:
    """The advice on a refused question: settings, each of which makes it fit, and the text of the hint."""

    settings: tuple[str, ...] = ()
    hint: str = ""
    short_groups: str = ""


def find_question_balance(service: Service, claim: Claim) -> QuestionBalance:
    """Return the remaining budget for a question. If the question does not fit, add advice on what would fit."""
    plan = claim.plan
    room = _find_headroom(service, claim)
    stored = _find_stored_payment(service, claim)
    rooms: dict[tuple[PathState, ...], Headroom] = {}
    admitted = room.admits_charge(claim.charge)
    least = max(_find_largest_cost(room, claim), convert_to_nano(plan.worst_case_epsilon) if admitted else 0)
    epsilon = max(least, 0) / NANO
    wanted = settings.allows_reuse(claim.asked.settings)
    memory = reuse.find_stored_noise(service, claim)

    def on_paths(question: Question, calibration: Calibration) -> SharedNoise | None:
        """Return the noise that the question would share with earlier questions.

        Return None if it would draw new noise.
        """
        other = replace(plan, question=question, calibration=calibration)
        amounts = find_worst_amounts(other)
        charge = replace(
            claim.charge.without_curves(),
            epsilon_nano=amounts.epsilon_nano,
            unit_epsilon_nano=amounts.unit_epsilon_nano,
        )
        found = reuse.plan_on_stored_noise(
            replace(claim, plan=other, charge=charge),
            reuse.select_noise_for_plan(memory, other, service),
            is_wanted=wanted,
        )
        if found is None:
            return None
        if not (found.is_revealed or found.is_continued):
            return None
        read = found.is_revealed and room.admits_charge(found.reading_claim.charge)
        if found.path_states not in rooms:  # continuing paths may end refunds that what is left counts on
            rooms[found.path_states] = _find_headroom(service, found.claim)
        goes_on = found.is_continued and rooms[found.path_states].admits_charge(found.claim.charge)
        return found.describe_noise(is_revealed=found.is_revealed, fits=read or goes_on)

    def is_affordable(question: Question, calibration: Calibration) -> bool:
        if calibration.divergences:  # `least` is for any noise, and arc looks cost less by their own curve
            return room.admits_charge(
                _charge_by_own_curve(claim, replace(plan, question=question, calibration=calibration))
            )
        found = on_paths(question, calibration)
        return found is not None and found.is_affordable

    noise = on_paths(plan.question, plan.calibration)
    fits = admitted or (noise is not None and noise.is_affordable)
    if stored is not None:
        fits = stored.is_affordable
    advice = _Advice() if fits else _advise(service, claim, CostLimit(epsilon, plan.worst_case_epsilon, is_affordable))
    return QuestionBalance(
        version=claim.version,
        epsilon=epsilon,
        fitting_settings=advice.settings,
        hint=advice.hint,
        short_groups=advice.short_groups,
        noise=noise,
        payment=make_payment(claim, claim.charge, room, new_noise_room=room) if plan.reads_data else None,
        stored=stored,
    )


def _charge_by_own_curve(claim: Claim, other: Plan) -> Charge:
    """Return the charge of the claim's question as another plan, on no stored noise."""
    amounts = find_worst_amounts(other)
    return replace(
        claim.charge.without_curves(),
        epsilon_nano=amounts.epsilon_nano,
        unit_epsilon_nano=amounts.unit_epsilon_nano,
        renyi=None if claim.charge.renyi is None else find_worst_curve(other),
        cell_renyi=None if claim.charge.cell_renyi is None else find_worst_cell_curve(other),
    )


def _find_stored_payment(service: Service, claim: Claim) -> StoredPayment | None:
    """Return the stored answer that asking would return again, with its cost. Return None without one.

    Raise KH502 if the ledger is not available.
    """
    name = claim.asked.analyst.name
    try:
        found = service.ledger.find_answer(claim.charge.question, claim.version, analyst=name)
        if found is None or found.is_held:
            return None if found is None else StoredPayment(payment=None)
        reading = found.make_reading_charge(name)
        own = service.ledger.find_headroom(reading, claim.limits)
        new_noise_room = find_headroom_of_all(service, reading, claim.limits, room=own)
    except LedgerError:
        raise report_unavailable_ledger() from None
    payment = make_payment(claim, reading, own, new_noise_room=new_noise_room)
    return StoredPayment(payment=payment, is_affordable=own.admits_charge(reading))


def _find_headroom(service: Service, claim: Claim) -> Headroom:
    try:
        return service.ledger.find_headroom(claim.charge, claim.limits)
    except LedgerError:
        raise report_unavailable_ledger() from None


def _find_largest_cost(room: Headroom, claim: Claim) -> int:
    """Return the largest worst-case loss of a group, in 1e-9 epsilon, that the balances still cover."""
    plan = claim.plan
    return room.find_largest_epsilon(
        count_groups_of_unit(plan), in_cell=count_losses_in_cell(plan), uses_curve=claim.charge.is_by_curve
    )


def _advise(service: Service, claim: Claim, target: CostLimit) -> _Advice:
    """Return advice on a question that does not fit. The smallest changes of the answer come first.

    Larger groups come first, then another aggregate, less accuracy, and last fewer groups. Every piece of advice was
    planned, and fits.
    """
    plan, asked, catalog = claim.plan, claim.asked, service.catalog
    shortage = _find_shortage(service, claim)
    short = None if shortage is None else find_short_groups(service, claim, shortage)
    offers = (
        *_offer_without_own_cap(service, claim),
        *_offer_separate_noise(plan, target.epsilon),
        *find_offers(asked, catalog, plan, target),
    )
    lasting = replace(claim, limits=replace(claim.limits, per_query_nano=None))
    ways = [
        *_spell_offers(
            asked, service, offers, target, left=_find_largest_cost(_find_headroom(service, lasting), lasting) / NANO
        )
    ]
    units = find_unit_question(service, claim)
    others = [raise_group_minimum(asked, catalog, plan, target), units and f"Instead you can ask: {units}"]
    lossless = sum(not offer.is_less_accurate for offer in offers)
    ways[lossless:lossless] = [way for way in others if way is not None]
    if short is not None and short.question is not None:
        ways.append(f"without the groups that have too little left: {short.question}")
    return _Advice(
        settings=tuple(offer.text for offer in offers),
        hint="  or  ".join(ways) if ways else _spell_owner_commands(claim, shortage),
        short_groups="" if short is None else short.names,
    )


def _spell_offers(
    asked: Asked, service: Service, offers: tuple[Offer, ...], target: CostLimit, *, left: float
) -> Iterator[str]:
    """Yield the offers as statements to run.

    If an offer would use up the whole balance, its text says so and adds a tolerance that uses half of it.

    Parameters:
        left: the largest worst-case loss of a group that the balances cover, without the cap on one question.
    """
    alone = [offer for offer in offers if len(offer.settings) == 1]
    empties = any(offer.epsilon > ALL * left for offer in offers)
    for offer in offers:
        yield offer.statements + ("  (this would use all that is left)" if offer.epsilon > ALL * left else "")
    if empties and alone:
        half = find_tolerance(asked, service.catalog, replace(target, epsilon=min(left / 2, target.epsilon)))
        if half is not None and half.epsilon <= left / 2:
            yield f"{half.statements}  (half of it)"


def _find_shortage(service: Service, claim: Claim) -> OverBudget | None:
    try:
        return service.ledger.find_shortage(claim.charge, claim.limits)
    except LedgerError:
        raise report_unavailable_ledger() from None


def _offer_without_own_cap(service: Service, claim: Claim) -> tuple[Offer, ...]:
    """Return an offer to lift the session's own cap on one question, if the question then fits."""
    if settings.read_max_epsilon(claim.asked.settings) is None:
        return ()
    asked = replace(claim.asked, settings={**claim.asked.settings, "keyhole.max_epsilon": None})
    made = charging.make_claim(claim.plan, service.catalog, asked=asked, version=claim.version)
    fits = _find_shortage(service, made) is None
    return (Offer(("keyhole.max_epsilon = ''",), claim.plan.worst_case_epsilon, 1.0),) if fits else ()


def _offer_separate_noise(plan: Plan, epsilon: float) -> tuple[Offer, ...]:
    """Return an offer of noise that no other question can reuse, if the question then fits."""
    if plan.sharing is None or plan.sharing.epsilon_in_blocks > epsilon:
        return ()
    return (Offer(("keyhole.reuse = off",), plan.sharing.epsilon_in_blocks, 1.0),)


def _spell_owner_commands(claim: Claim, shortage: OverBudget | None) -> str:
    """Return the owner's commands as text, if nothing that the analyst can change makes the question fit."""
    nothing = "No setting makes this question fit, and there are no other groups: only the data owner can help."
    if shortage is None:
        return nothing
    if shortage.scope not in _CAPS:
        return "No setting makes this question fit. Ask about fewer thresholds, or ask the owner for a higher \
epsilon_per_query."
    missing = ceil((shortage.needed_nano - shortage.left_nano) / NANO * 100) / 100
    one = f" --analyst {claim.asked.analyst.name}" if shortage.scope in _OF_ANALYSTS else ""
    cap, table = _CAPS[shortage.scope], claim.plan.question.table.name
    about = "" if cap == "unit" else f" --table {table}"
    return f"{nothing} keyhole grant {missing:g} --cap {cap}{about}{one} --why ..."
