"""The opening of a policy's source by its URL."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.dialects.sail import SAIL
from planner.lower.dialects.spark import REQUIRED_SETTINGS, SPARK
from planner.policy.sections import SourceSection
from proxy.sources.protocol import Source as Source
from proxy.sources.protocol import TrueAggregates as TrueAggregates
from proxy.sources.rollups import MOST_ROWS
from proxy.sources.source_refusals import refuse_file_of_rows, refuse_unknown_url
from proxy.sources.spark.address import SCHEME as _SPARK
from proxy.sources.spark.address import parse_address

_DUCKDB = "duckdb://"
_SPARKS = {"spark": SPARK, "sail": SAIL}
_TABLE_FILES = (".csv", ".parquet")  # what DuckDB reads as one table, and opens as no database
QUESTIONS = 8  # at a source at the same time, in each process
CONNECTIONS = QUESTIONS
"""To a PostgreSQL source, for questions; one more builds rollups."""
COMMANDS = 2  # of the owner that run at the same time
ROLE_CONNECTIONS = 2 * (CONNECTIONS + 1) + COMMANDS
"""What the reader's role must be allowed for each process that serves: a reload may open the source once more beside
the one that answers, and commands such as `keyhole check` run meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLogin:
    """The policy's settings for a Spark Connect server, in addition to its address.

    `engine` is the expected engine (None: any). `ca` is the file of trusted certificates. `catalog` and `database` are
    where unqualified names are looked up.
    """

    engine: str | None = None
    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    catalog: str | None = None
    database: str | None = None


def open_source(
    url: str,
    *,
    directory: Path,
    settings: Mapping[str, str] | None = None,
    rollups: int = 0,
    rollup_rows: int = MOST_ROWS,
    scratch: str | None = None,
    is_held: bool = True,
    spark: SparkLogin | None = None,
) -> Source:
    """Return the source that a policy's `source.url` names.

    `duckdb:///sales.duckdb` is a file relative to `directory`, `duckdb:////data/sales.duckdb` an absolute one,
    `duckdb://` no database but files read by `read_parquet` and `read_csv`; all may read files in `directory` and
    beside the database. `postgresql://...` and `postgres://...` are libpq's. `settings` are the engine's own. At most
    `rollups` rollups of at most `rollup_rows` rows are kept: in memory by DuckDB, by PostgreSQL in the schema `scratch`
    or, without one, in temporary tables. A DuckDB file is open only while a question reads it, unless `is_held`.
    `sc://host:port` is a server of Spark Connect, where nothing is kept; `spark` has its further settings.

    Raises:
        KeyholeError: KH008 when the URL is of another kind or nothing answers there.
    """
    if url.startswith(_DUCKDB):
        database = find_database_file(url, directory=directory)
        if database is not None and database.suffix.lower() in _TABLE_FILES:
            raise refuse_file_of_rows(database)
        from proxy.sources.duckdb_source import DuckDBSource

        directories = (directory,) if database is None else (directory, database.parent)
        return DuckDBSource(
            database,
            directories=directories,
            questions=QUESTIONS,
            settings=settings or {},
            rollups=rollups,
            rollup_rows=rollup_rows,
            is_held=is_held or database is None,
        )
    if url.startswith(("postgresql://", "postgres://")):
        from proxy.sources.postgres_source import PostgresSource

        return PostgresSource(
            url,
            connections=CONNECTIONS,
            settings=settings or {},
            rollups=rollups,
            rollup_rows=rollup_rows,
            scratch=scratch,
        )
    if url.startswith(_SPARK):
        from proxy.sources.spark.sessions import SparkServer
        from proxy.sources.spark.spark_source import SparkSource

        spark = spark or SparkLogin()
        place = SparkServer(
            address=parse_address(url, token=spark.token, authority=None if spark.ca is None else directory / spark.ca),
            engine=spark.engine,
            catalog=spark.catalog,
            database=spark.database,
            settings={},
            required={**(settings or {}), **REQUIRED_SETTINGS},
        )
        return SparkSource(place, dialects=_SPARKS, questions=QUESTIONS)
    raise refuse_unknown_url()


def choose_dialect(source: SourceSection) -> Dialect:
    """Return the SQL dialect of a policy's source. The source need not be reachable."""
    match source.kind:
        case "duckdb":
            return DUCKDB
        case "spark":
            return _SPARKS[source.engine or SPARK.name]
        case _:
            return POSTGRES


def find_database_file(url: str, *, directory: Path) -> Path | None:
    """Return the path of the DuckDB file in a `source.url`. Return None if the URL names no file."""
    if not url.startswith(_DUCKDB):
        return None
    path = url[len(_DUCKDB) :].removeprefix("/")
    return None if path in ("", ":memory:") else directory / path
