"""The refusals of sources. An analyst learns only that a source failed. The owner learns why."""

import re
from pathlib import Path

from planner.errors import KeyholeError

# as `planner.policy.relation_names` and `planner.catalog.csv_file` write them for DuckDB
_FILE = re.compile(r"(?:\(SELECT .* FROM )?read_(?:csv|parquet)\('((?:[^']|'')*)'")


class SourceFailed(KeyholeError):
    """The error KH501, with the same text for every failure. `why` is only for the log.

    If `is_unread`, a column or key was missing, so no row was read.
    """

    def __init__(self, why: str, *, is_unread: bool = False) -> None:
        super().__init__(
            "KH501",
            "the source could not answer",
            hint="Ask again later or ask the data owner. The budget reserved for this question stays spent.",
        )
        self.why = why
        self.unread = is_unread


def report_failed_question(why: str) -> KeyholeError:
    """Return the analyst's error for a question that failed in the source. The cause is only in the log."""
    return SourceFailed(why)


def report_missing_column() -> KeyholeError:
    """Return the error for a question or release whose reservation was released.

    The source lacks a column of the question, or no longer keeps a key unique. No row was read.
    """
    return KeyholeError(
        "KH501",
        "the source no longer has a column or unique key that the question reads",
        detail="No row was read. Nothing was spent.",
        hint="Inform the data owner: Keyhole's log names it, and keyhole check lists columns.",
    )


def report_unreachable_source() -> KeyholeError:
    """Return the analyst's error for a source that does not answer, before anything was reserved."""
    return KeyholeError(
        "KH501",
        "the source cannot be reached",
        detail="It does not answer, accepts no more connections, or has as many questions as it takes at a time.",
        hint="Ask again later. Nothing was spent.",
    )


def refuse_after_failures(most: int) -> KeyholeError:
    """Return the error for an analyst whose questions failed in the source too often."""
    return KeyholeError(
        "KH503",
        "too many of your questions failed in the source",
        detail=f"After {most} failures in an hour nothing more is asked of the source. Nothing was spent.",
        hint="Inform the data owner, or ask again in an hour.",
    )


def refuse_file_of_rows(file: Path) -> KeyholeError:
    """Return the owner's error for a `source.url` that names a file of rows, such as CSV, not a database."""
    return KeyholeError(
        "KH008",
        f"{file.name} is a file of rows and no DuckDB database",
        hint=f'Write url = "duckdb://" and [tables.NAME] relation = "{file.name}", '
        f"as keyhole init --source {file.name} does.",
    )


def report_unknown_relation(relation: str) -> KeyholeError:
    """Return the owner's error for a relation that the source cannot find. A file is named by its path."""
    if found := _FILE.match(relation):
        path = found[1].replace("''", "'")
        return KeyholeError(
            "KH006",
            f"the source has no file {path}, or not with these columns, or Keyhole may not read it",
            hint="Compare `relation` in keyhole.toml with the files, and who may read them.",
        )
    return KeyholeError(
        "KH006",
        f"the source has no relation {relation}, or not with these columns, or the reader may not select from it",
        hint="Compare `relation` in keyhole.toml with the source, and the grants of the reader's role.",
    )


def report_missing_grant(relation: str, role: str) -> KeyholeError:
    """Return the owner's error for a relation that the database role may not select from."""
    return KeyholeError(
        "KH006",
        f'the role "{role}" may not select any column of {relation} in the source',
        hint=f'GRANT SELECT ON {relation} TO "{role}"; and, if its schema is not public, GRANT USAGE ON SCHEMA.',
    )


def report_unreadable_rows(relation: str) -> KeyholeError:
    """Return the owner's error for a public table that cannot be copied."""
    return KeyholeError(
        "KH006",
        f"the rows of the public table {relation} cannot be read",
        hint=f"Run SELECT * FROM {relation} in the source, as the reader, to see its error, or how long it takes.",
    )


def report_uncopyable_value(relation: str, column: str) -> KeyholeError:
    """Return the owner's error for a public table with a value that the shadow cannot store."""
    return KeyholeError(
        "KH006",
        f'column "{column}" of the public table {relation} has a value that cannot be copied',
        detail="Dates and timestamps are copied from the year 1 to the year 9999, text without the character 0; "
        "infinity is no date.",
        hint="Write NULL in its place, or name a table without these rows.",
    )


def refuse_unknown_url() -> KeyholeError:
    """Return the refusal of a `source.url` that names no known kind of source."""
    return KeyholeError(
        "KH008",
        "source.url is neither a DuckDB nor a PostgreSQL one",
        hint="Write duckdb:///file.duckdb, duckdb:// or postgresql://user@host/database.",
    )


class DatabaseUnopened(KeyholeError):
    """The error KH008 for a DuckDB database that cannot be opened. `why` is only for the log."""

    def __init__(self, database: Path | None, *, detail: str, why: str) -> None:
        super().__init__(
            "KH008",
            f"the DuckDB database {database or 'in memory'} cannot be opened",
            detail=detail,
            hint="Check source.url in keyhole.toml, and that no other process has the file open for writing.",
        )
        self.why = why


def report_unreachable_postgres(*, detail: str) -> KeyholeError:
    """Return the error for a PostgreSQL source that cannot be reached or refuses the login."""
    return KeyholeError(
        "KH008",
        "the PostgreSQL source cannot be reached",
        detail=detail,
        hint="Check source.url in keyhole.toml, the network and the reader's password.",
    )


def report_full_postgres(*, detail: str) -> KeyholeError:
    """Return the error for a PostgreSQL source with no free connection."""
    return KeyholeError(
        "KH008",
        "the PostgreSQL source takes no more connections",
        detail=detail,
        hint="Raise the CONNECTION LIMIT of the reader's role, or the server's max_connections: "
        'docs/operating.md says under "Several processes" how many Keyhole needs.',
    )


def report_late_postgres() -> KeyholeError:
    """Return the error for a PostgreSQL source that was reached, but gave no connection in time."""
    return KeyholeError(
        "KH008",
        "the PostgreSQL source gave no connection in time",
        hint="Try again. If it happens again, check the load of the PostgreSQL server.",
    )


def report_unknown_encoding() -> KeyholeError:
    """Return the error for a PostgreSQL source whose text encoding is unknown."""
    return KeyholeError(
        "KH008",
        "the PostgreSQL source does not declare the encoding of its text",
        detail="The database's encoding is SQL_ASCII: its text is bytes of any encoding, or of several.",
        hint="Dump it, create a database with ENCODING 'UTF8', and restore it there.",
    )
