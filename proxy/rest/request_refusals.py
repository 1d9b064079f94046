"""The refusals that only REST has: requests that are invalid, too frequent, or repetitions."""

from fastapi.exceptions import RequestValidationError

from planner.errors import KeyholeError
from proxy.rest.middleware import MOST_BODY_BYTES

_MOST_NAME_CHARACTERS = 100  # of a field that there is not: its name is the client's
_SOON_S = 1  # after which a client whose refusal ends by itself may come again: what it waits for mostly takes less
_UNSERVED = {
    404: ("there is nothing at this address", "/api/docs has the addresses."),
    405: ("this address takes another method", "/api/docs has the methods."),
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
_UNREADABLE = ("the request cannot be read", "Send one JSON object, and every header once; /api/docs has the fields.")


class HttpRefusal(KeyholeError):
    """A refusal with its own HTTP status, or with `wait_s` seconds to wait before a retry."""

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


def refuse_malformed(error: RequestValidationError) -> KeyholeError:
    """Return the refusal for the first fault that pydantic found. It names the field, and never repeats the value."""
    fault = error.errors()[0]
    place = ".".join(str(part)[:_MOST_NAME_CHARACTERS] for part in fault["loc"])
    said = _FAULTS.get(fault["type"], "").format(**fault.get("ctx", {})) or fault["msg"].removeprefix("Value error, ")
    return refuse_unreadable(f"{place}: {said}")


def refuse_unreadable(message: str) -> KeyholeError:
    """Return the refusal of an invalid body or field."""
    return KeyholeError("KH408", message, hint="/api/docs has the fields and their types.")


def refuse_non_http() -> KeyholeError:
    """Return the refusal of bytes that are not an HTTP request."""
    return KeyholeError(
        "KH408", "the bytes are no HTTP request", hint="/api/docs has the requests; any HTTP client sends them."
    )


def refuse_with_status(status: int) -> HttpRefusal:
    """Return the refusal for one of HTTP's own error statuses, such as 404."""
    message, hint = _UNSERVED.get(status, _UNREADABLE)
    return HttpRefusal("KH408", message, hint=hint, status=status)


def refuse_unknown_event() -> KeyholeError:
    """Return the refusal of a Last-Event-ID that is not the id of an event."""
    return HttpRefusal(
        "KH408",
        "no event has this id",
        hint="Send the id of the last event that came, as it was, or none: then events begin with the next look.",
        status=400,
    )


def refuse_unknown_cursor() -> HttpRefusal:
    """Return the refusal of a cursor that is invalid, or that names another analyst's answer."""
    return HttpRefusal("KH408", "there is no such cursor", hint="Ask the question again.", status=404)


def refuse_unknown_form(forms: tuple[str, ...]) -> HttpRefusal:
    """Return the refusal of an Accept header that allows none of the answer's media types."""
    hint = f"Accept one of {', '.join(forms)}."
    return HttpRefusal("KH408", "an answer has no such form", hint=hint, status=406)


def refuse_unknown_token() -> KeyholeError:
    """Return the refusal of a request without a valid token."""
    return KeyholeError("KH401", "authentication failed", hint="Send: Authorization: Bearer TOKEN")


def refuse_removed_analyst() -> KeyholeError:
    """Return the refusal of a request whose analyst was removed from the policy after the login."""
    return KeyholeError("KH401", "authentication failed")


def refuse_too_often(message: str, *, wait_s: int) -> HttpRefusal:
    """Return the refusal of a request that may be repeated in `wait_s` seconds."""
    return HttpRefusal("KH430", message, wait_s=wait_s, hint=f"Ask again in {wait_s} s.")


def refuse_full_service() -> HttpRefusal:
    """Return the refusal of a request while too many requests of all analysts are running."""
    return HttpRefusal("KH406", "too many requests at a time", wait_s=_SOON_S, hint="Ask again in a moment.")


def refuse_full_analyst() -> HttpRefusal:
    """Return the refusal of a request while too many requests of its analyst are running."""
    message = "too many requests of this analyst at a time"
    return HttpRefusal("KH430", message, wait_s=_SOON_S, hint="Ask again in a moment.")


def refuse_other_request() -> KeyholeError:
    """Return the refusal of an idempotency key that was used for another request."""
    return KeyholeError(
        "KH431", "this idempotency key belongs to another request", hint="Make a new key for every question."
    )


def refuse_too_many_keys() -> KeyholeError:
    """Return the refusal of a new idempotency key from an analyst who has too many."""
    return KeyholeError("KH430", "too many idempotency keys", hint="Ask without one, or wait until older ones expire.")


def refuse_running_request() -> HttpRefusal:
    """Return the refusal of a repetition while the first request is still running."""
    message = "the first request under this idempotency key is still being answered"
    return HttpRefusal("KH432", message, hint="Send it again in a moment.", wait_s=_SOON_S)


def refuse_unknown_end(detail: str) -> KeyholeError:
    """Return the refusal of a repetition if the first request's answer cannot be sent again."""
    return KeyholeError(
        "KH432",
        "the result of the first request under this idempotency key is unknown",
        detail=detail,
        hint="Ask under a new key, which is a new question.",
    )
