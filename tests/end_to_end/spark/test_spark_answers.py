"""Questions over a Spark source, from a client to its answer: the same keys as DuckDB gives on the same files."""

import httpx
import pytest

from tests.effort import PATIENCE_S
from tests.end_to_end.certainty import truth
from tests.end_to_end.spark.lake import TOKEN
from tests.seeded_noise import SeededNoise
from tests.worlds import shop
from tests.worlds.house import House, notices, unchanged

_NEAR = [
    # thresholds that a group meets or misses by as little as the noise decides
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 3010 OR sum(amount) > 89900",
    "SELECT store, month FROM sales WHERE quantity IN (1, 2, 3) GROUP BY 1, 2 HAVING count(*) > 1290",
    "SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 590 AND sum(cost) > 3010",
    "SELECT ward FROM visits GROUP BY ward HAVING avg(cost) > 99 AND count(cost) > 610",
    "SELECT store FROM sales WHERE note LIKE 'n%' OR note = 's' GROUP BY store"
    " HAVING sum(amount) BETWEEN 90001 AND 120003",
    "SELECT region FROM sales JOIN stores ON store = name GROUP BY region HAVING count(*) > 3190",
    "SELECT ward FROM (SELECT patient_id, ward, sum(cost) AS paid, avg(cost) AS mean, max(cost) - min(cost) AS apart"
    " FROM visits GROUP BY patient_id, ward) v WHERE paid > 50 AND mean > 49.9 AND round(mean, 1) > 2 * apart - 99"
    " GROUP BY ward HAVING count(*) > 597",
    "SELECT store FROM sales GROUP BY store ORDER BY sum(amount) DESC LIMIT 2",
]


@pytest.mark.parametrize("question", _NEAR)
@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_the_same_keys_cost_the_same(on_sail: House, on_files: House, question: str, mechanism: str) -> None:
    found = []
    for house in (on_sail, on_files):
        before, house.service.noise = house.service.noise, SeededNoise(7)
        try:
            with house.connect() as connection:
                connection.execute(f"SET keyhole.mechanism = '{mechanism}'")
                connection.execute("SET keyhole.reuse = off")
                heard = notices(connection)
                found.append((connection.execute(question).fetchall(), heard))
        finally:
            house.service.noise = before
    assert found[0] == found[1]
    assert any("epsilon" in told for told in found[0][1])


@pytest.mark.parametrize(("question", "keys"), [(shop.BUSY, shop.BUSY_STORES), (shop.WARDS, shop.BUSY_WARDS)])
def test_the_true_keys_are_charged_once(on_sail: House, question: str, keys: list[tuple[str]]) -> None:
    """A false alarm has a probability below 1e-9: `truth` insists on that."""
    assert truth(on_sail.service, question) == keys
    before = on_sail.events
    with on_sail.connect() as connection:
        assert connection.execute(question).fetchall() == keys
        assert on_sail.events > before
        with unchanged(on_sail):
            assert connection.execute(question).fetchall() == keys


def test_rest_answers(on_sail: House) -> None:
    url, headers = f"{on_sail.addresses.rest}/v1/question", {"Authorization": f"Bearer {TOKEN}"}
    answered = httpx.post(url, json={"sql": shop.BUSY}, headers=headers, trust_env=False, timeout=PATIENCE_S)
    assert answered.status_code == 200, answered.text
    assert [tuple(row) for row in answered.json()["keys"]] == shop.BUSY_STORES


def test_a_plan_shows_the_sql_of_the_engine(on_sail: House) -> None:
    with on_sail.connect() as connection, unchanged(on_sail):
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN (VERBOSE) {shop.BUSY}").fetchall())
    assert "`parquet`.`" in plan
