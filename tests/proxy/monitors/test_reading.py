"""A monitor's relation and Keyhole's own relations about monitors, over the wire, on alerts in a real ledger."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.effort import PATIENCE_S
from tests.worlds.alerted import alerted, start
from tests.worlds.house import House, new_database, notices


@pytest.fixture(scope="module")
def house(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """With `crowded`, of which ten looks were made, and `rush`, of which seven; `private` was never started."""
    with new_database(postgres_url) as url, alerted(tmp_path_factory.mktemp("alerted"), url) as house:
        crowded = start(house.service, "crowded")
        crowded.look(3, {0: ("A",)})
        crowded.look(9, {0: ("C", "B")})
        crowded.look(24, {}, closing=(0,))
        crowded.look(30, {1: ("A",)})
        rush = start(house.service, "rush")
        rush.look(7, {1: ("B",)})
        yield house


@pytest.fixture
def ada(house: House) -> Iterator[psycopg.Connection[Any]]:
    with house.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


_ALERTS = [
    ("A", "2126-01-01", "2126-01-01T03:00", "2126-01-02T00:00"),
    ("B", "2126-01-01", "2126-01-01T09:00", "2126-01-02T00:00"),
    ("C", "2126-01-01", "2126-01-01T09:00", "2126-01-02T00:00"),
    ("A", "2126-01-02", "2126-01-02T06:00", "2126-01-03T00:00"),
]


def written(row: Any) -> tuple[str, ...]:
    """A row of `crowded` as it is written above."""
    ward, day, alerted_at, closes = row
    return ward, day.isoformat()[:10], *(moment.isoformat()[:16] for moment in (alerted_at, closes))


def test_the_relation_has_keys_and_times(ada: psycopg.Connection[Any]) -> None:
    cursor = ada.execute("SELECT * FROM crowded")
    assert cursor.description is not None
    assert [column.name for column in cursor.description] == ["ward", "day", "alerted_at", "window_closes"]
    assert [written(row) for row in cursor] == _ALERTS


def test_windows_of_a_length_say_when_they_began(ada: psycopg.Connection[Any]) -> None:
    cursor = ada.execute("SELECT * FROM rush")
    assert cursor.description is not None
    assert [column.name for column in cursor.description] == ["ward", "window_start", "alerted_at", "window_closes"]
    ((ward, began, alerted_at, closes),) = cursor.fetchall()
    assert (ward, began.hour, alerted_at.hour, closes.hour) == ("B", 6, 7, 12)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT ward FROM crowded WHERE day = '2126-01-02'", [("A",)]),
        ("SELECT ward, count(*) FROM crowded GROUP BY ward HAVING count(*) > 1 ORDER BY ward", [("A", 2)]),
        (
            "SELECT c.ward, floor FROM crowded c JOIN floors f USING (ward) ORDER BY day DESC, 1 LIMIT 1",
            [("A", "ground")],
        ),
        (
            "SELECT floor FROM floors WHERE ward NOT IN (SELECT ward FROM crowded WHERE day > '2126-01-01') LIMIT 1",
            [("first",)],
        ),
        ("SELECT public.crowded.ward FROM public.crowded ORDER BY alerted_at DESC LIMIT 1", [("A",)]),
        ("SELECT count(*) FROM clinic.public.crowded", [(4,)]),
        ('SELECT count(*) FROM "crowded"', [(4,)]),
        ("WITH c AS (TABLE crowded) SELECT max(ward) FROM c", [("C",)]),
        ("SELECT a.ward FROM crowded a JOIN rush b USING (ward)", [("B",)]),
        ("SELECT max(alerted_at) - min(alerted_at) > interval '1 day' FROM crowded", [(True,)]),
        ("SELECT 1 FROM crowded LIMIT 0", []),
    ],
)
def test_the_relation_works_like_any_other(ada: psycopg.Connection[Any], sql: str, rows: list[Any]) -> None:
    for prepare in (False, True):
        assert ada.execute(sql.encode(), prepare=prepare).fetchall() == rows
    with ada.cursor(binary=True) as cursor:
        assert cursor.execute(sql.encode()).fetchall() == rows


def test_it_works_with_parameters_prepare_cursors_and_copy(ada: psycopg.Connection[Any]) -> None:
    assert ada.execute("SELECT day FROM crowded WHERE ward = %s AND alerted_at > %s", ["A", "2126-01-02"]).rowcount == 1
    ada.execute("PREPARE p (text) AS SELECT count(*) FROM crowded WHERE ward = $1")
    assert ada.execute("EXECUTE p ('A')").fetchone() == (2,)
    with ada.transaction(), ada.cursor("c") as by_server:
        by_server.itersize = 1
        assert len(by_server.execute("SELECT * FROM crowded").fetchall()) == 4
    with (
        ada.cursor() as cursor,
        cursor.copy("COPY (SELECT ward FROM crowded ORDER BY alerted_at, ward) TO STDOUT") as out,
    ):
        assert b"".join(out) == b"A\nB\nC\nA\n"


def test_tools_find_the_relation_in_the_catalog(house: House, ada: psycopg.Connection[Any]) -> None:
    listed = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
    assert ada.execute(listed).fetchall() == [("crowded",), ("floors",), ("rush",), ("visits",)]
    with house.connect("bob") as bob:
        assert bob.execute(listed).fetchall() == [("crowded",), ("floors",), ("private",), ("visits",)]
    columns = ada.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'crowded'::regclass AND "
        "attnum > 0 ORDER BY attnum"
    ).fetchall()
    assert columns == [
        ("ward", "text"),
        ("day", "date"),
        ("alerted_at", "timestamp with time zone"),
        ("window_closes", "timestamp with time zone"),
    ]
    assert ada.execute(
        "SELECT has_table_privilege('private', 'SELECT'), has_table_privilege('rush', 'SELECT')"
    ).fetchone() == (False, True)


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize(
    "sql", ["SELECT * FROM private", "EXPLAIN SELECT * FROM private", "SELECT 1 FROM crowded, private LIMIT 0"]
)
def test_a_monitor_of_others_is_none(ada: psycopg.Connection[Any], sql: str, prepare: bool) -> None:
    with pytest.raises(
        errors.UndefinedTable, match='KH605: there is no monitor "private", or you may not read it'
    ) as refused:
        ada.execute(sql.encode(), prepare=prepare)
    assert refused.value.diag.statement_position == str(sql.index("private") + 1)


def test_a_monitor_that_never_started_is_empty_and_says_so(house: House) -> None:
    with house.connect("bob") as bob:
        heard = notices(bob)
        assert bob.execute("SELECT * FROM private").fetchall() == []
    assert heard == ["NOTICE: the monitor private was not started yet: it has alerted nothing"]


def test_keyhole_monitors_lists_what_one_may_read(house: House, ada: psycopg.Connection[Any]) -> None:
    (crowded, rush) = ada.execute(
        "SELECT name, state, every, window_length, looks_made, looks_planned, last_look, fnr, fpr, tolerance, "
        "epsilon_per_unit, reason FROM keyhole.monitors"
    ).fetchall()
    assert [str(value) for value in crowded] == [
        "crowded",
        "running",
        "1:00:00",
        "1 day, 0:00:00",
        "4",
        "240",
        "2126-01-02 06:00:00+00:00",
        "0.05",
        "0.1",
        "10%",
        "None",
        "to see",
    ]
    assert rush[:6] == ("rush", "running", rush[2], rush[3], 1, 48)
    with house.connect("bob") as bob:
        assert bob.execute("SELECT name, state, looks_made, last_look, reason FROM keyhole.monitors").fetchall()[1] == (
            "private",
            "waiting",
            0,
            None,
            None,
        )
    priced = ada.execute("SELECT epsilon_per_group FROM keyhole.monitors WHERE name = 'crowded'").fetchone()
    monitor = house.service.catalog.find_monitor("crowded")
    assert monitor is not None
    assert priced is not None
    assert 0.1 < float(priced[0]) < 0.3  # ln(24 / (4 * .05 * .1)) / 41


def test_keyhole_alerts_tells_all_of_them_by_look(house: House, ada: psycopg.Connection[Any]) -> None:
    rows = ada.execute("SELECT monitor, key, look FROM keyhole.alerts ORDER BY monitor, look, key->>'ward'").fetchall()
    assert rows == [
        ("crowded", {"ward": "A", "day": "2126-01-01"}, 3),
        ("crowded", {"ward": "B", "day": "2126-01-01"}, 9),
        ("crowded", {"ward": "C", "day": "2126-01-01"}, 9),
        ("crowded", {"ward": "A", "day": "2126-01-02"}, 30),
        ("rush", {"ward": "B"}, 7),
    ]
    with house.connect("bob") as bob:
        assert bob.execute("SELECT DISTINCT monitor FROM keyhole.alerts").fetchall() == [("crowded",)]


def test_explain_prints_the_plan_of_the_monitor(ada: psycopg.Connection[Any]) -> None:
    lines = [line for (line,) in ada.execute("EXPLAIN SELECT * FROM crowded").fetchall()]
    assert lines[0].startswith("Monitor crowded: 3 groups of visits (ward)")
    ((document,),) = ada.execute("EXPLAIN (FORMAT json) SELECT ward FROM crowded WHERE day = '2126-01-02'").fetchall()
    assert document[0]["Keyhole"]["monitor"] == "crowded"
    ada.execute("PREPARE planned AS SELECT * FROM rush")
    ((heading,), *_) = ada.execute("EXPLAIN EXECUTE planned").fetchall()
    assert heading.startswith("Monitor rush")
    with pytest.raises(psycopg.Error, match="KH106"):
        ada.execute("EXPLAIN SELECT * FROM crowded, rush")


def test_reading_costs_the_shared_balances_nothing(house: House) -> None:
    spent = house.most_spent("visits")
    with house.connect() as again:
        again.execute("SELECT * FROM crowded")
        again.execute("SELECT * FROM keyhole.alerts")
        events = house.events
        again.execute("SELECT * FROM crowded")
        assert house.events == events
    assert house.most_spent("visits") == spent


def test_a_cap_of_ones_own_pays_for_the_whole_horizon_once(postgres_url: str, tmp_path: Any) -> None:
    with new_database(postgres_url) as url, alerted(tmp_path, url, bobs=0.2) as house:
        crowded, private = start(house.service, "crowded"), start(house.service, "private")
        assert crowded.plan.epsilon_per_cell < 0.2 < crowded.plan.epsilon_per_cell + private.plan.epsilon_per_cell
        crowded.look(1, {0: ("A",)})
        with house.connect("bob") as bob:
            for _ in range(3):
                assert bob.execute("SELECT ward FROM crowded").fetchall() == [("A",)]
            with pytest.raises(psycopg.Error, match='KH306: your own cap does not hold the monitor "private"'):
                bob.execute("SELECT * FROM private")
            with pytest.raises(psycopg.Error, match='KH306: your own cap does not hold the monitor "private"'):
                bob.execute("LISTEN keyhole_private")
            heard = notices(bob)
            assert bob.execute("SELECT DISTINCT monitor FROM keyhole.alerts").fetchall() == [("crowded",)]
            assert heard[0].startswith("NOTICE: alerts of private are left out: your own cap does not hold")


def test_a_monitor_that_was_paused_or_ended_stays_readable_and_says_so(postgres_url: str, tmp_path: Any) -> None:
    with new_database(postgres_url) as url, alerted(tmp_path, url) as house:
        crowded = start(house.service, "crowded")
        crowded.look(1, {0: ("A",)})
        crowded.pause("the source moves")
        with house.connect() as ada:
            heard = notices(ada)
            assert ada.execute("SELECT ward FROM crowded").fetchall() == [("A",)]
            assert ada.execute("SELECT state, next_look FROM keyhole.monitors WHERE name = 'crowded'").fetchone() == (
                "paused",
                None,
            )
            crowded.resume()
            crowded.end("enough")
            assert ada.execute("SELECT ward FROM crowded").fetchall() == [("A",)]
            assert heard == [
                "NOTICE: the monitor crowded is paused: the source moves",
                "NOTICE: the monitor crowded is ended: enough",
            ]


def test_listen_hears_a_look_of_the_real_ledger(postgres_url: str, tmp_path: Any) -> None:
    with new_database(postgres_url) as url, alerted(tmp_path, url) as house, house.connect() as ada:
        rush = start(house.service, "rush")
        ada.execute("LISTEN keyhole_rush")
        rush.look(8, {1: ("C", "A")})
        told = [json.loads(one.payload) for one in ada.notifies(timeout=PATIENCE_S, stop_after=2)]
    assert [(one["monitor"], one["key"], one["look"]) for one in told] == [
        ("rush", {"ward": "A"}, 8),
        ("rush", {"ward": "C"}, 8),
    ]
    assert told[0]["window"] == "2126-01-01T06:00:00+00:00"
