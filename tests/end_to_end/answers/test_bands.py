"""Bands over the wire: as columns that tools find and drag, in hints that are sent as they stand, and as stored
questions that are charted like tables.

Stores sell for 120,000, 90,000, 4,000 and 1,000, and nothing; wards have 900, 600 and 30 patients, and none. The bands
of the shop's policy lie so far from these that another answer has a probability below 1e-9 (`certain_answer`).
"""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from psycopg import errors

from planner.extract.outer_query import Asking
from planner.statements.classify import classify
from proxy.pipeline.messages import Asked
from tests.end_to_end.certainty import certain_answer
from tests.worlds.house import House, unchanged

STATUS = [
    ("closed", False, 0, "calm"),
    ("east", False, 0, "calm"),
    ("north", True, 2, "busy"),
    ("south", True, 2, "busy"),
    ("west", False, 1, "calm"),
]


def _rows(house: House, sql: str) -> list[tuple[object, ...]]:
    """The answer to a statement, once nothing but it can come."""
    service = house.service
    statement = classify(sql, service.catalog)
    assert isinstance(statement, Asking)
    for question in statement.questions:
        parameters = {number: one.default for number, one in enumerate(question.parameters, start=1)}
        certain_answer(service, Asked(question, {}, parameters, service.find_analyst(None), datetime.now(UTC).date()))
    with house.connect() as connection:
        return connection.execute(sql.encode()).fetchall()


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT * FROM status ORDER BY store", STATUS),
        (
            "SELECT traffic, count(*), max(band) FROM status GROUP BY traffic ORDER BY 1",
            [("busy", 2, 2), ("calm", 3, 1)],
        ),
        ("SELECT status.store FROM public.status WHERE band >= 1 AND NOT big", [("west",)]),
        (
            "SELECT region, t.store, t.traffic FROM status AS t JOIN stores ON name = t.store WHERE big ORDER BY 2",
            [("upper", "north", "busy"), ("lower", "south", "busy")],
        ),
        ("SELECT * FROM reached ORDER BY ward", [("A", True, 2), ("B", True, 2), ("C", False, 0), ("D", False, 0)]),
    ],
)
def test_a_stored_question_may_be_a_scorecard(house: House, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert _rows(house, sql) == rows
    with unchanged(house), house.connect() as connection:
        assert connection.execute(sql.encode()).fetchall() == rows


def test_a_parameter_of_a_stored_scorecard_is_that_of_its_predicate(house: House) -> None:
    with house.connect() as connection:
        connection.execute("SET keyhole.param.reached.goal = 6137")
        assert connection.execute("SELECT ward, reached FROM reached WHERE reached").fetchall() == []
        connection.execute("RESET keyhole.param.reached.goal")
        assert connection.execute("SELECT ward FROM reached WHERE reached ORDER BY 1").fetchall() == [("A",), ("B",)]


def test_tools_see_the_columns_of_stored_scorecards_and_of_bands(house: House) -> None:
    with house.connect() as connection:
        found = connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_name IN ('status', 'reached', 'visits') ORDER BY table_name, ordinal_position"
        ).fetchall()
        told = dict(
            connection.execute(
                "SELECT attname, col_description(attrelid, attnum) FROM pg_attribute "
                "WHERE attrelid IN ('sales'::regclass, 'visits'::regclass) AND attnum > 0"
            ).fetchall()
        )
    assert found == [
        ("reached", "ward", "text"),
        ("reached", "reached", "boolean"),
        ("reached", "band", "integer"),
        ("status", "store", "text"),
        ("status", "big", "boolean"),
        ("status", "band", "integer"),
        ("status", "traffic", "text"),
        ("visits", "patient_id", "integer"),
        ("visits", "ward", "text"),
        ("visits", "cost", "numeric"),
        ("visits", "units_band", "integer"),
    ]
    assert told["amount"].endswith("; bands of its sum: ask width_bucket(sum(amount), ARRAY[2037, 60037])")
    band = "band of sum(amount) in a group, by max(amount_sum_band): 0 below 2037, 1 from 2037, 2 from 60037"
    assert told["amount_sum_band"] == band
    assert told["units_band"].startswith(
        "band of count(DISTINCT patient_id) in a group, by max(units_band): 0 below 107"
    )


DRAGGED = 'SELECT "sales"."store" AS "store", MAX("sales"."amount_sum_band") AS "max" FROM "public"."sales" "sales" '


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            f"{DRAGGED} GROUP BY 1 HAVING (COUNT(1) > 0) ORDER BY 1 ASC NULLS FIRST",
            [(store, band) for store, _, band, _ in STATUS],
        ),
        (
            f"{DRAGGED} GROUP BY 1 HAVING MAX(amount_sum_band) >= 1 ORDER BY 2 DESC, 1 LIMIT 50000",
            [("north", 2), ("south", 2), ("west", 1)],
        ),
        ("SELECT ward, max(units_band) FROM visits GROUP BY ward", [("A", 2), ("B", 2), ("C", 0), ("D", 0)]),
    ],
)
def test_a_band_is_dragged_like_a_column(house: House, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert _rows(house, sql) == rows


def test_thresholds_of_bands_may_be_bound(house: House) -> None:
    """Numbers as psycopg binds them; the same question as with constants, which is certain by now."""
    sql = "SELECT store, width_bucket(sum(amount), ARRAY[%s, %s]) AS band FROM sales GROUP BY store ORDER BY store"
    _rows(house, sql % (2037, 60037))
    _rows(house, "SELECT * FROM status")
    with unchanged(house), house.connect() as connection:
        found = connection.execute(sql, [2037, 60037]).fetchall()
        # one of the server's, which sends rows as they are fetched
        with connection.transaction(), connection.cursor("bands") as cursor:
            cursor.execute("SELECT store, band FROM status ORDER BY store")
            assert cursor.fetchmany(2) == [("closed", 0), ("east", 0)]
    assert found == [(store, band) for store, _, band, _ in STATUS]


def test_what_the_hint_of_a_dragged_measure_asks_is_answered(house: House) -> None:
    dragged = 'SELECT store AS store, SUM(amount) AS "SUM(amount)" FROM public.sales GROUP BY store ORDER BY store'
    with house.connect() as connection:
        with pytest.raises(errors.FeatureNotSupported, match="KH101") as refused:
            connection.execute(dragged.encode())
        hint = refused.value.diag.message_hint
        assert hint is not None
        answer = connection.execute(hint.removeprefix("Instead you can ask: ").encode())
        assert [one.name for one in answer.description or ()] == ["store", "SUM(amount)"]
        assert answer.fetchall() == [(store, band) for store, _, band, _ in STATUS]


def test_a_column_of_bands_reads_no_row_and_asks_nothing_by_itself(house: House) -> None:
    with unchanged(house), house.connect() as connection:
        assert connection.execute("SELECT units_band FROM visits LIMIT 0").fetchall() == []
        filtered = "SELECT ward FROM visits WHERE units_band > 1 GROUP BY ward HAVING count(*) > 6173"
        for sql in ("SELECT units_band FROM visits", filtered):
            with pytest.raises(errors.DatabaseError, match=r"KH103|KH201"):
                connection.execute(sql.encode())


def test_the_mean_of_a_band_has_the_type_of_a_mean(on_duckdb: House) -> None:
    """PostgreSQL describes what is asked before it is answered, and the mean of whole numbers has decimals to it."""
    sql = "SELECT store, avg(amount_sum_band), avg(amount_sum_band) + 1 AS more FROM sales GROUP BY store"
    sql += " HAVING max(amount_sum_band) NOT IN (0, 1)"
    assert _rows(on_duckdb, sql) == [("north", Decimal(2), Decimal(3)), ("south", Decimal(2), Decimal(3))]
    with on_duckdb.connect() as connection:
        assert [one.name for one in connection.execute(sql.encode()).description or ()] == ["store", "avg", "more"]


def test_a_band_is_no_value_of_the_rows_that_a_window_reads(on_duckdb: House) -> None:
    with on_duckdb.connect() as connection, unchanged(on_duckdb), pytest.raises(errors.UndefinedColumn) as refused:
        connection.execute("SELECT store, max(amount_sum_band) OVER () FROM sales GROUP BY store")
    assert "is the band of a whole group" in (refused.value.diag.message_primary or "")
