"""Refusals over HTTP: problem documents (RFC 9457) with HTTP's own status, and the statuses that OpenAPI announces."""

from collections.abc import Mapping
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from planner.errors import KeyholeError
from proxy.report.refusals import problem
from proxy.rest.middleware import CODE
from proxy.rest.models import Problem

PROBLEM = "application/problem+json"
MOST_BODY_BYTES = 1_000_000  # the longest text with every character escaped, by six bytes each, and room for parameters
_MOST_NAME_CHARACTERS = 100  # of a field that there is not: its name is the client's
# what reading any request may end with
READING = (401, 408, 413, 429, 431, 500, 503)
ASKING = (400, 403, 422, *READING)
_STATUSES = {
    400: "the request or a setting is malformed (KH4xx)",
    401: "no analyst has this token (KH401)",
    403: "not enough budget (KH3xx), or not a question that may be asked (KH102, KH103)",
    404: "there is no such cursor (KH408)",
    406: "none of the media types that are accepted (KH408)",
    408: "the body did not come in time (KH408)",
    409: "the first request under this idempotency key has no known end (KH432)",
    413: "the request is too large (KH408)",
    422: "the SQL is not a question that Keyhole answers (KH1xx, KH2xx), or not at this accuracy (KH303, KH304); or "
    "the idempotency key belongs to another request (KH431)",
    429: "too many requests or failed logins (KH430); Retry-After says when to come again",
    431: "the head of the request is too large (KH408)",
    500: "an internal error (KH900)",
    503: "policy, source or ledger is not available (KH0xx, KH5xx), or too much is asked at a time (KH406)",
}
_UNSERVED = {
    404: ("there is nothing at this address", "/docs has the addresses."),
    405: ("this address takes another method", "/docs has the methods."),
    408: ("the request body did not come in time", "Send it at once."),
    413: ("the request body is too large", f"Send at most {MOST_BODY_BYTES:,} bytes."),
    505: ("this is another HTTP than 1.1", "Speak HTTP/1.1."),
    431: ("the head of the request is too large", "Send fewer or shorter headers, and a shorter address."),
}
_FAULTS = {  # in JSON's words, what pydantic says in Python's
    "model_attributes_type": "Input should be one JSON object",
    "list_type": "Input should be an array",
    "too_long": "Array should have at most {max_length} items",
}
_UNREADABLE = ("the request cannot be read", "Send one JSON object, and every header once; /docs has the fields.")


class HttpRefusal(KeyholeError):
    """A refusal with a status that is more telling than its code's, or that ends by itself in `wait_s` seconds."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str,
        detail: str | None = None,
        status: int | None = None,
        wait_s: int | None = None,
    ) -> None:
        super().__init__(code, message, detail=detail, hint=hint)
        self.status = status
        self.wait_s = wait_s


class UnreadableBody(HTTPException):
    """A refusal of a body, in the one form that FastAPI passes on while it reads one."""

    def __init__(self, refusal: KeyholeError) -> None:
        super().__init__(400)
        self.refusal = refusal


def announced(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Refusals as OpenAPI has them."""
    schema = Problem.model_json_schema()
    return {
        status: {"description": _STATUSES[status], "content": {PROBLEM: {"schema": schema}}}
        for status in sorted(statuses)
    }


def response_to(error: Exception) -> JSONResponse | None:
    """What a refusal is told as; None for what is unforeseen."""
    match error:
        case KeyholeError():
            return problem_response(error)
        case RequestValidationError():
            return _malformed(error)
        case UnreadableBody(refusal=refusal):
            return problem_response(refusal)
        case HTTPException():
            return _unserved(error)
    return None


def problem_response(error: KeyholeError, *, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A refusal as a problem document."""
    document = problem(error, status=error.status if isinstance(error, HttpRefusal) else None)
    own = dict(headers or {})
    if error.code == "KH401":
        own["WWW-Authenticate"] = "Bearer"
    if isinstance(error, HttpRefusal) and error.wait_s is not None:
        own["Retry-After"] = str(error.wait_s)
    return _ProblemResponse(document, status_code=document["status"], media_type=PROBLEM, headers=own)


class _ProblemResponse(JSONResponse):
    """Says its code where the shell finds it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[CODE] = self.code
        await super().__call__(scope, receive, send)

    def render(self, content: Any) -> bytes:
        self.code = content["code"]
        return super().render(content)


def _malformed(error: RequestValidationError) -> JSONResponse:
    """The first fault that pydantic found, by its place; the value itself is not repeated."""
    fault = error.errors()[0]
    place = ".".join(str(part)[:_MOST_NAME_CHARACTERS] for part in fault["loc"])
    said = _FAULTS.get(fault["type"], "").format(**fault.get("ctx", {})) or fault["msg"].removeprefix("Value error, ")
    return problem_response(KeyholeError("KH408", f"{place}: {said}", hint="/docs has the fields and their types."))


def _unserved(error: HTTPException) -> JSONResponse:
    """What HTTP itself refuses, under HTTP's own status."""
    message, hint = _UNSERVED.get(error.status_code, _UNREADABLE)
    refusal = HttpRefusal("KH408", message, hint=hint, status=error.status_code)
    return problem_response(refusal, headers=error.headers)
