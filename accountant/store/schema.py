"""The schema of a ledger's database. The migrations make it or bring it up to date when the ledger is opened."""

from functools import cache
from pathlib import Path

import sqlalchemy as sa
import tenacity
from sqlalchemy.exc import OperationalError, ProgrammingError

from accountant.errors import LedgerUnavailable
from accountant.store.deadline import limit_waits

VERSION_TABLE = "ledger_version"  # which no other application has: where it is, there is a ledger
# any number, the same for every version: openers queue on it before the tables exist.
MIGRATION_LOCK = 0x4B6579686F6C65
# for all migrations together, those of others that are awaited among them: a log of millions of events is copied within
_MIGRATION_S = 600.0
_MIGRATIONS = Path(__file__).parent.parent / "migrations"


retry_while_locked = tenacity.retry(
    retry=tenacity.retry_if_exception(
        # two processes that create one file at once: the switch to WAL does not wait for the busy timeout
        lambda error: isinstance(error, OperationalError) and "database is locked" in str(error.orig)
    ),
    wait=tenacity.wait_random(min=0.01, max=0.1),
    stop=tenacity.stop_after_delay(10),
    reraise=True,
)


@retry_while_locked
def run_migrations(engine: sa.Engine) -> None:
    """Run the migrations that a database does not have yet, all or none.

    Raise `LedgerUnavailable` if the database's revision is not one of ours.
    """
    if _read_revision(engine) != find_newest_revision():
        _upgrade_schema(engine)


def has_ledger_tables(engine: sa.Engine) -> bool:
    """Return True if a database has a ledger's tables, of whichever version.

    Raise SQLAlchemyError if it cannot be read.
    """
    with engine.connect() as connection, connection.execution_options(keyhole_begin="BEGIN").begin():
        return sa.inspect(connection).has_table(VERSION_TABLE)


@cache
def find_newest_revision() -> str:
    """Return the revision of the last migration, taken from its file name."""
    return max(path.name.removeprefix("r").partition("_")[0] for path in (_MIGRATIONS / "versions").glob("r*.py"))


def _read_revision(engine: sa.Engine) -> str | None:
    try:
        with engine.connect() as connection, connection.execution_options(keyhole_begin="BEGIN").begin():
            return connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    except (OperationalError, ProgrammingError):
        return None  # no such table, in either database; what else it may be, the migrations meet again


def _upgrade_schema(engine: sa.Engine) -> None:
    # opening a ledger that is up to date does not wait for these to load
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    with limit_waits(_MIGRATION_S), engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise LedgerUnavailable("the ledger's schema is not of this version or one before") from error
