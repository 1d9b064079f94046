"""The ledger's verbs as the pipeline uses them: reserve, commit, and answers that were released before.

Whether a stored answer is served depends on the ledger and the public data version alone. A failure of the ledger is
one message (KH502), whatever happened.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from accountant.errors import LedgerError, OverBudget
from accountant.model import Reservation, Spent
from planner.plan import Plan
from proxy import affordable
from proxy.answers import Answer, Asked, Denial, KeySet, from_bytes
from proxy.charging import Claim, denied, refused
from proxy.service import Service, ledger_unavailable


@contextmanager
def _ledger(service: Service, claim: Claim, plan: Plan, asked: Asked) -> Iterator[None]:
    try:
        yield
    except OverBudget as over:
        left = affordable.left(service, claim, plan, asked)
        refusal = refused(over, plan=plan, hint=affordable.hint(left.would_fit))
    except LedgerError:
        refusal = ledger_unavailable()
    else:
        return
    raise refusal


def stored_answer(service: Service, claim: Claim, plan: Plan, asked: Asked) -> Answer | None:
    """The released answer to the same question on the same data version, if there is one.

    Whoever paid for it reads it again for nothing. Another analyst is charged on the own balances alone, at the loss
    it was released with; without that a cap per analyst would be no privacy bound. Raises KH306, KH502, and KH307
    where the mechanism had stopped without an answer.
    """
    with _ledger(service, claim, plan, asked):
        stored = service.ledger.find_answer(claim.charge.question, claim.version, analyst=asked.analyst.name)
        if stored is not None and not stored.held:
            service.ledger.charge_reader(stored.reading(asked.analyst.name), claim.limits, answer=stored)
    if stored is None:
        return None
    return answer_of(plan, from_bytes(stored.answer), version=claim.version, reused=True)


def answer_of(plan: Plan, released: KeySet | Denial, *, version: str, reused: bool) -> Answer:
    """The answer with what was released. Raises KH307 where the mechanism stopped without one."""
    if isinstance(released, Denial):
        raise denied(plan)
    return Answer(plan=plan, keys=released, version=version, reused=reused)


def reserve(service: Service, claim: Claim, plan: Plan, asked: Asked) -> Reservation:
    """Pay the worst case durably; only then may data be touched. Raises KH301, KH302, KH305, KH306, KH502."""
    with _ledger(service, claim, plan, asked):
        return service.ledger.reserve(claim.charge, claim.limits)


def commit(service: Service, reservation: Reservation, spent: Spent, released: KeySet | Denial) -> None:
    """Replace the worst case by what the run cost and keep what is released, in one transaction.

    Raises KH502 when the ledger is gone: the answer is withheld then, and the reservation stays spent.
    """
    try:
        service.ledger.commit(reservation, spent, released.to_bytes())
    except LedgerError:
        pass
    else:
        return
    raise ledger_unavailable()
