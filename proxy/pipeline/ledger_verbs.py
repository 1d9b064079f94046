"""The ledger's verbs as the pipeline uses them: reserve, commit, and answers that were released before.

The ledger and the public data version alone decide if a stored answer is served. A failure of the ledger is one message
(KH502), whatever happened.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from accountant.charges import NANO, Charge, Reservation, Spent, StoredAnswer
from accountant.errors import LedgerError, NotApproved, OverBudget, PathTaken
from mechanisms.protocol import Outcome
from mechanisms.ranking.run import Ranking
from planner.errors import KeyholeError
from planner.explain.guarantee import FIXED_BEFORE, write_shared_noise
from planner.explain.payment import Payment
from planner.question.plan import Plan
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import ledger_unavailable
from proxy.pipeline import claim as charging
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.advice import affordable
from proxy.pipeline.advice.other_groups import name_short
from proxy.pipeline.claim import Claim, losses_in_cell, spent_by, worst_amounts
from proxy.pipeline.messages import Answer, Asked, Denial, KeySet, from_bytes
from proxy.pipeline.noise_reuse import Memory, OnPaths, answer_from_known
from proxy.pipeline.payments import payment_after
from proxy.pipeline.question_refusals import approval_needed, mechanism_stopped, over_budget, reading_not_written
from proxy.pipeline.wording import wording_of
from proxy.sources.source_refusals import SourceFailed, column_gone

ANEW = "SET keyhole.reuse = off;"


@contextmanager
def _ledger(service: Service, claim: Claim) -> Iterator[None]:
    try:
        yield
    except OverBudget as over:
        left = affordable.find_left(service, claim)
        refusal = over_budget(
            over,
            plan=claim.plan,
            left=left,
            short=name_short(claim, over),
            session_cap=claim.is_capped_by_session,
        )
    except NotApproved as waiting:
        refusal = _await_approval(service, claim, waiting)
    except LedgerError:
        refusal = ledger_unavailable()
    else:
        return
    raise refusal


def _await_approval(service: Service, claim: Claim, waiting: NotApproved) -> KeyholeError:
    """Return KH308, or KH318 if it was declined before.

    The question's text is kept for the owner, as far as the policy keeps texts.

    A ledger that does not take it leaves the refusal as it is.
    """
    wording = wording_of(service, _as_charged(claim.plan, claim.charge), claim.asked)
    with suppress(LedgerError):
        service.ledger.note_waiting(waiting, claim.charge, wording)
    return approval_needed(waiting)


def stored_answer(service: Service, claim: Claim) -> Answer | None:
    """Return the released answer to the same question on the same data version, and charge its reading.

    Return None if there is none. Anybody who paid for it reads it again for nothing. Another analyst is charged on the
    own balances alone, at the loss it was released with; without that a cap per analyst would be no privacy bound.
    Raise KH306, KH502, and KH307 if the mechanism had stopped without an answer; `Repeated` if the analyst's own
    question is under way.
    """
    name, longest = claim.asked.analyst.name, _longest(service)
    with _ledger(service, claim):
        stored = service.ledger.find_answer(claim.charge.question, claim.version, analyst=name, once_within=longest)
        reading = None if stored is None or stored.is_held else stored.make_reading_charge(name)
        if stored is not None and reading is not None:
            service.ledger.charge_reader(
                reading,
                claim.limits,
                answer=stored,
                attempt=claim.asked.attempt,
                once_within=longest,
                wording=wording_of(service, _as_charged(claim.plan, reading), claim.asked),
            )
    if stored is None:
        return None
    payment = None if reading is None else payment_after(service, claim, reading)
    return _from_store(claim.plan, stored, reused=True, payment=payment)


def answer_again(service: Service, plan: Plan, asked: Asked, stored: StoredAnswer, *, reused: bool) -> Answer | None:
    """Return the earlier answer to a question, on the data version of then.

    Return None if the policy has changed since, so the plan is another question's. Raise KH307.
    """
    claim = charging.claim(plan, service.catalog, asked=asked, version=stored.charge.family.version)
    return _from_store(plan, stored, reused=reused) if claim.charge.question == stored.charge.question else None


def _from_store(plan: Plan, stored: StoredAnswer, *, reused: bool, payment: Payment | None = None) -> Answer:
    shares = stored.charge.path_continuation is not None or not stored.charge.shared
    return answer_of(
        _as_charged(plan, stored.charge),
        _named_as_asked(from_bytes(stored.answer), plan),
        version=stored.charge.family.version,
        reused=reused,
        noise=f"Its noise is also that of earlier questions; {FIXED_BEFORE}." if shares else None,
        stored=stored.reservation,
        payment=payment,
    )


def _named_as_asked(released: KeySet | Denial, plan: Plan) -> KeySet | Denial:
    """Return the released answer, its keys by the names that this spelling of the question gives them."""
    names = plan.question.keys.names
    if isinstance(released, Denial) or not names:
        return released
    return replace(released, columns=(*names, *released.columns[len(names) :]))


def told_answer(service: Service, on_paths: OnPaths | None) -> Answer | None:
    """Answer on noisy values that are all publicly known to be there, charged to the analyst's own balances.

    No data is touched. Return None if some values may be missing, or if those balances do not cover the reading. Raise
    KH502, and `Repeated`.
    """
    outcome = answer_from_known(on_paths, noise=service.noise)
    try:
        return None if on_paths is None or outcome is None else _charge_reading(service, on_paths, outcome)
    except (OverBudget, NotApproved, PathTaken):
        return None


def _charge_reading(service: Service, on_paths: OnPaths, outcome: Outcome) -> Answer:
    claim = on_paths.reading
    released = KeySet.of(claim.plan, outcome.passed, outcome.predicates)
    as_charged = _as_charged(claim.plan, claim.charge)
    try:
        reservation = service.ledger.charge_reading(
            claim.charge,
            claim.limits,
            spent=spent_by(claim, outcome),
            answer=released.to_bytes(),
            reading=on_paths.states,
            attempt=claim.asked.attempt,
            once_within=_longest(service),
            wording=wording_of(service, as_charged, claim.asked),
        )
    except (OverBudget, NotApproved, PathTaken):
        raise
    except LedgerError:
        raise reading_not_written() from None
    noise = _capitalise(write_shared_noise(on_paths.noise(read=True)))
    return answer_of(
        as_charged,
        released,
        version=claim.version,
        reused=False,
        noise=noise,
        stored=reservation.id,
        payment=payment_after(service, claim, claim.charge),
    )


def answer_of(
    plan: Plan,
    released: KeySet | Denial,
    *,
    version: str,
    reused: bool,
    noise: str | None,
    stored: str,
    payment: Payment | None,
) -> Answer:
    """Return the answer with its released keys. Raise KH307 if the mechanism stopped without one."""
    if isinstance(released, Denial):
        raise mechanism_stopped(plan)
    return Answer(plan=plan, keys=released, version=version, reused=reused, noise=noise, stored=stored, payment=payment)


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """A question whose worst case is reserved: as it runs, on noise paths or (None) on noise of its own."""

    reservation: Reservation
    claim: Claim
    on_paths: OnPaths | None

    @property
    def noise(self) -> str | None:
        """Return the sharers of its noise, for the NOTICE."""
        on_paths = self.on_paths
        return None if on_paths is None else _capitalise(write_shared_noise(on_paths.noise(read=False)))

    @property
    def in_full(self) -> bool:
        """Return True if units are charged by its Rényi curve: then all of its noise is drawn at once."""
        return self.reservation.charge.renyi is not None

    @property
    def as_charged(self) -> Plan:
        """The plan with the loss that its analyst is told of."""
        return _as_charged(self.claim.plan, self.claim.charge)


def reserve(service: Service, claim: Claim, on_paths: OnPaths | None) -> Paid:
    """Pay the worst case durably; only then may data be touched.

    Raise KH301, KH302, KH305, KH306, KH308, KH309, KH318 and KH502; and `Repeated`, so that a question that is asked
    twice at once is paid once.

    A question that continues noise paths is refused where the balances do not cover that, rather than asked again: what
    it costs there follows from what was revealed. It is asked again where another question took a path first, and where
    analysts have caps, so that only public amounts count.
    """
    paid = _reserve(service, claim, on_paths)
    charge = paid.claim.charge
    service.telemetry.count_reservation(charge.family.table, epsilon=charge.known_amounts.epsilon_nano / NANO)
    return paid


def _reserve(service: Service, claim: Claim, on_paths: OnPaths | None) -> Paid:
    if on_paths is not None and on_paths.continues:
        try:
            reservation = _make_reservation(service, on_paths.claim)
        except PathTaken:
            pass
        except OverBudget as over:
            if (
                on_paths.claim.limits.separates_analysts
            ):  # what it costs there is public, and what is left follows from own outcomes
                return _reserve_anew(service, claim)
            left = affordable.find_left(service, claim)
            if claim.plan.worst_case_epsilon <= left.epsilon:
                left = replace(left, hint=ANEW)
            short = name_short(on_paths.claim, over)
            capped = claim.is_capped_by_session
            raise over_budget(over, plan=on_paths.claim.plan, left=left, short=short, session_cap=capped) from None
        except NotApproved as waiting:
            raise _await_approval(service, on_paths.claim, waiting) from None
        except LedgerError:
            raise ledger_unavailable() from None
        else:
            return Paid(reservation, on_paths.claim, on_paths)
    return _reserve_anew(service, claim)


def _reserve_anew(service: Service, claim: Claim) -> Paid:
    with _ledger(service, claim):
        return Paid(_make_reservation(service, claim), claim, None)


def _make_reservation(service: Service, claim: Claim) -> Reservation:
    asked = claim.asked
    wording = wording_of(service, _as_charged(claim.plan, claim.charge), asked)
    return service.ledger.reserve(
        claim.charge, claim.limits, attempt=asked.attempt, once_within=_longest(service), wording=wording
    )


def _longest(service: Service) -> timedelta:
    """Return how long after its reservation a question may be under way."""
    return timedelta(milliseconds=service.catalog.statement_timeout_ms)


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """The results of a run: the release, its cost, and noise paths for later questions, by identity."""

    released: KeySet | Denial
    lost: Spent
    paths: Mapping[str, bytes]

    @staticmethod
    def of(paid: Paid, outcome: Outcome, ranking: Ranking | None, memory: Memory) -> "RunResult":
        """Return the meaning of the outcome, and the ranking of its keys."""
        plan = paid.claim.plan
        return RunResult(
            released=Denial() if outcome.denied else KeySet.of(plan, outcome.passed, outcome.predicates, ranking),
            lost=charging.spent_by(paid.claim, outcome, ranking),
            paths=reuse.left_paths(plan, paid.on_paths, outcome, memory, in_full=paid.in_full),
        )


def commit(service: Service, reservation: Reservation, result: RunResult) -> None:
    """Replace the worst case by what the run cost and keep what is released and the noise paths, in one transaction.

    Raises KH502 when the ledger is gone: the answer is withheld then, and the reservation stays spent.
    """
    try:
        service.ledger.commit(reservation, result.lost, result.released.to_bytes(), paths=result.paths)
    except LedgerError:
        pass
    else:
        charge = reservation.charge
        cost_nano = result.lost.find_shared_part(charge).epsilon_nano
        service.telemetry.count_charge(charge.family.table, epsilon=cost_nano / NANO)
        return
    raise ledger_unavailable()


@contextmanager
def given_back_unread(service: Service, reservation: Reservation) -> Iterator[None]:
    """Release the reservation if the block, which reads the source, finds a column gone: no row was read then.

    Raises KH501, and KH502 where the ledger is gone: the reservation stays spent then.
    """
    try:
        yield
        return
    except SourceFailed as failed:
        if not failed.unread:
            raise
    try:
        service.ledger.release(reservation)
    except LedgerError:
        raise ledger_unavailable() from None
    raise column_gone()


def new_answer(service: Service, paid: Paid, result: RunResult) -> Answer:
    """Return the answer that was just committed. Raise KH307 if the mechanism stopped without one."""
    claim = paid.claim
    return answer_of(
        paid.as_charged,
        result.released,
        version=claim.version,
        reused=False,
        noise=paid.noise,
        stored=paid.reservation.id,
        payment=payment_after(service, claim, claim.charge),
    )


def _as_charged(plan: Plan, charge: Charge) -> Plan:
    """Return the plan with the worst case that was reserved for the answer, if it was decided on noise paths."""
    if worst_amounts(plan).epsilon_nano == charge.epsilon_nano and charge.path_continuation is None and charge.shared:
        return plan
    ranked = 0.0 if plan.ranking is None else plan.ranking.worst_case_epsilon
    decided = max(0.0, charge.epsilon_nano / losses_in_cell(plan) / NANO - ranked)
    return replace(plan, calibration=replace(plan.calibration, worst_case_epsilon=decided))


def _capitalise(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
