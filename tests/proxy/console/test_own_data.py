"""`keyhole play --policy`: an owner's own counts, for whoever has started it, and for nobody else in any way."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from typer.testing import CliRunner

from proxy.cli import check as checking
from proxy.cli.main import app as commands
from proxy.console.page import POLICY
from proxy.console.play.own_routes import OwnerKey
from proxy.console.play.standalone import make_play_app
from proxy.owner.mistyped import Mistyped
from proxy.owner.table_streams import read_streams
from proxy.play.own_streams import OwnStreams
from tests.children import forked
from tests.effort import PATIENCE_S
from tests.worlds.console_house import Browser, console_app, inline_code, open_house
from tests.worlds.play_house import Clock, open_playground
from tests.worlds.wards import install

SITE = "http://127.0.0.1:8433"
API = "/console/play/api/own"
ASKED = "place=0&epsilon=1&threshold=20"
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = install(tmp_path_factory.mktemp("wards"))
    checking.check(path, confirm=False)
    return path


@pytest.fixture(scope="module")
def streams(policy: Path) -> OwnStreams:
    return read_streams(policy, table="visits", place="ward", time="day")


@pytest.fixture
def key() -> OwnerKey:
    return OwnerKey()


@pytest.fixture
def app(tmp_path: Path, streams: OwnStreams, key: OwnerKey) -> FastAPI:
    return make_play_app(open_playground(tmp_path, Clock()), own=(streams, key))


@pytest.fixture
def owner(app: FastAPI, key: OwnerKey) -> Browser:
    browser = Browser(app, site=SITE)
    entered = browser.get(key.make_address("/console/play"))
    assert (entered.status_code, entered.headers["location"]) == (303, "/console/play/own")
    return browser


def test_counts_are_those_of_the_table_by_its_public_keys(streams: OwnStreams) -> None:
    assert streams.places == ("A", "B", "[bold]C")
    assert streams.times[0] == "2026-01-01"
    assert streams.counts.sum(axis=1).tolist() == [3000, 2, 0]
    assert streams.counts[0].tolist() == [3000 // 28 + (day < 3000 % 28) for day in range(28)]
    assert streams.counts[1].nonzero()[0].tolist() == [4, 5]


def test_the_page_says_whose_it_is_and_stays_under_the_consoles_policy(owner: Browser) -> None:
    page = owner.get("/console/play/own")
    assert page.status_code == 200
    assert "OWNER ONLY" in page.text
    assert page.headers["content-security-policy"] == POLICY
    assert page.headers["cache-control"] == "no-store"
    assert inline_code(page.text) == []
    assert 'href="/console/play/own"' in owner.get("/console/play/rules").text


@pytest.mark.parametrize("way", ["tick_laplace", "pegasus", "pegasus_40", "zeros"])
def test_counts_are_published_by_a_way(owner: Browser, streams: OwnStreams, way: str) -> None:
    seen = owner.get(f"{API}/seen?{ASKED}&way={way}").json()
    assert len(seen["published"]) == len(streams.times)
    assert seen["keys"] is None


def test_keyhole_shows_keys_and_no_count(owner: Browser) -> None:
    """Ward A has more than a hundred rows on each day, so far above 20 that a miss has a chance below 1e-30."""
    seen = owner.get(f"{API}/seen?{ASKED}&way=keyhole").json()
    assert seen["published"] is None
    assert seen["keys"] == list(range(28))


def test_the_truth_comes_with_what_each_way_makes_of_it(owner: Browser, streams: OwnStreams) -> None:
    told = owner.get(f"{API}/truth?{ASKED}").json()
    assert told["true"] == streams.counts[0].tolist()
    assert told["above"] == 28
    ways = {way["way"]: way for way in told["ways"]}
    assert (ways["zeros"]["missed"], ways["zeros"]["wrong"]) == (28, 0)
    assert ways["zeros"]["mean_error"] == pytest.approx(3000 / 28)
    assert ways["keyhole"]["mean_error"] is None


@pytest.mark.parametrize(
    "wrong",
    ["place=3&epsilon=1&threshold=20&way=zeros", f"{ASKED}&way=ttl", "place=0&epsilon=0&threshold=20&way=zeros"],
)
def test_what_there_is_not_is_refused(owner: Browser, wrong: str) -> None:
    assert owner.get(f"{API}/seen?{wrong}").json()["code"] == "KH408"


PAGES = ("/console/play/own", "/console/play", f"{API}/truth?{ASKED}", f"{API}/seen?{ASKED}&way=zeros")


def test_without_the_key_nothing_answers(app: FastAPI) -> None:
    for sent in ("", "x", "é"):
        stranger = Browser(app, site=SITE)
        stranger.cookies.set("keyhole_play", "x", domain="127.0.0.1", path="/console")
        assert stranger.get(f"/console/play/enter?key={sent}").status_code == 401, sent
        for path in PAGES:
            refused = stranger.get(path)
            assert refused.status_code == 401, (sent, path)
            assert "KH401" in refused.text, (sent, path)
            assert "visits" not in refused.text, (sent, path)


def test_the_key_of_another_process_opens_nothing(app: FastAPI) -> None:
    assert Browser(app, site=SITE).get(OwnerKey().make_address("/console/play")).status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_sites_page_gets_nothing_with_the_owners_cookie(owner: Browser, site: str) -> None:
    """Another port of this machine is the same site to a browser, which sends the cookie along."""
    for path in PAGES:
        refused = owner.get(path, headers={"Sec-Fetch-Site": site})
        assert refused.status_code == 403, path
        assert "visits" not in refused.text, path


def test_another_name_of_the_machine_gets_nothing(app: FastAPI, key: OwnerKey) -> None:
    rebound = Browser(app, site="http://evil.example:8433")
    assert rebound.get(key.make_address("/console/play")).status_code == 421


def test_the_console_has_no_way_to_it(tmp_path: Path) -> None:
    """Neither a page, for whatever session, nor the code: `keyhole play` alone imports it."""
    with open_house(tmp_path, more="\n[server.play]\nenabled = true\n") as service:
        served = console_app(service, play=open_playground(tmp_path, Clock()))
    analyst, owner = Browser(served), Browser(served)
    analyst.log_in()
    owner.log_owner_in()
    for browser, begin in ((analyst, "/console/play"), (owner, "/console/owner/play")):
        assert browser.get(begin).status_code == 200
        assert f"{begin}/own" not in browser.get(begin).text
        for path in ("/own", f"/api/own/truth?{ASKED}", "/enter?key=x"):
            assert browser.get(f"{begin}{path}").status_code == 404
    importing = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "proxy").rglob("*.py")
        if "proxy.console.play.own_routes" in _imported(path) or "proxy.owner.table_streams" in _imported(path)
    }
    assert importing == {"proxy/console/play/standalone.py", "proxy/cli/main.py"}


def _imported(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text if "own_routes" in text or "owner.table_streams" in text else "")
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("table", {"table": "nothing", "place": "ward", "time": "day"}),
        ("place", {"table": "visits", "place": "age", "time": "day"}),
        ("time", {"table": "visits", "place": "ward", "time": "id"}),
        ("time", {"table": "visits", "place": "ward", "time": "ward"}),
    ],
)
def test_what_the_policy_does_not_have_is_named(policy: Path, field: str, asked: dict[str, str]) -> None:
    with pytest.raises(Mistyped) as refused:
        read_streams(policy, **asked)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--table", "visits"], "--policy"),
        (["--policy", "keyhole.toml", "--table", "visits"], "--place"),
        (["--policy", "keyhole.toml", "--place", "ward", "--time", "day"], "--table"),
    ],
)
def test_the_command_wants_all_of_it_or_nothing(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(commands, ["play", *arguments], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert said in done.output


@pytest.fixture
def running(policy: Path, tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address that the command prints, and the folder that it ran in."""
    arguments = ["--policy", str(policy), "--table", "visits", "--place", "ward", "--time", "day", "--port", "0"]
    started = forked.Popen(
        [Path(sys.executable).parent / "keyhole", "play", *arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert started.stdout is not None
        said = started.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/console/play/enter\?key=[\w-]{43}", said)
        assert found is not None, said
        yield found[0], tmp_path
    finally:
        started.terminate()
        started.wait(timeout=PATIENCE_S)
        if started.stdout is not None:
            assert started.stdout.read() == ""  # nothing is logged of it
            started.stdout.close()


def test_the_command_serves_it_and_writes_nothing(running: tuple[str, Path], policy: Path) -> None:
    address, folder = running
    before = sorted(path.name for path in policy.parent.iterdir())
    with httpx.Client(follow_redirects=True, timeout=PATIENCE_S, trust_env=False) as browser:
        page = browser.get(address)
        assert (page.status_code, page.url.query) == (200, b"")
        assert browser.get(page.url.join(f"{API}/truth?{ASKED}")).json()["above"] == 28
    assert list(folder.iterdir()) == []
    assert sorted(path.name for path in policy.parent.iterdir()) == before
