"""The wording of a question in the ledger, for people: its promise, and its text as far as the policy keeps texts."""

from dataclasses import replace

from accountant.charges import Wording
from planner.errors import KeyholeError
from planner.explain.guarantee import write_guarantee_json
from planner.extract.question_text import write_question_text
from planner.question.plan import Plan
from proxy.open_policy.service import Service
from proxy.pipeline.messages import Asked

_EACH_ITS_OWN = "its own for each aggregate"


def make_wording(service: Service, plan: Plan, asked: Asked) -> Wording:
    """Return the wording that the ledger stores for good with a question's charge.

    Guarantee: unless the policy keeps texts in full, it contains no value that the analyst compares rows with. The text
    is redacted as `write_question_text` does, and a tolerance that names aggregates is not quoted.

    Parameters:
        plan: the plan with the charged worst case.
    """
    full = service.keep_text == "full"
    promise = write_guarantee_json(plan if full else _drop_named_tolerances(plan))
    return Wording(
        text=None if service.keep_text == "none" else _choose_text(asked, keeps_constants=full),
        guarantee=promise["sentence"],
        fnr=_write_rate(promise["fnr"]),
        fpr=_write_rate(promise["fpr"]),
    )


def _choose_text(asked: Asked, *, keeps_constants: bool) -> str | None:
    try:
        return write_question_text(asked.question, asked.parameters, keeps_constants=keeps_constants)
    except KeyholeError:
        return (
            None  # what Keyhole read once it reads again; were it not so, the question would be answered all the same
        )


def _drop_named_tolerances(plan: Plan) -> Plan:
    question = plan.question
    tolerance = question.accuracy.tolerance
    if set(tolerance) <= set("0123456789.% "):
        return plan
    return replace(plan, question=replace(question, accuracy=replace(question.accuracy, tolerance=_EACH_ITS_OWN)))


def _write_rate(rate: float | None) -> str | None:
    return None if rate is None else str(rate)
