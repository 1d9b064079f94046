"""Every function that an analyst may call in the shadow was looked at; a new one of a new PostgreSQL fails here.

What computes from its arguments alone needs no look: neither volatile, nor unsafe in parallel, nor `pg_*`.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.shadow.address import ShadowAddress
from tests.attacks.test_counters import CLOSED

REVIEWED = Path(__file__).with_name("reviewed_functions.txt")
_CALLABLE = """
    SELECT DISTINCT proname FROM pg_proc
    WHERE has_function_privilege(oid, 'EXECUTE') AND pronamespace = 'pg_catalog'::regnamespace
      AND (provolatile = 'v' OR proparallel <> 's' OR (provolatile = 's' AND starts_with(proname, 'pg_')))
      AND NOT 'internal'::regtype = ANY (proargtypes::oid[])
      AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'language_handler'::regtype)
"""
RUNS_TEXT = (
    "query_to_xml",
    "table_to_xml",
    "schema_to_xml",
    "database_to_xml",
    "cursor_to_xml",
    "ts_stat",
    "ts_rewrite",
)
REACHES = (
    "pg_ls_dir",
    "pg_read_file",
    "pg_read_binary_file",
    "pg_stat_file",
    "lo_import",
    "lo_export",
    "lo_get",
    "lo_from_bytea",
    "pg_hba_file_rules",
    "pg_show_all_file_settings",
    "pg_current_logfile",
    "pg_control_system",
    "pg_config",
)
ACTS = (
    "pg_terminate_backend",
    "pg_cancel_backend",
    "pg_notify",
    "pg_advisory_lock",
    "pg_export_snapshot",
    "pg_logical_emit_message",
    "pg_create_physical_replication_slot",
    "pg_copy_logical_replication_slot",
    "pg_restore_relation_stats",
    "pg_reload_conf",
    "pg_rotate_logfile",
    "pg_switch_wal",
    "pg_promote",
    "pg_log_backend_memory_contexts",
    "binary_upgrade_set_next_pg_type_oid",
)


@pytest.fixture(scope="module")
def ada(shadow: ShadowAddress) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(shadow.make_conninfo(user="ada", database="retail"), autocommit=True) as connection:
        yield connection


def test_what_can_be_called_was_reviewed(ada: psycopg.Connection[tuple[object, ...]]) -> None:
    lines = REVIEWED.read_text(encoding="utf-8").splitlines()
    reviewed = [line for line in lines if line and not line.startswith("#")]
    called = {name for (name,) in ada.execute(_CALLABLE).fetchall()}
    assert called - set(reviewed) == set()
    assert set(reviewed) - called == set(), "no longer there, or no longer open to analysts"
    assert len(reviewed) == len(set(reviewed))


@pytest.mark.parametrize("names", [RUNS_TEXT, REACHES, ACTS], ids=["runs text", "reaches", "acts"])
def test_what_acts_reaches_or_runs_text_is_closed(
    ada: psycopg.Connection[tuple[object, ...]], names: tuple[str, ...]
) -> None:
    found = ada.execute(
        "SELECT proname, bool_or(has_function_privilege(oid, 'EXECUTE')) FROM pg_proc "
        "WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY (%s) GROUP BY 1",
        [list(names)],
    ).fetchall()
    assert sorted(found) == sorted((name, False) for name in names)


def test_settings_are_no_table_that_can_be_written(ada: psycopg.Connection[tuple[object, ...]]) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ada.execute("UPDATE pg_settings SET setting = '1GB' WHERE name = 'work_mem'")


def test_no_relation_of_the_system_shows_a_text_or_a_path_of_others(
    shadow: ShadowAddress, ada: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Every relation that an analyst may read, searched for what another holds and for where the shadow lies."""
    relations = ada.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE has_table_privilege(oid, 'SELECT') AND relkind IN ('r', 'v') "
        "AND relnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)"
    ).fetchall()
    assert len(relations) > 100
    closed = set()
    with psycopg.connect(shadow.make_conninfo(user="bob", database="retail")) as bob:
        bob.execute("PREPARE mine AS SELECT 'a secret of bob'")
        bob.execute("DECLARE his CURSOR FOR SELECT 'a secret of bob'")
        bob.execute("SET search_path = 'a secret of bob'")
        for (relation,) in relations:
            search = f"SELECT * FROM {relation} AS r WHERE r::text ~ 'secret of bob|/keyhole-'"
            try:
                assert ada.execute(search.encode()).fetchall() == [], relation
            except psycopg.errors.InsufficientPrivilege:
                closed.add(relation)
    assert closed == {"pg_locks"} | CLOSED  # and no other loses a function that it is made of
