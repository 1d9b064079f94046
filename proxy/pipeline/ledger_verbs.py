"""The pipeline's use of the ledger: reserve, commit, and return stored answers.

The ledger and the public data version alone decide if a stored answer is returned. Every failure of the ledger has the
same message (KH502).
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
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline import claim as charging
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.advice import affordable
from proxy.pipeline.advice.other_groups import name_short_groups
from proxy.pipeline.claim import Claim, count_losses_in_cell, find_run_loss, find_worst_amounts
from proxy.pipeline.messages import Answer, Asked, Denial, KeySet, from_bytes
from proxy.pipeline.noise_reuse import QuestionOnPaths, StoredNoise, decide_from_known_values
from proxy.pipeline.payments import make_payment_after_answer
from proxy.pipeline.question_refusals import (
    refuse_over_budget,
    refuse_unapproved,
    report_stopped_mechanism,
    report_unwritten_reading,
)
from proxy.pipeline.wording import make_wording
from proxy.sources.source_refusals import SourceFailed, report_missing_column

ANEW = "SET keyhole.reuse = off;"


@contextmanager
def _refuse_ledger_errors(service: Service, claim: Claim) -> Iterator[None]:
    try:
        yield
    except OverBudget as over:
        left = affordable.find_question_balance(service, claim)
        refusal = refuse_over_budget(
            over,
            plan=claim.plan,
            left=left,
            short=name_short_groups(claim, over),
            is_session_cap=claim.is_capped_by_session,
        )
    except NotApproved as waiting:
        refusal = _await_approval(service, claim, waiting)
    except LedgerError:
        refusal = report_unavailable_ledger()
    else:
        return
    raise refusal


def _await_approval(service: Service, claim: Claim, waiting: NotApproved) -> KeyholeError:
    """Store a question for the owner's approval, and return its refusal: KH308, or KH318 if it was declined before.

    The question's text is stored for the owner as far as the policy keeps texts. If the ledger cannot store it, the
    refusal is the same.
    """
    wording = make_wording(service, _set_worst_case(claim.plan, claim.charge), claim.asked)
    with suppress(LedgerError):
        service.ledger.store_waiting_question(waiting, claim.charge, wording)
    return refuse_unapproved(waiting)


def find_answer_or_noise(service: Service, claim: Claim) -> Answer | StoredNoise:
    """Return the stored answer to the same question on the same data version, and charge the analyst for reading it.

    If there is no stored answer, return the stored noise for the question's functionals. An analyst who has paid for
    the answer reads it again at no cost. Another analyst's own balances are charged the loss of its release. If it were
    free, a cap per analyst would not bound what that analyst learns. Raise KH306, KH502, and KH307 if the mechanism had
    stopped without an answer. Raise `Repeated` if the analyst's same question is being answered.
    """
    name, longest = claim.asked.analyst.name, _find_longest_flight(service)
    names: tuple[str | None, ...] = ()

    def list_identities() -> list[str]:
        nonlocal names
        names = reuse.name_paths(service, claim)
        return [identity for identity in names if identity is not None]

    with _refuse_ledger_errors(service, claim):
        stored = service.ledger.find_answer_or_paths(
            claim.charge.question,
            claim.version,
            analyst=name,
            once_within=longest,
            list_identities=list_identities,
        )
        if not isinstance(stored, StoredAnswer):
            return reuse.unpack_noise(names, stored)
        reading = None if stored.is_held else stored.make_reading_charge(name)
        if reading is not None:
            service.ledger.charge_reader(
                reading,
                claim.limits,
                answer=stored,
                attempt=claim.asked.attempt,
                once_within=longest,
                wording=make_wording(service, _set_worst_case(claim.plan, reading), claim.asked),
            )
    payment = None if reading is None else make_payment_after_answer(service, claim, reading)
    return _make_stored_answer(claim.plan, stored, reused=True, payment=payment)


def restore_answer(service: Service, plan: Plan, asked: Asked, stored: StoredAnswer, *, reused: bool) -> Answer | None:
    """Return a stored answer to a question. The answer has the data version of its release.

    Return None if the policy has changed, so that the plan now is another question. Raise KH307 if the mechanism had
    stopped without an answer.
    """
    claim = charging.make_claim(plan, service.catalog, asked=asked, version=stored.charge.family.version)
    return _make_stored_answer(plan, stored, reused=reused) if claim.charge.question == stored.charge.question else None


def _make_stored_answer(plan: Plan, stored: StoredAnswer, *, reused: bool, payment: Payment | None = None) -> Answer:
    shares = stored.charge.path_continuation is not None or not stored.charge.shared
    return make_answer(
        _set_worst_case(plan, stored.charge),
        _rename_columns(from_bytes(stored.answer), plan),
        version=stored.charge.family.version,
        reused=reused,
        noise=f"Its noise is also that of earlier questions; {FIXED_BEFORE}." if shares else None,
        stored=stored.reservation,
        payment=payment,
    )


def _rename_columns(released: KeySet | Denial, plan: Plan) -> KeySet | Denial:
    """Return the released answer with its columns named as this spelling of the question names them."""
    names = plan.question.keys.names
    if isinstance(released, Denial) or not names:
        return released
    return replace(released, columns=(*names, *released.columns[len(names) :]))


def answer_from_noise(service: Service, on_paths: QuestionOnPaths | None) -> Answer | None:
    """Answer from stored noisy values, if it is public that all needed values exist. Charge the analyst's own balances.

    No data is read. Return None if some values may be missing, or if the balances do not cover the reading. Raise
    KH502, and `Repeated`.
    """
    outcome = decide_from_known_values(on_paths, noise=service.noise)
    try:
        return None if on_paths is None or outcome is None else _charge_reading(service, on_paths, outcome)
    except (OverBudget, NotApproved, PathTaken):
        return None


def _charge_reading(service: Service, on_paths: QuestionOnPaths, outcome: Outcome) -> Answer:
    claim = on_paths.reading_claim
    released = KeySet.from_passed(claim.plan, outcome.passed, outcome.predicates, unknown=outcome.unknown)
    as_charged = _set_worst_case(claim.plan, claim.charge)
    try:
        reservation = service.ledger.charge_reading(
            claim.charge,
            claim.limits,
            spent=find_run_loss(claim, outcome),
            answer=released.to_bytes(),
            reading=on_paths.path_states,
            attempt=claim.asked.attempt,
            once_within=_find_longest_flight(service),
            wording=make_wording(service, as_charged, claim.asked),
        )
    except (OverBudget, NotApproved, PathTaken):
        raise
    except LedgerError:
        raise report_unwritten_reading() from None
    noise = _capitalise(write_shared_noise(on_paths.describe_noise(is_revealed=True)))
    return make_answer(
        as_charged,
        released,
        version=claim.version,
        reused=False,
        noise=noise,
        stored=reservation.id,
        payment=make_payment_after_answer(service, claim, claim.charge),
    )


def make_answer(
    plan: Plan,
    released: KeySet | Denial,
    *,
    version: str,
    reused: bool,
    noise: str | None,
    stored: str,
    payment: Payment | None,
) -> Answer:
    """Return an `Answer` with these released keys. Raise KH307 if the mechanism stopped without any."""
    if isinstance(released, Denial):
        raise report_stopped_mechanism(plan)
    return Answer(
        plan=plan,
        keys=released,
        version=version,
        is_reused=reused,
        noise_notice=noise,
        reservation=stored,
        payment=payment,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PaidQuestion:
    """A question whose budget is reserved. It runs on the noise paths `on_paths`, or with new noise if that is None."""

    reservation: Reservation
    claim: Claim
    on_paths: QuestionOnPaths | None

    @property
    def noise_notice(self) -> str | None:
        """Return the text of the NOTICE about earlier questions that share its noise, or None."""
        on_paths = self.on_paths
        return None if on_paths is None else _capitalise(write_shared_noise(on_paths.describe_noise(is_revealed=False)))

    @property
    def is_drawn_at_once(self) -> bool:
        """Return True if the question is charged by its Rényi curves.

        Then all noise is drawn and revealed at once.
        """
        return self.reservation.charge.is_by_curve

    @property
    def charged_plan(self) -> Plan:
        """The plan with the worst-case loss that its analyst is shown."""
        return _set_worst_case(self.claim.plan, self.claim.charge)


def reserve(service: Service, claim: Claim, on_paths: QuestionOnPaths | None) -> PaidQuestion:
    """Reserve the worst-case loss durably in the ledger. Data may be read only after the reservation.

    Raise KH301, KH302, KH305, KH306, KH308, KH309, KH318 and KH502. Raise `Repeated` if the same question of the
    analyst is being answered, so that it is charged once. A question that continues noise paths is refused if the
    balances do not cover it. New noise is not tried then, since the cost of continuing follows from revealed values.
    New noise is tried if another question took a path first, or if analysts have caps, as only public amounts count
    then.
    """
    paid = _reserve(service, claim, on_paths)
    charge = paid.claim.charge
    service.telemetry.count_reservation(charge.family.table, epsilon=charge.known_amounts.epsilon_nano / NANO)
    return paid


def _reserve(service: Service, claim: Claim, on_paths: QuestionOnPaths | None) -> PaidQuestion:
    if on_paths is not None and on_paths.is_continued:
        try:
            reservation = _make_reservation(service, on_paths.claim)
        except PathTaken:
            pass
        except OverBudget as over:
            if (
                on_paths.claim.limits.separates_analysts
            ):  # what it costs there is public, and what is left follows from own outcomes
                return _reserve_new_noise(service, claim)
            left = affordable.find_question_balance(service, claim)
            if claim.plan.worst_case_epsilon <= left.epsilon:
                left = replace(left, hint=ANEW)
            short = name_short_groups(on_paths.claim, over)
            capped = claim.is_capped_by_session
            raise refuse_over_budget(
                over, plan=on_paths.claim.plan, left=left, short=short, is_session_cap=capped
            ) from None
        except NotApproved as waiting:
            raise _await_approval(service, on_paths.claim, waiting) from None
        except LedgerError:
            raise report_unavailable_ledger() from None
        else:
            return PaidQuestion(reservation, on_paths.claim, on_paths)
    return _reserve_new_noise(service, claim)


def _reserve_new_noise(service: Service, claim: Claim) -> PaidQuestion:
    with _refuse_ledger_errors(service, claim):
        return PaidQuestion(_make_reservation(service, claim), claim, None)


def _make_reservation(service: Service, claim: Claim) -> Reservation:
    asked = claim.asked
    wording = make_wording(service, _set_worst_case(claim.plan, claim.charge), asked)
    return service.ledger.reserve(
        claim.charge, claim.limits, attempt=asked.attempt, once_within=_find_longest_flight(service), wording=wording
    )


def _find_longest_flight(service: Service) -> timedelta:
    """Return the longest possible time from a reservation to its commit."""
    return timedelta(milliseconds=service.catalog.statement_timeout_ms)


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """The result of a run: the released answer, its actual loss, and noise paths for later questions, by name."""

    released: KeySet | Denial
    spent: Spent
    paths: Mapping[str, bytes]

    @staticmethod
    def from_outcome(paid: PaidQuestion, outcome: Outcome, ranking: Ranking | None, memory: StoredNoise) -> "RunResult":
        """Return the result for an outcome of the mechanism and the ranking of its keys."""
        plan = paid.claim.plan
        return RunResult(
            released=Denial()
            if outcome.denied
            else KeySet.from_passed(plan, outcome.passed, outcome.predicates, ranking, unknown=outcome.unknown),
            spent=charging.find_run_loss(replace(paid.claim, charge=paid.reservation.charge), outcome, ranking),
            paths=reuse.list_paths_to_store(
                plan, paid.on_paths, outcome, memory, is_drawn_at_once=paid.is_drawn_at_once
            ),
        )


def commit(service: Service, reservation: Reservation, result: RunResult) -> None:
    """Commit the run's actual loss instead of the reserved worst case. Store the answer and the noise paths.

    All of this is one transaction. If the ledger fails, raise KH502. The answer is then withheld, and the reservation
    stays spent.
    """
    try:
        service.ledger.commit(reservation, result.spent, result.released.to_bytes(), paths=result.paths)
    except LedgerError:
        pass
    else:
        charge = reservation.charge
        cost_nano = result.spent.find_shared_part(charge).epsilon_nano
        service.telemetry.count_charge(charge.family.table, epsilon=cost_nano / NANO)
        return
    raise report_unavailable_ledger()


@contextmanager
def release_if_nothing_read(service: Service, reservation: Reservation) -> Iterator[None]:
    """Release the reservation if the block finds a column missing before it has read any row.

    Then raise KH501. Raise KH502 if the ledger fails; the reservation stays spent in that case.
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
        raise report_unavailable_ledger() from None
    raise report_missing_column()


def make_new_answer(service: Service, paid: PaidQuestion, result: RunResult) -> Answer:
    """Return the answer to a question whose run was committed. Raise KH307 if the mechanism stopped without one."""
    claim = paid.claim
    return make_answer(
        paid.charged_plan,
        result.released,
        version=claim.version,
        reused=False,
        noise=paid.noise_notice,
        stored=paid.reservation.id,
        payment=make_payment_after_answer(service, claim, claim.charge),
    )


def _set_worst_case(plan: Plan, charge: Charge) -> Plan:
    """Return the plan with the worst case that was reserved for it, if it was decided on noise paths."""
    if (
        find_worst_amounts(plan).epsilon_nano == charge.epsilon_nano
        and charge.path_continuation is None
        and charge.shared
    ):
        return plan
    ranked = 0.0 if plan.ranking is None else plan.ranking.worst_case_epsilon
    decided = max(0.0, charge.epsilon_nano / count_losses_in_cell(plan) / NANO - ranked)
    return replace(plan, calibration=replace(plan.calibration, worst_case_epsilon=decided))


def _capitalise(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
