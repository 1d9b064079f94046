"""The REST face of the pipeline: the same questions, refusals and ledger as the PostgreSQL endpoint.

A bearer token names the analyst; the policy holds only its SHA-256. Answers wait in worker threads, so a slow source
does not stop the loop.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from planner import explain
from planner.catalog import Analyst, Value
from planner.errors import KeyholeError
from proxy import budget, pipeline
from proxy.answering import explained_document
from proxy.answers import Asked, bare_question
from proxy.refusals import http_status, problem
from proxy.service import Service

PROBLEM = "application/problem+json"
MOST_SQL_CHARACTERS = 100_000


Parameter: TypeAlias = str | int | float | bool | None


class QuestionIn(BaseModel):
    """A question and, optionally, the accuracy to answer it with (the policy's defaults otherwise)."""

    model_config = ConfigDict(extra="forbid")

    sql: Annotated[str, Field(max_length=MOST_SQL_CHARACTERS)]
    parameters: list[Parameter] = []
    fnr: float | None = None
    fpr: float | None = None
    tolerance: str | None = None
    min_rows: int | None = None
    mechanism: str | None = None
    max_epsilon: float | None = None

    def asked_by(self, analyst: Analyst, service: Service) -> Asked:
        """The request as the pipeline takes it."""
        named = self.model_dump(exclude={"sql", "parameters"}, exclude_none=True)
        return Asked(
            question=bare_question(self.sql, service.catalog),
            settings={f"keyhole.{name}": str(value) for name, value in named.items()},
            parameters={number: _value(value) for number, value in enumerate(self.parameters, start=1)},
            analyst=analyst,
            today=datetime.now(UTC).date(),
        )


class Guarantee(BaseModel):
    """What the answer promises, for the analyst: loss is always "at most"."""

    sentence: str
    fnr: float | None
    fpr: float | None
    tolerance: dict[str, float]
    epsilon_at_most: float


class AnswerOut(BaseModel):
    """A released key set."""

    columns: list[str]
    keys: list[list[str]]
    guarantee: Guarantee
    data_version: str
    reused: bool


class Health(BaseModel):
    """Whether the process answers. Says nothing about data."""

    status: str


def _problem_response(error: KeyholeError) -> JSONResponse:
    headers = {"WWW-Authenticate": "Bearer"} if error.code == "KH401" else None
    return JSONResponse(problem(error), status_code=http_status(error), media_type=PROBLEM, headers=headers)


def create_app(service: Service) -> FastAPI:
    """The application over an open service. Serve it on loopback, or behind a TLS proxy."""
    app = FastAPI(
        title="Keyhole",
        summary="Which groups cross a threshold? Answered with differential privacy.",
        version="0.1.0",
        responses={status: {"content": {PROBLEM: {}}} for status in (400, 401, 403, 422, 503)},
    )
    bearer = HTTPBearer(auto_error=False, description="One token per analyst; `keyhole passwd --token` makes one.")

    def analyst(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Analyst:
        return authenticated(service, credentials.credentials if credentials else "")

    @app.exception_handler(KeyholeError)
    async def refused(_: Request, error: KeyholeError) -> JSONResponse:
        return _problem_response(error)

    @app.exception_handler(RequestValidationError)
    async def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return _problem_response(KeyholeError("KH408", f"{place}: {first['msg']}", hint="See /docs for the fields."))

    @app.exception_handler(HTTPException)
    async def not_found(_: Request, error: HTTPException) -> JSONResponse:
        document = {"type": "about:blank", "title": str(error.detail), "status": error.status_code}
        return JSONResponse(document, status_code=error.status_code, media_type=PROBLEM, headers=error.headers)

    @app.exception_handler(Exception)
    async def internal(_: Request, __: Exception) -> JSONResponse:
        return _problem_response(internal_error())

    @app.post("/v1/question")
    def question(body: QuestionIn, who: Annotated[Analyst, Depends(analyst)]) -> AnswerOut:
        """Answer a question: the keys that pass, and what they promise. Spends budget unless it is a repetition."""
        asked = body.asked_by(who, service)
        plan = pipeline.prepare(service, asked)
        answer = pipeline.answer(service, plan, asked)
        return AnswerOut(
            columns=list(answer.keys.columns),
            keys=[list(key) for key in answer.keys.keys],
            guarantee=Guarantee(**explain.guarantee_json(plan)),
            data_version=answer.version,
            reused=answer.reused,
        )

    @app.post("/v1/explain")
    def explanation(body: QuestionIn, who: Annotated[Analyst, Depends(analyst)]) -> dict[str, object]:
        """The plan of a question and what it would cost. Spends nothing."""
        return explained_document(service, body.asked_by(who, service))

    @app.get("/v1/budget")
    def balances(who: Annotated[Analyst, Depends(analyst)]) -> dict[str, Any]:
        """What the analyst has spent at most, and what is left."""
        return budget.document(service, who.name)

    @app.get("/healthz")
    def healthy() -> Health:
        """Liveness."""
        return Health(status="ok")

    return app


def _value(sent: Parameter) -> Value | None:
    return Decimal(str(sent)) if isinstance(sent, float) else sent


def authenticated(service: Service, token: str) -> Analyst:
    """The analyst a bearer token belongs to; every stored hash is compared, in constant time. Raises KH401."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    found = None
    for analyst in service.catalog.analysts:
        if hmac.compare_digest(analyst.token_hash or "", digest):
            found = analyst
    if found is None:
        raise KeyholeError("KH401", "authentication failed", hint="Send: Authorization: Bearer TOKEN")
    return found


def internal_error() -> KeyholeError:
    """What anything unforeseen becomes; the cause stays inside."""
    return KeyholeError("KH900", "an internal error", detail="Nothing is returned. What was reserved stays spent.")
