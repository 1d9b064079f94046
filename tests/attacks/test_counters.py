"""PostgreSQL counts how often what is read. Analysts share the shadow: none of it may tell what others read there."""

from collections.abc import Iterator

import psycopg
import pytest

from proxy.shadow.address import OWNER, ShadowAddress
from proxy.shadow.schema import COUNTERS

Connection = psycopg.Connection[tuple[object, ...]]
WHO_IS_THERE = "pg_stat_activity"
CLOSED = {
    "pg_stat_archiver",
    "pg_stat_bgwriter",
    "pg_stat_checkpointer",
    "pg_stat_io",
    "pg_stat_recovery_prefetch",
    "pg_stat_slru",
    "pg_stat_wal",
}
_RELATIONS = "SELECT relname FROM pg_class WHERE relname ~ '^pg_stat' AND relkind IN ('r', 'v') ORDER BY 1"
_OF_A_TABLE = (
    "SELECT oid::regproc::text FROM pg_proc WHERE proname ~ '^pg_stat_get_' AND proargtypes = '26'"
    " AND NOT proretset AND has_function_privilege(oid, 'EXECUTE') ORDER BY 1"
)


@pytest.fixture
def bob(shadow: ShadowAddress) -> Iterator[Connection]:
    with psycopg.connect(shadow.make_conninfo(user="bob", database="retail"), autocommit=True) as connection:
        yield connection


def told(bob: Connection) -> dict[str, object]:
    """All that he can read of PostgreSQL's counters, by relation or function."""
    seen: dict[str, object] = {}
    for (relation,) in bob.execute(_RELATIONS).fetchall():
        try:
            seen[str(relation)] = bob.execute(f"SELECT * FROM {relation}".encode()).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            seen[str(relation)] = "closed"
    for (function,) in bob.execute(_OF_A_TABLE).fetchall():
        seen[str(function)] = bob.execute(f"SELECT {function}('regions'::regclass)".encode()).fetchall()
    del seen[WHO_IS_THERE]
    return seen


def test_nobody_learns_how_often_or_when_others_read_a_table(shadow: ShadowAddress, bob: Connection) -> None:
    before = told(bob)
    assert len(before) > 80
    with psycopg.connect(shadow.make_conninfo(user="ada", database="retail"), autocommit=True) as ada:
        for _ in range(20):
            assert ada.execute("SELECT * FROM regions").fetchall()
    with psycopg.connect(shadow.make_conninfo(user=OWNER, database="retail"), autocommit=True) as owner:
        # counts are written down before a session's entry goes
        while owner.execute("SELECT FROM pg_stat_activity WHERE usename = 'ada'").fetchall():
            pass
    assert told(bob) == before


def test_what_counts_everybodys_work_together_is_closed_and_tools_can_read_the_rest(bob: Connection) -> None:
    seen = told(bob)
    closed = {name for name, rows in seen.items() if rows == "closed"}
    assert closed - {"pg_statistic", "pg_statistic_ext_data"} == CLOSED
    rows = bob.execute("SELECT n_live_tup, seq_scan, last_seq_scan FROM pg_stat_user_tables").fetchall()
    assert set(rows) == {(0, 0, None)}


def test_dashboards_find_zeros_in_place_of_everybodys_work(bob: Connection) -> None:
    for view in COUNTERS:
        found = bob.execute(f"SELECT * FROM {view}".encode())
        assert found.description is not None
        names = [column.name for column in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        assert {row.pop("datname") for row in rows} >= {None, "retail"}
        assert all(set(row.values()) - {row["datid"]} <= {0, None} for row in rows)
    # as pgAdmin's dashboard asks
    charts = """
        SELECT 'tps_stats' AS chart_name, pg_catalog.row_to_json(t) AS read_chart_data FROM (SELECT
            (SELECT sum(xact_commit) + sum(xact_rollback) FROM pg_catalog.pg_stat_database
                WHERE datname = (SELECT datname FROM pg_database WHERE datname = 'retail')) AS "Transactions",
            (SELECT sum(blks_read) FROM pg_catalog.pg_stat_database) AS "Reads") t"""
    assert bob.execute(charts.encode()).fetchall() == [("tps_stats", {"Transactions": 0, "Reads": 0})]


def test_nobody_can_have_it_counted(bob: Connection) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        bob.execute("SET track_counts = on")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        bob.execute("SELECT set_config('track_io_timing', 'on', false)")
