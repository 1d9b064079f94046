"""What every page of the console has: headers that keep everything else out, and files of its own alone."""

import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from planner.policy.sections import ConsoleSection
from proxy.console.page import POLICY, TABS
from proxy.console.static_files import FOLDER
from proxy.open_policy.service import Service
from proxy.rest.app import create_app
from tests.in_turn import in_turn
from tests.worlds.console_house import SECTION, Browser, console_app, inline_code, open_house
from tests.worlds.rest_house import UNHURRIED


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with open_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


@pytest.fixture
def app(service: Service) -> FastAPI:
    return console_app(service)


@pytest.fixture
def browser(app: FastAPI) -> Browser:
    one = Browser(app)
    one.log_in()
    one.log_owner_in()
    return one


ADDRESSES = [tab.href for tabs in TABS.values() for tab in tabs]


@in_turn("address", ["/console/login", "/console/nowhere", *ADDRESSES])
def test_a_page_runs_and_loads_nothing_from_elsewhere(browser: Browser, address: str) -> None:
    answer = browser.get(address)
    assert answer.status_code == (404 if address.endswith("nowhere") else 200)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert inline_code(answer.text) == []
    for loaded in re.findall(r'(?:src|href)="([^"]+)"', answer.text):
        assert loaded.startswith(("/console", "#", "/docs")), loaded
    for loaded in re.findall(r'(?:src|href)="(/console/static/[^"]+)"', answer.text):
        assert browser.get(loaded).status_code == 200


def test_each_value_of_a_key_stands_apart(browser: Browser) -> None:
    """A comma inside a value is none between two."""
    (cell,) = re.findall(r"<td>3 public values: (.*?)</td>", browser.get("/console/tables").text)[:1]
    assert cell.count("<code>") == cell.count("</code>") == 3
    assert re.sub(r"<code>[^<]*</code>", "", cell).split() == [",", ","]


def test_the_policy_of_pages_is_as_strict_as_it_can_be() -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )


def test_files_are_kept_under_their_digest_and_lead_nowhere_else(browser: Browser) -> None:
    (style,) = re.findall(r'"(/console/static/[^"]+\.css)"', browser.get("/console/login").text)
    kept = browser.get(style)
    assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert kept.headers["content-type"] == "text/css; charset=utf-8"
    other = re.sub(r"/static/\w+/", "/static/0123/", style)
    assert browser.get(other).headers["cache-control"] == "no-store"
    folder = style.rpartition("/")[0]
    for name in ("../page.py", "..%2fpage.py", "vendor/echarts.LICENSE", "%2e%2e/%2e%2e/app.py", ""):
        assert browser.get(f"{folder}/{name}").status_code == 404


def test_every_library_has_its_licence_beside_it() -> None:
    libraries = {
        path.name.partition(".")[0] for path in (FOLDER / "vendor").iterdir() if path.suffix in (".mjs", ".js")
    }
    assert libraries == {path.stem for path in (FOLDER / "vendor").glob("*.LICENSE")}


def test_no_script_of_ours_makes_code_or_markup_of_text() -> None:
    for path in FOLDER.glob("**/*.js"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )
        assert not re.search(r"https?://(?!www\.w3\.org/)", text), path


def test_the_root_leads_to_the_pages_there_are(service: Service, browser: Browser) -> None:
    assert browser.get("/").headers["location"] == "/console"
    for section in (None, ConsoleSection(enabled=False)):
        app = create_app(service, UNHURRIED) if section is None else console_app(service, section)
        assert Browser(app).get("/").headers["location"] == "/docs"
        assert Browser(app).get("/console/login").status_code == 404


def test_pages_are_no_part_of_rests_document(app: FastAPI) -> None:
    assert not [path for path in app.openapi()["paths"] if not path.startswith(("/v1/", "/healthz", "/readyz"))]


def test_requests_count_as_rests_do(service: Service) -> None:
    limits = UNHURRIED.model_copy(update={"requests_per_minute": 2})
    browser = Browser(console_app(service, SECTION, limits=limits))
    browser.log_in()
    assert [browser.get("/console/ask").status_code for _ in range(3)] == [200, 200, 429]
    assert "Retry-After" in browser.get("/console/ask").headers
