"""A total, mean or median that groups are compared with is told by nothing but which groups are returned.

Two databases whose totals differ by thousands, and whose groups all stand the same way and far from every threshold:
whatever an analyst sees of comparisons, and of what is asked after them, is the same to the letter. Any other answer
has a probability below 1e-9.
"""

import re
from pathlib import Path

import psycopg
import pytest

from tests.seeded_noise import SeededNoise
from tests.worlds import shop
from tests.worlds.house import House, opened, write_policy

SHARE = "SELECT store FROM sales GROUP BY store HAVING {0} > {1} * (SELECT {0} FROM sales)"
SIZES = "(SELECT store, count(*) AS n FROM sales GROUP BY store) q"
MONTHS = "SELECT month, count(*) AS n, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month"
STATEMENTS = (
    "SET keyhole.tolerance = '100'",
    SHARE.format("count(*)", "0.3"),
    "SELECT store, 100.0 * count(*) / (SELECT count(*) FROM sales) AS pct FROM sales GROUP BY store "
    "HAVING 100.0 * count(*) / (SELECT count(*) FROM sales) >= 25 ORDER BY pct DESC",
    f"SELECT store FROM sales GROUP BY store HAVING count(*) > 1.2 * (SELECT avg(n) FROM {SIZES})",
    f"SELECT store FROM sales GROUP BY store HAVING count(*) > 500 + (SELECT percentile_cont(0.5) WITHIN GROUP "
    f"(ORDER BY n) FROM {SIZES})",
    "SELECT store, n > avg(n) OVER () + 0.2 * stddev_pop(n) OVER () AS large FROM "
    "(SELECT store, count(*) AS n FROM sales GROUP BY store) q ORDER BY large DESC, store",
    f"SELECT month FROM ({MONTHS}) q WHERE n > 0.3 * b AND b >= 900",
    f"SELECT month FROM ({MONTHS}) q WHERE n > 0.3 * b",
    "SET keyhole.tolerance = '4000'",
    SHARE.format("sum(amount)", "0.3"),
    "SELECT store FROM sales GROUP BY store HAVING avg(amount) > (SELECT avg(amount) - 2 * stddev(amount) FROM sales) "
    "AND count(amount) >= 2000 AND sum(count(amount)) OVER () >= 5000",
    "SET keyhole.tolerance = '20'",
    "SELECT store FROM sales GROUP BY store HAVING avg(amount) > (SELECT 0.5 * median(amount) FROM sales) "
    "AND count(amount) >= 2000 AND sum(count(amount)) OVER () >= 5000",
    # later questions, on the same noise, on finer noise, and on none
    "SET keyhole.tolerance = '150'",
    SHARE.format("count(*)", "0.29"),
    shop.BUSY,
    "SET keyhole.tolerance = '60'",
    SHARE.format("count(*)", "0.31"),
    f"EXPLAIN {SHARE.format('count(*)', '0.28')}",
    f"EXPLAIN (FORMAT JSON) {SHARE.format('count(*)', '0.27')}",
    f"EXPLAIN {shop.BUSY.replace('1000', '1100')}",
    "SET keyhole.tolerance = '10%'",
    SHARE.format("count(*)", "0.31"),
    f"EXPLAIN SELECT month FROM ({MONTHS}) q WHERE n > 0.4 * b",
    f"SELECT month FROM ({MONTHS}) q WHERE n > 0.3 * b AND b >= 900",
    "SET keyhole.reuse = off",
    f"EXPLAIN {SHARE.format('count(*)', '0.26')}",
    "SET keyhole.max_epsilon = 0.0001",
    SHARE.format("count(*)", "0.25"),
    "RESET ALL",
    f"SELECT store, (SELECT avg(n) FROM {SIZES}) FROM sales GROUP BY store HAVING count(*) > 1000",
    "SELECT (SELECT count(*) FROM sales)",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 1 / (SELECT count(*) - 7250 FROM sales)",
    "SELECT table_name, scope, family, filter, budget, spent_at_most, left_at_least FROM keyhole.budget_details",
    "SELECT what, table_name, budget, spent_at_most, left_at_least, limit_name FROM keyhole.budget",
    "SELECT table_name, keys, epsilon, status FROM keyhole.queries",
    "SELECT table_name, text, guarantee, fnr, fpr, epsilon, unit_epsilon FROM keyhole.answers",
)
MORE = (
    "INSERT INTO sales SELECT g, 'north', DATE '2026-01-01', 30, 3, 'n', 1.5 FROM generate_series(1, 1000) AS s(g)",
    "INSERT INTO sales SELECT g, 'south', DATE '2026-02-01', 30, 3, 's', 1.5 FROM generate_series(1, 900) AS s(g)",
)
_ID = re.compile("[0-9a-f]{64}")


def list_told(house: House) -> list[str]:
    """Return everything that a client sees, without the data version and the ids of questions."""
    told: list[object] = []
    version = house.service.find_version(house.service.catalog.tables[0])
    with house.connect() as connection:
        connection.add_notice_handler(lambda notice: told.append((notice.severity, notice.message_primary)))
        for statement in STATEMENTS:
            try:
                cursor = connection.execute(statement.encode())
                told.append((statement, cursor.statusmessage, cursor.fetchall() if cursor.description else None))
            except psycopg.Error as error:
                names = [name for name in dir(error.diag) if not name.startswith("_")]
                told.append((statement, {name: getattr(error.diag, name) for name in names}))
    return [_ID.sub("ID", repr(one).replace(version, "VERSION")) for one in told]


def test_whatever_is_told_of_comparisons_is_the_same_for_other_totals(tmp_path: Path) -> None:
    """7,250 sales and 9,150: prices of later questions, plans, notices, refusals, order, and the ledger's relations."""
    told = []
    for name, more in (("few", ()), ("many", MORE)):
        directory = tmp_path / name
        directory.mkdir()
        shop.fill_duckdb(directory / "shop.duckdb", *more)
        with opened(write_policy(directory, source="duckdb:///shop.duckdb", bobs=900.0)) as house:
            house.service.noise = SeededNoise(7 + len(more))
            told.append(list_told(house))
    for one, other in zip(*told, strict=True):
        assert one == other
    text = "".join(told[0])
    assert "('north',)" in text
    for secret in ("7250", "9150", "4000.", "4999", "5000.", "3900"):
        assert not re.search(rf"(?<![\d.'= ]){re.escape(secret)}\b", text.replace("- 7250", ""))


STORES = ["closed", "east", "north", "south", "west"]
EVERY_MONTH = [f"2026-0{month}-01" for month in range(1, 5)]
PARTLY = (
    (
        "SELECT store FROM sales WHERE store IN ('west', 'east') GROUP BY store HAVING count(*) > "
        "0.1 * (SELECT count(*) FROM sales)",
        STORES,
    ),
    (
        "SELECT store FROM sales WHERE quantity > 2 GROUP BY store HAVING count(*) > "
        "0.1 * (SELECT count(*) FROM sales)",
        STORES,
    ),
    (
        "SELECT store FROM sales GROUP BY store HAVING count(*) > "
        "0.1 * (SELECT count(*) FROM sales WHERE quantity > 2)",
        STORES,
    ),
    (
        "SELECT store FROM sales GROUP BY store HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) "
        "AND store = 'west'",
        STORES,
    ),
    (f"SELECT month FROM ({MONTHS}) q WHERE n > 1.2 * b AND month >= '2026-03-01'", EVERY_MONTH),
)


@pytest.mark.parametrize(("sql", "read"), PARTLY)
def test_groups_and_rows_that_only_another_group_reads_are_charged(tmp_path: Path, sql: str, read: list[str]) -> None:
    """Whatever the question returns, and whichever of its rows count for the groups themselves."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    with opened(write_policy(tmp_path, source="duckdb:///shop.duckdb")) as house:
        with house.connect() as connection:
            connection.execute("SET keyhole.tolerance = '100'")
            connection.execute(sql.encode())
        (charged,) = (one.charge for one in house.service.ledger.read_history())
        (spent,) = house.service.report_balances(None).families
        assert sorted(key for (key,) in spent.list_keys()) == read
        assert set(spent.lost_nano) == {charged.epsilon_nano}
        assert charged.epsilon_nano > 0
        assert not charged.family.filter
