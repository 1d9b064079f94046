"""The questions of one statement are answered together, or none is asked; EXPLAIN shows each of them."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.effort import rounds
from tests.worlds.house import opened, shop_in_duckdb, unchanged

STATEMENTS = (
    "SELECT store, month FROM sales GROUP BY ROLLUP (store, month) HAVING count(*) > 611",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 811 "
    "UNION ALL SELECT CASE WHEN quantity > 3 THEN 'many' END FROM sales GROUP BY quantity > 3 HAVING count(*) > 611",
    "SELECT count(*) FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 811) AS a, "
    "(SELECT quantity > 3 AS many FROM sales GROUP BY 1 HAVING count(*) > 611) AS b",
    "SELECT note = 'n' FROM sales GROUP BY 1 HAVING count(*) > 611 "
    "INTERSECT SELECT quantity > 3 FROM sales GROUP BY 1 HAVING count(*) > 611",
)


def _folder(directory: Path, name: str) -> Path:
    (directory / name).mkdir()
    return directory / name


def _documents(connection: psycopg.Connection[tuple[object, ...]], sql: str) -> list[dict[str, Any]]:
    (document,) = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[0]
    told = document if isinstance(document, list) else json.loads(str(document))
    return [one["Keyhole"] for one in told]


def _prices(connection: psycopg.Connection[tuple[object, ...]], sql: str) -> list[float]:
    return [one["worst_case_epsilon"] for one in _documents(connection, sql)]


@pytest.mark.parametrize("sql", STATEMENTS[: rounds(4, quick=2)])
def test_a_statement_that_does_not_fit_spends_nothing(sql: str, tmp_path: Path) -> None:
    """Each of its questions fits by itself, and they do not one after the other."""
    with opened(shop_in_duckdb(_folder(tmp_path, "wide"))) as house, house.connect() as connection:
        prices = _prices(connection, sql)
        lines = [line for (line,) in connection.execute(f"EXPLAIN {sql}")]
        together = [one["together"] for one in _documents(connection, sql)]
        assert [one["question"] for one in together] == list(range(1, len(prices) + 1))
        assert together[0]["group_at_most"] == pytest.approx(sum(prices), abs=1e-6)
        assert lines[-1].startswith("Together: at most ")
        assert lines[-1].endswith(f"; all {len(prices)} fit one after the other.")
        titles = [f"Question {number} of {len(prices)}" for number in range(1, len(prices) + 1)]
        assert [line for line in lines if line in titles] == titles
        connection.execute(sql)
    assert len(prices) > 1
    narrow = shop_in_duckdb(_folder(tmp_path, "narrow"), per_predicate=max(prices) * 1.001)
    with opened(narrow) as house, house.connect() as connection:
        told = [line for (line,) in connection.execute(f"EXPLAIN {sql}")][-1]
        assert told.endswith("question 2 does not, so that none would be asked.")
        with unchanged(house), pytest.raises(psycopg.Error, match=r"(?s)KH301.*none of them was asked") as refused:
            connection.execute(sql)
        assert f"question 2 of {len(prices)}" in str(refused.value)
        connection.execute("SELECT store FROM sales GROUP BY store HAVING count(*) > 5011 LIMIT 0")


def test_equal_questions_of_a_statement_cost_once(tmp_path: Path) -> None:
    sql = "SELECT store FROM sales GROUP BY GROUPING SETS ((store), (store)) HAVING count(*) > 811"
    with opened(shop_in_duckdb(_folder(tmp_path, "wide"))) as house, house.connect() as connection:
        first, second = _documents(connection, sql)
        assert first["together"]["group_at_most"] == second["together"]["group_at_most"]
        assert first["together"]["group_at_most"] == pytest.approx(first["worst_case_epsilon"])


def test_what_was_answered_costs_nothing_again(tmp_path: Path) -> None:
    """The answers of a statement are stored one by one: those that are there need not fit."""
    sql = STATEMENTS[1]
    first = sql.partition(" UNION ALL ")[0]
    with opened(shop_in_duckdb(_folder(tmp_path, "wide"))) as house, house.connect() as connection:
        prices = _prices(connection, sql)
    narrow = shop_in_duckdb(_folder(tmp_path, "narrow"), per_predicate=sum(prices) * 1.001)
    with opened(narrow) as house, house.connect() as connection:
        rows = connection.execute(sql).fetchall()
        assert rows
        with unchanged(house):
            assert connection.execute(sql).fetchall() == rows
            connection.execute(first)
