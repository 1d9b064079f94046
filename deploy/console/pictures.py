"""Pictures of the console for the documents: `python -m deploy.console.pictures [FOLDER [WALK ...]]`.

A demo is served on loopback, a headless Chromium walks as docs/console.md does, and each step becomes a small PNG. The
walks are `analyst`, `owner` and `play`.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import httpx

from deploy.demo import build
from deploy.superset.browser import Browser, browser
from proxy.cli import check as checking
from proxy.cli.demo import PASSWORD, USER
from proxy.process.serve import in_background
from proxy.service.service import Service

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "console"
WIDTH, HEIGHT = 1180, 940
PHONE = (420, 860)
QUESTION = """SELECT country, month
FROM sales
GROUP BY country, month
HAVING count(DISTINCT customer_id) > 20 OR sum(amount) > 20000"""
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
        with served(MORE if name != "analyst" else "") as (_, site), browser() as window:
            WALKS[name](window, site, folder)


@contextmanager
def served(more: str) -> Iterator[tuple[Service, str]]:
    """A demo of its own and its address; where its policy says `more`, it lets no dear question pass unseen."""
    with tempfile.TemporaryDirectory(prefix="keyhole-pictures-") as directory:
        policy = build.install(Path(directory))
        text = policy.read_text(encoding="utf-8")
        policy.write_text(text.replace("[budget]\n", BUDGET if more else "[budget]\n") + more, encoding="utf-8")
        checking.check(policy, confirm=False)
        with (
            Service.open(policy) as service,
            in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
        ):
            yield service, addresses.rest


def log_owner_in(window: Browser, site: str) -> None:
    """Log the demo's owner in."""
    _log_in(window, site, {"token": OWNER_TOKEN}, "/console/owner")
    window.run("document.querySelector('main form button').click()")
    window.wait_for("return location.pathname === '/console/owner'")


def _log_in(window: Browser, site: str, fields: Mapping[str, str], place: str) -> None:
    window.resize(WIDTH, HEIGHT)
    window.visit(site + place)
    for name, value in fields.items():
        window.run(f"document.querySelector('[name={name}]').value = {json.dumps(value)}")


def _walk_owner(window: Browser, site: str, folder: Path) -> None:
    for sql, tolerance in ASKED:
        bearer = {"Authorization": f"Bearer {PASSWORD}"}
        httpx.post(f"{site}/v1/question", json={"sql": sql, "tolerance": tolerance}, headers=bearer, timeout=300)
    log_owner_in(window, site)
    _take(window, folder / "owner.png")
    window.visit(f"{site}/console/owner/approvals")
    _take(window, folder / "approvals.png")
    window.visit(f"{site}/console/owner/budget")
    window.wait_for("return document.querySelectorAll('#map canvas, #burn canvas').length === 2")
    _take(window, folder / "budget.png")
    window.visit(f"{site}/console/owner/risk")
    window.run("document.querySelector('details').open = true")
    for name, value in (("prior", PRIOR), ("known1", "country\nGermany\nFrance\n")):
        window.run(f"document.querySelector('[name={name}]').value = {json.dumps(value)}")
    window.run("document.querySelector('main form button.primary').click()")
    found = "[...document.querySelectorAll('h2')].find((one) => one.textContent.startsWith('What attackers'))"
    window.wait_for(f"return {found}")
    window.run(f"window.scrollTo({{ top: {found}.offsetTop - 12, behavior: 'instant' }})")
    _take(window, folder / "risk.png")


def _walk_play(window: Browser, site: str, folder: Path) -> None:
    _log_in(window, site, {"user": USER, "password": PASSWORD}, "/console/login?next=/console/play")
    window.run("document.querySelector('form button').click()")
    window.wait_for("return document.querySelector('#begin button')")
    window.run("document.querySelector('[name=name]').value = 'Ada'")
    window.run("document.querySelector('[name=seed]').value = '3'")
    window.run("document.querySelector('#begin button').click()")
    window.wait_for(
        "return document.querySelector('#series canvas') && document.querySelectorAll('.tile').length === 64"
    )
    _take(window, folder / "play.png")
    window.visit(f"{site}/console/play/attack")
    window.wait_for("return document.querySelectorAll('#beliefs canvas, #classes canvas').length === 2")
    _take(window, folder / "attack.png")
    window.visit(f"{site}/console/play/slider")
    window.wait_for("return document.querySelector('#tasks tbody td') && document.querySelector('#curve canvas')")
    window.run("document.getElementById('more').click()")
    window.wait_for("return document.querySelectorAll('#ways tbody tr').length === 8")
    window.wait_for("return new Promise((still) => setTimeout(() => still(true), 20000))")  # the curve has seven points
    window.run("window.scrollTo({ top: document.getElementById('curve').offsetTop - 720, behavior: 'instant' })")
    _take(window, folder / "slider.png")


def _walk_analyst(window: Browser, site: str, folder: Path) -> None:
    _log_in(window, site, {"user": USER, "password": PASSWORD}, "/console/login")
    _take(window, folder / "login.png")
    window.run("document.querySelector('form button').click()")
    window.wait_for(_TOLD)
    _ask(window, QUESTION)
    _take(window, folder / "ask.png")
    window.run("document.querySelector('#price li button').click()")  # the first setting with which it fits
    window.wait_for(_TOLD)
    _see_answer(window)
    _take(window, folder / "answer.png")
    window.visit(f"{site}/console/ask?stored=market_status")
    window.wait_for(_TOLD)
    window.run("const rate = document.querySelectorAll('#sliders input')[0]; rate.value = 185")
    window.run("document.querySelectorAll('#sliders input')[0].dispatchEvent(new Event('input'))")
    window.wait_for(_TOLD)
    _see_answer(window)
    _take(window, folder / "bands.png")
    window.visit(f"{site}/console/history")
    _take(window, folder / "history.png")
    window.run("localStorage.setItem('keyhole-theme', 'dark')")
    window.resize(*PHONE)
    window.visit(f"{site}/console/ask")
    window.wait_for(_TOLD)
    _take(window, folder / "phone.png")


def _ask(window: Browser, text: str) -> None:
    window.run(f"const text = document.getElementById('sql'); text.value = {json.dumps(text)}")
    window.run("document.getElementById('sql').dispatchEvent(new Event('input'))")
    window.wait_for("return document.querySelectorAll('#builder .test').length === 2")
    window.wait_for(_TOLD)
    window.wait_for("return document.querySelector('#cheaper button')")


def _see_answer(window: Browser) -> None:
    window.run("document.getElementById('ask').click()")
    window.wait_for(_DRAWN)
    window.wait_for("return !document.getElementById('ask').disabled")
    window.wait_for(_TOLD)
    window.wait_for("return new Promise((still) => setTimeout(() => still(true), 1500))")  # the page scrolls by itself
    window.run("window.scrollTo({ top: document.getElementById('answer').offsetTop - 12, behavior: 'instant' })")


def _take(window: Browser, path: Path) -> None:
    window.wait_for("return new Promise((drawn) => requestAnimationFrame(() => setTimeout(() => drawn(true), 400)))")
    path.write_bytes(window.picture())


WALKS: dict[str, Callable[[Browser, str, Path], None]] = {
    "analyst": _walk_analyst,
    "owner": _walk_owner,
    "play": _walk_play,
}
"""Every walk by its name."""

if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, tuple(sys.argv[2:]) or tuple(WALKS))
