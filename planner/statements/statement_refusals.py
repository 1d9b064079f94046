"""Refusals of statements and settings, with hints about what to write instead."""

from collections.abc import Iterable, Sequence

from planner.errors import KeyholeError, refuse_unsupported
from planner.parser.lexer import Token
from planner.statements.kinds import OWN_NAMES


def refuse_nesting() -> KeyholeError:
    """Return KH100 for a statement that is nested too deeply."""
    return KeyholeError(
        "KH100",
        "the statement is nested too deeply",
        hint="Write it with fewer levels of parentheses, CASE and subqueries.",
    )


def refuse_several_statements(semicolon: Token) -> KeyholeError:
    """Return KH108 for a second statement after a semicolon."""
    return KeyholeError(
        "KH108",
        "several statements where one is expected",
        hint="Send one statement at a time.",
        position=semicolon.start + 1,
    )


def refuse_prepared_transaction(first: Token) -> KeyholeError:
    """Return KH102 for PREPARE TRANSACTION and related statements."""
    return refuse_unsupported("two-phase transactions are not allowed", position=first.start + 1, hint="Use COMMIT.")


def refuse_acting_function(called: Token) -> KeyholeError:
    """Return KH102 for the call of a function with effects, which does more than compute a value."""
    return refuse_unsupported(
        f"{called.value}() acts on the server or runs text as SQL",
        position=called.start + 1,
        hint="Leave the call out.",
    )


_COPY = "Write COPY (SELECT ...) TO STDOUT; in psql: \\copy (SELECT ...) TO 'answer.csv' CSV HEADER"


def refuse_table_copy(found: Sequence[Token]) -> KeyholeError:
    """Return KH102 for a COPY of anything but a query."""
    at = found[0].start + 1
    if any(token.is_word("from") for token in found):
        return refuse_unsupported(
            "COPY FROM is not allowed", position=at, hint="Leave it out: nothing can be written here."
        )
    return refuse_unsupported("COPY of a table is not allowed, COPY of a query is", position=at, hint=_COPY)


def refuse_statement_copy(first: Token) -> KeyholeError:
    """Return KH102 for a COPY of a statement that is no query."""
    return refuse_unsupported(
        f"COPY of {first.value.upper()[:40]} is not allowed", position=first.start + 1, hint=_COPY
    )


def refuse_server_copy(target: Token) -> KeyholeError:
    """Return KH102 for a COPY to a file or a program of the server."""
    return refuse_unsupported("COPY to anything but STDOUT is not allowed", position=target.start + 1, hint=_COPY)


def refuse_own_name(*, position: int | None = None) -> KeyholeError:
    """Return KH404 for a statement or cursor with a name that is reserved for Keyhole."""
    return KeyholeError(
        "KH404",
        f'names of statements and cursors that start with "{OWN_NAMES}" are Keyhole\'s own',
        hint="Choose another name.",
        position=position,
    )


def refuse_empty_explain(last: Token) -> KeyholeError:
    """Return KH100 for an EXPLAIN that ends before its statement."""
    return KeyholeError("KH100", "EXPLAIN needs a statement", position=last.end)


def refuse_explain_analyze(*, position: int, explained: str) -> KeyholeError:
    """Return KH102 for EXPLAIN ANALYZE of `explained`; without ANALYZE it costs nothing."""
    return refuse_unsupported(
        "EXPLAIN ANALYZE is not allowed",
        position=position,
        detail="ANALYZE would run the statement.",
        hint=f"EXPLAIN {explained};",
    )


def refuse_mixed_explain(first: Token) -> KeyholeError:
    """Return KH106 for EXPLAIN of a statement that reads a relation of Keyhole together with a question or another."""
    return KeyholeError(
        "KH106",
        "EXPLAIN explains questions, or one monitor",
        hint="Explain each of them on its own.",
        position=first.start + 1,
    )


def refuse_explain_format(form: Token, *, explained: str) -> KeyholeError:
    """Return KH106 for EXPLAIN of a question in YAML or XML."""
    return KeyholeError(
        "KH106",
        f"EXPLAIN cannot give {form.value.upper()}",
        hint=f"EXPLAIN (FORMAT JSON) {explained};",
        position=form.start + 1,
    )


def refuse_nameless_set(word: Token) -> KeyholeError:
    """Return KH100 for a SET or RESET without a setting."""
    said = word.value.upper()
    hint = "Write RESET keyhole.tolerance;" if said == "RESET" else "Write SET keyhole.tolerance = '10%';"
    return KeyholeError("KH100", f"{said} names no setting", hint=hint, position=word.start + 1)


def refuse_set_without_value(name: str, *, position: int) -> KeyholeError:
    """Return KH100 for a SET that ends after the setting's name."""
    return KeyholeError("KH100", f"SET {name[:60]} needs a value", position=position)


def refuse_role(*, position: int) -> KeyholeError:
    """Return KH102 for SET ROLE and SET SESSION AUTHORIZATION."""
    return refuse_unsupported(
        "the role of a session cannot be changed", position=position, hint="Connect as another analyst."
    )


def refuse_setting(name: str, *, position: int) -> KeyholeError:
    """Return KH102 for a setting of PostgreSQL that only the owner may change."""
    return refuse_unsupported(
        f'the setting "{name}" may not be changed here',
        position=position,
        detail="Only settings that concern the client's own formats, names and timeouts may be set.",
        hint="Leave it as the owner set it. The settings of a question begin with keyhole.",
    )


def refuse_reading_setting(name: str, *, position: int) -> KeyholeError:
    """Return KH102 for a setting that decides how text is read."""
    return refuse_unsupported(f'"{name}" stays on', position=position, hint="Write backslashes in E'...' strings.")


def refuse_computed_setting(*, position: int) -> KeyholeError:
    """Return KH102 for a set_config() whose setting is computed when the statement runs."""
    return refuse_unsupported(
        "set_config() needs the setting's name as a plain text",
        position=position,
        hint="Write the name as it is, as in set_config('keyhole.fnr', '0.02', false), or use SET.",
    )


def refuse_unknown_setting(name: str, known: Iterable[str]) -> KeyholeError:
    """Return KH403 for a setting under `keyhole.` that does not exist."""
    return KeyholeError("KH403", f'unrecognised setting "{name}"', hint=f"Settings: {', '.join(known)}.")


def refuse_unknown_parameter(setting: str, known: Iterable[str]) -> KeyholeError:
    """Return KH403 for a parameter that no stored question has."""
    listed = ", ".join(known)
    hint = f"Parameters: {listed}." if listed else "No stored question of this database has parameters."
    return KeyholeError("KH403", f'unrecognised setting "{setting}"', hint=hint)


def refuse_value(name: str, value: str, *, wanted: str, example: str) -> KeyholeError:
    """Return KH402 for a setting's value, with an example of an allowed one."""
    return KeyholeError(
        "KH402", f"{name} cannot be {value[:60]!r}", detail=f"It must be {wanted}.", hint=f"SET {name} = {example};"
    )


def refuse_parameter_value(setting: str, value: str, *, described: str, example: str) -> KeyholeError:
    """Return KH402 for the value of a stored question's parameter, with its default."""
    return KeyholeError(
        "KH402",
        f"{setting} cannot be {value[:60]!r}",
        detail=f"It is {described}.",
        hint=f"SET {setting} = {example};",
    )


def refuse_long_value(name: str, *, most_characters: int) -> KeyholeError:
    """Return KH402 for a value that is too long to parse quickly."""
    return KeyholeError("KH402", f"{name} is longer than {most_characters:,} characters", hint=f"RESET {name};")


def refuse_mechanism(mechanism: str, *, allowed: Iterable[str], default: str) -> KeyholeError:
    """Return KH402 for a mechanism that the policy does not allow."""
    return KeyholeError(
        "KH402",
        f"the policy does not allow mechanism {mechanism}",
        detail=f"It allows {', '.join(allowed)}; the owner may add others to [accuracy] mechanisms.",
        hint=f"SET keyhole.mechanism = '{default}';",
    )


def refuse_missing_limit(mechanism: str) -> KeyholeError:
    """Return KH402 for a sparse vector that may return any number of groups."""
    return KeyholeError(
        "KH402",
        f"mechanism {mechanism} needs a limit on the groups it returns",
        detail="A sparse vector stops at that limit, and a higher limit costs more.",
        hint="SET keyhole.most_positives = 3;",
    )


def refuse_useless_setting(name: str, mechanism: str, *, users: Iterable[str], instead: str | None) -> KeyholeError:
    """Return KH402 for a setting that the mechanism does not use; `instead` is a mechanism that does."""
    other = "" if instead is None else f"  or  SET keyhole.mechanism = '{instead}';"
    return KeyholeError(
        "KH402",
        f"{name} is set, and mechanism {mechanism} has no use for it",
        detail=f"Only {' and '.join(sorted(users))} may use it.",
        hint=f"RESET {name};{other}",
    )
