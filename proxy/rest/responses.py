"""REST's responses to refusals, and the refusals in its OpenAPI document."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from planner.errors import KeyholeError
from proxy.rest.middleware import CODE
from proxy.rest.models import Problem
from proxy.rest.problems import MEANINGS, PROBLEM, make_problem
from proxy.rest.request_refusals import HttpRefusal, refuse_malformed, refuse_with_status


class UnreadableBody(HTTPException):
    """The refusal of a body, as an HTTPException, which FastAPI does not replace while it reads a body."""

    def __init__(self, refusal: KeyholeError) -> None:
        super().__init__(400)
        self.refusal = refusal


def describe_problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI description of refusals with these HTTP statuses."""
    return {
        status: {"description": MEANINGS[status], "content": {PROBLEM: {"schema": _make_problem_schema()}}}
        for status in sorted(statuses)
    }


@cache
def _make_problem_schema() -> dict[str, Any]:
    return Problem.model_json_schema()


def make_response(error: Exception) -> JSONResponse | None:
    """Return the HTTP response to a refusal. Return None for any other exception."""
    match error:
        case KeyholeError():
            return make_problem_response(error)
        case RequestValidationError():
            return make_problem_response(refuse_malformed(error))
        case UnreadableBody(refusal=refusal):
            return make_problem_response(refusal)
        case HTTPException():
            return make_problem_response(refuse_with_status(error.status_code), headers=error.headers)
    return None


def make_problem_response(error: KeyholeError, *, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return a refusal as an HTTP response with a problem document."""
    document = make_problem(error, status=error.status if isinstance(error, HttpRefusal) else None)
    own = dict(headers or {})
    if error.code == "KH401":
        own["WWW-Authenticate"] = "Bearer"
    if isinstance(error, HttpRefusal) and error.wait_s is not None:
        own["Retry-After"] = str(error.wait_s)
    return _ProblemResponse(document, status_code=document["status"], media_type=PROBLEM, headers=own)


class _ProblemResponse(JSONResponse):
    """A response that stores its refusal's code in the ASGI scope, for the middleware's log."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})[CODE] = self.code
        await super().__call__(scope, receive, send)

    def render(self, content: Any) -> bytes:
        self.code = content["code"]
        return super().render(content)
