"""The choice between gradual tests, whose noise later questions can share, and arc looks, which leave more questions.

Guarantee: the choice depends on the question, the policy, the analyst's settings, and the ledger as the analyst may
see it: balances, a stored answer, earlier noise. It depends on no row.
"""

from dataclasses import replace

from accountant.charges import StoredAnswer
from accountant.errors import LedgerError
from mechanisms.arc.one_look import Arc
from mechanisms.arc.several_looks import ArcLooks
from mechanisms.keyhole.progressive import Progressive
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.explain.payment import Payer
from planner.lower.dialects.dialect import Dialect
from planner.plan import build as planning
from planner.question.plan import ComparedTests, Plan
from planner.statements.settings import GRADUAL, read_test
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline import noise_reuse
from proxy.pipeline.claim import Claim, count_groups_of_unit, make_claim
from proxy.pipeline.messages import Asked
from proxy.pipeline.payments import count_fitting_questions

_GROUPS = 4
"""Early looks come first only if a unit is in a fourth of the groups or more. Otherwise it may be in those groups that
early looks did not settle, and is charged for them. Groups must have room for twice as many questions, since they are
charged for each look."""

_GAIN = 5, 4
"""Arc looks must leave five such questions where gradual tests leave four. Their noise serves no other question, and
gradual tests of a plain sum give back what they did not need."""


def choose_test(service: Service, asked: Asked, gradual: Plan) -> Plan:
    """Return the plan of a question with the tests that its session wants, or that leave more such questions.

    A stored answer is kept, before all one that the analyst has paid for. Otherwise a question that can read gradual
    tests' noise keeps them, since that costs less, and those tests are preferred that fit.

    Parameters:
        gradual: the plan of the question with gradual tests.

    Raises:
        KeyholeError: KH302 for a question that costs more than the ledger can hold, and KH502 if the ledger fails.
    """
    if not _wants_arc_looks(gradual, service.catalog, asked):
        return gradual
    version, dialect = service.find_version(gradual.question.table), service.source.dialect
    arc = plan_with_better_test(gradual, service.catalog, asked=asked, version=version, dialect=dialect)
    if arc is None or arc.compared_tests is None:
        return arc or gradual
    claim, other = (make_claim(plan, service.catalog, asked=asked, version=version) for plan in (gradual, arc))
    if (is_stored_by_arc := _is_answered_by_arc(service, claim, other)) is not None:
        return arc if is_stored_by_arc else gradual
    if _can_read_noise(service, claim) or (_is_short(service, other) and not _is_short(service, claim)):
        return gradual
    return arc


def plan_with_better_test(
    gradual: Plan, catalog: Catalog, *, asked: Asked, version: str, dialect: Dialect
) -> Plan | None:
    """Return the plan of a question with arc looks, if the session wants them or they leave more such questions.

    Return None if gradual tests are better, or if arc looks cannot decide the question. Nothing that was spent counts.
    Raise KH302.

    Parameters:
        gradual: the plan of the question with gradual tests.
        version: the data version.
    """
    if not _wants_arc_looks(gradual, catalog, asked):
        return None
    is_chosen = read_test(asked.settings, catalog.defaults) == Arc.name
    claim = make_claim(gradual, catalog, asked=asked, version=version)
    if not is_chosen and not claim.charge.is_by_curve:
        return None
    arc, early = (_plan_with_mechanism(gradual, name, dialect) for name in (Arc.name, ArcLooks.name))
    if arc is None:
        return None
    plan, fitting = arc, count_fitting_questions(make_claim(arc, catalog, asked=asked, version=version))
    if early is not None and early.question.keys.size <= _GROUPS * count_groups_of_unit(early):
        other = make_claim(early, catalog, asked=asked, version=version)
        fewer, in_groups = count_fitting_questions(other), count_fitting_questions(other, payer=Payer.GROUP)
        if fewer * _GAIN[0] >= fitting * _GAIN[1] and in_groups >= 2 * fitting:
            plan, fitting = early, fewer
    if is_chosen:
        return plan
    compared = ComparedTests(arc=fitting, gradual=count_fitting_questions(claim))
    if not compared.arc or compared.arc * _GAIN[1] < compared.gradual * _GAIN[0]:
        return None
    return replace(plan, compared_tests=compared)


def _wants_arc_looks(gradual: Plan, catalog: Catalog, asked: Asked) -> bool:
    """Return True if a session, its policy and the form of the question leave a choice."""
    accuracy, budget = gradual.asked_question.accuracy, catalog.budget
    wanted = read_test(asked.settings, catalog.defaults)
    counts_curves = budget.delta is not None or budget.delta_per_cell is not None
    return (
        gradual.reads_data
        and gradual.ranking is None
        and accuracy.mechanism == Progressive.name
        and Arc.name in accuracy.allowed_mechanisms
        and wanted != GRADUAL
        and (counts_curves or wanted == Arc.name)
    )


def _plan_with_mechanism(gradual: Plan, mechanism: str, dialect: Dialect) -> Plan | None:
    """Return the plan of the same question with another mechanism.

    Return None if that cannot decide the question, or if the policy does not allow it.
    """
    asked = gradual.asked_question
    if mechanism not in asked.accuracy.allowed_mechanisms:
        return None
    try:
        return planning.plan_question(
            replace(asked, accuracy=replace(asked.accuracy, mechanism=mechanism)), dialect=dialect
        )
    except KeyholeError:
        return None


def _is_answered_by_arc(service: Service, gradual: Claim, arc: Claim) -> bool | None:
    """Return True if the stored answer to give is that of arc looks, and False if it is that of gradual tests.

    Return None if there is none, or if its analyst would have to pay for one of arc looks. Raise KH502.
    """
    by_gradual = _find_answer(service, gradual)
    if by_gradual is not None and by_gradual.is_held:
        return False
    by_arc = _find_answer(service, arc)
    if by_arc is not None and by_arc.is_held:
        return True
    if by_gradual is not None:
        return False
    return True if by_arc is not None and not arc.limits.separates_analysts else None


def _find_answer(service: Service, claim: Claim) -> StoredAnswer | None:
    try:
        return service.ledger.find_answer(claim.charge.question, claim.version, analyst=claim.asked.analyst.name)
    except LedgerError:
        raise report_unavailable_ledger() from None


def _can_read_noise(service: Service, claim: Claim) -> bool:
    """Return True if a question can read or refine noise of earlier questions. Raise KH502."""
    _, on_paths = noise_reuse.find_earlier_noise(service, claim)
    return on_paths is not None and (on_paths.is_revealed or on_paths.is_continued)


def _is_short(service: Service, claim: Claim) -> bool:
    """Return True if a balance does not cover a claim now. Raise KH502."""
    try:
        return service.ledger.find_shortage(claim.charge, claim.limits) is not None
    except LedgerError:
        raise report_unavailable_ledger() from None
