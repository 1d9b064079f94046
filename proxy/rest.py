"""The REST face of the pipeline: the same questions, refusals and ledger as the PostgreSQL endpoint.

A bearer token names the analyst; the policy holds only its SHA-256. Answers wait in worker threads, so a slow source
does not stop the loop.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi_offline import FastAPIOffline
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from planner.catalog import Analyst, Value
from planner.errors import KeyholeError
from planner.settings import setting
from proxy import budget, pipeline
from proxy.answering import explained_document
from proxy.answers import Asked, bare_question
from proxy.http_shell import Shell
from proxy.refusals import internal_error, problem
from proxy.service import Service

PROBLEM = "application/problem+json"
MOST_BODY_BYTES = 1_000_000
MOST_SQL_CHARACTERS = 100_000
MOST_PARAMETERS = 1_000


def _storable(text: str) -> str:
    """Text that PostgreSQL could hold: no NUL, no lone half of a surrogate pair."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("not text that a database can hold")
    return text


Text: TypeAlias = Annotated[str, AfterValidator(_storable)]
Parameter: TypeAlias = Text | int | float | bool | None


def _described(name: str) -> Any:
    return Field(default=None, description=setting(f"keyhole.{name}").meaning)


class QuestionIn(BaseModel):
    """A question and, optionally, the accuracy to answer it with (the policy's defaults otherwise)."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        json_schema_extra={
            "examples": [{"sql": "SELECT month FROM sales GROUP BY month HAVING count(*) > $1", "parameters": [1000]}]
        },
    )

    sql: Annotated[
        str,
        Field(max_length=MOST_SQL_CHARACTERS, description="SELECT keys ... HAVING ..., one statement"),
        AfterValidator(_storable),
    ]
    parameters: Annotated[list[Parameter], Field(max_length=MOST_PARAMETERS, description="values of $1, $2, ...")] = []
    fnr: float | None = _described("fnr")
    fpr: float | None = _described("fpr")
    tolerance: Text | int | float | None = _described("tolerance")
    min_rows: int | None = _described("min_rows")
    mechanism: Text | None = _described("mechanism")
    most_positives: int | None = _described("most_positives")
    public_knowledge: Text | None = _described("public_knowledge")
    max_epsilon: float | None = _described("max_epsilon")
    reuse: Text | None = _described("reuse")

    def asked_by(self, analyst: Analyst, service: Service) -> Asked:
        """The request as the pipeline takes it."""
        named = self.model_dump(exclude={"sql", "parameters"}, exclude_none=True)
        return Asked(
            question=bare_question(self.sql, service.catalog),
            settings={f"keyhole.{name}": str(value) for name, value in named.items()},
            parameters={number: _value(value) for number, value in enumerate(self.parameters, start=1)},
            analyst=analyst,
            today=datetime.now(UTC).date(),
            utc=True,
        )


class Guarantee(BaseModel):
    """What the answer promises, for the analyst: loss is always "at most"."""

    sentence: str
    fnr: Annotated[float | None, Field(description="null: no bound")]
    fpr: Annotated[float | None, Field(description="null: no bound")]
    tolerance: Annotated[dict[str, float], Field(description="by aggregate, in the unit of its threshold")]
    epsilon_at_most: float
    most_groups: Annotated[int | None, Field(description="the most keys that are returned; null: no limit")] = None


class AnswerOut(BaseModel):
    """A released key set."""

    columns: list[str]
    keys: Annotated[list[list[str]], Field(description="one list per group, as PostgreSQL's text")]
    guarantee: Guarantee
    data_version: str
    reused: Annotated[bool, Field(description="released before: nothing was spent this time")]
    shared_noise: Annotated[str | None, Field(description="which earlier questions' noise it shares; null: none")]


class Health(BaseModel):
    """Whether the process answers. Says nothing about data."""

    status: str


class Problem(BaseModel):
    """A refusal as a problem document (RFC 9457)."""

    type: Annotated[str, Field(examples=["urn:keyhole:error:KH101"])]
    title: str
    status: int
    code: Annotated[str, Field(description="stable; docs/errors.md has them all")]
    sqlstate: str
    meaning: str
    detail: str | None = None
    hint: str | None = None
    position: Annotated[int | None, Field(description="1-based character in sql")] = None


def _problem_response(
    error: KeyholeError, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    document = problem(error, status=status)
    return JSONResponse(document, status_code=document["status"], media_type=PROBLEM, headers=headers)


def create_app(service: Service) -> FastAPI:
    """The application over an open service. Serve it on loopback, or behind a TLS proxy."""
    refused_with: dict[int | str, dict[str, Any]] = {
        status: {"description": meaning, "content": {PROBLEM: {"schema": Problem.model_json_schema()}}}
        for status, meaning in _STATUSES.items()
    }
    app = FastAPIOffline(
        title="Keyhole",
        summary="Which groups cross a threshold? Answered with differential privacy.",
        version=version("keyhole"),
        redoc_url=None,
    )
    app.add_middleware(Shell, most_bytes=MOST_BODY_BYTES, failed=lambda: _problem_response(internal_error()))
    bearer = HTTPBearer(auto_error=False, description="One token per analyst; `keyhole passwd --token` makes one.")

    def analyst(credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]) -> Analyst:
        return authenticated(service, credentials.credentials if credentials else "")

    app.add_exception_handler(KeyholeError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _unserved)

    @app.post("/v1/question", responses=refused_with)
    def question(body: QuestionIn, who: Annotated[Analyst, Depends(analyst)]) -> AnswerOut:
        """Answer a question: the keys that pass, and what they promise. Spends budget unless it is a repetition."""
        asked = body.asked_by(who, service)
        plan = pipeline.prepare(service, asked)
        return AnswerOut(**pipeline.answer(service, plan, asked).document())

    @app.post("/v1/explain", responses=refused_with)
    def explanation(body: QuestionIn, who: Annotated[Analyst, Depends(analyst)]) -> dict[str, object]:
        """The plan of a question and what it would cost. Spends nothing."""
        return explained_document(service, body.asked_by(who, service))

    @app.get("/v1/budget", responses={status: refused_with[status] for status in (401, 500, 503)})
    def balances(who: Annotated[Analyst, Depends(analyst)]) -> dict[str, Any]:
        """What the analyst has spent at most, and what is left."""
        return budget.document(service, who.name)

    @app.get("/healthz")
    def healthy() -> Health:
        """Liveness."""
        return Health(status="ok")

    return app


_STATUSES = {
    400: "the request or a setting is malformed (KH4xx)",
    401: "no analyst has this token (KH401)",
    403: "not enough budget (KH3xx), or not a question that may be asked (KH102, KH103)",
    413: "the request is too large (KH408)",
    422: "the SQL is not a question that Keyhole answers (KH1xx, KH2xx), or not at this accuracy (KH303, KH304)",
    500: "an internal error (KH900)",
    503: "policy, source or ledger is not available (KH0xx, KH5xx)",
}


async def _refused(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, KeyholeError):
        return _problem_response(internal_error())
    return _problem_response(error, headers={"WWW-Authenticate": "Bearer"} if error.code == "KH401" else None)


async def _malformed(_: Request, error: Exception) -> JSONResponse:
    """The first fault that pydantic found, by its place; the value itself is not repeated."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    told = "the body is not JSON"
    if faults and faults[0]["type"] != "json_invalid":
        place = ".".join(str(part) for part in faults[0]["loc"])
        told = f"{place}: {faults[0]['msg'].removeprefix('Value error, ')}"
    return _problem_response(KeyholeError("KH408", told, hint="/docs has the fields and their types."))


_UNSERVED = {
    404: ("there is nothing at this address", "/docs has the addresses."),
    405: ("this address takes another method", "/docs has the methods."),
    413: ("the request body is too large", f"Send at most {MOST_BODY_BYTES:,} bytes."),
}


async def _unserved(_: Request, error: Exception) -> JSONResponse:
    """What HTTP itself refuses, under HTTP's own status."""
    status = error.status_code if isinstance(error, HTTPException) else 400
    message, hint = _UNSERVED.get(status, ("the request cannot be read", "Send one JSON object; /docs has its fields."))
    headers = error.headers if isinstance(error, HTTPException) else None
    return _problem_response(KeyholeError("KH408", message, hint=hint), status=status, headers=headers)


def _value(sent: Parameter) -> Value | None:
    return Decimal(str(sent)) if isinstance(sent, float) else sent


def authenticated(service: Service, token: str) -> Analyst:
    """The analyst a bearer token belongs to; every stored hash is compared, in constant time. Raises KH401."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    found = None
    for analyst in service.catalog.analysts:
        if hmac.compare_digest((analyst.token_hash or "").lower(), digest) and token:
            found = analyst
    if found is None:
        raise KeyholeError("KH401", "authentication failed", hint="Send: Authorization: Bearer TOKEN")
    return found
