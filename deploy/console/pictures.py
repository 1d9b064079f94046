"""Pictures of the console for the documents: `python -m deploy.console.pictures [FOLDER [WALK ...]]`.

A demo is served on loopback, a headless Chromium walks as docs/console.md does, and each step becomes a small PNG. The
walks are `analyst`, `owner` and `play`. What the analyst's takes, by clicks and keys as a person would, is printed.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import httpx

from deploy.demo import build
from deploy.superset.browser import Browser, open_browser
from proxy.cli import check as checking
from proxy.cli.demo import PASSWORD, USER
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "console"
WIDTH, HEIGHT = 1180, 940
PHONE = (420, 860)
LOOK_S = 2.0  # a person looks that long before each click, and types a key in KEY_S: set, as a slow newcomer
KEY_S = 0.3
READ_S = 8.0  # to read a page that is new
_TOLD = "return document.getElementById('price').dataset.state === 'told'"
_DRAWN = "return document.querySelector('#answer canvas')"

OWNER_TOKEN = "the demo's owner"  # noqa: S105  (of a server on loopback that lives for a minute)
BUDGET = "[budget]\napproval_above_epsilon = 1.0\n"
MORE = f"""
[server.console]
owner_token_sha256 = "{sha256(OWNER_TOKEN.encode()).hexdigest()}"

[server.play]
enabled = true
"""
ASKED = (
    ("SELECT country, month FROM sales GROUP BY country, month HAVING count(DISTINCT customer_id) > 20", "20%"),
    ("SELECT country, month FROM sales GROUP BY country, month HAVING sum(amount) > 20000", "40%"),
    ("SELECT country FROM sales GROUP BY country HAVING count(DISTINCT customer_id) > 150", "20%"),
    ("SELECT country, month FROM sales GROUP BY country, month HAVING count(DISTINCT customer_id) > 40", "6%"),
)
"""Questions and their tolerances; the last one is above what an owner lets pass unseen."""
PRIOR = "country,month,people\n" + "".join(
    f"{country},2011-{month:02}-01,{people}\n"
    for month in (10, 11)
    for country, people in (("Germany", 40), ("France", 35), ("Spain", 12), ("Belgium", 10), ("Portugal", 8))
)


def take_pictures(folder: Path, walks: tuple[str, ...]) -> None:
    """Walk through the console and write a picture of each step into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in walks:
        with serve_demo(MORE if name != "analyst" else "") as (_, site), open_browser() as window:
            WALKS[name](window, site, folder)


@contextmanager
def serve_demo(more: str) -> Iterator[tuple[Service, str]]:
    """Serve a demo and yield its service and address.

    `more` is further policy text. With it, the demo's budget requires approval of expensive questions.
    """
    with tempfile.TemporaryDirectory(prefix="keyhole-pictures-") as directory:
        policy = build.install_demo(Path(directory))
        text = policy.read_text(encoding="utf-8")
        policy.write_text(text.replace("[budget]\n", BUDGET if more else "[budget]\n") + more, encoding="utf-8")
        checking.check(policy, confirm=False)
        with (
            Service.open(policy) as service,
            serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
        ):
            yield service, addresses.rest


def log_owner_in(window: Browser, site: str) -> None:
    """Log the demo's owner in."""
    _log_in_as(window, site, {"token": OWNER_TOKEN}, "/console/owner")
    window.run("document.querySelector('main form button').click()")
    window.wait_for_script("return location.pathname === '/console/owner'")


def _log_in_as(window: Browser, site: str, fields: Mapping[str, str], place: str) -> None:
    window.resize_window(WIDTH, HEIGHT)
    window.visit_page(site + place)
    for name, value in fields.items():
        window.run(f"document.querySelector('[name={name}]').value = {json.dumps(value)}")


def _walk_owner(window: Browser, site: str, folder: Path) -> None:
    for sql, tolerance in ASKED:
        bearer = {"Authorization": f"Bearer {PASSWORD}"}
        httpx.post(f"{site}/v1/question", json={"sql": sql, "tolerance": tolerance}, headers=bearer, timeout=300)
    log_owner_in(window, site)
    _take_picture(window, folder / "owner.png")
    window.visit_page(f"{site}/console/owner/approvals")
    _take_picture(window, folder / "approvals.png")
    window.visit_page(f"{site}/console/owner/budget")
    window.wait_for_script("return document.querySelectorAll('#map canvas, #burn canvas').length === 2")
    _take_picture(window, folder / "budget.png")
    window.visit_page(f"{site}/console/owner/risk")
    window.run("document.querySelector('details').open = true")
    for name, value in (("prior", PRIOR), ("known1", "country\nGermany\nFrance\n")):
        window.run(f"document.querySelector('[name={name}]').value = {json.dumps(value)}")
    window.run("document.querySelector('main form button.primary').click()")
    found = "[...document.querySelectorAll('h2')].find((one) => one.textContent.startsWith('What attackers'))"
    window.wait_for_script(f"return {found}")
    window.run(f"window.scrollTo({{ top: {found}.offsetTop - 12, behavior: 'instant' }})")
    _take_picture(window, folder / "risk.png")


def _walk_play(window: Browser, site: str, folder: Path) -> None:
    _log_in_as(window, site, {"user": USER, "password": PASSWORD}, "/console/login?next=/console/play")
    window.run("document.querySelector('form button').click()")
    window.wait_for_script("return document.querySelector('#begin button')")
    window.run("document.querySelector('[name=name]').value = 'Ada'")
    window.run("document.querySelector('[name=seed]').value = '3'")
    window.run("document.querySelector('#begin button').click()")
    window.wait_for_script(
        "return document.querySelector('#series canvas') && document.querySelectorAll('.tile').length === 64"
    )
    _take_picture(window, folder / "play.png")
    window.visit_page(f"{site}/console/play/attack")
    window.wait_for_script("return document.querySelectorAll('#beliefs canvas, #classes canvas').length === 2")
    _take_picture(window, folder / "attack.png")
    window.visit_page(f"{site}/console/play/slider")
    window.wait_for_script(
        "return document.querySelector('#tasks tbody td') && document.querySelector('#curve canvas')"
    )
    window.run("document.getElementById('more').click()")
    window.wait_for_script("return document.querySelectorAll('#ways tbody tr').length === 8")
    window.wait_for_script(
        "return new Promise((still) => setTimeout(() => still(true), 20000))"
    )  # the curve has seven points
    window.run("window.scrollTo({ top: document.getElementById('curve').offsetTop - 720, behavior: 'instant' })")
    _take_picture(window, folder / "slider.png")


class Hand:
    """A person's hand in the browser: it clicks and types, and counts both.

    `seconds` estimates the time of a person.
    """

    def __init__(self, window: Browser) -> None:
        self._window = window
        self.clicks = 0
        self.keys = 0
        self.seconds = 0.0

    def click_on(self, selector: str) -> None:
        """Click once."""
        self._window.click_on(selector)
        self.clicks += 1
        self.seconds += LOOK_S

    def type_into(self, selector: str, text: str) -> None:
        """Type a text into a field, with one click on the field."""
        self._window.type_into(selector, text)
        self.keys += len(text)
        self.seconds += LOOK_S + KEY_S * len(text)

    def choose_option(self, select: str, option: str) -> None:
        """Choose an option of a list. This counts two clicks: one opens the list, the other chooses."""
        self._window.click_on(f"{select} option[value='{option}']")
        self.clicks += 2
        self.seconds += 2 * LOOK_S

    def count_reading_time(self) -> None:
        """Count the time in which a person reads a new page."""
        self.seconds += READ_S


def _walk_analyst(window: Browser, site: str, folder: Path) -> None:
    hand = Hand(window)
    began = time.monotonic()
    window.resize_window(WIDTH, HEIGHT)
    window.visit_page(f"{site}/console")
    hand.count_reading_time()
    hand.type_into("[name=user]", USER)
    hand.type_into("[name=password]", PASSWORD)
    _take_picture(window, folder / "login.png")
    hand.click_on("form button.primary")
    window.wait_for_script(_TOLD)
    hand.count_reading_time()
    _take_picture(window, folder / "first.png")
    hand.click_on("[data-focus='key month']")
    hand.click_on("[data-focus='0 add']")
    hand.choose_option("[data-focus='0.1 fn']", "sum")
    hand.choose_option("[data-focus='0 kind']", "or")
    window.wait_for_script(_TOLD)
    window.wait_for_script("return document.querySelector('#cheaper button')")
    hand.count_reading_time()
    window.run("window.scrollTo({ top: 0, behavior: 'instant' })")
    _take_picture(window, folder / "ask.png")
    hand.click_on("#price li button")  # the first setting with which it fits
    window.wait_for_script(_TOLD)
    window.click_on("#ask")
    hand.clicks += 1
    _see_answer(window)
    took = time.monotonic() - began
    sys.stdout.write(
        f"From the address to the answer: {hand.clicks} clicks, {hand.keys} typed characters; a person takes about "
        f"{hand.seconds + took:.0f} s, of which the console takes {took:.0f} s.\n"
    )
    _take_picture(window, folder / "answer.png")
    window.visit_page(f"{site}/console/ask?stored=market_status")
    window.wait_for_script("return document.querySelector('#builder .branch .branch')")
    window.wait_for_script(_TOLD)
    window.run("document.getElementById('builder').querySelector('details').scrollIntoView({ behavior: 'instant' })")
    _take_picture(window, folder / "scorecard.png")
    window.run("const rate = document.querySelectorAll('#sliders input')[0]; rate.value = 185")
    window.run("document.querySelectorAll('#sliders input')[0].dispatchEvent(new Event('input'))")
    window.wait_for_script(_TOLD)
    window.click_on("#ask")
    _see_answer(window)
    _take_picture(window, folder / "bands.png")
    window.visit_page(f"{site}/console/history")
    _take_picture(window, folder / "history.png")
    window.run("localStorage.setItem('keyhole-theme', 'dark')")
    window.resize_window(*PHONE)
    window.visit_page(f"{site}/console/ask")
    window.wait_for_script(_TOLD)
    _take_picture(window, folder / "phone.png")


def _see_answer(window: Browser) -> None:
    window.wait_for_script(_DRAWN)
    window.wait_for_script("return !document.getElementById('ask').disabled")
    window.wait_for_script(_TOLD)
    window.wait_for_script(
        "return new Promise((still) => setTimeout(() => still(true), 1500))"
    )  # the page scrolls by itself
    window.run("window.scrollTo({ top: document.getElementById('answer').offsetTop - 12, behavior: 'instant' })")


def _take_picture(window: Browser, path: Path) -> None:
    window.wait_for_script(
        "return new Promise((drawn) => requestAnimationFrame(() => setTimeout(() => drawn(true), 400)))"
    )
    path.write_bytes(window.take_picture())


WALKS: dict[str, Callable[[Browser, str, Path], None]] = {
    "analyst": _walk_analyst,
    "owner": _walk_owner,
    "play": _walk_play,
}
"""Every walk by its name."""

if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, tuple(sys.argv[2:]) or tuple(WALKS))
