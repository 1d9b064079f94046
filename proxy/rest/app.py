"""The REST application. It answers the same questions, with the same refusals and ledger, as the PostgreSQL endpoint.

A request passes `middleware` (sizes, times, headers) and `gate` (login, request rates, concurrency). It is parsed
(`strict_json`, `models`), asked once (`idempotency`) and answered (`answers`). Refusals are written in
`request_refusals` and sent by `responses`. Answers wait in worker threads, so a slow source does not stop the loop.
"""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from anyio.to_thread import current_default_thread_limiter
from fastapi import Depends, FastAPI, Header, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import RedirectResponse
from starlette.routing import Route
from starlette.types import Scope

from accountant.charges import NANO
from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from planner.policy.sections import RestSection
from proxy.concurrency.fair_queue import read_very_long_alone
from proxy.dashboard.plan_report import PlanReport
from proxy.dashboard.tolerance_split import plan_list_in_queue
from proxy.monitors.notifications import AlertHub
from proxy.monitors.reading import CurrentMonitorReader
from proxy.open_policy.service import Service, Serving
from proxy.pipeline.answering import explain_as_document
from proxy.report import budget
from proxy.report.report_refusals import make_internal_error
from proxy.rest import answers, idempotency, strict_json
from proxy.rest.answers import LONGEST_CURSOR, MOST_PAGE_KEYS, KeyRange, PageCursor
from proxy.rest.documentation import BEGIN, REST_PAGE, SITE, add_documentation
from proxy.rest.field_hints import write_as_fields
from proxy.rest.gate import Gate
from proxy.rest.middleware import LEAVING, MOST_BODY_BYTES, HttpMiddleware
from proxy.rest.models import AnswerOut, Health, PageOut, PlanIn, QuestionIn
from proxy.rest.monitor_routes import EVENTS, Admission, LetIn, add_monitor_routes
from proxy.rest.page_cache import KeySetCache
from proxy.rest.problems import ASKING, READING
from proxy.rest.readiness import Readiness, make_readiness
from proxy.rest.request_refusals import refuse_removed_analyst
from proxy.rest.responses import UnreadableBody, describe_problems, make_problem_response, make_response
from proxy.security.failed_logins import FailedLogins
from proxy.shadow.grammar import GrammarCheck
from proxy.shadow.key_labels import LabelReader

_OPEN = ("/healthz", "/readyz", "/metrics")  # a balancer's and a scraper's: nobody's limits
_OTHER_THREADS = 40  # for pages; of the others each request at work has one
_PAGES = (REST_PAGE, "/static-offline-docs")
_STREAMS: dict[str, Any] = {
    answers.LINES: {"schema": {"type": "string", "description": "the answer without keys; then one key a line"}},
    answers.CSV: {"schema": {"type": "string", "description": "one key a line, under the columns' names"}},
}

PageSize = Annotated[
    int | None, Query(ge=1, le=MOST_PAGE_KEYS, description="the most keys to return; `next` leads to the others")
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=idempotency.KEY_PATTERN,
        description="Asks once, however often it is sent: a UUID, the same when the same question is repeated.",
    ),
]


@dataclass(frozen=True, slots=True)
class RestServices:
    """The objects that REST shares with the console.

    They are the current service, the gate and its limits, the monitors, the readiness, and the labels of computed keys.
    """

    serving: Serving
    gate: Gate
    limits: RestSection
    threads: int
    monitor_reader: CurrentMonitorReader
    hub: AlertHub
    ready: Readiness
    labels: LabelReader | None


AddPages: TypeAlias = Callable[[FastAPI, RestServices], str]
"""Adds pages to the application, and returns where they begin."""


def create_app(
    serving: Serving,
    limits: RestSection | None = None,
    ready: Readiness | None = None,
    *,
    failures: FailedLogins | None = None,
    hub: AlertHub | None = None,
    add_pages: AddPages | None = None,
    grammar: GrammarCheck | None = None,
    labels: LabelReader | None = None,
    site: Path = SITE,
) -> FastAPI:
    """Return the REST application. Each request uses the service that is current then, and /readyz uses `ready`.

    `failures` are the failed logins, shared with other endpoints. `hub` distributes news of monitors. `add_pages` adds
    the console. `grammar` gives PostgreSQL's message for SQL that cannot be parsed. `labels` reads the displayed forms
    of computed keys. `site` is the folder of the built documentation.

    Serve it on loopback, over TLS, or behind a proxy.
    """
    limits = limits or RestSection()
    gate = Gate(limits, failures or FailedLogins(limits.failed_logins_per_minute))
    app = FastAPIOffline(
        title="Keyhole",
        summary="Which groups cross a threshold? Answered with differential privacy.",
        version=version("keyhole"),
        docs_url=REST_PAGE,
        swagger_ui_oauth2_redirect_url=f"{REST_PAGE}/oauth2-redirect",
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat the Host header
    )
    threads = _OTHER_THREADS + limits.concurrent_requests
    app.router.route_class = _make_route_class(serving, gate, threads=threads)
    analyst = _make_login_dependency()
    _add_routes(app, serving, limits, analyst, grammar, labels)
    readings = CurrentMonitorReader(serving, labels)
    hub = AlertHub(readings) if hub is None else hub
    add_monitor_routes(app, readings, hub, analyst, admission_of=partial(_make_admission, serving))
    ready = ready or make_readiness(serving, None)
    _add_health(app, ready)
    add_documentation(app, site)
    doors = RestServices(serving, gate, limits, threads, readings, hub, ready, labels)
    paths = frozenset(route.path for route in app.routes if isinstance(route, Route)) | {"/"}  # without the pages'
    _add_start(app, BEGIN if add_pages is None else add_pages(app, doors))
    if limits.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(limits.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"],
            expose_headers=["Idempotency-Replayed", "Link", "Retry-After", "X-Request-Id"],
        )
    app.add_middleware(
        HttpMiddleware,
        most_bytes=MOST_BODY_BYTES,
        receive_timeout_ms=limits.receive_timeout_ms,
        pages=_PAGES,
        paths=paths,
        admitted=lambda scope: _count_request(gate, scope),
        refused=make_response,
        failed=lambda: make_problem_response(make_internal_error()),
        finished=serving.telemetry.count_request,
    )
    for refusal in (KeyholeError, RequestValidationError, HTTPException):
        app.add_exception_handler(refusal, _respond_to)
    return app


def _make_login_dependency() -> LetIn:
    bearer = HTTPBearer(auto_error=False, description="One token per analyst; `keyhole passwd --token` makes one.")

    async def analyst(request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> str:
        """Return the analyst whom the gate has let in; the parameter is there for the documentation."""
        name: str = request.state.analyst
        return name

    return analyst


def _add_routes(
    app: FastAPI,
    serving: Serving,
    limits: RestSection,
    analyst: LetIn,
    grammar: GrammarCheck | None,
    labels: LabelReader | None,
) -> None:
    kept = KeySetCache()

    @contextmanager
    def reworded(sql: str, who: str) -> Iterator[None]:
        """Replace a syntax error of Keyhole's parser by PostgreSQL's own message, if the block raises one."""
        try:
            yield
        except KeyholeError as refusal:
            raise (refusal if grammar is None else grammar.prefer_syntax_error(refusal, sql=sql, analyst=who)) from None

    answered: dict[int | str, dict[str, Any]] = {200: {"content": _STREAMS}}

    @app.post("/v1/question", response_model=AnswerOut, responses=answered | describe_problems(*ASKING, 406, 409))
    def question(
        request: Request,
        body: QuestionIn,
        who: Annotated[str, Depends(analyst)],
        page_size: PageSize = None,
        key: Key = None,
    ) -> Response:
        """Answer a question: the keys that pass, and what they promise. Spends budget unless it is a repetition."""
        form = answers.choose_media_type(request.headers.getlist("accept"))
        with serving.hold_open() as service, reworded(body.sql, who):
            keep_days = limits.idempotency_days
            told = idempotency.ask_once(
                service, body, find_analyst(service, who), key=key, keep_days=keep_days, labels=labels
            )
        if isinstance(told.outcome, KeyholeError):
            again = (
                told.outcome
                if grammar is None
                else grammar.prefer_syntax_error(told.outcome, sql=body.sql, analyst=who)
            )
            return make_problem_response(again, headers=told.headers)
        return answers.make_response(told.outcome, form=form, cut=KeyRange(size=page_size), headers=told.headers)

    @app.get("/v1/answer", response_model=PageOut, responses=answered | describe_problems(*READING, 400, 404, 406))
    def page(
        request: Request,
        who: Annotated[str, Depends(analyst)],
        cursor: Annotated[str, Query(max_length=LONGEST_CURSOR, description="`next` of the page before")],
        page_size: PageSize = None,
    ) -> Response:
        """Return more keys of an answer, from where a cursor stands. Spends nothing."""
        form = answers.choose_media_type(request.headers.getlist("accept"))
        place = PageCursor.parse(cursor)
        with serving.hold_open() as service:
            reply = answers.find_stored_reply(service, place, find_analyst(service, who), kept=kept)
        return answers.make_response(reply, form=form, cut=KeyRange(start=place.start, size=page_size), headers={})

    @app.post("/v1/explain", responses=describe_problems(*ASKING))
    def explanation(body: QuestionIn, who: Annotated[str, Depends(analyst)]) -> dict[str, object]:
        """Return the plan of a question and its cost. Spends nothing."""
        with serving.hold_open() as service, reworded(body.sql, who), read_very_long_alone(body.sql, analyst=who):
            asked = body.make_asked(find_analyst(service, who), service, today=datetime.now(UTC).date())
            document = explain_as_document(service, asked)
            hint = document.get("hint")
            return document | ({"hint": write_as_fields(hint)} if isinstance(hint, str) else {})

    @app.post("/v1/plan", responses=describe_problems(*ASKING))
    def make_plan(body: PlanIn, who: Annotated[str, Depends(analyst)]) -> dict[str, Any]:
        """Plan which questions of a list would be answered one after the other, and with which tolerances all would.

        Spends nothing.
        """
        with serving.hold_open() as service:
            listed = body.make_list(find_analyst(service, who), service, today=datetime.now(UTC).date())
            most_nano = None if body.max_epsilon is None else int(body.max_epsilon * NANO)
            return PlanReport(
                plan_list_in_queue(service, listed, most_nano=most_nano, analyst=who), service
            ).make_document()

    @app.get("/v1/budget", responses=describe_problems(*READING))
    def balances(who: Annotated[str, Depends(analyst)]) -> dict[str, Any]:
        """Return the most that the analyst has spent, and what is left."""
        with serving.hold_open() as service:
            return budget.make_document(service, find_analyst(service, who).name)


def _add_health(app: FastAPI, ready: Readiness) -> None:
    @app.get("/healthz")
    async def healthy() -> Health:
        """Report that the process lives."""
        return Health(status="ok")

    @app.get("/readyz", responses={503: {"description": "it cannot", "model": Health}})
    async def report_readiness(response: Response) -> Health:
        """Report if questions can be answered now. The operator alone sees what is missing."""
        missing = await ready.find_missing()
        response.status_code = 503 if missing else 200
        return Health(status="not ready" if missing else "ready")


def _add_start(app: FastAPI, begins: str) -> None:
    @app.get("/", include_in_schema=False)
    async def lead_to_the_pages() -> Response:
        """Redirect to the pages that people look for here."""
        return RedirectResponse(begins, status_code=303)


class StrictRequest(Request):
    """A request whose body is parsed as strict JSON."""

    async def json(self) -> Any:
        """Parse the body as strict JSON. Raise UnreadableBody if it is malformed."""
        try:
            return strict_json.read_json(await self.body())
        except KeyholeError as refusal:
            raise UnreadableBody(refusal) from None


def _make_route_class(serving: Serving, gate: Gate, *, threads: int) -> type[APIRoute]:
    """Return a route class for /v1.

    It checks the login before it reads a body, and runs handlers in its own threads.
    """

    class GatedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handler = super().get_route_handler()
            asks = self.path.startswith("/v1/")

            async def handle_guarded(request: Request) -> Response:
                if asks:
                    _admit_analyst(serving, gate, request, is_stream=self.path == EVENTS)
                    current_default_thread_limiter().total_tokens = threads
                return await handler(StrictRequest(request.scope, request.receive))

            return handle_guarded

    return GatedRoute


def find_analyst(service: Service, name: str) -> Analyst:
    """Return the logged-in analyst from the current policy. Raise KH401 if a reload removed the analyst."""
    found = service.catalog.find_analyst(name)
    if found is None:
        raise refuse_removed_analyst()
    return found


def _admit_analyst(serving: Serving, gate: Gate, request: Request, *, is_stream: bool) -> None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    sent = token.strip() if scheme.lower() == "bearer" else ""
    with serving.hold_open() as service:
        analyst = gate.login(service.catalog.analysts, sent, address=find_address(request.scope))
    request.state.analyst, request.state.token_hash = analyst.name, analyst.token_hash
    # counted from here on: whoever has no token can occupy nobody's place
    request.scope[LEAVING].enter_context(gate.take_stream(analyst) if is_stream else gate.take_slot(analyst))


def _make_admission(serving: Serving, request: Request) -> Admission:
    """Return a function that checks if the policy still has the token with which a request logged in."""
    name: str = request.state.analyst
    token_hash: str = request.state.token_hash

    def is_admitted() -> bool:
        try:
            with serving.hold_open() as service:
                return find_analyst(service, name).token_hash == token_hash
        except KeyholeError:
            return False

    return is_admitted


@contextmanager
def _count_request(gate: Gate, scope: Scope) -> Iterator[None]:
    """Count a request from its address while the block runs. Raise KH430 if there are too many."""
    if scope["path"] not in _OPEN:
        gate.count_arrival(find_address(scope))
    yield


def find_address(scope: Scope) -> str:
    """Return the client's IP address of a request."""
    client = scope.get("client")
    return str(client[0]) if client else "local"


async def _respond_to(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405 and request.method == "OPTIONS":
        return Response(status_code=204, headers=error.headers)
    return make_response(error) or make_problem_response(make_internal_error())
