"""The error for the client of a question that was withdrawn, also for callers that answer and log nothing."""

from planner.errors import KeyholeError


def cancellation_error() -> KeyholeError:
    """Return the error for the client of a withdrawn question."""
    return KeyholeError(
        "KH409",
        "canceling statement due to user request",
        detail="Nothing is spent that was not reserved before; what was reserved stays spent.",
        hint="An answer that was paid for is kept: asked again, the same question costs nothing.",
    )
