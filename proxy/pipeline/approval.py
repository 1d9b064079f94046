"""The check whether a question would wait for the owner's approval."""

from accountant.charges import Charge
from accountant.errors import LedgerError, NotApproved
from planner.explain.balances import PendingApproval
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.claim import Claim
from proxy.pipeline.question_refusals import refuse_unapproved


def find_needed_approval(service: Service, claim: Claim) -> PendingApproval | None:
    """Return the approval without which the question would be refused now, as KH308 or KH318.

    Return None if none is needed.

    Guarantee: the result follows from the ledger, the policy and the public data version alone, as asking itself does.
    Nothing is spent. Raise KH502 if the ledger is not available.
    """
    above = claim.limits.approval_above_nano
    if above is None or not claim.plan.reads_data or service.is_approved(claim.charge.question):
        return None
    charge = _choose_compared_charge(service, claim)
    if charge is None or charge.epsilon_nano <= above:
        return None
    refusal = refuse_unapproved(
        NotApproved(
            question=charge.question,
            needed_nano=charge.epsilon_nano,
            above_nano=above,
            declined=service.find_decline_reason(charge.question),
        )
    )
    return PendingApproval(
        question=charge.question, message=refusal.message, detail=refusal.detail or "", hint=refusal.hint or ""
    )


def _choose_compared_charge(service: Service, claim: Claim) -> Charge | None:
    """Return the charge that decides whether a question needs approval.

    In the pipeline's order: the charge of reading a stored answer, of continuing earlier noise, or of drawing new
    noise. Return None if the analyst has already paid for the answer.
    """
    name = claim.asked.analyst.name
    try:
        stored = service.ledger.find_answer(claim.charge.question, claim.version, analyst=name)
    except LedgerError:
        raise report_unavailable_ledger() from None
    if stored is not None:
        return None if stored.is_held else stored.make_reading_charge(name)
    _, on_paths = reuse.find_earlier_noise(service, claim)
    if on_paths is None or not (on_paths.is_revealed or on_paths.is_continued):
        return claim.charge
    own = on_paths.claim.charge
    # what is told but waits is asked as any other question then: on that noise, or on new noise
    return own if on_paths.is_continued or own.epsilon_nano <= (claim.limits.approval_above_nano or 0) else claim.charge
