"""The page of a monitor in a real browser: an alert arrives while somebody looks, and none is lost or told twice where
the stream breaks off and the browser comes back by itself."""

import re
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.superset.browser import Browser, open_browser
from tests.clients.installed.test_console import AXE, check_quiet, fill, find_faults
from tests.worlds.alerted import TOKENS, Watch, alerted, start
from tests.worlds.house import House, new_database

pytestmark = pytest.mark.skipif(
    not ((shutil.which("chromium") or shutil.which("google-chrome")) and shutil.which("chromedriver")),
    reason="needs chromium and chromedriver",
)
_ROWS = "[...document.querySelectorAll('#alerts tbody tr')].map((row) => row.cells[0].textContent)"
_NEWS = "[...document.querySelectorAll('#news li')].map((item) => item.textContent)"


class BreakingLine:
    """Carries connections to a server, keeps what was asked over them, and can break them all off."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.asked = b""
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._ends += [near, far]
            threading.Thread(target=self._carry, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(far, near, False), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, asks: bool) -> None:
        try:
            while piece := source.recv(65536):
                self.asked += piece if asks else b""
                target.sendall(piece)
        except OSError:
            pass
        finally:
            for end in (source, target):
                end.close()

    def break_off(self) -> None:
        """End every connection; new ones are carried again."""
        for end in self._ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        self._listening.close()
        self.break_off()


@pytest.fixture
def line(house: House) -> Iterator[BreakingLine]:
    line = BreakingLine(house.addresses.rest_port)
    yield line
    line.close()


@pytest.fixture
def house(postgres_url: str, tmp_path: Path) -> Iterator[House]:
    with new_database(postgres_url) as url, alerted(tmp_path, url) as house:
        yield house


@pytest.fixture
def crowded(house: House) -> Watch:
    """One alert at the third look."""
    watch = start(house.service, "crowded")
    watch.look(3, {0: ("A",)})
    return watch


@pytest.fixture
def window(line: BreakingLine, crowded: Watch) -> Iterator[Browser]:
    """A browser in which ada has opened the monitor."""
    site = f"http://127.0.0.1:{line.port}"
    with open_browser() as opened:
        opened.visit_page(f"{site}/console/login?next=%2Fconsole%2Fmonitors%2Fcrowded")
        opened.run("document.querySelector('details').open = true")
        fill(opened, "[name=token]", TOKENS["ada"])
        opened.run("document.querySelector('details form button').click()")
        opened.wait_for_script("return document.getElementById('live')?.textContent === 'live'")
        yield opened
        check_quiet(opened, site)


def test_an_alert_arrives_while_somebody_looks(window: Browser, crowded: Watch) -> None:
    assert window.run(f"return {_ROWS}") == ["A"]
    crowded.look(9, {0: ("B",)})
    window.wait_for_script(f"return {_ROWS}.length === 2")
    assert window.run(f"return {_ROWS}") == ["B", "A"]
    assert window.run(f"return {_NEWS}") == ["B / 2126-01-01: alerted at look 9"]
    window.wait_for_script("return document.getElementById('look').textContent === '9'")
    if AXE.is_file():
        assert find_faults(window) == []
    crowded.pause("the nurses move")
    window.wait_for_script("return document.getElementById('state').textContent === 'paused'")
    assert "paused: the nurses move" in window.run(f"return {_NEWS}[0]")
    crowded.end("enough")
    window.wait_for_script("return document.getElementById('live').textContent === 'ended'")


def test_a_stream_that_breaks_off_goes_on_where_it_was(window: Browser, line: BreakingLine, crowded: Watch) -> None:
    crowded.look(9, {0: ("B",)})
    window.wait_for_script(f"return {_ROWS}.length === 2")
    before = line.asked
    line.break_off()
    crowded.look(10, {0: ("C",)})
    window.wait_for_script(f"return {_ROWS}.length === 3")
    window.wait_for_script("return document.getElementById('live').textContent === 'live'")
    assert window.run(f"return {_NEWS}") == ["C / 2126-01-01: alerted at look 10", "B / 2126-01-01: alerted at look 9"]
    assert b"Last-Event-ID" not in before
    assert re.findall(rb"Last-Event-ID: ([^\r]+)", line.asked[len(before) :])[0].startswith(b"9")
    assert [error for error in window.read_errors() if "net::ERR_" not in error] == []  # it logs that it lost the line
