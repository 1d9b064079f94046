"""Questions over a subquery per privacy unit, through the endpoint: what they answer, cost, and what is refused."""

import psycopg
import pytest

from tests.in_turn import in_turn
from tests.worlds.house import House, unchanged

TOTALS = "SELECT ward, patient_id, count(*) AS n, sum(cost) AS total FROM visits GROUP BY ward, patient_id"
ANSWERED = [
    (f"SELECT ward FROM ({TOTALS}) v WHERE total >= 100 GROUP BY ward HAVING count(*) > 300", ["A", "B"]),
    (f"SELECT ward FROM ({TOTALS}) v WHERE total > 100 GROUP BY ward HAVING count(*) > 300", []),
    (f"SELECT ward FROM ({TOTALS}) v WHERE n > 1 GROUP BY ward HAVING count(*) > 300", []),
    (f"SELECT v.ward FROM ({TOTALS}) v GROUP BY 1 HAVING sum(n) > 300 AND avg(total) > 50 ORDER BY 1 DESC", ["B", "A"]),
    (f"WITH v AS ({TOTALS}) SELECT ward FROM v WHERE n = 1 GROUP BY ward HAVING count(DISTINCT patient_id) > 300",
     ["A", "B"]),
    (f"WITH v AS ({TOTALS}), q AS (SELECT ward AS w FROM v WHERE n < 3 GROUP BY ward HAVING count(*) > 300)"
     " SELECT w FROM q JOIN stores ON name = 'north' LIMIT 5", ["A", "B"]),
    (f"WITH v AS ({TOTALS}) SELECT ward FROM v GROUP BY ward HAVING count(*) > 300"
     " EXCEPT SELECT x.ward FROM v x WHERE x.n = 1 GROUP BY x.ward HAVING count(*) > 750", ["B"]),
    ('SELECT "source"."w" FROM (SELECT w FROM (SELECT ward AS w, patient_id FROM visits WHERE cost > 50 GROUP BY 1, 2'
     ' HAVING sum(cost) < 200) v GROUP BY w HAVING count(*) > 300) "source" LIMIT 1001', ["A", "B"]),
    ("SELECT ward FROM (SELECT ward, patient_id, count(DISTINCT cost) AS prices FROM visits GROUP BY 1, 2) v"
     " GROUP BY ward HAVING count(*) FILTER (WHERE prices = 1) > 300", ["A", "B"]),
    ("SELECT ward FROM (SELECT ward, patient_id, sum(cost * cost) AS s FROM visits GROUP BY ward, patient_id) v"
     " WHERE s > 9999 GROUP BY ward HAVING count(*) > 300", ["A", "B"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "wards"), ANSWERED, ids=[sql for sql, _ in ANSWERED])
def test_the_true_keys_are_returned(house: House, sql: str, wards: list[str]) -> None:
    """All counts are 100 units or more from their thresholds: false alarms are rarer than 1e-8."""
    with house.connect() as connection:
        found = [ward for (ward,) in connection.execute(sql).fetchall()]
    assert sorted(found) == sorted(wards)


def test_parameters_inside_and_outside(house: House) -> None:
    sql = (
        "SELECT ward FROM (SELECT ward, patient_id, sum(cost) AS total FROM visits WHERE cost > $1 GROUP BY 1, 2) v"
        " WHERE total >= $2 GROUP BY ward HAVING count(*) > $3"
    )
    with house.connect() as connection, psycopg.RawCursor(connection) as cursor:
        found = cursor.execute(sql, [50, 100, 301]).fetchall()
    assert sorted(found) == [("A",), ("B",)]


def test_other_names_are_the_same_question_and_cost_nothing_again(house: House) -> None:
    first = f"SELECT ward FROM ({TOTALS}) v WHERE total >= 90 GROUP BY ward HAVING count(*) > 310"
    second = (
        "WITH t AS (SELECT sum(x.cost) AS s, x.patient_id, x.ward FROM visits x GROUP BY 3, 2)"
        " SELECT ward FROM t WHERE s >= 90 GROUP BY ward HAVING count(*) > 310"
    )
    with house.connect() as connection:
        found = connection.execute(first).fetchall()
        before = house.service.report_balances(None).unit_spent_nano, house.most_spent("visits")
        assert connection.execute(second).fetchall() == found
        assert (house.service.report_balances(None).unit_spent_nano, house.most_spent("visits")) == before


def test_a_unit_is_charged_for_as_many_groups_as_it_may_be_in(on_duckdb: House) -> None:
    """Two groups, as for any question about patients."""
    before = on_duckdb.service.report_balances(None).unit_spent_nano, on_duckdb.most_spent("visits")
    with on_duckdb.connect() as connection:
        connection.execute(f"SELECT ward FROM ({TOTALS}) v WHERE n >= 1 GROUP BY ward HAVING count(*) > 290")
    group = on_duckdb.most_spent("visits") - before[1]
    unit = (on_duckdb.service.report_balances(None).unit_spent_nano - before[0]) / 1e9
    assert group > 0
    assert unit == pytest.approx(2 * group)


def test_explain_costs_nothing_and_says_what_is_added_up(house: House) -> None:
    with unchanged(house), house.connect() as connection:
        sql = f"EXPLAIN SELECT ward FROM ({TOTALS}) v WHERE n > 1 GROUP BY ward HAVING count(*) > 300"
        text = "\n".join(line for (line,) in connection.execute(sql).fetchall())
    assert "of each (patient_id) in each (ward): n = count(*)" in text
    assert "n = count(*) is clipped to 0 .. 3" in text


REFUSED = [
    (f"WITH v AS ({TOTALS}) SELECT * FROM v", "0A000"),
    (f"WITH v AS ({TOTALS}) SELECT ward, (SELECT max(n) FROM v) FROM v GROUP BY ward HAVING count(*) > 9", "42501"),
    (f"WITH v AS ({TOTALS}) SELECT ward FROM v WHERE (ward, patient_id, n, total) = (TABLE v) GROUP BY ward"
     " HAVING count(*) > 9", "42501"),
    (f"SELECT patient_id FROM ({TOTALS}) v GROUP BY patient_id HAVING count(*) > 9", "0A000"),
    (f"SELECT total FROM ({TOTALS}) v GROUP BY total HAVING count(*) > 9", "0A000"),
    (f"SELECT v.ward FROM ({TOTALS}) v JOIN visits w USING (ward) GROUP BY v.ward HAVING count(*) > 9", "0A000"),
    (f"SELECT v.ward FROM ({TOTALS}) v, ({TOTALS}) w GROUP BY v.ward HAVING count(*) > 9", "0A000"),
    (f"SELECT ward FROM ({TOTALS} UNION ALL {TOTALS}) v GROUP BY ward HAVING count(*) > 9", "0A000"),
    ("SELECT ward FROM (SELECT ward, patient_id, cost FROM visits GROUP BY 1, 2, 3) v GROUP BY ward"
     " HAVING count(*) > 9", "0A000"),
    ("SELECT store FROM (SELECT store, note, count(*) AS n FROM sales GROUP BY 1, 2) v GROUP BY store"
     " HAVING count(*) > 9", "0A000"),
]  # fmt: skip


@in_turn(("sql", "state"), REFUSED)
def test_what_could_show_a_unit_or_count_it_twice_is_refused(on_duckdb: House, sql: str, state: str) -> None:
    with unchanged(on_duckdb), on_duckdb.connect() as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(sql)
        assert caught.value.sqlstate == state
        assert (caught.value.diag.message_primary or "").startswith("KH")
