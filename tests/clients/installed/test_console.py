"""The console in a real browser: an analyst logs in, builds, sees the price, asks and sees, and all can use its pages.

Chromium and its driver come from apt, axe-core from npm: what is missing skips its tests. Whatever a page logs as an
error, which includes every violation of its policy, fails its test, and so does a request to anywhere else.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from deploy.superset.browser import Browser, browser
from proxy.cli import check as checking
from proxy.process.serve import in_background
from proxy.service.service import Service
from proxy.wire import scram
from tests.worlds.wards import PASSWORD

HOSTILE = "<img src=x onerror=alert(1)>{a|b}"
SIDE = 100  # values of each of two keys: a map of 10,000 squares
POLICY = f"""
[source]
url = "duckdb://"

[budget]
epsilon_per_predicate = 40.0
epsilon_per_query = 4.0

[tables.visits]
relation = "visits.csv"
privacy_unit = "row"
refresh = "static"
comment = '<b>visits</b> & more'

[tables.visits.columns.ward]
key = {{ values = ["{HOSTILE}", {", ".join(f'"W{number:02}"' for number in range(1, SIDE))}] }}

[tables.visits.columns.room]
key = {{ range = [0, {SIDE - 1}] }}

[tables.visits.columns.age]
bounds = [0, 110]

[views.crowded]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000"
comment = '<i>crowded</i>'

[analysts.ada]
password = "VERIFIER"
"""
AXE = Path(os.environ.get("KEYHOLE_NODE_MODULES", "node_modules")) / "axe-core" / "axe.min.js"
PAGES = ("/console/login", "/console/ask", "/console/tables", "/console/history", "/console/monitors")

pytestmark = pytest.mark.skipif(
    not ((shutil.which("chromium") or shutil.which("google-chrome")) and shutil.which("chromedriver")),
    reason="needs chromium and chromedriver",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("console")
    path = folder / "keyhole.toml"
    path.write_text(POLICY.replace("VERIFIER", scram.verifier(PASSWORD)), encoding="utf-8")
    with duckdb.connect() as connection:  # forty visits to every second room of every ward
        ward = f"CASE w WHEN 0 THEN '{HOSTILE}' ELSE format('W{{:02d}}', w) END"
        connection.execute(
            f"COPY (SELECT {ward} AS ward, room, n AS age FROM range({SIDE}) wards(w), range({SIDE}) rooms(room), "
            f"range(40) visits(n) WHERE room % 2 = 0) TO '{folder / 'visits.csv'}' (HEADER)"
        )
    checking.check(path, confirm=False)
    with (
        Service.open(path) as service,
        in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
    ):
        yield addresses.rest


@pytest.fixture
def window(site: str) -> Iterator[Browser]:
    """A browser in which ada has logged in."""
    with browser() as opened:
        opened.visit(f"{site}/")
        fill(opened, "[name=user]", "ada")
        fill(opened, "[name=password]", PASSWORD)
        opened.run("document.querySelector('form button').click()")
        opened.wait_for("return location.pathname === '/console/ask'")
        yield opened
        check_quiet(opened, site)


def fill(window: Browser, selector: str, text: str) -> None:
    """Put text into a field, as typing it does."""
    window.run(
        f"const field = document.querySelector({json.dumps(selector)}); field.value = {json.dumps(text)};"
        "field.dispatchEvent(new Event('input', { bubbles: true })); field.dispatchEvent(new Event('change'));"
    )


def click(window: Browser, selector: str) -> None:
    window.run(f"document.querySelector({json.dumps(selector)}).click()")


def check_quiet(window: Browser, site: str) -> None:
    """Nothing was logged as an error, and nothing was asked of anybody else."""
    assert window.errors() == []
    loaded = window.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert [address for address in loaded if not address.startswith(f"{site}/")] == []


def wait_for_price(window: Browser) -> str:
    """What the newest price is, once it is told."""
    window.wait_for("return document.getElementById('price').dataset.state === 'told'")
    return str(window.run("return document.querySelector('#price .figure').textContent"))


def find_faults(window: Browser) -> list[Any]:
    """What axe-core finds wrong with the page that is shown."""
    window.run(f"{AXE.read_text(encoding='utf-8')}; window.axe = axe; window.found = null;")
    window.run("axe.run(document).then((found) => { window.found = found.violations; })")
    window.wait_for("return window.found !== null")
    shown = "window.found.map((one) => [one.id, one.nodes.map((node) => node.html).slice(0, 3)])"
    return list(window.run(f"return {shown}"))


def test_an_analyst_builds_a_question_sees_its_price_asks_and_sees(window: Browser) -> None:
    first = wait_for_price(window)
    click(window, "[data-focus='key room']")
    fill(window, "#builder input.value", "20")
    assert window.run("return document.getElementById('sql').value").split("\n")[0] == "SELECT ward, room"
    window.run("document.querySelector('#sliders input').value = 190")
    window.run("document.querySelector('#sliders input').dispatchEvent(new Event('input'))")
    assert wait_for_price(window) != first
    click(window, "#ask")
    window.wait_for("return document.querySelector('#answer canvas')")
    table = window.run("return document.querySelector('#answer table').textContent")
    assert HOSTILE in table
    assert window.run("return document.querySelectorAll('img[src=x]').length") == 0
    assert "10,000 squares" in window.run("return document.getElementById('answer').textContent")
    window.visit(window.run("return location.origin") + "/console/history")
    assert "SELECT ward, room" in window.run("return document.body.textContent")


def test_sql_and_tree_follow_each_other(window: Browser) -> None:
    wait_for_price(window)
    fill(
        window,
        "#sql",
        "SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 900 AND avg(age) > 3) OR sum(age) > 50",
    )
    window.wait_for("return document.querySelectorAll('#builder .test').length === 3")
    assert window.run("return document.querySelectorAll('#builder .branch.or > ul > li > .branch.and').length") == 1
    wait_for_price(window)
    window.run("document.querySelector(\"[data-focus='0 add']\").click()")
    text = window.run("return document.getElementById('sql').value")
    assert text.startswith(
        "SELECT ward\nFROM visits\nGROUP BY ward\nHAVING (count(*) > 900 AND avg(age) > 3) OR sum(age) > 50 OR "
    )
    wait_for_price(window)
    fill(window, "#sql", "SELECT ward, count(*) > 900 AS many FROM visits GROUP BY ward")
    window.wait_for("return !document.getElementById('unbuilt').hidden")
    fill(window, "#stored", "crowded")
    window.wait_for("return document.querySelector('#builder input.value')?.value === '1000'")
    wait_for_price(window)


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_every_page(window: Browser, site: str, theme: str) -> None:
    window.run(f"localStorage.setItem('keyhole-theme', '{theme}')")
    for page in PAGES:
        window.visit(site + page)
        if page == "/console/ask":
            wait_for_price(window)
            click(window, "#ask")
            window.wait_for("return document.querySelector('#answer table')")
        assert find_faults(window) == [], page
        window.resize(400, 800)
        assert window.run("return document.documentElement.scrollWidth <= window.innerWidth"), page
        window.resize(1280, 800)


def test_whoever_tabs_may_skip_to_the_content_first(window: Browser) -> None:
    first = "document.querySelector('a, button, input, select')"
    assert window.run(f"return {first}.textContent") == "Skip to the content"
    assert window.run(f"return document.querySelector({first}.getAttribute('href')).tagName") == "MAIN"
