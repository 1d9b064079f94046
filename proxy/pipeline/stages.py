"""The way of a question, in order. Read this first; `docs/architecture.md` says what each stage may refuse.

    statement -> question -> plan -> earlier noise -> reservation -> true aggregates -> outcomes -> commit -> keys

Data is touched in exactly one line, `source.aggregates`, and only after the worst case is durably reserved. A question
that was answered before, or whose noise earlier questions have revealed for all to know, ends before that. One that its
analyst has asked a moment before, and that is not answered yet, waits for that answer.
"""

from contextlib import ExitStack

from planner.bind.question import ask
from planner.functionals.per_key_offsets import without_offsets
from planner.plan import build as planning
from planner.question.plan import Plan
from planner.statements import settings
from proxy.observe.telemetry import Stage
from proxy.pipeline import claim as charging
from proxy.pipeline import ledger_verbs as spending
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.claim import Claim
from proxy.pipeline.duplicate_wait import Patience
from proxy.pipeline.messages import Answer, Asked, Denial, KeySet
from proxy.pipeline.outcome import observed
from proxy.service.service import Service


def prepare(service: Service, asked: Asked) -> Plan:
    """From a question's text to its plan: public inputs alone, nothing spent. Refuses with KH1xx to KH4xx."""
    catalog = service.catalog
    accuracy = settings.accuracy(asked.settings, catalog.defaults)
    with service.stage(Stage.PARSE):
        question = ask(
            asked.question, catalog, accuracy=accuracy, parameters=asked.parameters, today=asked.today, utc=asked.utc
        )
    with service.stage(Stage.PLAN):
        return planning.plan(question, dialect=service.source.dialect)


@observed
def answer(service: Service, plan: Plan, asked: Asked) -> Answer:
    """From plan to keys. A refusal (KH3xx) spends nothing; a failure after the reservation leaves it spent
    (KH5xx), and a mechanism that stops without an answer has spent what it looked at (KH307)."""
    asked.check_wanted()
    claim = _claim(service, plan, asked)
    if not plan.question.functionals:
        return Answer(plan=plan, keys=KeySet.constant(plan), version=claim.version, reused=False)
    patience = Patience(asked, timeout_ms=service.catalog.statement_timeout_ms)
    while True:
        with patience.for_the_first():
            if stored := spending.stored_answer(service, claim, plan, asked):
                return stored
            if patience.waited and claim.version != service.version(plan.question.table):
                claim = _claim(service, plan, asked)
                continue
            return _answered_anew(service, plan, asked, claim, patience)


def _claim(service: Service, plan: Plan, asked: Asked) -> Claim:
    return charging.claim(plan, service.catalog, asked=asked, version=service.version(plan.question.table))


def _answered_anew(service: Service, plan: Plan, asked: Asked, claim: Claim, patience: Patience) -> Answer:
    memory = reuse.remembered(service, plan, claim.version)
    on_paths = reuse.laid(plan, claim, memory, wanted=settings.reuse(asked.settings))
    if known := spending.told_answer(service, asked, on_paths):
        return known
    service.failures.check(asked.analyst.name)
    limit, count = service.catalog.statement_timeout_ms, len(plan.question.functionals)
    with ExitStack() as paying:
        with service.turn(analyst=asked.analyst.name, timeout_ms=patience.left_ms):
            asked.check_wanted()
            with service.stage(Stage.RESERVE):
                paid = spending.reserve(service, claim, plan, asked, on_paths)
            paying.enter_context(service.ledger.at_work(paid.reservation))
            with service.stage(Stage.AGGREGATE), service.failures.held_until(limit, analyst=asked.analyst.name):
                aggregates = service.source.aggregates(
                    plan.rewritten, plan.question.keys, functionals=count, timeout_ms=limit, version=claim.version
                )
        version = service.version(plan.question.table)
        reuse.check_same_data(paid.on_paths, version)
        with service.stage(Stage.DECIDE):
            values = without_offsets(plan.question, aggregates.values)
            outcome = reuse.decided(paid.plan, paid.on_paths, values, noise=service.noise)
        released = Denial() if outcome.denied else KeySet.of(plan, outcome.passed)
        lost = charging.spent(paid.plan, paid.claim, outcome)
        paths = reuse.left_paths(plan, paid.on_paths, outcome, memory) if version == claim.version else {}
        with service.stage(Stage.COMMIT):
            spending.commit(service, paid.reservation, lost, released, paths=paths)
    return spending.answer_of(
        paid.as_charged, released, version=claim.version, reused=False, noise=paid.noise, stored=paid.reservation.id
    )
