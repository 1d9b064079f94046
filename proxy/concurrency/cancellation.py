"""The error for the client of a question that was withdrawn, also for callers that answer and log nothing."""

from planner.errors import KeyholeError


def make_cancellation_error() -> KeyholeError:
    """Return the error for the client of a withdrawn question."""
    return KeyholeError(
        "KH409",
        "canceling statement due to user request",
        detail="The budget that was reserved stays spent, and nothing more.",
        hint="A charged answer is stored: ask the same question again, and it costs nothing.",
    )
