"""What would still fit: the hint of every refusal for budget, found by really planning the cheaper question."""

from dataclasses import replace

from accountant.errors import LedgerError
from accountant.limits import Headroom
from accountant.model import NANO, PathState
from mechanisms.protocol import Calibration
from planner.catalog.model import Catalog
from planner.explain.balances import QuestionBalance, SharedNoise, Stored
from planner.plan.affordable_settings import OtherWay, no_other_way, smallest_fnr, smallest_tolerance
from planner.question.model import Accuracy, Question
from planner.question.plan import Plan
from planner.statements import settings
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.claim import Claim, groups_that_add_up, worst_amounts
from proxy.pipeline.messages import Asked
from proxy.pipeline.payments import payment_of
from proxy.service.refusals import ledger_unavailable
from proxy.service.service import Service


def find_left(service: Service, claim: Claim) -> QuestionBalance:
    """What the balances still admit for this question, and settings with which it would pass if it does not now."""
    asked, plan = claim.asked, claim.plan
    room = _room(service, claim)
    stored = _find_stored(service, claim)
    rooms: dict[tuple[PathState, ...], Headroom] = {}
    least = room.epsilon_nano
    if room.unit_epsilon_nano is not None:
        least = min(least, room.unit_epsilon_nano // groups_that_add_up(plan))
    epsilon = max(least, 0) / NANO
    wanted = settings.reuse(asked.settings)
    memory = reuse.recall_paths(service, claim)

    def on_paths(question: Question, calibration: Calibration) -> SharedNoise | None:
        """The noise that the question would share with earlier ones, and whether it fits so."""
        other = replace(plan, question=question, calibration=calibration)
        amounts = worst_amounts(other)
        charge = replace(claim.charge, epsilon_nano=amounts.epsilon_nano, unit_epsilon_nano=amounts.unit_epsilon_nano)
        found = reuse.on_earlier_noise(
            replace(claim, plan=other, charge=charge), reuse.recall_for(memory, other, service), wanted=wanted
        )
        if found is None:
            return None
        if not (found.told or found.continues):
            return None
        read = found.told and room.admits(found.reading.charge)
        if found.states not in rooms:  # continuing paths may end refunds that what is left counts on
            rooms[found.states] = _room(service, found.claim)
        goes_on = found.continues and rooms[found.states].admits(found.claim.charge)
        return found.noise(read=found.told, fits=read or goes_on)

    def otherwise(question: Question, calibration: Calibration) -> bool:
        found = on_paths(question, calibration)
        return found is not None and found.fits

    noise = on_paths(plan.question, plan.calibration)
    fits = claim.charge.epsilon_nano <= least or (noise is not None and noise.fits)
    if stored is not None:
        fits = stored.fits
    return QuestionBalance(
        version=claim.version,
        epsilon=epsilon,
        would_fit=()
        if fits
        else (*_in_blocks(plan, epsilon), *cheaper(asked, service.catalog, epsilon=epsilon, otherwise=otherwise)),
        noise=noise,
        payment=payment_of(plan, claim.charge, room.balances, most_nano=claim.limits.per_query_nano)
        if plan.question.functionals
        else None,
        stored=stored,
    )


def _find_stored(service: Service, claim: Claim) -> Stored | None:
    """The answer that asking would tell again, if there is one. Raises KH502."""
    name = claim.asked.analyst.name
    try:
        found = service.ledger.find_answer(claim.charge.question, claim.version, analyst=name)
        if found is None or found.held:
            return None if found is None else Stored(payment=None)
        reading = found.charge_of_reading(name)
        own = service.ledger.left_for(reading, claim.limits)
    except LedgerError:
        raise ledger_unavailable() from None
    payment = payment_of(claim.plan, reading, own.balances, most_nano=claim.limits.per_query_nano)
    return Stored(payment=payment, fits=own.admits(reading))


def _room(service: Service, claim: Claim) -> Headroom:
    try:
        return service.ledger.left_for(claim.charge, claim.limits)
    except LedgerError:
        raise ledger_unavailable() from None


def _in_blocks(plan: Plan, epsilon: float) -> tuple[str, ...]:
    """The setting with which noise that serves no other question is chosen, where that makes this one fit."""
    fits = plan.sharing is not None and plan.sharing.epsilon_in_blocks <= epsilon
    return ("keyhole.reuse = off",) if fits else ()


def cheaper(asked: Asked, catalog: Catalog, *, epsilon: float, otherwise: OtherWay = no_other_way) -> tuple[str, ...]:
    """The smallest tolerance, and the smallest false-negative rate, with which the question costs at most `epsilon`, or
    fits otherwise: settings as text, each alone enough."""
    accuracy = asked.accuracy(catalog)

    def with_accuracy(changed: Accuracy) -> Question:
        return asked.read_question(catalog, changed)

    tolerance = smallest_tolerance(
        lambda text: with_accuracy(replace(accuracy, tolerance=text)), epsilon=epsilon, otherwise=otherwise
    )
    fnr = smallest_fnr(lambda rate: with_accuracy(replace(accuracy, fnr=rate)), epsilon=epsilon, otherwise=otherwise)
    found = (
        None if tolerance is None else f"keyhole.tolerance = '{tolerance}'",
        None if fnr is None else f"keyhole.fnr = {fnr}",
    )
    return tuple(setting for setting in found if setting is not None)


def hint(settings_that_fit: tuple[str, ...]) -> str:
    """The refusal's hint: statements that can be run as they stand."""
    if not settings_that_fit:
        return "No tolerance up to 100 % makes this question fit. Ask about fewer thresholds, or about other groups."
    return "  or  ".join(f"SET {setting};" for setting in settings_that_fit)
