"""Tables that clients write with the schemas of their source: over the wire, over REST, and in the catalogue.

Claims per region: in `insurance` north 900 and west 5, in `archive` west 700 and north 5.
"""

from collections.abc import Iterator
from hashlib import sha256

import duckdb
import httpx
import psycopg
import pytest
from psycopg import errors

from proxy.cli.check import check
from tests.effort import PATIENCE_S
from tests.worlds.house import VERIFIER, House, opened

TOKEN = "ada's token, which is long enough to be none"
POLICY = f"""
[source]
url = "duckdb:///insurer.duckdb"
[accuracy]
tolerance = "20%"
[budget]
epsilon_per_predicate = 900.0
epsilon_per_unit = 900.0
epsilon_per_query = 100.0
[server]
database = "insurer"
[tables.claims]
relation = "Insurance.Claims"
privacy_unit = "row"
refresh = "static"
columns.region = {{ key = {{ values_from = "regions.region" }} }}
[tables.old_claims]
relation = "archive.claims"
privacy_unit = "row"
refresh = "static"
columns.region = {{ key = {{ values_from = "regions.region" }} }}
[tables.letters]
relation = '"Post".letters'
known_as = '"Paper Post"."Letters"'
privacy_unit = "row"
refresh = "static"
columns.region = {{ key = {{ values_from = "regions.region" }} }}
[tables.regions]
relation = "insurance.regions"
comment = "where offices are"
public = true
[views.busy]
sql = "SELECT region FROM archive.claims GROUP BY region HAVING count(*) > 300"
[analysts.ada]
password = "{VERIFIER}"
token_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"
"""
SOURCE = """
CREATE SCHEMA insurance; CREATE SCHEMA archive; CREATE SCHEMA "Post";
CREATE TABLE insurance.claims AS SELECT 'north' AS region FROM range(900) UNION ALL SELECT 'west' FROM range(5);
CREATE TABLE archive.claims AS SELECT 'west' AS region FROM range(700) UNION ALL SELECT 'north' FROM range(5);
CREATE TABLE "Post".letters AS SELECT 'west' AS region FROM range(700);
CREATE TABLE insurance.regions (region VARCHAR NOT NULL UNIQUE, country VARCHAR);
INSERT INTO insurance.regions VALUES ('north', 'NO'), ('west', 'SE');
"""
MANY = "GROUP BY region HAVING count(*) > 300"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("insurer")
    with duckdb.connect(folder / "insurer.duckdb") as source:
        source.execute(SOURCE)
    policy = folder / "keyhole.toml"
    policy.write_text(POLICY, "utf-8")
    check(policy, confirm=True)
    with opened(policy) as house:
        yield house


@pytest.fixture(scope="module")
def ada(house: House) -> Iterator[psycopg.Connection]:
    with house.connect() as connection:
        yield connection


def ask(connection: psycopg.Connection, sql: str) -> list[tuple[object, ...]]:
    return connection.execute(sql.encode()).fetchall()


def test_each_name_means_one_table(ada: psycopg.Connection) -> None:
    for written, region in (
        ("insurance.claims", "north"),
        ("INSURANCE.Claims AS c", "north"),
        ("insurer.insurance.claims", "north"),
        ("claims", "north"),
        ("public.claims", "north"),
        ("archive.claims", "west"),
        ("public.old_claims", "west"),
        ('"Paper Post"."Letters"', "west"),
        ('"Letters"', "west"),
    ):
        assert ask(ada, f"SELECT region FROM {written} {MANY}") == [(region,)], written
    assert ask(ada, "SELECT * FROM busy") == [("west",)]
    assert ask(ada, f"SELECT claims.region FROM archive.claims {MANY}") == [("west",)]
    qualified = "SELECT archive.claims.region FROM archive.claims GROUP BY archive.claims.region HAVING count(*) > 300"
    assert ask(ada, qualified) == [("west",)]


def test_the_same_question_by_another_name_is_free(house: House, ada: psycopg.Connection) -> None:
    sql = "SELECT region FROM {} GROUP BY region HAVING count(*) > 250"
    ask(ada, sql.format("claims"))
    spent = house.most_spent("claims")
    ask(ada, sql.format("insurance.claims"))
    assert house.most_spent("claims") == spent


def test_a_search_path_changes_no_question(ada: psycopg.Connection) -> None:
    with ada.transaction(force_rollback=True):
        ada.execute("SET LOCAL search_path = archive, insurance")
        assert ask(ada, f"SELECT region FROM claims {MANY}") == [("north",)]


def test_text_around_questions_reads_public_tables_by_either_name(ada: psycopg.Connection) -> None:
    for regions in ("insurance.regions", "regions", "insurer.insurance.regions"):
        inner = f"SELECT region FROM insurance.claims {MANY}"
        assert ask(ada, f"SELECT r.country FROM ({inner}) t JOIN {regions} r USING (region)") == [("NO",)]
        listed = f"WHERE region IN (SELECT region FROM {regions} WHERE country = 'SE')"
        assert ask(ada, f"SELECT region FROM archive.claims {listed} {MANY}") == [("west",)]
        joined = f"FROM insurance.claims c JOIN {regions} r ON c.region = r.region GROUP BY country"
        assert ask(ada, f"SELECT country {joined} HAVING count(*) > 300") == [("NO",)]
        assert ask(ada, f"SELECT count(*) FROM {regions}") == [(2,)]


def test_the_catalogue_shows_both_names(ada: psycopg.Connection) -> None:
    listed = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema !~ '^(pg_|info|keyh)'"
    assert set(ask(ada, listed)) == {
        *(("public", name) for name in ("claims", "old_claims", "letters", "regions", "busy")),
        *(("insurance", "claims"), ("archive", "claims"), ("Paper Post", "Letters"), ("insurance", "regions")),
    }
    described = "SELECT obj_description('insurance.regions'::regclass), col_description('archive.claims'::regclass, 1)"
    assert ask(ada, described) == [("where offices are", "key, public domain of 2 values: north, west")]
    assert ask(ada, "SHOW search_path") == [('public, insurance, archive, "Paper Post"',)]


def test_no_name_makes_a_private_table_readable(ada: psycopg.Connection) -> None:
    for table in ("insurance.claims", "archive.claims", '"Paper Post"."Letters"', "insurer.archive.claims"):
        for sql in (
            f"SELECT * FROM {table}",
            f"TABLE {table}",
            f"SELECT count(*) FROM {table}",
            f"SELECT 1 FROM insurance.regions, {table}",
            f"COPY {table} TO STDOUT",
            f"COPY (SELECT * FROM {table}) TO STDOUT",
            f"INSERT INTO {table} VALUES ('x')",
            f"CREATE VIEW v AS SELECT * FROM {table}",
            f"SELECT * FROM ONLY {table}",
            f"SELECT query_to_xml('TABLE {table}', true, true, '')",
        ):
            with pytest.raises(psycopg.Error) as caught:
                ask(ada, sql)
            assert caught.value.sqlstate in ("42501", "0A000", "42P01"), (sql, str(caught.value))
        assert ask(ada, f"SELECT * FROM {table} LIMIT 0") == []


def test_a_name_that_is_none_gets_postgresqls_error_and_the_nearest(ada: psycopg.Connection) -> None:
    for written, hint in (
        ("insurance.claimz", "insurance.claims"),
        ("insurence.claims", "insurance.claims"),
        ("archiv.claims", "archive.claims"),
        ("paperpost.letters", "public.letters"),
        ('"Insurance".claims', "insurance.claims"),
        ("nowhere.claims", "public.claims"),
    ):
        with pytest.raises(errors.UndefinedTable) as caught:
            ask(ada, f"SELECT region FROM {written} {MANY}")
        assert caught.value.diag.message_hint == f"Perhaps you meant {hint}."
    with pytest.raises(errors.FeatureNotSupported, match="cross-database"):
        ask(ada, f"SELECT region FROM elsewhere.insurance.claims {MANY}")


def test_a_refusal_points_into_what_was_written(ada: psycopg.Connection) -> None:
    sql = 'SELECT region FROM "Paper Post"."Letters" GROUP BY region HAVING avg(weight) > 3'
    with pytest.raises(psycopg.Error) as caught:
        ask(ada, sql)
    assert caught.value.diag.statement_position == str(sql.index("weight") + 1)


def post(house: House, sql: str) -> dict[str, object]:
    url = f"http://{house.addresses.host}:{house.addresses.rest_port}/v1/question"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    sent = httpx.post(url, json={"sql": sql}, headers=headers, trust_env=False, timeout=PATIENCE_S)
    found: dict[str, object] = sent.json()
    return found


def test_rest_takes_the_sources_names(house: House) -> None:
    assert post(house, f"SELECT region FROM archive.claims {MANY}")["keys"] == [["west"]]
    assert "Did you mean insurance.claims?" in str(post(house, f"SELECT region FROM insurance.claimz {MANY}"))


def test_rest_answers_no_stored_question_as_if_nothing_stood_around_it(house: House) -> None:
    before = house.events
    for sql in ("SELECT * FROM busy", "SELECT count(*) FROM busy", "SELECT region FROM busy WHERE region = 'north'"):
        assert (found := post(house, sql))["code"] == "KH106"
        assert found["title"] == '"busy" is a stored question'
    assert house.events == before
