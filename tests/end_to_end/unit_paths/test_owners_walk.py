"""An owner's walk from a schema with foreign keys to answers about people, without a view and without a copy."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest

from planner.errors import KeyholeError
from planner.policy.policy_refusals import BLANK
from proxy.cli.check import check, refresh
from proxy.cli.init import write_policy_from_source
from proxy.cli.presets import Unit
from tests.worlds.house import VERIFIER, House, new_database, opened, unchanged

STATEMENTS = (
    "CREATE TABLE customer (c_custkey integer PRIMARY KEY, segment text)",
    "CREATE TABLE orders (o_shop integer, o_orderkey integer, o_custkey integer REFERENCES customer (c_custkey),"
    " o_month integer, PRIMARY KEY (o_shop, o_orderkey))",
    "CREATE TABLE lineitem (l_shop integer, l_orderkey integer, l_shipmode text, quantity integer,"
    " FOREIGN KEY (l_shop, l_orderkey) REFERENCES orders (o_shop, o_orderkey))",
    "INSERT INTO customer SELECT g, CASE WHEN g % 2 = 0 THEN 'A' ELSE 'B' END FROM generate_series(1, 3000) AS s(g)",
    "INSERT INTO orders SELECT g % 2, g, CASE WHEN g <= 6000 THEN 1 + g % 3000 END, 1 + g % 3"
    " FROM generate_series(1, 9000) AS s(g)",
    "INSERT INTO lineitem SELECT g % 2, g, CASE WHEN g > 6000 THEN 'RAIL' WHEN g % 3 = 0 THEN 'AIR' ELSE 'SHIP' END, 10"
    " FROM generate_series(1, 9000) AS s(g)",
)
_CHOSEN = {
    "max_groups_per_unit": "3",
    "rows_per_unit": "6",
    "refresh": '"explicit"',
}
_COLUMNS = f"""
[tables.lineitem.columns.l_shipmode]
key = {{ values = ["AIR", "RAIL", "SHIP"] }}
[tables.lineitem.columns.quantity]
bounds = [0, 50]
per_unit = [0, 300]
[tables.orders.columns.o_month]
key = {{ range = [1, 3] }}
[tables.customer.columns.segment]
key = {{ values = ["A", "B"] }}
[analysts.ada]
password = "{VERIFIER}"
"""


def _policy(directory: Path, source: str) -> Path:
    """The starter as `keyhole init` writes it, with every blank filled in and some columns exposed."""
    text = write_policy_from_source(source, directory=directory, unit=Unit.PERSON)
    assert 'privacy_unit = { through = ["orders.o_shop", "orders.o_orderkey"], by = ["l_shop", "l_orderkey"] }' in text
    for key, value in _CHOSEN.items():
        text = re.sub(f'^{key} = "{BLANK}"', f"{key} = {value}", text, flags=re.M)
    text = re.sub(r"^(epsilon_per_\w+) = [0-9.]+", r"\1 = 900", text, flags=re.M)
    text = re.sub(r"^url = .*KEYHOLE_SOURCE_PASSWORD.*$", f'url = "{source}"', text, flags=re.M)
    path = directory / "keyhole.toml"
    path.write_text(f'{text}{_COLUMNS}[server]\ndatabase = "shop"\n', encoding="utf-8")
    return path


def _in_duckdb(directory: Path) -> str:
    with duckdb.connect(str(directory / "shop.duckdb")) as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
    return "duckdb:///shop.duckdb"


@pytest.fixture(params=["duckdb", "postgres"])
def walked(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    if request.param == "duckdb":
        policy = _policy(tmp_path, _in_duckdb(tmp_path))
        check(policy, confirm=False)
        with opened(policy) as house:
            yield house
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in STATEMENTS:
                connection.execute(statement.encode())
        policy = _policy(tmp_path, url)
        check(policy, confirm=False)
        with opened(policy) as house:
            yield house


ASKED = (
    ("SELECT l_shipmode FROM lineitem GROUP BY 1 HAVING count(DISTINCT o_custkey) > 500 ORDER BY 1", ["AIR", "SHIP"]),
    ("SELECT l_shipmode FROM lineitem GROUP BY 1 HAVING count(*) > 3000", ["SHIP"]),
    ("SELECT l_shipmode FROM lineitem GROUP BY 1 HAVING sum(quantity) > 30000", ["SHIP"]),
    ("SELECT o_month FROM orders GROUP BY 1 HAVING count(*) > 1000 ORDER BY 1", [1, 2, 3]),
    (
        "SELECT segment FROM lineitem l, customer c WHERE l.o_custkey = c.c_custkey GROUP BY 1"
        " HAVING sum(quantity) > 10000 ORDER BY 1",
        ["A", "B"],
    ),
)


EXPLAIN = b"EXPLAIN VERBOSE SELECT l_shipmode FROM lineitem GROUP BY 1 HAVING count(*) > 2500"


def test_rows_count_for_the_customers_that_keys_lead_to(walked: House) -> None:
    """Lines of orders without a customer count for nobody. Twice, the second time from rollups where there are any."""
    with walked.connect() as connection:
        connection.execute("SET keyhole.reuse = off")
        for _ in range(2):
            for sql, keys in ASKED:
                assert [key for (key,) in connection.execute(sql.encode()).fetchall()] == keys, sql
        told = "\n".join(line for (line,) in connection.execute(EXPLAIN).fetchall())
    assert "a row of lineitem belongs to the privacy unit that it leads to, in orders by l_shop, l_orderkey" in told
    assert "any cell" in told, told
    assert walked.most_spent("customer") > 0
    assert walked.most_spent("lineitem") == walked.most_spent("orders") == 0


def test_a_unit_that_two_tables_show_is_explained_and_copied_as_it_is_asked(tmp_path: Path) -> None:
    """`o_custkey` stands in one table of the source alone, and nobody qualifies it there."""
    policy = _policy(tmp_path, _in_duckdb(tmp_path))
    check(policy, confirm=False)
    sql = "SELECT l_shipmode FROM customer, orders, lineitem WHERE c_custkey = o_custkey AND l_shop = o_shop"
    sql += " AND l_orderkey = o_orderkey GROUP BY 1 HAVING count(*) > 3000 ORDER BY 1"
    with opened(policy) as house, house.connect() as connection:
        with unchanged(house):
            told = connection.execute(f"EXPLAIN {sql}".encode()).fetchall()
            json = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode()).fetchall()
        assert "count(*) > 3000" in str(told)
        assert "3000" in str(json)
        assert connection.execute(sql.encode()).fetchall() == [("SHIP",)]
        with connection.cursor().copy(f"COPY ({sql}) TO STDOUT".encode()) as copy:
            assert list(copy.rows()) == [("SHIP",)]


def test_a_stored_answer_lasts_until_a_table_on_the_path_is_refreshed(tmp_path: Path) -> None:
    policy = _policy(tmp_path, _in_duckdb(tmp_path))
    check(policy, confirm=False)
    sql = ASKED[0][0].encode()
    with opened(policy) as house, house.connect() as connection:
        first = connection.execute(sql).fetchall()
        with unchanged(house):
            assert connection.execute(sql).fetchall() == first
        refresh(policy, "orders")
        before = house.most_spent("customer")
        assert connection.execute(sql).fetchall() == first
        assert house.most_spent("customer") > before


def test_check_asks_for_the_owners_word_where_no_constraint_holds(tmp_path: Path) -> None:
    policy = _policy(tmp_path, _in_duckdb(tmp_path))
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE lines AS SELECT * FROM lineitem")
        connection.execute("DROP TABLE lineitem")
        connection.execute("CREATE TABLE loose AS SELECT * FROM orders")
    text = policy.read_text(encoding="utf-8")
    text = text.replace("[tables.lineitem]", '[tables.lineitem]\nrelation = "lines"')
    text = text.replace("[tables.orders]", '[tables.orders]\nrelation = "loose"')
    policy.write_text(text, encoding="utf-8")
    with pytest.raises(
        KeyholeError, match="no constraint of the source keeps orders by o_shop, o_orderkey unique"
    ) as e:
        check(policy, confirm=False)
    assert e.value.code == "KH005"
    assert 'unique = ["o_shop", "o_orderkey"] under [tables.orders]' in (e.value.hint or "")
    vouched = text.replace("[tables.orders]", '[tables.orders]\nunique = ["o_orderkey"]')
    policy.write_text(vouched, encoding="utf-8")
    assert any("orders.unique is your word alone" in one for one in check(policy, confirm=False).warnings)
