"""The documentation site in a real browser: pages, search, light and dark, under the policy of the server.

Chromium and its driver come from apt, the tool that builds the site from `make docs`: what is missing skips the tests.
What a page logs as an error, which includes every violation of its policy, fails its test, and so does a request to
another host.
"""

import shutil
from collections.abc import Iterator

import pytest

from deploy.superset.browser import Browser, open_browser
from docs.generator.site.__main__ import build
from docs.generator.site.pages import ROOT
from tests.worlds.rest_house import UNHURRIED, own_house, served

ZENSICAL = ROOT / ".venv-docs" / "bin" / "zensical"
_SEARCH = "[...document.querySelectorAll('body > div')].map((one) => one.shadowRoot).find((one) => one)"
_COLOUR = "return getComputedStyle(document.body).backgroundColor"

pytestmark = [
    pytest.mark.skipif(
        not ((shutil.which("chromium") or shutil.which("google-chrome")) and shutil.which("chromedriver")),
        reason="needs chromium and chromedriver",
    ),
    pytest.mark.skipif(not ZENSICAL.is_file(), reason="make docs installs the tool"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("documentation")
    assert build(ZENSICAL, folder / "work", folder / "site") == []
    (folder / "wards").mkdir()
    with own_house(folder / "wards") as service, served(service, UNHURRIED, site=folder / "site") as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def window(address: str) -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened
        assert opened.read_errors() == []


def check_here(window: Browser, address: str) -> None:
    """Nothing was asked of another host."""
    loaded = window.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert loaded
    assert [name for name in loaded if not name.startswith(f"{address}/docs/")] == []


@pytest.mark.parametrize("page", ["", "/asking.html", "/policy.html", "/console.html", "/proofs/alarm.html"])
def test_a_page_runs_under_the_policy_and_asks_nobody_else(window: Browser, address: str, page: str) -> None:
    window.visit_page(f"{address}/docs{page}")
    window.wait_for_script("return document.querySelector('article h1') && document.readyState === 'complete'")
    assert window.run("return [...document.images].every((one) => one.naturalWidth > 0)")
    check_here(window, address)


def test_the_search_finds_a_setting_without_another_host(window: Browser, address: str) -> None:
    window.visit_page(f"{address}/docs")
    window.wait_for_script("return document.querySelector('.md-search__button')")
    window.run("document.querySelector('.md-search__button').click()")
    window.wait_for_script(f"return {_SEARCH} && {_SEARCH}.querySelector('input')")
    window.run(
        f"const field = {_SEARCH}.querySelector('input'); field.value = 'approval_above_epsilon';"
        "field.dispatchEvent(new Event('input', { bubbles: true }))"
    )
    window.wait_for_script(
        f"return [...{_SEARCH}.querySelectorAll('a')].some((one) => one.href.includes('policy.html'))"
    )
    assert window.run(f"return {_SEARCH}.adoptedStyleSheets[0].cssRules.length") > 10
    check_here(window, address)


def test_a_reader_may_choose_dark_pages(window: Browser, address: str) -> None:
    window.visit_page(f"{address}/docs/asking.html")
    light = window.run(_COLOUR)
    for _ in range(2):  # from the system's choice to light, and on to dark
        window.click_on("[data-md-component=palette] label:not([hidden])")
    assert window.run(_COLOUR) != light
    window.visit_page(f"{address}/docs/policy.html")
    assert window.run(_COLOUR) != light
