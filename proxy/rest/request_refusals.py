"""Refusals of REST alone: requests that cannot be read, come too often, or repeat another one. All texts are here."""

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


def respond_to_malformed(error: RequestValidationError) -> KeyholeError:
    """Return the first fault that pydantic found, by its place; the value itself is not repeated."""
    fault = error.errors()[0]
    place = ".".join(str(part)[:_MOST_NAME_CHARACTERS] for part in fault["loc"])
    said = _FAULTS.get(fault["type"], "").format(**fault.get("ctx", {})) or fault["msg"].removeprefix("Value error, ")
    return unreadable(f"{place}: {said}")


def unreadable(message: str) -> KeyholeError:
    """Return the refusal of a body, or a field of it, that is not what a request takes."""
    return KeyholeError("KH408", message, hint="/api/docs has the fields and their types.")


def no_http() -> KeyholeError:
    """Return the refusal of bytes that are no request at all."""
    return KeyholeError(
        "KH408", "the bytes are no HTTP request", hint="/api/docs has the requests; any HTTP client sends them."
    )


def respond_to_unserved(status: int) -> HttpRefusal:
    """Return HTTP's own refusal, under HTTP's own status."""
    message, hint = _UNSERVED.get(status, _UNREADABLE)
    return HttpRefusal("KH408", message, hint=hint, status=status)


def no_such_event() -> KeyholeError:
    """Return the refusal of a Last-Event-ID that no event had."""
    return HttpRefusal(
        "KH408",
        "no event has this id",
        hint="Send the id of the last event that came, as it was, or none: then events begin with the next look.",
        status=400,
    )


def no_such_cursor() -> HttpRefusal:
    """Return the refusal of every cursor that leads nowhere, or to an answer of somebody else."""
    return HttpRefusal("KH408", "there is no such cursor", hint="Ask the question again.", status=404)


def no_such_form(forms: tuple[str, ...]) -> HttpRefusal:
    """Return the refusal of an Accept header without any of the forms that an answer has."""
    hint = f"Accept one of {', '.join(forms)}."
    return HttpRefusal("KH408", "an answer has no such form", hint=hint, status=406)


def no_such_token() -> KeyholeError:
    """Return the refusal of a request of nobody whom the policy knows."""
    return KeyholeError("KH401", "authentication failed", hint="Send: Authorization: Bearer TOKEN")


def no_such_analyst() -> KeyholeError:
    """Return the refusal of a request of somebody whom the policy has lost since it was let in."""
    return KeyholeError("KH401", "authentication failed")


def too_often(message: str, *, wait_s: int) -> HttpRefusal:
    """Return the refusal of somebody who may come again in `wait_s` seconds."""
    return HttpRefusal("KH430", message, wait_s=wait_s, hint=f"Ask again in {wait_s} s.")


def too_many_at_a_time() -> HttpRefusal:
    """Return the refusal of more concurrent requests of all analysts than are worked on."""
    return HttpRefusal("KH406", "too many requests at a time", wait_s=_SOON_S, hint="Ask again in a moment.")


def too_many_of_an_analyst() -> HttpRefusal:
    """Return the refusal of more concurrent requests of one analyst than are worked on."""
    message = "too many requests of this analyst at a time"
    return HttpRefusal("KH430", message, wait_s=_SOON_S, hint="Ask again in a moment.")


def other_request() -> KeyholeError:
    """Return the refusal of an idempotency key that stands for another request."""
    return KeyholeError(
        "KH431", "this idempotency key belongs to another request", hint="Make a new key for every question."
    )


def too_many_keys() -> KeyholeError:
    """Return the refusal of an analyst with as many idempotency keys as anybody may have."""
    return KeyholeError("KH430", "too many idempotency keys", hint="Ask without one, or wait until older ones expire.")


def still_answered() -> HttpRefusal:
    """Return the refusal of a repetition that comes while the first request is under way."""
    message = "the first request under this idempotency key is still being answered"
    return HttpRefusal("KH432", message, hint="Send it again in a moment.", wait_s=_SOON_S)


def end_unknown(detail: str) -> KeyholeError:
    """Return the refusal of a repetition of a request whose answer cannot be sent again."""
    return KeyholeError(
        "KH432",
        "the result of the first request under this idempotency key is unknown",
        detail=detail,
        hint="Ask under a new key, which is a new question.",
    )
