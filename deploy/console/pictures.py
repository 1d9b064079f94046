"""Pictures of the console for the documents: `python -m deploy.console.pictures [FOLDER]`.

A demo is served on loopback, a headless Chromium walks as docs/console.md does, and each step becomes a small PNG.
"""

import json
import sys
import tempfile
from pathlib import Path

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


def take_pictures(folder: Path) -> None:
    """Walk through the console and write a picture of each step into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="keyhole-pictures-") as directory:
        policy = build.install(Path(directory))
        checking.check(policy, confirm=False)
        with (
            Service.open(policy) as service,
            in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
            browser() as window,
        ):
            _walk(window, addresses.rest, folder)


def _walk(window: Browser, site: str, folder: Path) -> None:
    window.resize(WIDTH, HEIGHT)
    window.visit(f"{site}/console/login")
    for name, value in (("user", USER), ("password", PASSWORD)):
        window.run(f"document.querySelector('[name={name}]').value = {json.dumps(value)}")
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


if __name__ == "__main__":
    take_pictures(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
