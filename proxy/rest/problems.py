"""Refusals as problem documents (RFC 9457), each with an HTTP status."""

from typing import Any

from planner.errors import KeyholeError
from proxy.rest.field_hints import write_as_fields

PROBLEM = "application/problem+json"

# what reading any request may end with, and asking beside that
READING = (401, 408, 413, 429, 431, 500, 503)
ASKING = (400, 403, 422, *READING)

MEANINGS = {
    400: "the request or a setting is malformed (KH4xx)",
    401: "no analyst has this token (KH401)",
    403: "not enough budget (KH3xx), or not a question that may be asked (KH102, KH103)",
    404: "there is no such cursor (KH408), or no such monitor that you may read (KH605)",
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

# by the first letters of a code, and by the code where it has a more telling one
_STATUS_OF_GROUP = {"KH0": 503, "KH1": 422, "KH2": 422, "KH3": 403, "KH4": 400, "KH5": 503, "KH6": 422, "KH9": 500}
_STATUS_OF_CODE = {
    "KH102": 403,
    "KH103": 403,
    "KH303": 422,
    "KH304": 422,
    "KH401": 401,
    "KH406": 503,
    "KH411": 503,
    "KH430": 429,
    "KH431": 422,
    "KH432": 409,
    "KH605": 404,
}


def choose_http_status(error: KeyholeError) -> int:
    """Return the HTTP status that belongs to a catalogued refusal."""
    return _STATUS_OF_CODE.get(error.code, _STATUS_OF_GROUP[error.code[:3]])


def make_problem(error: KeyholeError, *, status: int | None = None) -> dict[str, Any]:
    """Return a refusal as a problem document (RFC 9457).

    Besides the standard members, it has code, SQLSTATE, hint and position. The hint names request fields instead of
    settings.

    Parameters:
        status: the HTTP status, if it is more specific than the one of the refusal's code.
    """
    document: dict[str, Any] = {
        "type": f"urn:keyhole:error:{error.code}",
        "title": error.message,
        "status": choose_http_status(error) if status is None else status,
        "code": error.code,
        "sqlstate": error.sqlstate,
        "meaning": error.entry.meaning,
    }
    hint = None if error.hint is None else write_as_fields(error.hint)
    extra = {"detail": error.detail, "hint": hint, "position": error.position}
    return document | {name: value for name, value in extra.items() if value is not None}
