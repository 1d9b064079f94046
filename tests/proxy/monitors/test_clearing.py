"""Alerts that clear, as each reader is told of them: the relation, LISTEN, REST's pages and stream, and the command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from proxy.cli.main import app
from tests.effort import PATIENCE_S
from tests.in_turn import in_turn
from tests.proxy.rest.test_monitors import client, events, stream, take
from tests.worlds.alerted import RECENT, Watch, alerted, start
from tests.worlds.house import House, new_database

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def house(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A came with look 2 and went with look 5, C came with look 3, and A came again with look 8, when C went."""
    directory = tmp_path_factory.mktemp("cleared")
    with new_database(postgres_url) as url, alerted(directory, url, more=RECENT) as house:
        recent = start(house.service, "recent")
        recent.look(2, {0: ("A",)})
        recent.look(3, {0: ("C",)})
        recent.look(5, {0: ()}, cleared=("A",))
        recent.look(8, {0: ("A",)}, cleared=("C",))
        yield house


@pytest.fixture
def ada(house: House) -> Iterator[psycopg.Connection[Any]]:
    with house.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


def test_the_relation_says_when_an_alert_went(ada: psycopg.Connection[Any]) -> None:
    cursor = ada.execute("SELECT * FROM recent")
    assert cursor.description is not None
    assert [column.name for column in cursor.description] == ["ward", "alerted_at", "cleared_at"]
    told = [(ward, came.hour, None if went is None else went.hour) for ward, came, went in cursor]
    assert told == [("A", 2, 5), ("C", 3, 8), ("A", 8, None)]
    assert ada.execute("SELECT ward FROM recent WHERE cleared_at IS NULL").fetchall() == [("A",)]
    assert ada.execute(
        "SELECT key, window_start, extract(hour FROM alerted_at), look, extract(hour FROM cleared_at) "
        "FROM keyhole.alerts WHERE monitor = 'recent' ORDER BY look LIMIT 2"
    ).fetchall() == [({"ward": "A"}, None, 2, 2, 5), ({"ward": "C"}, None, 3, 3, 8)]


def test_the_catalog_has_its_columns(ada: psycopg.Connection[Any]) -> None:
    columns = ada.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'recent'::regclass AND "
        "attnum > 0 ORDER BY attnum"
    ).fetchall()
    moment = "timestamp with time zone"
    assert columns == [("ward", "text"), ("alerted_at", moment), ("cleared_at", moment)]


def test_pages_have_what_came_and_what_went_by_the_look_at_which_it_did(house: House) -> None:
    with client(house) as ada:
        first = ada.get("/v1/monitors/recent/alerts", params={"page_size": 2}).json()
        rest = ada.get("/v1/monitors/recent/alerts", params={"after": first["next"]}).json()
    assert first["alerts"][0] == {
        "monitor": "recent",
        "key": {"ward": "A"},
        "window": None,
        "window_closes": None,
        "alerted_at": "2126-01-01T02:00:00+00:00",
        "look": 2,
        "cleared_at": "2126-01-01T05:00:00+00:00",
    }
    told = [([one["key"]["ward"] for one in page[kind]], page["look"]) for page in (first, rest) for kind in _KINDS]
    assert told == [(["A", "C"], 3), ([], 3), (["A"], 8), (["A", "C"], 8)]
    assert rest["cleared"][0] == {
        "monitor": "recent",
        "key": {"ward": "A"},
        "alerted_at": "2126-01-01T02:00:00+00:00",
        "cleared_at": "2126-01-01T05:00:00+00:00",
        "look": 5,
    }


_KINDS = ("alerts", "cleared")
_EVENTS = [
    ("2.1", "alert"),
    ("2", "look"),
    ("3.1", "alert"),
    ("3", "look"),
    ("5.1", "cleared"),
    ("5", "look"),
    ("8.1", "alert"),
    ("8.2", "cleared"),
    ("8", "look"),
]


@in_turn("seen", range(len(_EVENTS)))
def test_a_stream_goes_on_behind_whatever_was_seen(house: House, seen: int) -> None:
    with client(house) as ada:
        found = take(ada, "recent", _EVENTS[seen - 1][0] if seen else "0", len(_EVENTS) - seen)
    assert [(event.id, event.kind) for event in found] == _EVENTS[seen:]


def test_a_listener_and_a_reader_of_the_stream_hear_of_a_look_as_it_is_made(postgres_url: str, tmp_path: Path) -> None:
    with new_database(postgres_url) as url, alerted(tmp_path, url, more=RECENT) as house:
        watch = start(house.service, "recent")
        watch.look(1, {0: ("B", "C")})
        with house.connect() as ada, client(house) as program, stream(program, "recent") as reply:
            ada.autocommit = True
            ada.execute("LISTEN keyhole_recent")
            told = events(reply)
            watch.look(2, {0: ("A",)}, cleared=("C", "B"))
            assert [next(told).kind for _ in range(4)] == ["alert", "cleared", "cleared", "look"]
            heard = [json.loads(one.payload) for one in ada.notifies(timeout=PATIENCE_S, stop_after=3)]
    assert [(one["key"]["ward"], one["look"], "cleared_at" in one) for one in heard] == [
        ("A", 2, False),
        ("B", 2, True),
        ("C", 2, True),
    ]
    assert heard[0]["window"] is None
    assert heard[1]["cleared_at"] == "2126-01-01T02:00:00+00:00"


def test_the_owner_watches_what_comes_and_goes(house: House) -> None:
    service = house.service
    service.ledger.monitors.pause_run(_run(house), by="tests", why="to see")
    try:
        said = CliRunner().invoke(app, ["monitor", "show", "recent", "--policy", str(house.policy)])
    finally:
        service.ledger.monitors.resume_run(_run(house), by="tests", why="to see")
    assert "Groups in its answer: 1; cleared again: 2." in said.stdout


def test_the_owner_is_told_of_all_of_a_run_that_ended(postgres_url: str, tmp_path: Path) -> None:
    with new_database(postgres_url) as url, alerted(tmp_path, url, more=RECENT) as house:
        watch: Watch = start(house.service, "recent")
        watch.look(2, {0: ("A",)})
        watch.look(3, {0: ("B",)}, cleared=("A",))
        watch.end("over")
        text, document = (
            CliRunner().invoke(app, ["monitor", "watch", "recent", "--policy", str(house.policy), *form]).stdout
            for form in ((), ("--json",))
        )
    assert text.splitlines() == [
        "2126-01-01 02:00:00  look 2  ward A",
        "2126-01-01 03:00:00  look 3  ward B",
        "2126-01-01 03:00:00  look 3  ward A  cleared",
    ]
    assert [json.loads(line).get("cleared_at") for line in document.splitlines()] == [
        "2126-01-01T03:00:00+00:00",
        None,
        "2126-01-01T03:00:00+00:00",
    ]


def _run(house: House) -> str:
    run = house.service.ledger.monitors.find_newest_run("recent")
    assert run is not None
    return run.run
