"""Where the private data lives: the only package that touches it, and only through rewritten questions."""

from collections.abc import Mapping
from pathlib import Path

from proxy.sources.postgres_source import PostgresSource
from proxy.sources.protocol import Source as Source
from proxy.sources.protocol import TrueAggregates as TrueAggregates
from proxy.sources.refusals import no_database, unknown_url
from proxy.sources.rollups import MOST_ROWS

_DUCKDB = "duckdb://"
_TABLE_FILES = (".csv", ".parquet")  # what DuckDB reads as one table, and opens as no database
QUESTIONS = 8  # at a source at the same time, in each process
CONNECTIONS = QUESTIONS
"""To a PostgreSQL source, for questions; one more builds rollups."""
COMMANDS = 2  # of the owner that run at the same time
ROLE_CONNECTIONS = 2 * (CONNECTIONS + 1) + COMMANDS
"""What the reader's role must be allowed for each process that serves: a reload may open the source once more beside
the one that answers, and commands such as `keyhole check` run meanwhile."""


def open_source(
    url: str,
    *,
    directory: Path,
    settings: Mapping[str, str] | None = None,
    rollups: int = 0,
    rollup_rows: int = MOST_ROWS,
    scratch: str | None = None,
    held: bool = True,
) -> Source:
    """The source that a policy's `source.url` names.

    `duckdb:///sales.duckdb` is a file relative to `directory`, `duckdb:////data/sales.duckdb` an absolute one,
    `duckdb://` no database but files read by `read_parquet` and `read_csv`; all may read files in `directory` and
    beside the database. `postgresql://...` and `postgres://...` are libpq's. `settings` are the engine's own.
    At most `rollups` rollups of at most `rollup_rows` rows are kept: in memory by DuckDB, by PostgreSQL in the schema
    `scratch` or, without one, in temporary tables. A DuckDB file that is not `held` is open only while it is read.

    Raises:
        KeyholeError: KH008 when the URL is of another kind or nothing answers there.
    """
    if url.startswith(_DUCKDB):
        database = database_file(url, directory=directory)
        if database is not None and database.suffix.lower() in _TABLE_FILES:
            raise no_database(database)
        from proxy.sources.duckdb_source import DuckDBSource  # whoever has another source does without the engine

        directories = (directory,) if database is None else (directory, database.parent)
        return DuckDBSource(
            database,
            directories=directories,
            questions=QUESTIONS,
            settings=settings or {},
            rollups=rollups,
            rollup_rows=rollup_rows,
            held=held or database is None,
        )
    if url.startswith(("postgresql://", "postgres://")):
        return PostgresSource(
            url,
            connections=CONNECTIONS,
            settings=settings or {},
            rollups=rollups,
            rollup_rows=rollup_rows,
            scratch=scratch,
        )
    raise unknown_url()


def database_file(url: str, *, directory: Path) -> Path | None:
    """The database file that a `source.url` names; None where it names none."""
    if not url.startswith(_DUCKDB):
        return None
    path = url[len(_DUCKDB) :].removeprefix("/")
    return None if path in ("", ":memory:") else directory / path
