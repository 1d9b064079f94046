"""Monitors over REST, on alerts in a real ledger: what is listed, in pages, and as a stream of events."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from planner.errors import KeyholeError
from proxy.rest import monitor_routes
from proxy.rest.gate import MOST_STREAMS
from proxy.rest.monitor_routes import EventPosition
from tests.effort import PATIENCE_S
from tests.worlds.alerted import TOKENS, Watch, alerted, start
from tests.worlds.house import House, eventually, new_database


@pytest.fixture(scope="module")
def house(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with new_database(postgres_url) as url, alerted(tmp_path_factory.mktemp("told"), url, bobs=0.2) as house:
        yield house


@pytest.fixture(scope="module")
def crowded(house: House) -> Watch:
    """Four alerts at three looks; the first window is closed."""
    watch = start(house.service, "crowded")
    watch.look(3, {0: ("A",)})
    watch.look(9, {0: ("C", "B")})
    watch.look(24, {1: ("A",)}, closing=(0,))
    return watch


@contextmanager
def client(house: House, user: str = "ada") -> Iterator[httpx.Client]:
    """As an analyst."""
    headers = {"Authorization": f"Bearer {TOKENS[user]}"}
    url = f"http://127.0.0.1:{house.addresses.rest_port}"
    # without TLS the authorities' certificates, which take 20 ms to read, are of no use
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False, verify=False) as one:
        yield one


@dataclass(frozen=True)
class Event:
    """An event as it came."""

    id: str
    kind: str
    data: dict[str, Any]


def events(reply: httpx.Response) -> Iterator[Event]:
    """The events of a stream; comments are left out."""
    fields: dict[str, str] = {}
    for line in reply.iter_lines():
        if line.startswith(":"):
            continue
        if not line:
            if fields:
                yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}
            continue
        name, _, value = line.partition(": ")
        fields[name] = value


def stream(one: httpx.Client, name: str, after: str | None = None) -> Any:
    """A stream of events, from behind an id on."""
    return one.stream("GET", f"/v1/monitors/{name}/events", headers={} if after is None else {"Last-Event-ID": after})


def take(one: httpx.Client, name: str, after: str | None, count: int) -> list[Event]:
    """The next events behind an id, from a connection of their own."""
    with stream(one, name, after) as reply:
        assert reply.status_code == 200
        found = []
        for event in events(reply):
            found.append(event)
            if len(found) == count:
                return found
        return found


def test_what_is_listed_is_what_one_may_read(house: House, crowded: Watch) -> None:
    with client(house) as ada, client(house, "bob") as bob:
        assert [one["name"] for one in ada.get("/v1/monitors").json()["monitors"]] == ["crowded", "rush"]
        assert [one["name"] for one in bob.get("/v1/monitors").json()["monitors"]] == ["crowded", "private"]
        shown = ada.get("/v1/monitors/crowded").json()
        assert shown["contract"]
        promised = {name: shown[name] for name in ("state", "fnr", "fpr", "tolerance", "looks_made", "look", "keys")}
        assert promised == {
            "state": "running",
            "fnr": 0.05,
            "fpr": 0.1,
            "tolerance": "10%",
            "looks_made": 3,
            "look": 24,
            "keys": ["ward", "day"],
        }
        assert shown["last_look"] == "2126-01-02T00:00:00+00:00"
        assert ada.get("/v1/monitors/rush").json()["state"] == "waiting"


@pytest.mark.parametrize("path", ["", "/alerts", "/events"])
def test_a_monitor_of_others_and_none_are_told_alike(house: House, crowded: Watch, path: str) -> None:
    with client(house) as ada:
        told = []
        for name in ("private", "nothing"):
            reply = ada.get(f"/v1/monitors/{name}{path}")
            assert reply.status_code == 404
            assert reply.json()["code"] == "KH605"
            told.append(reply.text.replace(name, "NAME"))
        assert told[0] == told[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{house.addresses.rest_port}", trust_env=False) as nobody:
        assert nobody.get(f"/v1/monitors/crowded{path}").status_code == 401


def test_alerts_come_in_pages_of_whole_looks(house: House, crowded: Watch) -> None:
    with client(house) as ada:
        first = ada.get("/v1/monitors/crowded/alerts", params={"page_size": 2}).json()
        assert [(one["key"]["ward"], one["look"]) for one in first["alerts"]] == [("A", 3), ("B", 9), ("C", 9)]
        assert first["next"] == first["look"] == 9
        assert first["alerts"][0] == {
            "monitor": "crowded",
            "key": {"ward": "A", "day": "2126-01-01"},
            "window": "2126-01-01T00:00:00+00:00",
            "window_closes": "2126-01-02T00:00:00+00:00",
            "alerted_at": "2126-01-01T03:00:00+00:00",
            "look": 3,
            "cleared_at": None,
        }
        last = ada.get("/v1/monitors/crowded/alerts", params={"after": 9}).json()
        assert ([one["look"] for one in last["alerts"]], last["look"], last["next"]) == ([24], 24, None)
        none = ada.get("/v1/monitors/crowded/alerts", params={"after": 24}).json()
        assert none == {"alerts": [], "cleared": [], "look": 24, "next": None}
        assert ada.get("/v1/monitors/crowded/alerts", params={"after": -1}).status_code == 400


_ALL = [
    ("3.1", "alert"),
    ("3", "look"),
    ("9.1", "alert"),
    ("9.2", "alert"),
    ("9", "look"),
    ("24.1", "alert"),
    ("24.2", "closed"),
    ("24", "look"),
]


@pytest.mark.parametrize("seen", range(len(_ALL)))
def test_a_stream_goes_on_behind_whatever_was_seen(house: House, crowded: Watch, seen: int) -> None:
    """After each event the connection may be lost: the next one brings what is left, all of it and once."""
    with client(house) as ada:
        after = _ALL[seen - 1][0] if seen else "0"
        found = take(ada, "crowded", after, len(_ALL) - seen)
    assert [(event.id, event.kind) for event in found] == _ALL[seen:]


def test_events_say_what_happened(house: House, crowded: Watch) -> None:
    with client(house) as ada:
        alert, look, *_, closed, _ = take(ada, "crowded", "0", len(_ALL))
        (page, *_) = ada.get("/v1/monitors/crowded/alerts").json()["alerts"]
    assert alert.data == page
    assert look.data == {"monitor": "crowded", "look": 3}
    assert closed.data == {"monitor": "crowded", "window": "2126-01-01T00:00:00+00:00", "look": 24}


@pytest.mark.parametrize("sent", ["x", "7.", "-1", "1.2.3", "9999999999"])
def test_an_id_that_no_event_had_is_refused(house: House, crowded: Watch, sent: str) -> None:
    with client(house) as ada:
        reply = ada.get("/v1/monitors/crowded/events", headers={"Last-Event-ID": sent})
    assert (reply.status_code, reply.json()["code"]) == (400, "KH408")
    with pytest.raises(KeyholeError, match="KH408"):
        EventPosition.parse(sent)


def test_a_stream_without_an_id_tells_what_happens_from_now_on(postgres_url: str, tmp_path: Any) -> None:
    with new_database(postgres_url) as url, alerted(tmp_path, url) as house:
        watch = start(house.service, "crowded")
        watch.look(1, {0: ("A",)})
        with client(house) as ada, stream(ada, "crowded") as reply:
            assert reply.headers["content-type"].startswith("text/event-stream")
            assert reply.headers["cache-control"] == "no-store"
            told = events(reply)
            watch.look(2, {0: ("B",)})
            assert [(event.id, event.kind) for event in (next(told), next(told))] == [("2.1", "alert"), ("2", "look")]
            watch.pause("the source moves")
            paused = next(told)
            assert (paused.id, paused.kind, paused.data["reason"]) == ("2", "paused", "the source moves")
            watch.resume()
            watch.look(3, {0: ()})
            watch.end("enough")
            assert [next(told).kind, next(told).kind] == ["look", "ended"]
            assert list(told) == []
        with client(house) as ada:
            assert ada.get("/v1/monitors/crowded/events", headers={"Last-Event-ID": "3"}).status_code == 204
            assert [event.kind for event in take(ada, "crowded", "2", 1)] == ["look"]


def test_a_silent_stream_says_now_and_then_that_it_is_there(
    house: House, crowded: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor_routes, "COMMENT_EVERY_S", 0.05)
    with client(house) as ada, stream(ada, "rush") as reply:
        lines = reply.iter_lines()
        assert [line for line, _ in zip(lines, range(6), strict=False) if line][1:] == [":", ":"]


def test_streams_are_no_requests_at_work_and_have_a_limit_of_their_own(house: House, crowded: Watch) -> None:
    """More of them than requests that may be worked on at a time, all open, and the API answers."""
    with client(house) as ada:
        opened = [stream(ada, "crowded", "24") for _ in range(MOST_STREAMS)]
        replies = [one.__enter__() for one in opened]
        try:
            assert {reply.status_code for reply in replies} == {200}
            assert ada.get("/v1/monitors").status_code == 200
            refused = ada.get("/v1/monitors/crowded/events")
            assert (refused.status_code, refused.json()["code"]) == (429, "KH430")
        finally:
            for one in opened:
                one.__exit__(None, None, None)
        # the server notices in its own time, and whoever comes next needs a place
        eventually(lambda: ada.head("/v1/monitors/crowded/events").status_code == 200)


def test_head_ends_at_once(house: House, crowded: Watch) -> None:
    with client(house) as ada:
        assert ada.head("/v1/monitors/crowded/events").status_code == 200


def test_a_cap_that_does_not_hold_the_horizon_is_told_before_the_stream(house: House, crowded: Watch) -> None:
    start(house.service, "private")
    with client(house, "bob") as bob:
        assert bob.get("/v1/monitors/crowded/alerts").status_code == 200  # which leaves too little
        for path in ("alerts", "events"):
            reply = bob.get(f"/v1/monitors/private/{path}")
            assert (reply.status_code, reply.json()["code"]) == (403, "KH306")


def test_a_server_that_ends_ends_its_streams(postgres_url: str, tmp_path: Any) -> None:
    ended = threading.Event()

    def read(house: House, begun: threading.Event) -> None:
        with client(house) as ada, stream(ada, "crowded") as reply:
            lines = reply.iter_lines()
            next(lines)
            begun.set()
            for _ in lines:
                pass
        ended.set()

    with new_database(postgres_url) as url:
        with alerted(tmp_path, url) as house:
            start(house.service, "crowded")
            begun = threading.Event()
            reader = threading.Thread(target=read, args=(house, begun))
            reader.start()
            assert begun.wait(PATIENCE_S)
        assert ended.wait(PATIENCE_S)
        reader.join()
