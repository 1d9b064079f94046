"""The check that the ledger's database is undamaged and has the ledger's tables and triggers.

On SQLite, `integrity_check` reads every page and compares every index with its table. On PostgreSQL the triggers are
checked, and `amcheck` runs if the database has it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ProgrammingError

from accountant.errors import LedgerUnavailable
from accountant.store.schema import run_migrations

Form = tuple[tuple[Any, ...], ...]

_TRIGGERS = "SELECT name, tbl_name, sql FROM sqlite_master WHERE type NOT IN ('table', 'index') ORDER BY name"
_EACH_TABLE = """
WITH tables AS (
  SELECT name AS owner FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'
)
"""
_FORM_OF_TABLES = (
    'SELECT owner, name, type, "notnull", dflt_value, pk, hidden '
    "FROM tables, pragma_table_xinfo(owner) ORDER BY owner, cid",
    'SELECT owner, name, "unique", origin, partial FROM tables, pragma_index_list(owner) ORDER BY owner, name',
    'SELECT owner, "table", "from", "to" FROM tables, pragma_foreign_key_list(owner) ORDER BY owner, id, seq',
    "SELECT owner, list.name, info.seqno, info.cid, info.desc, info.coll, info.key "
    "FROM tables, pragma_index_list(owner) AS list, pragma_index_xinfo(list.name) AS info "
    "ORDER BY owner, list.name, info.seqno",
)
_GUARDS = frozenset(
    {
        ("answers", "answers_append_only"),
        ("domains", "domains_append_only"),
        ("events", "events_append_only"),
        ("monitor_alerts", "monitor_alerts_append_only"),
        ("monitor_alerts", "monitor_alerts_only_cleared"),
        ("paths", "paths_append_only"),
        ("paths", "paths_no_delete"),
        ("pruned", "pruned_append_only"),
    }
)
"""In PostgreSQL the triggers that refuse to change what was written, by table."""
_ENABLED_GUARDS = """
SELECT relname, tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid
WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') AND pg_table_is_visible(pg_class.oid)
"""
_HAS_AMCHECK = "SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'"
TABLES = (
    *("events", "domains", "answers", "paths", "pruned", "snapshots", "attempts", "relations", "waiting", "writer"),
    *("monitor_state", "monitor_alerts", "monitor_leases"),
)
_HEAP = "SELECT count(*) FROM verify_heapam(CAST(:table AS regclass))"
_INDEXES = """
SELECT bt_index_check(indexrelid, true) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
  JOIN pg_am ON pg_am.oid = relam
WHERE indrelid = CAST(:table AS regclass) AND amname = 'btree'
"""


def check_database(connection: sa.Connection) -> None:
    """Check that the database is undamaged, and that its tables and triggers are the ledger's.

    Raises:
        LedgerUnavailable: if the database is damaged, or lacks a table or trigger. The message has no stored value.
    """
    if connection.dialect.name == "sqlite":
        _check_sqlite(connection)
    else:
        _check_postgresql(connection)


def list_impossible_checks(connection: sa.Connection) -> tuple[str, ...]:
    """Return the checks that the database does not allow, as sentences for its owner."""
    if connection.dialect.name == "sqlite":
        return ()
    found = []
    if not _may_use_amcheck(connection):
        found.append(
            "The database was not asked for damaged indexes and pages: amcheck is not there, or not for this role."
        )
    if connection.scalar(sa.text("SHOW data_checksums")) != "on":
        found.append("The server keeps no checksums of its pages (data_checksums is off).")
    return tuple(found)


def _check_sqlite(connection: sa.Connection) -> None:
    if connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar() != "ok":
        raise LedgerUnavailable("the database is damaged, by SQLite's integrity_check")
    if _read_form(connection) != _make_expected_form():
        raise LedgerUnavailable("the database has other tables, indexes or triggers than a ledger has")
    _check_writer(connection)


def _check_postgresql(connection: sa.Connection) -> None:
    found = {(table, trigger) for table, trigger in connection.execute(sa.text(_ENABLED_GUARDS))}
    if not found >= _GUARDS:
        raise LedgerUnavailable("a trigger that keeps the ledger append-only is gone or disabled")
    _check_writer(connection)
    if _may_use_amcheck(connection):
        for table in TABLES:
            if connection.scalar(sa.text(_HEAP), {"table": table}):
                raise LedgerUnavailable(f"the table {table} is damaged, by PostgreSQL's amcheck")
            connection.execute(sa.text(_INDEXES), {"table": table})


def _check_writer(connection: sa.Connection) -> None:
    if connection.execute(sa.text("SELECT id FROM writer")).all() != [(1,)]:
        raise LedgerUnavailable("the row that writers queue on is not there, or not alone")


def _may_use_amcheck(connection: sa.Connection) -> bool:
    if not connection.scalar(sa.text(_HAS_AMCHECK)):
        return False
    try:
        with connection.begin_nested():
            for asked in (_HEAP, _INDEXES):
                connection.execute(sa.text(asked), {"table": "writer"})
    except ProgrammingError:
        return False
    return True


@cache
def _make_expected_form() -> Form:
    """Return the definitions of tables, indexes and triggers of a new SQLite ledger, made by the migrations."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    try:
        run_migrations(engine)
        with engine.connect() as connection:
            return _read_form(connection)
    finally:
        engine.dispose()


def _read_form(connection: sa.Connection) -> Form:
    """Return the definitions of all tables, indexes and triggers of an SQLite database."""
    found: list[Sequence[Any]] = [*connection.execute(sa.text(_TRIGGERS))]
    for asked in _FORM_OF_TABLES:
        found += connection.execute(sa.text(_EACH_TABLE + asked))
    return tuple(map(tuple, found))
