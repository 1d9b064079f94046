"""The owner's pages in a real browser: what waits is approved, a double click grants once, and all can use them."""

import json
from collections.abc import Iterator
from hashlib import sha256

import httpx
import pytest

from accountant.events.owner_events import Approved, Granted
from deploy.superset.browser import Browser, open_browser
from proxy.cli import check as checking
from proxy.console.page import TABS
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background
from tests.clients.installed.test_console import AXE, check_quiet, click, fill, find_faults, pytestmark
from tests.worlds.wards import PASSWORD, QUESTION, TOKENS, install

__all__ = ["pytestmark"]  # without a browser these are skipped as well

TOKEN = "an owner's own token"
MORE = f"""
[server.console]
owner_token_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"

[ledger]
keep_text = "full"
"""
HOSTILE = "<img src=x onerror=alert(1)>{a|b}"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    path = install(tmp_path_factory.mktemp("owner"))
    text = path.read_text(encoding="utf-8").replace("[budget]\n", "[budget]\napproval_above_epsilon = 0.001\n")
    path.write_text(text.replace("[bold]C", HOSTILE) + MORE, encoding="utf-8")
    checking.check(path, confirm=False)
    with (
        Service.open(path) as service,
        serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
    ):
        yield service, addresses.rest
        service.ledger.verify_everything()


@pytest.fixture
def window(house: tuple[Service, str]) -> Iterator[Browser]:
    """A browser in which the owner has logged in."""
    _, site = house
    with open_browser() as opened:
        opened.visit_page(f"{site}/console/owner")
        fill(opened, "[name=token]", TOKEN)
        click(opened, "main form button")
        opened.wait_for_script("return location.pathname === '/console/owner'")
        yield opened
        check_quiet(opened, site)


def ask(site: str, threshold: int = 1500) -> httpx.Response:
    bearer = {"Authorization": f"Bearer {TOKENS['ada']}"}
    return httpx.post(f"{site}/v1/question", json={"sql": QUESTION.format(threshold)}, headers=bearer, timeout=120)


def decide(window: Browser, site: str, how: str, why: str) -> None:
    """What the owner does with the only question that waits."""
    window.visit_page(f"{site}/console/owner/approvals")
    fill(window, "article [name=why]", why)
    click(window, f"[value={how}]")
    window.wait_for_script("return document.querySelector('.told')")


def test_who_asks_what_was_declined_reads_why(house: tuple[Service, str], window: Browser) -> None:
    _, site = house
    assert ask(site, 1400).json()["code"] == "KH308"
    decide(window, site, "decline", f"by quarters {HOSTILE}")
    told = ask(site, 1400).json()
    assert (told["code"], told["status"]) == ("KH318", 403)
    assert told["title"] == f"the data owner declined the question: by quarters {HOSTILE}"
    window.visit_page(f"{site}/console/owner/approvals")
    assert HOSTILE in window.run("return document.querySelector('article .warn').textContent")
    decide(window, site, "approve", "a last time")
    assert ask(site, 1400).status_code == 200


def test_the_price_says_that_a_question_was_declined_and_why(house: tuple[Service, str], window: Browser) -> None:
    _, site = house
    assert ask(site, 1300).json()["code"] == "KH308"
    decide(window, site, "decline", f"too fine {HOSTILE}")
    window.visit_page(f"{site}/console/login")
    fill(window, "[name=user]", "ada")
    fill(window, "[name=password]", PASSWORD)
    click(window, "main form button")
    window.wait_for_script("return location.pathname === '/console/ask'")
    fill(window, "#sql", QUESTION.format(1300))
    told = f"The data owner declined the question: too fine {HOSTILE}"
    window.wait_for_script(f"return document.getElementById('price').textContent.includes({json.dumps(told)})")


def test_what_waits_is_approved_with_a_reason_and_asked(house: tuple[Service, str], window: Browser) -> None:
    service, site = house
    before = len(list(service.ledger.owner.read_decisions()))
    assert ask(site).json()["code"] == "KH308"
    window.visit_page(f"{site}/console/owner/approvals")
    assert QUESTION.format(1500) in window.run("return document.querySelector('article pre').textContent")
    click(window, "[value=approve]")  # without a reason the browser sends nothing
    assert len(list(service.ledger.owner.read_decisions())) == before
    fill(window, "article [name=why]", HOSTILE)
    click(window, "[value=approve]")
    window.wait_for_script("return document.querySelector('.told')")
    event = list(service.ledger.owner.read_decisions())[-1]
    assert isinstance(event, Approved)
    assert (event.by, event.why) == ("console", HOSTILE)
    assert ask(site).json()["keys"] == [["A"]]
    window.visit_page(f"{site}/console/owner/ledger")
    assert HOSTILE in window.run("return document.querySelector('table').textContent")
    assert window.run("return document.querySelectorAll('img[src=x]').length") == 0


def test_a_double_click_grants_once(house: tuple[Service, str], window: Browser) -> None:
    service, site = house
    before = len(service.ledger.owner.list_grants())
    window.visit_page(f"{site}/console/owner/grants")
    fill(window, "[name=epsilon]", "0.25")
    fill(window, "form.stack:has([name=epsilon]) [name=why]", "a study")
    window.run("const grant = document.querySelector('main button.primary'); grant.click(); grant.click();")
    window.wait_for_script("return document.querySelector('.told')")
    assert "+0.25" in window.run("return document.body.textContent")
    assert len(service.ledger.owner.list_grants()) == before + 1
    assert sum(isinstance(event, Granted) for event in service.ledger.owner.read_decisions()) == before + 1


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_every_page_of_the_owner(house: tuple[Service, str], window: Browser, theme: str) -> None:
    _, site = house
    window.run(f"localStorage.setItem('keyhole-theme', '{theme}')")
    for tab in TABS["owner"]:
        window.visit_page(site + tab.href)
        assert find_faults(window) == [], tab.href
        window.resize_window(400, 800)
        assert window.run("return document.documentElement.scrollWidth <= window.innerWidth"), tab.href
        window.resize_window(1280, 800)


def test_the_map_and_the_burn_down_are_drawn(house: tuple[Service, str], window: Browser) -> None:
    _, site = house
    window.visit_page(f"{site}/console/owner/budget")
    window.wait_for_script("return document.querySelectorAll('#map canvas, #burn canvas').length === 2")
    assert HOSTILE in window.run("return document.querySelector('#map').closest('section').textContent")
    assert window.run("return document.querySelectorAll('img[src=x]').length") == 0
