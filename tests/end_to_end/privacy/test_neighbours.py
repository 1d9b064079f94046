"""Two databases that differ in a few rows tell the same: in errors, notices, plans and logs, and in answers far away.

The rows are chosen to break what is not total: NaN, infinities, extremes, texts that are no numbers, NULL everywhere.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
import structlog

from tests.seeded_noise import SeededNoise
from tests.worlds import shop
from tests.worlds.house import House, new_database, opened, write_policy

_QUESTION_ID = re.compile("[0-9a-f]{64}")
COLUMNS = "id, store, day, amount, quantity, note, score"
ROW = f"INSERT INTO sales ({COLUMNS}) VALUES "
ODD_ROWS = {
    "postgres": (
        ROW + "(-1, 'north', 'infinity', 'NaN', -2147483648, '1/0', 'NaN')",
        ROW + "(-1, 'north', '-infinity', 99999999.99, 2147483647, E'\\x01\\'\"', 'Infinity')",
        ROW + "(-1, NULL, NULL, NULL, NULL, NULL, NULL)",
        ROW + "(-1, 'nowhere', '0001-01-01 BC', -99999999.99, 5, '', '-Infinity')",
    ),
    "duckdb": (
        ROW + "(-1, 'north', 'infinity', 0, -2147483648, '1/0', 'NaN')",
        ROW + "(-1, 'north', '-infinity', 99999999.99, 2147483647, '''\"', 'Infinity')",
        ROW + "(-1, NULL, NULL, NULL, NULL, NULL, NULL)",
        ROW + "(-1, 'nowhere', '0044-01-01 (BC)', -99999999.99, 5, '', '-Infinity')",
    ),
}
MONTHS = "generate_series(DATE '2026-01-01', DATE '2026-04-01', interval '1 month') c(m)"
STATEMENTS = (
    shop.BUSY,
    shop.WARDS,
    "SELECT store, month FROM sales GROUP BY store, month HAVING count(*) > 990",
    "SELECT month FROM sales GROUP BY month HAVING sum(amount) > 30000 OR count(quantity) > 2900",
    "SELECT store FROM sales WHERE score > 1 AND score < 2 GROUP BY store HAVING avg(amount) > 5 AND count(*) > 1000",
    "SELECT store FROM sales WHERE quantity <> -5 AND note LIKE '%n%' GROUP BY store HAVING count(*) > 1000",
    "SELECT store FROM sales WHERE day >= '2026-01-01' GROUP BY store HAVING count(*) > 1000",
    "SELECT store FROM sales WHERE note IS NULL OR score <= 1.5 GROUP BY store HAVING count(*) > 1000",
    "SELECT store FROM sales WHERE amount BETWEEN -5 AND 99999999 GROUP BY store HAVING sum(amount) > 20000",
    "SELECT store FROM sales WHERE 1/(quantity - 5) > 0 GROUP BY store HAVING count(*) > 1000",
    "SELECT store FROM sales WHERE note::integer > 0 GROUP BY store HAVING count(*) > 1000",
    "SELECT store FROM sales GROUP BY store ORDER BY avg(quantity) DESC LIMIT 1",
    "SELECT store FROM sales GROUP BY store HAVING avg(quantity) > 1 AND count(quantity) > 1000",
    "SELECT store FROM sales GROUP BY store HAVING avg(score) > 0.5 AND count(score) > 1000",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 0.3 * (SELECT count(*) FROM sales)",
    "SELECT store FROM sales GROUP BY store HAVING sum(amount) > 0.3 * (SELECT sum(amount) FROM sales WHERE score > 1)",
    "SELECT store FROM sales GROUP BY store HAVING count(score) > 500 + (SELECT avg(n) FROM (SELECT count(score) AS n "
    "FROM sales GROUP BY store) q)",
    "SELECT store FROM sales GROUP BY store HAVING avg(amount) > 0.5 * (SELECT avg(amount) FROM sales) AND "
    "count(amount) > 1000 AND (SELECT count(amount) FROM sales) > 3000",
    "SELECT month FROM (SELECT month, sum(amount) AS s, lag(sum(amount)) OVER (ORDER BY month) AS b FROM sales "
    "GROUP BY month) q WHERE s > 0.3 * b AND b > 20000",
    f"SELECT c.m FROM {MONTHS} LEFT JOIN sales v ON v.month = c.m AND v.quantity * 2 > extract(month FROM c.m) "
    "GROUP BY c.m HAVING coalesce(sum(v.amount), 0) < 900",
    f"SELECT c.m FROM {MONTHS} LEFT JOIN (SELECT month, count(*) AS n FROM sales GROUP BY month) p ON p.month = c.m "
    "WHERE coalesce(p.n, 0) < 500",
    "SET keyhole.tolerance = '20'",
    "SELECT store FROM sales GROUP BY store HAVING avg(amount) > (SELECT avg(amount) - 2 * stddev(amount) FROM sales) "
    "AND count(amount) >= 2000 AND (SELECT count(amount) FROM sales) >= 5000",
    "SELECT store FROM sales GROUP BY store HAVING avg(amount) > (SELECT 0.5 * median(amount) FROM sales) "
    "AND count(amount) >= 2000 AND (SELECT count(amount) FROM sales) >= 5000",
    "SET keyhole.tolerance = '500'",
    "SELECT month FROM (SELECT month, count(*) - lag(count(*)) OVER (ORDER BY month) AS more FROM sales "
    "GROUP BY month) q ORDER BY more LIMIT 1",
    "RESET ALL",
    "SELECT * FROM sales",
    "SELECT max(amount) FROM sales",
    "SELECT nope FROM sales",
    "SET keyhole.max_epsilon = 0.0001",
    shop.BUSY.replace("1000", "1500"),
    "RESET ALL",
    f"EXPLAIN {shop.BUSY}",
    f"EXPLAIN (FORMAT JSON) {shop.BUSY.replace('1000', '1200')}",
    f"EXPLAIN {shop.WARDS}",
    "SELECT table_name, scope, family, filter, budget, spent_at_most, left_at_least FROM keyhole.budget_details",
    "SELECT what, table_name, budget, spent_at_most, left_at_least, limit_name FROM keyhole.budget",
    "SELECT table_name, keys, epsilon, status FROM keyhole.queries",
    "SELECT table_name, text, guarantee, fnr, fpr, epsilon, unit_epsilon FROM keyhole.answers",
    "SELECT relname, reltuples, relpages FROM pg_class WHERE relname IN ('sales', 'visits')",
)


def transcript(house: House) -> list[str]:
    """Everything that a client sees of `STATEMENTS`, without the data version's time and the questions' ids, which
    follow from the source's address."""
    told: list[object] = []
    version = house.service.find_version(house.service.catalog.tables[0])
    with house.connect() as connection:
        connection.add_notice_handler(lambda notice: told.append((notice.severity, notice.message_primary)))
        for statement in STATEMENTS:
            try:
                cursor = connection.execute(statement)
                told.append((cursor.statusmessage, cursor.fetchall() if cursor.description else None))
            except psycopg.Error as error:
                diagnosis = error.diag
                fields = [name for name in dir(diagnosis) if not name.startswith("_")]
                told.append({name: getattr(diagnosis, name) for name in fields})
    return [_QUESTION_ID.sub("ID", repr(one).replace(version, "VERSION")) for one in told]


def serve(stack: ExitStack, request: pytest.FixtureRequest, engine: str, *further: str) -> House:
    directory = request.getfixturevalue("tmp_path_factory").mktemp("neighbour")
    if engine == "duckdb":
        shop.fill_duckdb(directory / "shop.duckdb", *further)
        source = "duckdb:///shop.duckdb"
    else:
        source = stack.enter_context(new_database(request.getfixturevalue("postgres_url")))
        shop.fill_postgres(source, *further)
    house = stack.enter_context(opened(write_policy(directory, source=source)))
    house.service.noise = SeededNoise(7)
    return house


@pytest.fixture(params=["duckdb", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[Any]]:
    """What Keyhole and its libraries log: structlog's events, and the standard library's records by caplog."""
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as entries:
        yield entries


def test_odd_rows_cannot_be_told_from_their_absence(
    engine: str,
    request: pytest.FixtureRequest,
    logged: list[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every sum is so far from its thresholds that different answers have a probability below 1e-9, too."""
    transcripts = []
    logs = []
    for odd in ((), ODD_ROWS[engine]):
        with ExitStack() as stack:
            house = serve(stack, request, engine, *odd)
            logged.clear()
            caplog.clear()
            transcripts.append(transcript(house))
            logs.append((list(logged), [(record.name, record.levelname) for record in caplog.records]))
    assert transcripts[0] == transcripts[1]
    assert all(entries == [] for entries, _ in logs)
    text = str(logs) + "".join(transcripts[0])
    for secret in ("99999999.99", "2147483648", "4000", "4001", "7250", "7254"):
        assert not re.search(rf"\b{re.escape(secret)}\b", text)


def test_asking_again_never_tells_whether_a_row_arrived(on_postgres: House, on_postgres_url: str) -> None:
    """The first answer stands for the whole data version, whatever happens to the data: nothing is compared with it."""
    question = "SELECT store FROM sales WHERE quantity < 6 GROUP BY store HAVING count(*) > 20"
    with on_postgres.connect() as connection:
        before = connection.execute(question).fetchall()
        events = on_postgres.events
        with psycopg.connect(on_postgres_url, autocommit=True) as owner:
            arrived = "SELECT 'closed', DATE '2026-01-01', 1, 1 FROM generate_series(1, 5000)"
            owner.execute(f"INSERT INTO sales (store, day, amount, quantity) {arrived}".encode())
            owner.execute("DELETE FROM sales WHERE store = 'east'")
            try:
                assert connection.execute(question).fetchall() == before
                written_differently = question.replace("quantity < 6", "NOT quantity >= 6")
                assert connection.execute(written_differently).fetchall() == before
                assert on_postgres.events == events
            finally:
                owner.execute("DELETE FROM sales WHERE store = 'closed'")
                owner.execute(shop.STATEMENTS[4].encode())
    assert ("closed",) not in before
