"""The pages for asking in the console: tables, the builder, the price of the question so far, and the answer.

Guarantee: a question is explained, answered and refused by the same functions as in REST. A page gets only data that
REST would send, and its requests count in the same limits. A question is asked once under its idempotency key, however
often a button is clicked.
"""

from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from planner.errors import KeyholeError
from planner.explain.formula_svg import draw_formula
from planner.explain.formula_tree import NodeKind, build_trees
from planner.question.plan import Plan
from proxy.concurrency.fair_queue import read_very_long_alone
from proxy.console.analyst.catalog_document import list_key_values, make_catalog_document
from proxy.console.analyst.question_tree import make_question_tree
from proxy.console.console_refusals import refuse_missing_page
from proxy.console.page import render_page
from proxy.console.parts import ConsoleParts
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import describe_plan
from proxy.rest import answers, idempotency
from proxy.rest.answers import KeyRange
from proxy.rest.app import Key, find_analyst
from proxy.rest.field_hints import write_as_fields
from proxy.rest.models import QuestionIn
from proxy.rest.responses import make_problem_response

MOST_SHOWN = 20_000  # keys of an answer that a page takes: more than a picture has cells; REST has the others
MOST_DRAWN = 60  # tests in the picture of a formula: what a screen or two can show
_LIKELY_TOLERANCE = 10  # percent: from where a tolerance that is no percentage is widened
_WIDER = (1.5, 2.0)  # factors that are tried on a tolerance, one small step and a large one
_RARER = (2.0, 3.0)  # factors that are tried on rates of error
_LARGEST_RATE = 0.49  # of error: what the settings take
_LARGER = (2, 4)  # factors that are tried on the least size of the groups whose means are compared


def add_asking_pages(router: APIRouter, parts: ConsoleParts) -> None:
    """Add the pages on which an analyst asks, and the routes that their scripts call, to a router."""

    @router.get("/console/tables")
    def show_tables(request: Request) -> Response:
        with parts.serving.hold_open() as service:
            told = make_catalog_document(service.catalog)
        return render_page(request, "analyst/tables.html", section="tables", catalog=told)

    @router.get("/console/ask")
    def show_builder(request: Request) -> Response:
        with parts.serving.hold_open() as service:
            told = make_catalog_document(service.catalog)
        return render_page(request, "analyst/ask.html", section="ask", catalog=told)

    @router.get("/console/api/values")
    def list_values(table: Annotated[str, Query(max_length=100)], column: Annotated[str, Query(max_length=100)]) -> Any:
        with parts.serving.hold_open() as service:
            found = list_key_values(service.catalog, table, column)
        if found is None:
            raise refuse_missing_page()
        return {"values": found}

    @router.post("/console/api/tree")
    def read_tree(request: Request, body: QuestionIn) -> dict[str, Any]:
        with parts.serving.hold_open() as service, read_very_long_alone(body.sql, analyst=request.state.analyst):
            return make_question_tree(body.sql, service.catalog)

    @router.post("/console/api/explain")
    def explain(request: Request, body: QuestionIn) -> dict[str, Any]:
        with parts.serving.hold_open() as service, read_very_long_alone(body.sql, analyst=request.state.analyst):
            analyst = find_analyst(service, request.state.analyst)
            asked = body.make_asked(analyst, service, today=_get_today())
            plan = pipeline.plan_asked_question(service, asked)
            document = describe_plan(service, asked, plan) | {"picture": _draw_plan(plan)}
            hint = document.get("hint")
            return document | ({"hint": write_as_fields(hint)} if isinstance(hint, str) else {})

    @router.post("/console/api/cheaper")
    def find_cheaper(request: Request, body: QuestionIn) -> dict[str, Any]:
        with parts.serving.hold_open() as service, read_very_long_alone(body.sql, analyst=request.state.analyst):
            return {"levers": _list_cheaper_settings(service, body, request.state.analyst)}

    @router.post("/console/api/question")
    def ask(request: Request, body: QuestionIn, key: Key = None) -> Response:
        with parts.serving.hold_open() as service:
            analyst = find_analyst(service, request.state.analyst)
            keep_days = parts.limits.idempotency_days
            told = idempotency.ask_once(service, body, analyst, key=key, keep_days=keep_days, labels=parts.labels)
        if isinstance(told.outcome, KeyholeError):
            return make_problem_response(told.outcome, headers=told.headers)
        return answers.make_response(
            told.outcome, form=answers.JSON, cut=KeyRange(size=MOST_SHOWN), headers=told.headers
        )


def _draw_plan(plan: Plan) -> str | None:
    """Return a picture of the formula as it is evaluated, as SVG. Return None if it has no test or is too large."""
    heading, tree = build_trees(plan)[1]
    drawn = sum(node.kind is NodeKind.LITERAL for node in tree.walk())
    return draw_formula(((heading, tree),), title="the formula") if 0 < drawn <= MOST_DRAWN else None


def _get_today() -> date:
    return datetime.now(UTC).date()


def _list_cheaper_settings(service: Service, body: QuestionIn, who: str) -> list[dict[str, Any]]:
    """Return the question's cost after each change of one setting, cheapest first. Every change is really planned.

    Changes that do not lower the cost are left out.
    """
    analyst, usual = find_analyst(service, who), service.catalog.defaults

    def cost(changed: QuestionIn) -> float:
        return pipeline.plan_asked_question(
            service, changed.make_asked(analyst, service, today=_get_today())
        ).worst_case_epsilon

    now = cost(body)
    tolerance = _convert_to_percent(body.tolerance if body.tolerance is not None else usual.tolerance)
    fnr, fpr = body.fnr or usual.fnr, body.fpr or usual.fpr
    least = body.min_rows or usual.min_rows
    tried: list[tuple[str, Any]] = [
        *(("tolerance", f"{tolerance * factor:g}%") for factor in _WIDER),
        *(("fnr", round(fnr * factor, 6)) for factor in _RARER if fnr * factor <= _LARGEST_RATE),
        *(("fpr", round(fpr * factor, 6)) for factor in _RARER if fpr * factor <= _LARGEST_RATE),
        *(("min_rows", least * factor) for factor in _LARGER),
    ]
    found = []
    for setting, value in tried:
        try:
            epsilon = cost(body.model_copy(update={setting: value}))
        except KeyholeError:
            continue
        if epsilon < now:
            found.append({"setting": setting, "value": value, "epsilon": epsilon})
    return sorted(found, key=lambda one: one["epsilon"])


def _convert_to_percent(tolerance: str | float) -> float:
    text = str(tolerance).strip()
    try:
        return float(text.removesuffix("%")) if text.endswith("%") else float(_LIKELY_TOLERANCE)
    except ValueError:
        return float(_LIKELY_TOLERANCE)
