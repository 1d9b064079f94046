"""A headless Chromium, driven by the WebDriver protocol through chromedriver; needs nothing but these two programs."""

import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

WIDTH, HEIGHT = 1280, 800
_QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    f"--window-size={WIDTH},{HEIGHT}",
)


def find_free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


class Browser:
    """One window. `session` is the URL of a WebDriver session."""

    def __init__(self, session: str) -> None:
        self._session = session

    def visit_page(self, url: str) -> None:
        """Load a page."""
        self._call_driver("POST", "/url", {"url": url})

    def add_cookie(self, name: str, value: str) -> None:
        """Set a cookie for the page that is open."""
        self._call_driver("POST", "/cookie", {"cookie": {"name": name, "value": value, "path": "/"}})

    def run(self, script: str) -> Any:
        """Return the result of a script of the page."""
        return self._call_driver("POST", "/execute/sync", {"script": script, "args": []})

    def click_on(self, selector: str) -> None:
        """Scroll to an element and click on it. The driver fails if another element covers it."""
        self._call_driver("POST", f"/element/{self._find_element(selector)}/click", {})

    def type_into(self, selector: str, text: str) -> None:
        """Type into a field, key by key."""
        self._call_driver("POST", f"/element/{self._find_element(selector)}/value", {"text": text})

    def _find_element(self, selector: str) -> str:
        found = self._call_driver("POST", "/element", {"using": "css selector", "value": selector})
        return str(next(iter(found.values())))

    def wait_for_script(self, script: str, *, timeout_s: float = 120.0) -> None:
        """Wait until a script of the page returns something true. Raises TimeoutError with the page's text."""
        deadline = time.monotonic() + timeout_s
        while not self.run(script):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{script} never became true; the page says: {self.run(_TEXT)[:2000]}")
            time.sleep(0.5)

    def resize_window(self, width: int, height: int) -> None:
        """Set the window's width and height, in pixels."""
        self._call_driver("POST", "/window/rect", {"width": width, "height": height})

    def read_errors(self) -> list[str]:
        """Return the console errors of pages since the last call.

        Loads that the pages' Content-Security-Policy forbids are among them.
        """
        logged = self._call_driver("POST", "/se/log", {"type": "browser"})
        return [str(one["message"]) for one in logged if one["level"] == "SEVERE"]

    def take_picture(self) -> bytes:
        """Return the window as PNG."""
        return base64.b64decode(self._call_driver("GET", "/screenshot", None))

    def _call_driver(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        return _call_webdriver(method, self._session + path, body)


_TEXT = "return document.body.innerText"


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Open a browser for the block. Raise FileNotFoundError if Chromium or its driver is missing."""
    chromium, driver = _find_program("chromium", "google-chrome", "chrome"), _find_program("chromedriver")
    port = find_free_port()
    with tempfile.TemporaryDirectory(prefix="keyhole-browser-") as profile:
        process = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            root = f"http://127.0.0.1:{port}"
            _wait_for_driver(f"{root}/status")
            options = {"binary": chromium, "args": [*_QUIET, f"--user-data-dir={profile}"]}
            wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
            session = f"{root}/session/{_call_webdriver('POST', f'{root}/session', wanted)['sessionId']}"
            try:
                yield Browser(session)
            finally:
                _call_webdriver("DELETE", session, None)
        finally:
            process.terminate()
            process.wait()


def _find_program(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    raise FileNotFoundError(f"{' or '.join(names)} is needed for screenshots: apt-get install chromium chromium-driver")


def _wait_for_driver(url: str) -> None:
    for _ in range(100):
        try:
            if _call_webdriver("GET", url, None)["ready"]:
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("chromedriver did not start")


def _call_webdriver(method: str, url: str, body: Mapping[str, Any] | None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(error.read().decode()[:2000]) from None
