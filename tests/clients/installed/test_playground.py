"""The playground in a real browser: a round is played, the truth is drawn, and the leader board knows the player."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.superset.browser import Browser, open_browser
from proxy.cli import check as checking
from tests.clients.installed.test_console import AXE, check_quiet, click, fill, find_faults, pytestmark
from tests.worlds.wards import install

__all__ = ["pytestmark"]  # without chromium and chromedriver there is nothing to try

NAME = "<img src=x onerror=alert(1)> & Ada"
KEYHOLE = Path(sys.executable).parent / "keyhole"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What `keyhole play` prints, without the path."""
    with _played(tmp_path_factory.mktemp("play")) as address:
        yield address.removesuffix("/console/play")


@pytest.fixture(scope="module")
def own_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, with its key, of a playground that also has a table of the owner's own."""
    path = install(tmp_path_factory.mktemp("wards"))
    checking.check(path, confirm=False)
    named = ["--policy", str(path), "--table", "visits", "--place", "ward", "--time", "day"]
    with _played(tmp_path_factory.mktemp("own"), *named) as address:
        yield address


@contextmanager
def _played(folder: Path, *arguments: str) -> Iterator[str]:
    """The address that `keyhole play` prints, run in a folder."""
    started = subprocess.Popen(
        [KEYHOLE, "play", "--port", "0", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert started.stdout is not None
        said = started.stdout.readline()
        assert said.startswith("the playground is at http://127.0.0.1:"), said
        yield said.split()[4].removesuffix(";")
    finally:
        started.terminate()
        started.wait(timeout=60)
        if started.stdout is not None:
            started.stdout.close()


@pytest.fixture
def window(site: str) -> Iterator[Browser]:
    with open_browser() as opened:
        opened.visit_page(f"{site}/")
        yield opened
        check_quiet(opened, site)


def _begin(window: Browser) -> None:
    fill(window, "[name=name]", NAME)
    fill(window, "[name=seed]", "3")
    click(window, "#begin button")
    window.wait_for_script("return document.querySelector('#answer button.primary')")
    window.wait_for_script(
        "return document.querySelector('#series canvas') && document.querySelectorAll('.tile').length === 64"
    )


def _answer(window: Browser) -> None:
    window.run(
        "for (const field of document.querySelectorAll('#answer input'))"
        "  field.value = field.type === 'time' ? '10:00' : '18';"
    )
    click(window, "#answer button.primary")
    window.wait_for_script("return document.querySelector('#feedback canvas')")


def test_one_round_from_the_start_to_the_leader_board(window: Browser) -> None:
    _begin(window)
    assert window.run("return document.getElementById('task-text').textContent").endswith(("?", "."))
    _answer(window)
    told = window.run("return document.getElementById('feedback').textContent")
    assert "the truth is" in told
    assert "Keyhole's answer" in told
    click(window, "#end")
    window.wait_for_script("return document.querySelector('#board tbody tr')")
    assert NAME in window.run("return document.getElementById('board').textContent")
    assert window.run("return document.querySelectorAll('img[src=x]').length") == 0
    assert "seed was 3" in window.run("return document.getElementById('feedback').textContent")


def test_an_attacker_and_the_slider_tell_what_they_found(window: Browser, site: str) -> None:
    window.visit_page(f"{site}/console/play/attack?seed=3&attacker=student")
    window.wait_for_script(
        "return document.querySelector('#beliefs canvas') && document.getElementById('raised').textContent"
    )
    window.visit_page(f"{site}/console/play/slider?seed=3&exponent=0")
    window.wait_for_script("return document.getElementById('policy').textContent.includes('[monitors.crowded]')")
    assert window.run("return document.getElementById('epsilon-shown').textContent") == "1"
    assert window.run("return document.querySelectorAll('#tasks tbody tr').length") == 5
    click(window, "#more")
    window.wait_for_script("return document.querySelectorAll('#ways tbody tr').length === 8", timeout_s=600)


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_the_playground(window: Browser, site: str, theme: str) -> None:
    window.run(f"localStorage.setItem('keyhole-theme', '{theme}')")
    for part, ready in (
        ("", "document.getElementById('begin')"),
        ("/rules", "document.querySelector('table')"),
        ("/attack", "document.querySelector('#classes canvas')"),
        ("/slider", "document.querySelector('#curve canvas')"),
    ):
        window.visit_page(f"{site}/console/play{part}")
        window.wait_for_script(f"return {ready}")
        assert find_faults(window) == [], part
        window.resize_window(400, 800)
        assert window.run("return document.documentElement.scrollWidth <= window.innerWidth"), part
        window.resize_window(1280, 800)
    window.visit_page(f"{site}/console/play")
    _begin(window)
    assert find_faults(window) == []
    _answer(window)
    assert find_faults(window) == []


def test_an_owner_guesses_and_sees_the_truth_of_a_table_of_their_own(own_address: str) -> None:
    site = own_address.partition("/console")[0]
    with open_browser() as window:
        window.visit_page(own_address)
        window.wait_for_script("return document.querySelector('#series canvas')")
        assert window.run("return location.pathname + location.search") == "/console/play/own"
        assert "OWNER ONLY" in window.run("return document.querySelector('.problem').textContent")
        fill(window, "[name=threshold]", "20")
        window.run("const way = document.querySelector('[name=way]'); way.value = 'keyhole'")
        window.run("const range = document.querySelector('[name=exponent]'); range.value = '0'")
        window.run("document.getElementById('choose').dispatchEvent(new Event('input'))")
        window.wait_for_script("return document.querySelectorAll('#keys .chip').length === 28")
        fill(window, "[name=guess]", "27")
        click(window, "#guess button.primary")
        window.wait_for_script("return document.querySelectorAll('#ways tbody tr').length === 5")
        assert "28 of 28" in window.run("return document.getElementById('verdict').textContent")
        assert "off by 1" in window.run("return document.getElementById('verdict').textContent")
        window.resize_window(400, 800)
        assert window.run("return document.documentElement.scrollWidth <= window.innerWidth")
        if AXE.is_file():
            assert find_faults(window) == []
        check_quiet(window, site)
