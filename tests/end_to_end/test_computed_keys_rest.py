"""Groups computed from columns, over REST and from the command line: the keys of the wire, as PostgreSQL's text."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import httpx
import psycopg
import pytest

from proxy.cli.check import check
from tests.effort import PATIENCE_S
from tests.end_to_end.test_computed_keys import STATEMENTS
from tests.worlds.house import House, command, opened, shop_in_duckdb, unchanged

TOKEN = "ada's token, which is long enough to be none"
ORDERED = [
    (
        "SELECT CASE WHEN quantity * 8 > amount THEN 'a' ELSE 'b' END AS c FROM sales GROUP BY 1 HAVING count(*) > 811",
        "c",
    ),
    ("SELECT quantity > 3 AS several, store FROM sales GROUP BY 1, 2 HAVING count(*) > 811", "several DESC, store"),
    ("SELECT floor(amount / 10) * 10 AS price FROM sales GROUP BY 1 HAVING count(*) > 1811", "price DESC"),
    ("SELECT note = 'n' AS q FROM sales GROUP BY 1 HAVING count(*) > 1011", "q NULLS FIRST"),
    ("SELECT note = 'n' AS q FROM sales GROUP BY 1 HAVING count(*) > 1011", "1 DESC NULLS LAST"),
    ("SELECT note = 'n' AS q FROM sales GROUP BY 1 HAVING count(*) > 1011", "q DESC"),
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The shop in a DuckDB file, with a token for its analyst."""
    policy = shop_in_duckdb(tmp_path_factory.mktemp("shop"))
    own = f'[analysts.ada]\ntoken_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"'
    policy.write_text(policy.read_text("utf-8").replace("[analysts.ada]", own), "utf-8")
    check(policy, confirm=False)
    with opened(policy) as house:
        yield house


def ask(house: House, sql: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    url = f"http://{house.addresses.host}:{house.addresses.rest_port}/v1/question"
    sent = {"Authorization": f"Bearer {TOKEN}"} | (headers or {})
    return httpx.post(url, json={"sql": sql, **fields}, headers=sent, trust_env=False, timeout=PATIENCE_S)


def texts(house: House, sql: str) -> list[tuple[str | None, ...]]:
    """What a session shows, each value as PostgreSQL writes it in full."""
    with house.connect() as connection, psycopg.RawCursor(connection) as cursor:
        width = len(cursor.execute(sql.encode()).description or ())
        names = [f"c{place}" for place in range(width)]
        shown = ", ".join(f"{name}::text" for name in names)
        whole = f"SELECT {shown} FROM ({sql}) q({', '.join(names)})"
        return cursor.execute(whole.encode()).fetchall()


def test_parameters_of_keys_are_bound_over_rest(house: House) -> None:
    sql = (
        "SELECT floor(amount / $1) * $1 AS price, day > $2 AS late FROM sales GROUP BY 1, 2 HAVING count(*) > $3 "
        "ORDER BY 2, 1"
    )
    written = sql.replace("$1", "10").replace("$2", "date '2026-02-01'").replace("$3", "211")
    with unchanged(house):
        assert ask(house, sql).json()["code"] == "KH202"
    answer = ask(house, sql, parameters=[10, "2026-02-01", 211]).json()
    assert answer["keys"]
    with unchanged(house):
        assert ask(house, written).json()["keys"] == answer["keys"]


@pytest.mark.parametrize("sql", [one for one in STATEMENTS if "(SELECT" not in one])
def test_keys_over_rest_are_those_of_the_wire(house: House, sql: str) -> None:
    answer = ask(house, sql).json()
    assert sorted(map(tuple, answer["keys"]), key=repr) == sorted(texts(house, sql), key=repr)
    assert answer["keys"]


@pytest.mark.parametrize(("sql", "order"), ORDERED)
def test_order_by_a_computed_key_is_postgresqls(house: House, sql: str, order: str) -> None:
    with house.connect() as connection:
        rows = connection.execute(f"{sql} ORDER BY {order}".encode()).fetchall()
    wanted = [[None if one is None else str(one).lower() for one in row] for row in rows]
    assert ask(house, f"{sql} ORDER BY {order}").json()["keys"] == wanted


def test_the_command_shows_what_rest_shows(house: House) -> None:
    sql = "SELECT store, quantity > 3 AS several FROM sales GROUP BY store, quantity > 3 HAVING count(*) > 812"
    answer = ask(house, sql).json()
    assert answer["columns"] == ["store", "several"]
    with unchanged(house):
        told = command("query", house.policy, sql)
    assert (told["columns"], told["keys"]) == (answer["columns"], answer["keys"])


def test_numbers_beside_computed_keys_are_shown(house: House) -> None:
    sql = "SELECT quantity > 3 AS several, count(*) AS n FROM sales GROUP BY 1 HAVING count(*) > 2411"
    answer = ask(house, sql, numbers="threshold").json()
    assert answer["shown"] == {"columns": ["several", "n"], "rows": [[key[0], 2412] for key in answer["keys"]]}


def test_a_repetition_is_told_the_same(house: House) -> None:
    sql = "SELECT floor(amount / 10) AS tens FROM sales GROUP BY 1 HAVING count(*) > 1815 ORDER BY tens DESC"
    sent = {"Idempotency-Key": "6f1e5d0e-7d21-4f1c-9b5c-0c0ffee00001"}
    first = ask(house, sql, sent)
    with unchanged(house):
        again = ask(house, sql, sent)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == first.json()


def test_csv_leaves_null_empty(house: House) -> None:
    sql = "SELECT CASE WHEN quantity > 3 THEN 'many' END AS q FROM sales GROUP BY 1 HAVING count(*) > 811 ORDER BY q"
    lines = ask(house, sql, {"Accept": "text/csv"}).text.split("\r\n")
    assert (lines[0], lines[-2]) == ("q", '""')


def test_what_cannot_be_shown_is_refused_before_anything_is_spent(house: House) -> None:
    sql = "SELECT 1 / (quantity - 3) AS q FROM sales GROUP BY 1 HAVING count(*) > 113"
    with unchanged(house):
        told = ask(house, sql).json()
    assert told["code"] in ("KH106", "KH202")
