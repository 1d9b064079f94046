from dataclasses import replace

import psycopg
import pytest
from psycopg import errors

from planner.catalog.catalog import Column, PublicTable, SqlType, StoredQuestion
from planner.errors import KeyholeError
from planner.extract.virtual_relations import VIRTUAL_RELATIONS
from proxy.shadow.address import OWNER, ShadowAddress
from proxy.shadow.schema import build_schema, list_few_values, update_roles
from tests.in_turn import in_turn
from tests.worlds.countries import CROWDED, QUESTION, endpoint_catalog


def connect(shadow: ShadowAddress, user: str = "ada") -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(shadow.make_conninfo(user=user, database="retail"), autocommit=True)


def test_private_tables_are_empty_and_public_ones_have_their_rows(shadow: ShadowAddress) -> None:
    with connect(shadow, OWNER) as owner:
        assert owner.execute("SELECT count(*) FROM sales").fetchone() == (0,)
        assert owner.execute("SELECT count(*) FROM busy").fetchone() == (0,)
        assert owner.execute("SELECT count(*), count(region) FROM regions").fetchone() == (4, 3)


def test_columns_have_their_declared_types_and_say_what_they_are_for(shadow: ShadowAddress) -> None:
    with connect(shadow) as ada:
        rows = ada.execute(
            "SELECT attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum) FROM pg_attribute "
            "WHERE attrelid = 'sales'::regclass AND attnum > 0 ORDER BY attnum"
        ).fetchall()
    assert rows == [
        ("country", "text", "key, public domain of 5 values: 'Côte d''Ivoire', France, 'G\"\\{},', Spain, Sweden"),
        ("amount", "numeric(10,2)", "measure, clipped to 0..100"),
        ("invoice_date", "timestamp without time zone", "filter only"),
        ("quantity", "integer", "filter only"),
    ]


def test_a_stored_question_is_a_relation_with_its_keys(shadow: ShadowAddress) -> None:
    with connect(shadow) as ada:
        columns = ada.execute("SELECT column_name FROM information_schema.columns WHERE table_name = 'busy'").fetchall()
    assert columns == [("country",)]


def test_a_monitor_is_a_relation_that_its_analysts_may_choose(shadow: ShadowAddress) -> None:
    listed = (
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'crowded' ORDER BY "
        "ordinal_position"
    )
    with connect(shadow) as ada, connect(shadow, "bob") as bob:
        assert ada.execute(listed).fetchall() == [
            ("country", "text"),
            ("window_start", "timestamp with time zone"),
            ("alerted_at", "timestamp with time zone"),
            ("window_closes", "timestamp with time zone"),
        ]
        assert bob.execute(listed).fetchall() == []
        said = ada.execute("SELECT obj_description('crowded'::regclass)").fetchone()
        assert said == ("Countries over 20 sales today",)
        with pytest.raises(errors.InsufficientPrivilege):
            bob.execute("SELECT * FROM crowded")


def test_an_analyst_with_a_monitor_can_be_taken_away(shadow_address: ShadowAddress) -> None:
    build_schema(shadow_address, endpoint_catalog(digest="with eve", analysts=("ada", "bob", "eve")))
    watched = replace(endpoint_catalog(analysts=("ada", "bob", "eve")), monitors=(replace(CROWDED, analysts=("eve",)),))
    build_schema(shadow_address, watched)
    try:
        update_roles(shadow_address, endpoint_catalog())
        with pytest.raises(psycopg.OperationalError, match='role "eve" does not exist'):
            connect(shadow_address, "eve")
    finally:
        build_schema(shadow_address, endpoint_catalog())


def test_a_monitor_that_asks_nothing_is_the_owners_to_mend(shadow_address: ShadowAddress) -> None:
    for text, why in (("SELECT 1", "not one question"), ("SELECT nothing FROM sales", "")):
        wrong = replace(endpoint_catalog(digest=text), monitors=(replace(CROWDED, sql=text),))
        with pytest.raises(KeyholeError, match=f"KH002: monitors.crowded.sql: .*{why}"):
            build_schema(shadow_address, wrong)


def test_a_question_can_be_prepared_and_not_run(shadow: ShadowAddress) -> None:
    with connect(shadow) as ada:
        ada.pgconn.prepare(b"q", QUESTION.encode())
        assert ada.pgconn.describe_prepared(b"q").fname(0) == b"country"
        with pytest.raises(errors.InsufficientPrivilege):
            ada.execute("EXECUTE q")


@in_turn(
    "statement",
    [
        "SELECT * FROM sales",
        "SELECT count(*) FROM busy",
        "SELECT * FROM keyhole.budget",
        "EXPLAIN SELECT * FROM sales",
        "WITH s AS (SELECT FROM sales) SELECT count(*) FROM s",
        "DECLARE c CURSOR WITH HOLD FOR SELECT country FROM sales",
        "CREATE TABLE t (x int)",
        "CREATE TEMP TABLE sales (x int)",
        "CREATE TEMP VIEW v AS SELECT * FROM sales",
        "CREATE SCHEMA mine",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "DO $$ BEGIN PERFORM FROM sales; END $$",
        "INSERT INTO sales (country) VALUES ('x')",
        "INSERT INTO regions VALUES ('x')",
        "DELETE FROM regions",
        "COPY sales TO STDOUT",
        "COPY regions TO 'regions.txt'",
        "COPY regions TO PROGRAM 'cat'",
        "SELECT query_to_xml('SELECT * FROM sales', true, true, '')",
        "SELECT table_to_xml('sales', true, true, '')",
        "SELECT database_to_xml(true, true, '')",
        "SELECT * FROM ts_stat('SELECT country::tsvector FROM sales')",
        "SELECT lo_create(0)",
        "SELECT lo_from_bytea(0, 'x')",
        "SELECT pg_notify('a', 'b')",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('/')",
        "SELECT pg_terminate_backend(1)",
        "SELECT * FROM pg_authid",
        "SELECT keyhole.unanswered()",
        "SET ROLE keyhole_analyst",
        "SET ROLE bob",
        "SET SESSION AUTHORIZATION bob",
        "ALTER ROLE bob PASSWORD 'x'",
        "BEGIN; LOCK TABLE sales",
        "TRUNCATE regions",
        "ALTER SYSTEM SET fsync = on",
        "CREATE DATABASE x",
    ],
)
def test_an_analysts_role_can_do_nothing_but_read_public_tables(shadow: ShadowAddress, statement: str) -> None:
    with connect(shadow) as ada, pytest.raises((errors.InsufficientPrivilege, errors.WrongObjectType)):
        ada.execute(statement)


def test_an_analysts_role_reaches_no_other_database(shadow: ShadowAddress) -> None:
    for database in ("postgres", "template1"):
        with pytest.raises(psycopg.OperationalError, match="permission denied"):
            psycopg.connect(shadow.make_conninfo(user="ada", database=database))


def test_one_analyst_sees_no_statement_of_another(shadow: ShadowAddress) -> None:
    with connect(shadow) as ada, connect(shadow, "bob") as bob:
        pid = bob.info.backend_pid
        bob.execute("SELECT 'secret'")
        row = ada.execute("SELECT query, client_addr FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()
    assert row is not None
    assert "secret" not in str(row)


def test_virtual_relations_are_there_to_be_described(shadow: ShadowAddress) -> None:
    with connect(shadow) as ada:
        found = ada.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'keyhole'"
        ).fetchall()
    assert {name for (name,) in found} == {relation.name for relation in VIRTUAL_RELATIONS}


def test_virtual_relations_are_offered_to_tools_and_give_nothing_by_a_shorter_name(shadow: ShadowAddress) -> None:
    with connect(shadow) as ada:
        offered = ada.execute(
            "SELECT relname, obj_description(oid) FROM pg_class WHERE relnamespace = 'keyhole'::regnamespace "
            "AND has_table_privilege(oid, 'SELECT')"
        ).fetchall()
        assert set(offered) == {(relation.name, relation.comment) for relation in VIRTUAL_RELATIONS}
        ada.execute("SET search_path TO keyhole")
        for relation in VIRTUAL_RELATIONS:
            with pytest.raises(errors.InsufficientPrivilege, match=f'"{relation.name}"') as refused:
                ada.execute(f"SELECT count(*) FROM {relation.name}".encode())
            assert refused.value.diag.message_hint == f"Write keyhole.{relation.name}."


def test_building_again_changes_nothing_and_a_new_catalog_replaces_roles_and_relations(shadow: ShadowAddress) -> None:
    assert not build_schema(shadow, endpoint_catalog())
    try:
        assert build_schema(shadow, endpoint_catalog(digest="second", analysts=("ada", "eve")))
        with connect(shadow, OWNER) as owner:
            rows = owner.execute("SELECT rolname FROM pg_roles WHERE rolcanlogin ORDER BY 1").fetchall()
        assert [name for (name,) in rows] == ["ada", "eve", "postgres"]
    finally:
        assert build_schema(shadow, endpoint_catalog())


def test_rows_of_a_large_public_table_are_found_by_any_of_its_integers(shadow: ShadowAddress) -> None:
    """Else a subquery for each row of another table reads it whole each time."""
    catalog = endpoint_catalog(digest="large")
    columns = (Column("part", SqlType.INTEGER, "integer"), Column("supplier", SqlType.INTEGER, "integer"))
    offers = PublicTable("offers", columns, tuple((part, part % 100) for part in range(10_001)), digest="offers")
    try:
        build_schema(shadow, replace(catalog, public_tables=(*catalog.public_tables, offers)))
        with connect(shadow) as ada:
            told = ada.execute("EXPLAIN SELECT supplier FROM offers WHERE part = 7").fetchall()
        assert "Index Scan" in str(told), told
    finally:
        build_schema(shadow, endpoint_catalog())


def test_a_stored_question_that_postgresql_does_not_take_is_named(shadow: ShadowAddress) -> None:
    catalog = endpoint_catalog(digest="third")
    wrong = StoredQuestion("odd", "SELECT country, lower(amount) FROM sales GROUP BY country HAVING count(*) > 5")
    with pytest.raises(KeyholeError, match=r"KH002: views\.odd\.sql: .*lower") as refused:
        build_schema(shadow, replace(catalog, stored_questions=(wrong,)))
    assert refused.value.hint is not None
    with connect(shadow, OWNER) as owner:
        assert owner.execute("SELECT count(*) FROM busy").fetchone() == (0,)  # what was there is there


@pytest.mark.parametrize("name", ["postgres", "pg_monitor", "keyhole_analyst", "keyhole", "public", "x" * 64])
def test_an_analyst_cannot_have_the_name_of_a_privileged_role(shadow: ShadowAddress, name: str) -> None:
    with pytest.raises(KeyholeError, match="KH002"):
        build_schema(shadow, endpoint_catalog(digest="bad", analysts=(name,)))


def test_a_key_of_many_or_long_or_odd_values_is_counted() -> None:
    assert list_few_values(tuple(range(8))) == ": 0, 1, 2, 3, 4, 5, 6, 7"
    assert list_few_values(tuple(range(9))) == ""
    assert list_few_values(("long " * 20,)) == ""
    assert list_few_values(("a\x1b[1m", "b")) == ""
    assert list_few_values(()) == ""
    assert list_few_values(("Surgery, General", "Cardiology")) == ": 'Surgery, General', Cardiology"
