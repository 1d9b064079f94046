"""What SQL can reach in the shadow beyond its own session: no file, no other role, no other's text."""

import psycopg
import pytest

from tests.worlds import shop
from tests.worlds.house import House, unchanged

REFUSED = (
    "SELECT 1 INTO TEMP t",
    "SELECT 1 INTO UNLOGGED t",
    "CREATE TEMP TABLE t (a int)",
    "CREATE TEMP SEQUENCE s",
    "SELECT pg_catalog.pg_notify('a', 'b')",
    "SELECT \"pg_notify\"('a', 'b')",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(1, 2)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT * FROM pg_largeobject",
    "SELECT * FROM pg_ls_waldir()",
    "SELECT pg_current_logfile()",
    "SELECT * FROM pg_file_settings",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT rolpassword FROM pg_authid",
    "SELECT * FROM pg_shadow",
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity",
    "SELECT pg_log_backend_memory_contexts(pg_backend_pid())",
    "SELECT pg_stat_reset()",
    "SELECT pg_stat_get_backend_activity(pid) FROM pg_stat_activity",
    "SELECT pg_get_loaded_modules()",
    "SELECT * FROM pg_control_system()",
    "SELECT relation FROM pg_locks",
    "SELECT hits FROM pg_stat_io",
    "SELECT pg_stat_get_db_xact_commit(oid) FROM pg_database",
    "SET track_counts = on",
    "SELECT set_config('standard_conforming_strings', replace('onx', 'x', ''), false)",
    "SELECT set_config('standard_conforming_strings', '1'::jsonb || '\"off\"'::jsonb ->> 1, false)",
    "SELECT set_config('standard_conforming_strings', \"on\", false) FROM (VALUES ('off')) AS t(\"on\")",
    "SELECT set_config(setting_name => 'work_mem', new_value => '1GB', is_local => false)",
    "SELECT set_config('temp_file_limit', '-1', false)",
    "SET LOCAL ROLE bob",
    "SET SESSION ROLE bob",
    "SET \"role\" = 'bob'",
    "SET \"session_authorization\" = 'bob'",
    "ALTER ROLE ada SET work_mem = '1GB'",
    "ALTER DATABASE shop SET work_mem = '1GB'",
    "SECURITY LABEL ON TABLE sales IS 'x'",
    "COMMENT ON ROLE ada IS 'x'",
    "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION x()",
    "PREPARE TRANSACTION 'x'",
    "COMMIT PREPARED 'x'",
    "WITH x AS (UPDATE pg_settings SET setting = '1' RETURNING *) SELECT * FROM x",
    "UPDATE pg_settings SET setting = '1'",
    "SELECT keyhole.unanswered()",
    "SELECT nextval('s')",
)


@pytest.mark.parametrize("attack", REFUSED)
def test_what_would_reach_beyond_the_session_is_refused(on_duckdb: House, attack: str) -> None:
    with unchanged(on_duckdb), on_duckdb.connect() as ada:
        with pytest.raises(psycopg.Error) as caught:
            ada.execute(attack)
        assert caught.value.sqlstate is not None
        assert caught.value.sqlstate[:2] in ("42", "0A")
        assert ada.execute("SELECT current_user, session_user").fetchone() == ("ada", "ada")


def test_a_search_path_to_keyholes_schema_shows_nothing_of_it(on_duckdb: House) -> None:
    with unchanged(on_duckdb), on_duckdb.connect() as ada:
        ada.execute("SET search_path = keyhole")
        for relation in ("budget", "queries", "answers", "settings"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                ada.execute(f"SELECT * FROM {relation}".encode())


def test_nobody_reads_the_statements_of_another(on_duckdb: House) -> None:
    """Not in what runs, nor in what is prepared, nor in cursors; where files lie is not told either."""
    with on_duckdb.connect() as ada, on_duckdb.connect("bob") as bob, bob.transaction():
        bob.execute("PREPARE mine AS SELECT 'a secret of bob'")
        bob.execute("DECLARE his CURSOR FOR SELECT 'a secret of bob'")
        bob.execute("SELECT 'a secret of bob'", prepare=True)
        for sql in (
            "SELECT query FROM pg_stat_activity",
            "SELECT name, statement FROM pg_prepared_statements WHERE name NOT LIKE 'keyhole.%'",
            "SELECT name, statement FROM pg_cursors",
            "SELECT name, setting FROM pg_settings WHERE setting LIKE '/%' AND name NOT LIKE 'ssl%'",
        ):
            told = repr(ada.execute(sql.encode()).fetchall())
            assert "secret" not in told
            assert "keyhole-" not in told
        assert ada.execute("SELECT setconfig FROM pg_db_role_setting").fetchall() == []


def test_nobody_reads_the_budget_or_the_questions_of_another(on_duckdb: House) -> None:
    with on_duckdb.connect() as ada, on_duckdb.connect("bob") as bob:
        ada.execute("SET keyhole.mechanism = 'keyhole'")
        ada.execute(shop.BUSY.replace("1000", "1234").encode())
        for relation in ("keyhole.queries", "keyhole.answers"):
            assert "count(*) > 1234" in repr(ada.execute(f"SELECT text FROM {relation}".encode()).fetchall())
        for relation in ("keyhole.queries", "keyhole.answers", "keyhole.budget", "keyhole.budget_details"):
            assert "1234" not in repr(bob.execute(f"SELECT * FROM {relation}".encode()).fetchall())
        assert bob.execute("SELECT count(*) FROM (SELECT status FROM keyhole.queries) q").fetchone() == (0,)
