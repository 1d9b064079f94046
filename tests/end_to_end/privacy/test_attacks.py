"""Statements that would show a private row if any did: each is refused, or runs over nothing, and costs nothing."""

from itertools import chain

import psycopg
import pytest

from tests.effort import rounds
from tests.in_turn import in_turn
from tests.worlds import shop
from tests.worlds.house import House, unchanged

REFUSED = [
    "SELECT * FROM sales",
    "TABLE sales",
    "TABLE public.sales",
    "TABLE ONLY sales",
    "SELECT * FROM ONLY sales",
    "SELECT * FROM ONLY (sales)",
    'SELECT * FROM "sales"',
    "SELECT * FROM SALES",
    "SELECT * FROM Public.Sales",
    'SELECT * FROM shop."public"."sales"',
    r"""SELECT * FROM U&"\0073ales" """,
    r"""SELECT * FROM U&"s\0061les" """,
    r"""SELECT * FROM U&"!0073ales" UESCAPE '!' """,
    "SELECT/**/*/**/FROM/**/sales",
    "SELECT * FROM/* /* nested */ */sales",
    "SELECT * FROM -- comment\nsales",
    "SELECT * FROM public /* x */ . /* y */ sales",
    "SELECT count(*) FROM sales",
    "SELECT 1 WHERE EXISTS (SELECT FROM sales)",
    "SELECT (SELECT max(amount) FROM sales)",
    "SELECT (SELECT note FROM sales LIMIT 1) || 'x'",
    "VALUES ((SELECT count(*) FROM sales))",
    "SELECT * FROM stores, LATERAL (SELECT note FROM sales WHERE store = name) s",
    "SELECT * FROM stores JOIN sales ON store = name",
    "SELECT * FROM stores WHERE (name, 1) = (SELECT store, 1 FROM sales LIMIT 1)",
    "SELECT * FROM stores WHERE name > ALL (SELECT store FROM sales)",
    "SELECT ARRAY(SELECT note FROM sales)",
    "SELECT ROW(s.*) FROM sales s",
    "SELECT s FROM sales s",
    "SELECT to_jsonb(s) FROM sales s",
    "WITH t AS (SELECT * FROM sales) SELECT * FROM t",
    "WITH t AS MATERIALIZED (TABLE sales) SELECT count(*) FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t, sales) SELECT * FROM t",
    "SELECT name FROM stores UNION SELECT note FROM sales",
    "SELECT name FROM stores EXCEPT SELECT note FROM sales",
    "SELECT * FROM sales TABLESAMPLE SYSTEM (100)",
    "SELECT * FROM sales FOR UPDATE",
    "SELECT * FROM sales FOR SHARE",
    "SELECT * INTO x FROM sales",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > (SELECT max(amount) FROM sales WHERE amount > 5)",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 1 ORDER BY (SELECT max(note) FROM sales)",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 1 LIMIT (SELECT count(*) FROM sales)",
    f"SELECT (SELECT note FROM sales LIMIT 1) FROM ({shop.BUSY}) t",
    f"SELECT * FROM ({shop.BUSY}) t, sales",
    f"SELECT store FROM sales WHERE store IN ({shop.BUSY})",
    f"SELECT store FROM sales WHERE store IN ({shop.BUSY}) GROUP BY store HAVING count(*) > 10",
    "COPY sales TO STDOUT",
    "COPY (SELECT * FROM sales) TO STDOUT",
    "COPY sales FROM STDIN",
    "CREATE VIEW v AS SELECT * FROM sales",
    "CREATE TEMP VIEW v AS SELECT * FROM sales",
    "CREATE TEMP TABLE t AS SELECT * FROM sales",
    "CREATE TABLE t (LIKE sales)",
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM sales",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM sales'",
    "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM sales)",
    "CREATE RULE r AS ON SELECT TO sales DO INSTEAD SELECT 1",
    "DO $$ BEGIN PERFORM * FROM sales; END $$",
    "DO 'BEGIN PERFORM * FROM sales; END'",
    "CALL p()",
    "INSERT INTO stores SELECT store, note FROM sales",
    "INSERT INTO sales VALUES (1)",
    "UPDATE sales SET note = 'x'",
    "DELETE FROM sales",
    "MERGE INTO sales USING stores ON true WHEN MATCHED THEN DELETE",
    "WITH d AS (DELETE FROM sales RETURNING *) SELECT * FROM d",
    "TRUNCATE sales",
    "LOCK TABLE sales",
    "ALTER TABLE sales OWNER TO ada",
    "GRANT SELECT ON sales TO ada",
    "DROP TABLE sales",
    "VACUUM sales",
    "ANALYZE sales",
    "CLUSTER sales",
    "REINDEX TABLE sales",
    "COMMENT ON TABLE sales IS 'x'",
    "NOTIFY sales",
    "DECLARE c CURSOR FOR SELECT * FROM sales",
    "PREPARE p AS SELECT * FROM sales",
    f"PREPARE p AS {shop.BUSY}; EXECUTE nothing",
    "EXPLAIN ANALYZE EXECUTE p",
    "PREPARE p AS SELECT note FROM sales",
    "EXPLAIN SELECT * FROM sales",
    "EXPLAIN ANALYZE SELECT * FROM sales",
    f"EXPLAIN ANALYZE {shop.BUSY}",
    f"EXPLAIN (ANALYZE true, FORMAT JSON) {shop.BUSY}",
    f"EXPLAIN (ANALYZE) {shop.BUSY}",
    f"EXPLAIN (VERBOSE, ANALYZE on) {shop.BUSY}",
    "EXPLAIN (ANALYZE off) SELECT * FROM sales",
    f"EXPLAIN CREATE TABLE t AS {shop.BUSY}",
    "SELECT query_to_xml('SELECT * FROM sales', true, true, '')",
    "SELECT table_to_xml('sales', true, true, '')",
    "SELECT table_to_xml_and_xmlschema('sales'::regclass, true, true, '')",
    "SELECT schema_to_xml('public', true, true, '')",
    "SELECT database_to_xml(true, true, '')",
    "SELECT pg_catalog.query_to_xml('TABLE sales', true, true, '')",
    "SELECT \"query_to_xml\"('TABLE sales', true, true, '')",
    r"""SELECT U&"query\005fto\005fxml"('TABLE sales', true, true, '')""",
    "SELECT query_to_xml /* x */ ('TABLE sales', true, true, '')",
    "SELECT cursor_to_xml('c', 1, true, true, '')",
    "SELECT ts_stat('SELECT note FROM sales')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(note) FROM sales')",
    "SELECT ts_rewrite('a'::tsquery, 'SELECT note::tsquery, note::tsquery FROM sales')",
    "SELECT dblink('', 'SELECT * FROM sales')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, 'x')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_read_binary_file('PG_VERSION')",
    "SELECT pg_ls_dir('.')",
    "SELECT pg_stat_file('PG_VERSION')",
    "SELECT pg_terminate_backend(1)",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "SET session_preload_libraries = 'x'",
    "SELECT set_config('role', 'postgres', false)",
    "SELECT set_config('ro' || 'le', 'postgres', false)",
    "ALTER SYSTEM SET fsync = off",
    "ALTER ROLE ada SUPERUSER",
    "ALTER ROLE ada SET role = 'postgres'",
    "LOAD 'x'",
    "CREATE EXTENSION dblink",
    "IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z",
    "NOTIFY sales",
    "CHECKPOINT",
]


@in_turn("attack", REFUSED)
def test_a_statement_that_would_read_or_change_is_refused(on_postgres: House, attack: str) -> None:
    """In every way that a client can send it: alone, prepared, after other statements, in a transaction; in two of
    these at quick."""
    forms = ((attack, False), (attack, True), (f"SELECT 1; {attack}", False), (f"BEGIN; {attack}; COMMIT", False))
    each = rounds(1, quick=2)
    with unchanged(on_postgres), on_postgres.connect() as connection:
        for sql, prepared in forms[len(attack) % each :: each]:
            with pytest.raises(psycopg.Error) as caught:
                connection.execute(sql, prepare=prepared)
            assert caught.value.sqlstate is not None
            assert caught.value.sqlstate[:2] in ("42", "0A", "26", "34")
            connection.execute("ROLLBACK")
        assert connection.execute("SELECT 1").fetchone() == (1,)


# Questions that lean on something outside, or that would do arithmetic on what they count.
CROOKED = [
    "SELECT name FROM stores s WHERE EXISTS"
    " (SELECT store FROM sales WHERE store > s.name GROUP BY store HAVING count(*) > 10)",
    "SELECT name FROM stores s, LATERAL"
    " (SELECT store FROM sales WHERE store > s.name GROUP BY store HAVING count(*) > 10) q",
    "SELECT name FROM stores s WHERE name IN (SELECT store FROM sales GROUP BY store HAVING count(*) > length(s.name))",
    "SELECT name FROM stores WHERE EXISTS"
    " (SELECT store FROM sales WHERE name = 'x' GROUP BY store HAVING count(*) > 10)",
    "SELECT store FROM sales s(a, b, store, d, e, f, g) GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales TABLESAMPLE BERNOULLI (1) GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales GROUP BY ROLLUP (store) HAVING count(*) > 10 ORDER BY count(*)",
    "SELECT store, random() FROM sales GROUP BY store HAVING count(*) > 10",
    "SELECT store, rank() OVER (ORDER BY max(note)) FROM sales GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 10 ORDER BY count(*) * random()",
    "SELECT note AS store FROM sales GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 1/0",
    "SELECT store FROM sales GROUP BY store HAVING 1/(count(*) - 4000) > 0",
    "SELECT store FROM sales GROUP BY store HAVING count(*) % 2 = 1",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 10 AND pg_sleep(5) IS NULL",
    "SELECT store FROM sales GROUP BY store HAVING CASE WHEN count(*) > 1 THEN 1/0 > 1 ELSE true END",
    "SELECT store FROM sales GROUP BY store HAVING max(note) > 'a'",
    "SELECT store FROM sales GROUP BY store HAVING sum(amount) > 'NaN'",
    "SELECT store FROM sales GROUP BY store HAVING sum(amount) > 'infinity'::float8",
    "SELECT store FROM sales WHERE sales IS NULL GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales WHERE ctid IS NOT NULL GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales WHERE id > 5 GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales WHERE day > 'infinity' GROUP BY store HAVING count(*) > 10",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 10 OFFSET (SELECT 1)",
    "SELECT sales.store FROM sales, busy GROUP BY sales.store HAVING count(*) > 5",
]


@in_turn("question", CROOKED)
def test_a_question_that_is_not_one_formula_over_one_table_is_refused(on_postgres: House, question: str) -> None:
    with unchanged(on_postgres), on_postgres.connect() as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(question)
        assert caught.value.sqlstate is not None
        assert caught.value.sqlstate[:2] in ("42", "0A")


EMPTY = [
    "SELECT pg_relation_size('sales'), pg_relation_size('public.visits'::regclass)",
    "SELECT reltuples::bigint, relpages FROM pg_class WHERE relname = 'sales'",
    "SELECT count(*)::int, count(*)::int FROM pg_stats WHERE tablename = 'sales'",
    "SELECT n_live_tup, seq_scan FROM pg_stat_all_tables WHERE relname = 'sales'",
    "SELECT count(*), count(*) FROM pg_statistic_ext_data",
]


@pytest.mark.parametrize("probe", EMPTY)
def test_what_the_catalog_tells_is_the_same_for_empty_tables(on_postgres: House, on_duckdb: House, probe: str) -> None:
    told = []
    for house in (on_postgres, on_duckdb):
        with house.connect() as connection, unchanged(house):
            try:
                told.append(connection.execute(probe).fetchall())
            except psycopg.Error as error:
                told.append([(error.sqlstate,)])
    assert told[0] == told[1]
    values = list(chain.from_iterable(told[0]))
    assert all(value in (0, -1, "42501") for value in values), values


def test_a_search_path_cannot_hide_what_a_name_means(on_postgres: House) -> None:
    with on_postgres.connect() as connection, unchanged(on_postgres):
        for path in ("pg_catalog", "pg_temp, public", '"$user", public', "information_schema", ""):
            connection.execute("SELECT set_config('search_path', %s, false)", [path])
            for sql in ("SELECT * FROM sales", "SELECT * FROM public.sales", "TABLE sales"):
                with pytest.raises(psycopg.Error):
                    connection.execute(sql)


def test_executing_what_was_prepared_in_sql_never_reaches_a_private_table(on_postgres: House) -> None:
    with on_postgres.connect() as connection, unchanged(on_postgres):
        connection.execute("PREPARE harmless AS SELECT 1")
        assert connection.execute("EXECUTE harmless").fetchall() == [(1,)]
        with pytest.raises(psycopg.Error, match="does not exist"):
            connection.execute("EXECUTE sales")
        # PostgreSQL ignores what a statement without parameters is given, and never takes a subquery
        assert connection.execute("EXECUTE harmless((SELECT count(*) FROM sales))").fetchall() == [(1,)]
        connection.execute("PREPARE echo(bigint) AS SELECT $1")
        with pytest.raises(psycopg.errors.FeatureNotSupported):
            connection.execute("EXECUTE echo((SELECT count(*) FROM sales))")


def test_the_role_of_an_analyst_may_do_nothing_in_the_shadow(on_postgres: House) -> None:
    with on_postgres.connect() as connection, unchanged(on_postgres):
        readable = "SELECT has_table_privilege(oid, 'SELECT') FROM pg_class WHERE relname IN ('sales', 'visits')"
        assert connection.execute(readable).fetchall() == [(False,), (False,)]
        powers = "SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls FROM pg_roles WHERE rolname = 'ada'"
        assert connection.execute(powers).fetchall() == [(False,)]
        groups = (
            "SELECT roleid::regrole::text, set_option, admin_option FROM pg_auth_members WHERE member = 'ada'::regrole"
        )
        assert connection.execute(groups).fetchall() == [("keyhole_analyst", False, False)]
