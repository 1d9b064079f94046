"""The attack that read one person's row from the running time: patterns that are dear on this row alone.

Which of 900 patterns were matched, and how far into a text of 50,000 letters, depended on one row; with it the source
ran past its timeout, without it it answered at once. What is left of it is refused, or costs every row the same few
comparisons: the answers are the same with the row and without it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from tests.worlds.house import House, new_database, opened, unchanged, write_policy
from tests.worlds.shop import fill_duckdb, fill_postgres

PATTERNS = " OR ".join(f"note LIKE '%{'_' * 180}Q{i}%'" for i in range(900))
ATTACK = f"SELECT store FROM sales GROUP BY store HAVING count(*) FILTER (WHERE quantity = 99 AND ({PATTERNS})) > 1000"
ALLOWED = (
    "SELECT store FROM sales GROUP BY store HAVING "
    f"count(*) FILTER (WHERE quantity < 99 OR note LIKE '%{'a' * 190}b%') > 1000"
)
SPELLED = (
    "SELECT store FROM sales GROUP BY store HAVING "
    "count(*) FILTER (WHERE CASE WHEN quantity = 99 THEN note ILIKE '%abcdef%' ELSE true END) > 1000"
)
VICTIM = "INSERT INTO sales VALUES (0, 'north', '2026-01-01', 1, 99, repeat('a', 50000), 1)"


@pytest.fixture(scope="module", params=["duckdb", "postgres"])
def neighbours(
    request: pytest.FixtureRequest, postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[House, House]]:
    """Two shops, the second with one row more, on either engine."""
    with ExitStack() as stack:
        houses = []
        for further in ((), (VICTIM,)):
            directory = tmp_path_factory.mktemp("shop")
            if request.param == "duckdb":
                fill_duckdb(directory / "shop.duckdb", *further)
                source = "duckdb:///shop.duckdb"
            else:
                source = stack.enter_context(new_database(postgres_url))
                fill_postgres(source, *further)
            houses.append(stack.enter_context(opened(write_policy(directory, source=source))))
        yield houses[0], houses[1]


def outcome(house: House, sql: str) -> Any:
    with house.connect() as analyst:
        try:
            return sorted(analyst.execute(sql.encode()).fetchall())
        except psycopg.Error as refused:
            return refused.sqlstate, str(refused)


def test_the_reported_attack_is_refused_before_data_are_touched(neighbours: tuple[House, House]) -> None:
    for house in neighbours:
        with unchanged(house):
            sqlstate, message = outcome(house, ATTACK)
            assert (sqlstate, message.split(":")[0]) == ("54000", "KH214")
    assert outcome(neighbours[0], ATTACK) == outcome(neighbours[1], ATTACK)


@pytest.mark.parametrize("sql", [ALLOWED, SPELLED])
def test_the_most_that_is_allowed_is_answered_the_same_with_the_row_and_without(
    neighbours: tuple[House, House], sql: str
) -> None:
    assert [outcome(house, sql) for house in neighbours] == [[("north",), ("south",)]] * 2
