"""The texts of a session's refusals. Each depends only on the client's message and the session's settings."""

from planner.errors import KeyholeError, refuse_unsupported


def refuse_client_encoding(encoding: str) -> KeyholeError:
    """Return the refusal of a client encoding in which the same bytes could be read as different SQL."""
    return KeyholeError(
        "KH404", f"the client encoding {encoding} is not supported", hint="SET client_encoding = 'UTF8';"
    )


def refuse_invalid_text(encoding: str) -> KeyholeError:
    """Return the refusal of a statement whose bytes are not valid in the client's encoding."""
    return KeyholeError("KH100", f"the statement is not valid {encoding}")


def refuse_unwritable_text(encoding: str) -> KeyholeError:
    """Return the refusal of a statement that the client's encoding cannot express in full."""
    return KeyholeError("KH100", f"the statement cannot be written in {encoding}")


def refuse_unwritable_answer(encoding: str) -> KeyholeError:
    """Return the refusal of an answer with characters that the client's encoding lacks."""
    return KeyholeError(
        "KH404",
        f"the answer cannot be written in {encoding}",
        detail="It is kept: asked again, the same question costs nothing.",
        hint="SET client_encoding = 'UTF8';",
    )


def refuse_function_call() -> KeyholeError:
    """Return the refusal of a FunctionCall message, the protocol's fast path."""
    return KeyholeError(
        "KH404",
        "function calls by protocol message are not served",
        hint="Send the call as SQL: SELECT the_function(...);",
    )


def refuse_executed_savepoint(position: int | None) -> KeyholeError:
    """Return the refusal of EXECUTE for a savepoint statement that was prepared by a Parse message."""
    return refuse_unsupported(
        "EXECUTE of SAVEPOINT, RELEASE and ROLLBACK is not allowed",
        position=position,
        hint="Send the statement itself, or prepare and bind it by protocol messages.",
    )


def refuse_too_many_held(what: str, *, most: int) -> KeyholeError:
    """Return the refusal of more prepared statements, cursors or portals than a session may hold."""
    return KeyholeError(
        "KH410",
        f"a session holds at most {most:,} {what}",
        hint="Close the ones that you no longer need, or lower the driver's statement cache.",
    )


def refuse_replaced_statement(name: str) -> KeyholeError:
    """Return the refusal of an EXECUTE whose name now belongs to another statement."""
    return KeyholeError(
        "KH106",
        f'the prepared statement "{name}" was replaced after this was parsed',
        hint="Send the EXECUTE again.",
    )


def refuse_reread_parameters() -> KeyholeError:
    """Return the refusal of text parameters that the session's settings would now parse differently."""
    return KeyholeError(
        "KH106",
        "a setting changed the meaning of the parameters after this portal was bound",
        detail="Parameters in text are read by DateStyle, IntervalStyle, TimeZone and the client's encoding.",
        hint="Bind the statement again.",
    )


def refuse_parameter_count(name: str, *, expected: int, given: int) -> KeyholeError:
    """Return the refusal of an EXECUTE with a wrong number of parameter values."""
    return KeyholeError(
        "KH109",
        f'wrong number of parameters for prepared statement "{name}"',
        detail=f"Expected {expected} but got {given}.",
        hint="Give EXECUTE one value per parameter.",
    )
