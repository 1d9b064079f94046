"""The stages of a question, in order. Read this first; `docs/architecture.md` says what each stage may refuse.

    statement -> question -> plan -> earlier noise -> reservation -> true aggregates -> outcomes -> commit -> keys

Data is touched in exactly one line, `source.read_aggregates`, and only after the worst case is durably reserved. A
question with a stored answer, or with noise that earlier questions have publicly revealed, ends before that. The result
of reading is released at moments that do not depend on any row.
"""

from contextlib import ExitStack
from functools import partial

from planner.plan import build as planning
from planner.plan.expected_time import expect_time
from planner.question.plan import Plan
from proxy.observe.telemetry import Stage
from proxy.open_policy.service import Service
from proxy.pipeline import ledger_verbs, noise_reuse
from proxy.pipeline.choose_test import choose_test
from proxy.pipeline.claim import Claim, check_same_data
from proxy.pipeline.duplicate_wait import WaitPolicy, answer_after_duplicates
from proxy.pipeline.messages import Answer, Asked
from proxy.pipeline.outcome import observe_outcomes
from proxy.pipeline.question_refusals import refuse_slow_question
from proxy.pipeline.ranking import rank_passed_keys
from proxy.sources.public_moments import PublicMoments


def plan_asked_question(service: Service, asked: Asked) -> Plan:
    """Plan a question from public inputs alone. Nothing is charged. Raise KH1xx to KH4xx, and KH502."""
    accuracy = asked.read_accuracy(service.catalog)
    with service.measure_stage(Stage.PARSE):
        question = asked.read_question(service.catalog, accuracy)
    with service.measure_stage(Stage.PLAN):
        gradual = planning.plan_question(question, dialect=service.source.dialect)
        return choose_test(service, asked, gradual)


def check_time(service: Service, plan: Plan) -> None:
    """Refuse a question that would reach the source's timeout, before it waits or reserves. Raise KH319."""
    expected = expect_time(plan, service.catalog)
    if expected is not None and expected.is_too_long:
        raise refuse_slow_question(expected)


@observe_outcomes
def answer(service: Service, plan: Plan, asked: Asked) -> Answer:
    """Answer a planned question, and return its keys.

    A refusal (KH3xx) charges nothing. After a failure that follows the reservation (KH5xx), the reserved loss stays
    spent. If the mechanism stops without an answer (KH307), the loss of its looks stays spent.
    """
    asked.check_not_withdrawn()
    return answer_after_duplicates(service, plan, asked, _answer_from_data)


def _answer_from_data(service: Service, claim: Claim, memory: noise_reuse.StoredNoise, patience: WaitPolicy) -> Answer:
    on_paths = noise_reuse.plan_as_wanted(claim, memory)
    if known := ledger_verbs.answer_from_noise(service, on_paths):
        return known
    check_time(service, claim.plan)
    plan, catalog, count = claim.plan, service.catalog, len(claim.plan.question.computed_functionals)
    with ExitStack() as paying:
        with ExitStack() as reading:
            reading.enter_context(service.hold_open())
            reading.enter_context(patience.take_turn(service))
            check_same_data(service, claim, is_paid=False)
            with service.measure_stage(Stage.RESERVE):
                paid = ledger_verbs.reserve(service, claim, on_paths)
            paying.enter_context(service.ledger.hold_in_flight(paid.reservation))
            limit, aggregates = catalog.statement_timeout_ms, service.source.read_aggregates
            moments = PublicMoments(timeout_ms=limit, every_ms=catalog.release_every_ms)
            with moments.delay_release():
                with (
                    service.measure_stage(Stage.AGGREGATE),
                    ledger_verbs.release_if_nothing_read(service, paid.reservation),
                    service.failures.count_failure(claim.asked.analyst.name, is_over=moments.is_over),
                ):
                    read = partial(
                        aggregates,
                        plan.rewritten,
                        plan.question.keys,
                        functionals=count,
                        timeout_ms=limit,
                        version=claim.version,
                    )
                    values = moments.read(read, keeping=reading).values
                check_same_data(service, claim, is_paid=True)
                with service.measure_stage(Stage.DECIDE):
                    outcome = noise_reuse.decide_question(
                        paid.claim.plan,
                        paid.on_paths,
                        values,
                        is_drawn_at_once=paid.is_drawn_at_once,
                        noise=service.noise,
                    )
                    ranking = rank_passed_keys(paid.claim.plan, outcome, values, noise=service.noise)
                result = ledger_verbs.RunResult.from_outcome(paid, outcome, ranking, memory)
                del values, outcome, ranking  # of very many keys, and the ledger needs room for them
        with service.measure_stage(Stage.COMMIT):
            ledger_verbs.commit(service, paid.reservation, result)
    return ledger_verbs.make_new_answer(service, paid, result)
