"""The refusals of a Spark source, for the owner who opens it."""

from planner.errors import KeyholeError


def report_missing_client() -> KeyholeError:
    """Return the error for a missing library of Spark Connect."""
    return KeyholeError(
        "KH008",
        "source.url names a Spark server, and the client for Spark Connect is not installed",
        hint="Run pip install '.[spark]' in Keyhole's folder.",
    )


def refuse_malformed_url(problem: str) -> KeyholeError:
    """Return the refusal of a malformed `source.url` of a Spark server."""
    return KeyholeError(
        "KH008",
        f"source.url is no address of a Spark server: {problem}",
        hint="Write sc://host:15002, and append /;use_ssl=true if the server has a certificate. "
        'Write the token as [source] token = "${VARIABLE}".',
    )


def report_unreadable_certificates(name: str, *, detail: str) -> KeyholeError:
    """Return the error for a certificate file that cannot be read."""
    return KeyholeError(
        "KH008",
        f"source.ca, {name}, cannot be read",
        detail=detail,
        hint="Name a file in PEM form with the certificate that signed the Spark server's.",
    )


def refuse_plain_token() -> KeyholeError:
    """Return the refusal of a token that would be sent without encryption."""
    return KeyholeError(
        "KH008",
        "the token would go to the Spark server unencrypted",
        hint="Write sc://host:port/;use_ssl=true, and [source] ca if your own authority signed the certificate.",
    )


def report_unreachable_spark(*, detail: str) -> KeyholeError:
    """Return the error for a server at which no session can be opened."""
    return KeyholeError(
        "KH008",
        "the Spark source cannot be reached",
        detail=detail,
        hint="Check source.url, token and ca in keyhole.toml, the network, and that Spark Connect is served there.",
    )


def refuse_other_engine(wanted: str, found: str) -> KeyholeError:
    """Return the refusal of an engine other than the policy's, or of a version with different SQL."""
    if found not in ("spark", "sail"):
        return refuse_unknown_engine(found)
    hint = f'Write engine = "{found}" under [source].'
    return KeyholeError("KH008", f"the engine is {wanted} in the policy, and the source is {found}", hint=hint)


def refuse_unknown_engine(found: str) -> KeyholeError:
    """Return the refusal of a Spark Connect server whose SQL dialect Keyhole does not know."""
    hint = "Keyhole writes SQL for Apache Spark 4 and for Sail."
    return KeyholeError("KH008", f"the source is {found}, neither Apache Spark 4 nor Sail", hint=hint)


def refuse_unkept_setting(name: str, *, wanted: str, found: str) -> KeyholeError:
    """Return the refusal of a server that ignores a setting on which the meaning of the SQL depends."""
    return KeyholeError(
        "KH008",
        f"the Spark source does not keep a setting that answers depend on: {name}",
        detail=f"It was set to {wanted} and is {found}.",
        hint="Have the server allow sessions to set it, and look for a policy or proxy that overrides it.",
    )


def refuse_ignored_setting(name: str, *, wanted: str, found: str) -> KeyholeError:
    """Return the refusal of a server that reports a setting but does not follow it."""
    return KeyholeError(
        "KH008",
        f"the Spark source does not compute as its settings say: {name}",
        detail=f"Expected {wanted}, found {found}.",
        hint='Check engine under [source]: "spark" is Apache Spark 4 or later, "sail" is Sail.',
    )


def report_missing_namespace(name: str, *, what: str) -> KeyholeError:
    """Return the error for a catalog or database that the server does not have."""
    return KeyholeError(
        "KH008",
        f"the Spark source has no {what} {name}, or the reader may not use it",
        hint=f"Correct {what} under [source] in keyhole.toml, or leave it out for the server's own.",
    )


def refuse_unread_view(relation: str) -> KeyholeError:
    """Return the refusal of a view whose tables cannot be found."""
    return KeyholeError(
        "KH006",
        f"Keyhole cannot find out which tables {relation} reads",
        hint="Name the table itself, or a view whose SQL is plain: SELECT, JOIN, WHERE, WITH.",
    )


def report_empty_catalog() -> KeyholeError:
    """Return the error for a server whose catalog is empty. Sail's catalog is empty in each new session."""
    hint = "Name what is to be in the policy: --table 'parquet.`/data/visits`', once for each."
    return KeyholeError("KH006", "the source lists no table", hint=hint)
