"""The playground over HTTP: a round from its start to the leader board, and what clients cannot do to it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.console.page import POLICY
from proxy.console.play.open import open_playground as open_playground_of
from proxy.console.play.standalone import MOST_BODY_BYTES, make_play_app
from proxy.open_policy.service import Service
from proxy.play import tradeoff
from proxy.play.game import SESSION_S
from proxy.play.game_sessions import GameSessions
from proxy.play.tasks import TaskAnswer, solve_task
from tests.effort import rounds
from tests.worlds.console_house import Browser, console_app, inline_code, open_house
from tests.worlds.play_house import SEED, Clock, open_playground
from tests.worlds.wards import install

API = "/console/play/api"
PAGES = ("", "/attack", "/slider", "/rules")
LOCAL = "http://127.0.0.1:8433"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hall(tmp_path: Path, clock: Clock) -> GameSessions:
    return open_playground(tmp_path, clock)


@pytest.fixture
def browser(hall: GameSessions) -> Browser:
    return Browser(make_play_app(hall), site=LOCAL)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with open_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


def _begin(browser: Browser, **more: Any) -> str:
    told = browser.post(f"{API}/sessions", json={"name": "Ada", "seed": SEED, **more})
    assert told.status_code == 200, told.text
    return f"{API}/sessions/{told.json()['key']}"


def _truth(hall: GameSessions, session: str) -> dict[str, int]:
    """The true answer, which only a test can look at."""
    (seat,) = [seat for seat in hall._seats.values() if session.endswith(seat.key)]
    assert seat.session.round is not None
    answer: TaskAnswer = solve_task(seat.session.round.task, seat.session.round.world)
    known = {"count": answer.count, "place": answer.place, "day": answer.day, "tick": answer.tick}
    return {name: value for name, value in known.items() if value is not None}


def test_a_session_from_its_start_to_the_leader_board(browser: Browser, hall: GameSessions, clock: Clock) -> None:
    session = _begin(browser)
    for number in range(3):
        begun = browser.post(f"{session}/rounds", json={}).json()
        assert begun["round"]["number"] == number
        if begun["round"]["keys"] is None:
            series = browser.get(f"{session}/series?place=0&place=8&day=2&days=2").json()
            assert {name: len(values) for name, values in series["places"].items()} == {"0": 576, "8": 576}
            assert len(browser.get(f"{session}/heat?day=2").json()["colours"]) == 64
        clock.now += 60
        answered = browser.post(f"{session}/answer", json=_truth(hall, session)).json()
        assert answered["feedback"]["error"] == 0
        assert answered["feedback"]["points"] == pytest.approx(75 * (1 + 0.1 * number), abs=0.01)
        assert answered["session"]["seed"] == SEED
    assert browser.get(f"{session}/trace").status_code == 409
    over = browser.post(f"{session}/end", json={}).json()
    assert over["over"]
    (best,) = browser.get(f"{API}/board").json()["best"]
    assert (best["name"], best["rounds"], best["points"]) == ("Ada", 3, over["points"])
    trace = [json.loads(line) for line in browser.get(f"{session}/trace").text.splitlines()]
    assert [line["action"] for line in trace if line["action"] != "look"] == ["round", "answer"] * 3 + ["end"]
    kept = [json.loads(line) for line in browser.get(f"{API}/traces").text.splitlines()]
    assert kept[1:] == trace


def test_an_unknown_seed_is_told_at_the_end(browser: Browser, clock: Clock) -> None:
    told = browser.post(f"{API}/sessions", json={"name": "Ada"}).json()
    assert told["seed"] is None
    clock.now += SESSION_S
    assert browser.get(f"{API}/sessions/{told['key']}").json()["seed"] is not None


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_under_the_consoles_policy(browser: Browser, page: str) -> None:
    answer = browser.get(f"/console/play{page}")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == POLICY
    assert inline_code(answer.text) == []
    for kind in ("script src", "link rel"):
        assert kind in answer.text
    assert browser.get("/").headers["location"] == "/console/play"


def test_names_stay_text(browser: Browser, hall: GameSessions) -> None:
    name = "<img src=x onerror=alert(1)>"
    session = _begin(browser, name=name)
    browser.post(f"{session}/rounds", json={})
    browser.post(f"{session}/answer", json=_truth(hall, session))
    browser.post(f"{session}/end", json={})
    told = browser.get(f"{API}/board")
    assert told.headers["content-type"] == "application/json"
    assert told.headers["x-content-type-options"] == "nosniff"
    assert told.json()["best"][0]["name"] == name


def test_what_cannot_be_is_refused(browser: Browser) -> None:
    refused: tuple[tuple[str, dict[str, Any], int, str], ...] = (
        ("/sessions", {"name": ""}, 400, "name"),
        ("/sessions", {"name": "x" * 41}, 400, "name"),
        ("/sessions", {"name": "Ada", "seed": -1}, 400, "seed"),
        ("/sessions", {"name": "Ada", "seed": 1 << 40}, 400, "seed"),
        ("/sessions", {"name": "Ada", "teaching": 1}, 400, "teaching"),
        ("/sessions", {"name": "Ada", "points": 1000}, 400, "points"),
        ("/sessions/nobodys/rounds", {}, 409, "no such session"),
        ("/sessions/nobodys/answer", {"count": 1}, 409, "no such session"),
    )
    for path, body, status, said in refused:
        told = browser.post(f"{API}{path}", json=body)
        assert told.status_code == status, (path, body)
        assert told.json()["code"] == "KH408", (path, body)
        assert said in told.json()["title"], (path, body)


def test_rounds_follow_one_another(browser: Browser, clock: Clock) -> None:
    session = _begin(browser)
    assert browser.post(f"{session}/answer", json={"count": 1}).status_code == 409
    browser.post(f"{session}/rounds", json={})
    assert browser.post(f"{session}/rounds", json={}).status_code == 409
    assert browser.post(f"{session}/answer", json={}).status_code == 400
    assert browser.get(f"{session}/series?place=999&day=1").status_code in (400, 409)
    assert browser.get(f"{session}/series?place=0&day=1&days=8").status_code == 400
    assert browser.get(f"{session}/series?{'&'.join(['place=0'] * 81)}&day=1").status_code == 400
    clock.now += SESSION_S
    assert browser.post(f"{session}/answer", json={"count": 1}).status_code == 409


def test_other_sites_and_other_names_get_nothing(hall: GameSessions) -> None:
    begin = {"name": "Ada", "seed": SEED}
    browser = Browser(make_play_app(hall), site=LOCAL)
    foreign = {"Origin": "http://evil.example"}
    assert browser.send("POST", f"{API}/sessions", json=begin, headers=foreign).status_code == 403
    assert browser.send("POST", f"{API}/sessions", json=begin).status_code == 403
    for name in ("http://evil.example", "http://127.0.0.1.evil.example:8433", "http://localhost.evil.example"):
        rebound = Browser(make_play_app(hall), site=name)
        for path in ("/console/play", f"{API}/board"):
            assert rebound.get(path).status_code == 421
    assert Browser(make_play_app(hall), site="http://localhost:8433").get("/console/play").status_code == 200


def test_bodies_are_short(browser: Browser) -> None:
    told = browser.post(f"{API}/sessions", json={"name": "x" * MOST_BODY_BYTES})
    assert told.status_code == 413


def test_the_attackers_page_is_told_beliefs(browser: Browser) -> None:
    asked = f"seed={SEED}&attacker=student&tick=72"
    hidden = browser.get(f"{API}/attack/hidden?{asked}").json()
    assert hidden["open"] == 37
    victim = hidden["people"][0]["person"]
    for seen in ("true", "tick_laplace", "keyhole", "ttl", "zeros"):
        told = browser.get(f"{API}/attack?{asked}&victim={victim}&seen={seen}&epsilon=1&ticks=4").json()
        assert len(told["regions"]) == 27
        assert sum(region["prior"] for region in told["regions"]) == pytest.approx(1)
        assert [region["here"] for region in told["regions"]].count(True) == 1
    for wrong in (
        "victim=9999&epsilon=1",
        "victim=1&epsilon=0",
        "victim=1&epsilon=nan",
        "victim=1&epsilon=1&ticks=5e3",
    ):
        assert browser.get(f"{API}/attack?{asked}&seen=true&{wrong}").status_code == 400
    outside = next(person for person in range(420) if all(person != one["person"] for one in hidden["people"]))
    assert browser.get(f"{API}/attack?{asked}&seen=true&victim={outside}&epsilon=1").status_code == 400


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """At quick a bot plays in one world, once: what is asked of them is no matter of luck with its noise."""
    monkeypatch.setattr(tradeoff, "_ROUNDS", rounds(6, quick=1))
    monkeypatch.setattr(tradeoff, "_DRAWS", {kind: rounds(draws, quick=1) for kind, draws in tradeoff._DRAWS.items()})


def test_the_slider_tells_how_wrong_every_way_leaves_a_bot(browser: Browser, few_rounds: None) -> None:
    found = {}
    for way in ("true", "tick_laplace", "ttl", "zeros", "keyhole"):
        told = browser.get(f"{API}/errors?seed={SEED}&epsilon=1&way={way}").json()
        assert [task["task"] for task in told["tasks"]] == ["T1", "T2", "T3", "T4", "T5"]
        found[way] = [task["error"] for task in told["tasks"]]
    assert found["true"][1] == 0
    assert found["zeros"][1] > found["tick_laplace"][1]
    assert browser.get(f"{API}/errors?seed={SEED}&epsilon=1&way=none").status_code == 400


def test_owners_have_a_playground_of_their_own(service: Service, hall: GameSessions) -> None:
    app = console_app(service, play=hall)
    owner, analyst = Browser(app), Browser(app)
    assert owner.log_owner_in().status_code == analyst.log_in().status_code == 303
    assert 'href="/console/owner/play"' in owner.get("/console/owner").text
    begin = "/console/owner/play"
    for page in PAGES:
        told = owner.get(f"{begin}{page}").text
        assert f'data-begin="{begin}"' in told
        assert '"/console/play' not in told
        assert analyst.get(f"{begin}{page}").headers["location"].startswith("/console/owner/login")
    key = owner.post(f"{begin}/api/sessions", json={"name": "Kim", "seed": SEED}).json()["key"]
    assert owner.get(f"{begin}/api/sessions/{key}").status_code == 200
    assert analyst.get(f"{API}/sessions/{key}").status_code == 409  # a session is whose it is
    assert analyst.post(f"{begin}/api/sessions", json={"name": "Kim"}).status_code == 401
    away = Browser(app, address="192.0.2.7")
    away.cookies = owner.cookies
    assert away.get(begin).status_code == 404
    without = Browser(console_app(service))
    without.log_owner_in()
    assert without.get(begin).status_code == 404
    assert begin not in without.get("/console/owner").text


def test_the_slider_gives_a_policy_that_can_be_read(browser: Browser, few_rounds: None, tmp_path: Path) -> None:
    told = browser.get(f"{API}/tradeoff?seed={SEED}&attacker=student&epsilon=0.5&looks=24").json()
    assert [task["task"] for task in told["tasks"]] == ["T1", "T2", "T3", "T4", "T5"]
    assert told["tolerance"] == pytest.approx(13.2, abs=0.05)
    path = install(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + told["policy"], encoding="utf-8")
    assert "crowded" in Policy.load(path).monitors


def test_the_console_has_a_tab_where_the_policy_has_a_playground(service: Service, hall: GameSessions) -> None:
    without, playing = Browser(console_app(service)), Browser(console_app(service, play=hall))
    for browser in (without, playing):
        browser.log_in()
    assert "/console/play" not in without.get("/console/ask").text
    assert without.get("/console/play").status_code == 404
    assert 'href="/console/play"' in playing.get("/console/ask").text
    assert playing.get("/console/play").status_code == 200


def test_in_the_console_one_plays_after_a_login_and_alone(service: Service, hall: GameSessions) -> None:
    app = console_app(service, play=hall)
    stranger, ada, bob = Browser(app), Browser(app), Browser(app)
    assert stranger.get("/console/play").status_code == 303
    assert stranger.get(f"{API}/board").status_code == 401
    assert stranger.post(f"{API}/sessions", json={"name": "Ada"}).status_code == 401
    ada.log_in()
    bob.log_in("bob")
    session = _begin(ada)
    assert ada.get(session).status_code == 200
    assert bob.get("/console/play").status_code == 200
    assert bob.get(session).status_code == 409


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("[server]\nworkers = 2\n[server.play]\nenabled = true\n", "workers"),
        ("[server.console]\nenabled = false\n[server.play]\nenabled = true\n", "console"),
    ],
)
def test_a_playground_needs_one_process_and_the_console(tmp_path: Path, server: str, said: str) -> None:
    path = install(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(f"{text}\n{server}", encoding="utf-8")
    with pytest.raises(KeyholeError, match=said) as refused:
        Policy.load(path)
    assert refused.value.code == "KH002"


def test_a_policy_opens_a_playground_when_it_says_so(tmp_path: Path) -> None:
    path = install(tmp_path)
    assert open_playground_of(Policy.load(path)) is None
    path.write_text(path.read_text(encoding="utf-8") + "\n[server.play]\nenabled = true\nscores = 'board.sqlite'\n")
    hall = open_playground_of(Policy.load(path))
    assert hall is not None
    assert hall.board.list_best(1) == ()
    assert (tmp_path / "board.sqlite").exists()
