"""Monitors in the console, on alerts in a real ledger and over a real socket: who may read them, and the stream."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256

import httpx
import pytest

from tests.effort import PATIENCE_S
from tests.proxy.rest.test_monitors import client, events
from tests.worlds.alerted import TOKENS, Watch, alerted, start
from tests.worlds.console_house import OWNER_TOKEN
from tests.worlds.house import House, new_database

OWNER = f"""
[server.console]
owner_token_sha256 = "{sha256(OWNER_TOKEN.encode()).hexdigest()}"
"""


@pytest.fixture(scope="module")
def house(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        new_database(postgres_url) as url,
        alerted(tmp_path_factory.mktemp("told"), url, bobs=0.2, more=OWNER) as house,
    ):
        yield house


@pytest.fixture(scope="module")
def crowded(house: House) -> Watch:
    """Two alerts at two looks."""
    watch = start(house.service, "crowded")
    watch.look(3, {0: ("A",)})
    watch.look(9, {0: ("B",)})
    return watch


def test_the_owner_sees_all_alerts_and_pays_for_none(house: House, crowded: Watch) -> None:
    url = f"http://127.0.0.1:{house.addresses.rest_port}"
    before = house.service.ledger.owner.find_newest_event()
    with httpx.Client(
        base_url=url, headers={"Origin": url}, timeout=PATIENCE_S, trust_env=False, verify=False
    ) as owner:
        assert owner.post("/console/owner/login", data={"token": OWNER_TOKEN}).status_code == 303
        page = owner.get("/console/owner/monitors").text
    assert re.search(r"<summary>\d alerts, the newest first</summary>", page)
    found = re.findall(
        r'<th scope="row">ward ([ABC]), day 2126-01-01</th><td class="tight">2126-01-01 00:00</td>', page
    )
    assert found[-2:] == ["B", "A"]
    assert house.service.ledger.owner.find_newest_event() == before


@contextmanager
def logged_in(house: House, user: str) -> Iterator[httpx.Client]:
    url = f"http://127.0.0.1:{house.addresses.rest_port}"
    # without TLS the authorities' certificates, which take 20 ms to read, are of no use
    with httpx.Client(base_url=url, headers={"Origin": url}, timeout=PATIENCE_S, trust_env=False, verify=False) as one:
        assert one.post("/console/login", data={"token": TOKENS[user]}).status_code == 303
        yield one


def test_a_monitors_page_has_its_alerts_and_its_stream_tells_of_the_next(house: House, crowded: Watch) -> None:
    with logged_in(house, "ada") as ada:
        assert 'href="/console/monitors/crowded"' in ada.get("/console/monitors").text
        page = ada.get("/console/monitors/crowded").text
        told = json.loads(re.findall(r'id="told">(.*?)</script>', page, re.S)[0])
        assert (told["look"], len(told["alerts"])) == (9, 2)
        assert {alert["key"]["ward"] for alert in told["alerts"]} == {"A", "B"}
        address = f"/console/api/monitors/crowded/events?after={told['look']}"
        with ada.stream("GET", address) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            crowded.look(10, {0: ("C",)})
            news = next(events(stream))
        assert (news.kind, news.data["key"]["ward"], news.data["look"]) == ("alert", "C", 10)


def test_without_a_session_there_is_no_stream(house: House, crowded: Watch) -> None:
    url = f"http://127.0.0.1:{house.addresses.rest_port}"
    with httpx.Client(base_url=url, timeout=PATIENCE_S, trust_env=False, verify=False) as stranger:
        assert stranger.get("/console/api/monitors/crowded/events").status_code == 401
        assert stranger.get("/console/monitors/crowded").status_code == 303


def test_an_id_that_no_event_had_is_refused(house: House, crowded: Watch) -> None:
    with logged_in(house, "ada") as ada:
        assert ada.get("/console/api/monitors/crowded/events?after=x").json()["code"] == "KH408"


def test_a_stream_ends_with_its_login_and_tells_nothing_of_what_comes_after(house: House) -> None:
    rush = start(house.service, "rush")
    with logged_in(house, "ada") as ada, ada.stream("GET", "/console/api/monitors/rush/events") as stream:
        found = events(stream)
        rush.look(2, {0: ("A",)})
        assert next(found).kind == "alert"
        assert ada.post("/console/logout").status_code == 303
        rush.look(3, {0: ("B",)})
        assert [event.data["look"] for event in found] in ([], [2])  # what is left of the look before


@pytest.mark.parametrize("what", ["the analyst is gone", "another token"])
def test_a_stream_ends_when_a_policy_is_read_again_that_would_not_let_its_reader_in(
    house: House, crowded: Watch, what: str
) -> None:
    """As a reload puts it into force that changes analysts alone: over the same service."""
    before = house.service.catalog
    others = tuple(analyst for analyst in before.analysts if analyst.name != "bob")
    bob = before.find_analyst("bob")
    assert bob is not None
    left = others if what == "the analyst is gone" else (*others, replace(bob, token_hash="0" * 64))
    with (
        logged_in(house, "bob") as by_cookie,
        client(house, "bob") as by_token,
        by_cookie.stream("GET", "/console/api/monitors/crowded/events") as one,
        by_token.stream("GET", "/v1/monitors/crowded/events") as other,
    ):
        try:
            house.service.catalog = replace(before, analysts=left)
            assert list(events(one)) == list(events(other)) == []
        finally:
            house.service.catalog = before
