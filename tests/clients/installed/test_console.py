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

from deploy.superset.browser import Browser, open_browser
from proxy.cli import check as checking
from proxy.open_policy.service import Service
from proxy.process.serve import serve_in_background
from proxy.security import scram
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

[tables.houses]
public = true
relation = "houses.csv"
comment = '<u>houses</u>'

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
    path.write_text(POLICY.replace("VERIFIER", scram.make_verifier(PASSWORD)), encoding="utf-8")
    with duckdb.connect() as connection:  # forty visits to every second room of every ward
        ward = f"CASE w WHEN 0 THEN '{HOSTILE}' ELSE format('W{{:02d}}', w) END"
        connection.execute(
            f"COPY (SELECT {ward} AS ward, room, n AS age FROM range({SIDE}) wards(w), range({SIDE}) rooms(room), "
            f"range(40) visits(n) WHERE room % 2 = 0) TO '{folder / 'visits.csv'}' (HEADER)"
        )
        connection.execute(
            f"COPY (SELECT {ward} AS ward, format('wing {{}}', w % 3) AS wing, 10 * w AS beds "
            f"FROM range({SIDE}) wards(w)) TO '{folder / 'houses.csv'}' (HEADER)"
        )
    checking.check(path, confirm=False)
    with (
        Service.open(path) as service,
        serve_in_background(service, host="127.0.0.1", port=0, rest_port=0) as addresses,
    ):
        yield addresses.rest


@pytest.fixture
def window(site: str) -> Iterator[Browser]:
    """A browser in which ada has logged in."""
    with open_browser() as opened:
        opened.visit_page(f"{site}/")
        fill(opened, "[name=user]", "ada")
        fill(opened, "[name=password]", PASSWORD)
        opened.run("document.querySelector('form button').click()")
        opened.wait_for_script("return location.pathname === '/console/ask'")
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
    """Nothing was logged as an error but that questions were refused, and nothing was asked of anybody else."""
    refused = f"{site}/console/api/explain - Failed to load resource: the server responded with a status of 422 "
    assert [error for error in window.read_errors() if not error.startswith(refused)] == []
    loaded = window.run("return performance.getEntriesByType('resource').map((one) => one.name)")
    assert [address for address in loaded if not address.startswith(f"{site}/")] == []


def wait_for_price(window: Browser) -> str:
    """What the newest price is, once it is told."""
    window.wait_for_script("return document.getElementById('price').dataset.state === 'told'")
    return str(window.run("return document.querySelector('#price .figure').textContent"))


def find_faults(window: Browser) -> list[Any]:
    """What axe-core finds wrong with the page that is shown."""
    window.run(f"{AXE.read_text(encoding='utf-8')}; window.axe = axe; window.found = null;")
    window.run("axe.run(document).then((found) => { window.found = found.violations; })")
    window.wait_for_script("return window.found !== null")
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
    window.wait_for_script("return document.querySelector('#answer canvas')")
    table = window.run("return document.querySelector('#answer table').textContent")
    assert HOSTILE in table
    assert window.run("return document.querySelectorAll('img[src=x]').length") == 0
    assert "10,000 squares" in window.run("return document.getElementById('answer').textContent")
    window.visit_page(window.run("return location.origin") + "/console/history")
    assert "SELECT ward, room" in window.run("return document.body.textContent")


def test_keys_are_computed_and_numbers_shown_as_chosen(window: Browser) -> None:
    wait_for_price(window)
    click(window, "[data-focus='add + steps of a number']")
    fill(window, "[data-focus='computed 0 width']", "20")
    text = window.run("return document.getElementById('sql').value")
    assert text.split("\n")[0] == "SELECT ward, age / 20 * 20"
    wait_for_price(window)
    click(window, "[data-focus='key ward']")
    fill(window, "#sql", "SELECT age > 19, count(*) AS n\nFROM visits\nGROUP BY age > 19\nHAVING count(*) > 1000")
    window.run("document.querySelector('#sliders select').value = 'threshold'")
    window.run("document.querySelector('#sliders select').dispatchEvent(new Event('change'))")
    wait_for_price(window)
    click(window, "#ask")
    window.wait_for_script("return document.querySelector('#answer table')")
    rows = window.run("return [...document.querySelectorAll('#answer tbody tr')].map((one) => one.textContent)")
    assert sorted(rows) == ["false1001", "true1001"]


def test_sql_and_tree_follow_each_other(window: Browser) -> None:
    wait_for_price(window)
    fill(
        window,
        "#sql",
        "SELECT ward FROM visits GROUP BY ward HAVING (count(*) > 900 AND avg(age) > 3) OR sum(age) > 50",
    )
    window.wait_for_script("return document.querySelectorAll('#builder .test').length === 3")
    assert window.run("return document.querySelectorAll('#builder .branch.or > ul > li > .branch.and').length") == 1
    wait_for_price(window)
    window.run("document.querySelector(\"[data-focus='0 add']\").click()")
    text = window.run("return document.getElementById('sql').value")
    assert text.startswith(
        "SELECT ward\nFROM visits\nGROUP BY ward\nHAVING (count(*) > 900 AND avg(age) > 3) OR sum(age) > 50 OR "
    )
    wait_for_price(window)
    fill(window, "#sql", "SELECT true FROM visits HAVING count(*) > 900")
    window.wait_for_script("return !document.getElementById('unbuilt').hidden")
    assert "the whole table is one group" in window.run("return document.getElementById('unbuilt').textContent")
    wait_for_price(window)  # which is asked all the same
    fill(window, "#stored", "crowded")
    window.wait_for_script("return document.querySelector('#builder input.value')?.value === '1000'")
    wait_for_price(window)


ROUND_TRIPS = [
    "SELECT ward, count(*) > 900 AS many FROM visits GROUP BY ward",
    'SELECT sum(age) > 900 AND count(*) > 5 AS "old & <b>many</b>", ward FROM visits GROUP BY ward',
    "SELECT ward, CASE WHEN count(*) > 900 THEN 'it''s <b>full</b>' WHEN count(*) > 90 THEN 'usual' ELSE 'calm' END "
    "AS level FROM visits GROUP BY ward HAVING count(*) > 10",
    "SELECT ward, width_bucket(sum(age), ARRAY[500, 5000]) AS band, count(*) > 7 FROM visits GROUP BY ward",
    "SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC LIMIT 3",
    "SELECT ward, sum(age) > 900 AS old FROM visits GROUP BY ward HAVING count(*) > 10 "
    "ORDER BY count(*) FETCH FIRST ROW ONLY",
    "SELECT h.wing FROM visits v JOIN houses h ON h.ward = v.ward WHERE beds > 30 GROUP BY h.wing HAVING count(*) > 90",
    "SELECT wing, room FROM visits LEFT JOIN houses USING (ward) GROUP BY wing, room HAVING sum(beds) > 900",
    "SELECT ward FROM visits GROUP BY ward HAVING sum(age * age) > 90000 OR NOT count(*) > 900 AND sum(age - 5) > 2000",
    "SELECT ward FROM visits GROUP BY 1 HAVING 100.0 * count(*) FILTER (WHERE age > 65) / count(*) > 40",
    "SELECT ward FROM visits GROUP BY ward HAVING count(age) BETWEEN 900 AND 1000 OR count(DISTINCT room) > 30",
    "SELECT ward FROM visits WHERE age > 3 GROUP BY ward HAVING sum(age) > 0.1 * "
    "(SELECT sum(age) FROM visits WHERE age > 3)",
    "SELECT v.room FROM visits v GROUP BY v.room HAVING count(*) < "
    "(SELECT avg(n) FROM (SELECT v.room, count(*) AS n FROM visits v GROUP BY v.room) AS q)",
    "SELECT ward, room, count(*) > lag(count(*)) OVER (PARTITION BY ward ORDER BY room) AS more, "
    "NOT sum(age) > 1.5 * avg(sum(age)) OVER () AS low FROM visits GROUP BY ward, room",
]


def test_what_is_drawn_is_written_as_the_same_question(window: Browser) -> None:
    wait_for_price(window)
    for sql in ROUND_TRIPS:
        fill(window, "#sql", sql)
        window.run("document.getElementById('builder').replaceChildren()")  # what is there next is of this text
        window.wait_for_script("return document.querySelector('#builder [data-focus=where]')")
        window.run("document.querySelector('#builder [data-focus=where]').dispatchEvent(new Event('input'))")
        written = window.run("return document.getElementById('sql').value")
        assert written != sql
        plans = [_plan_of(window, text) for text in (sql, written)]
        assert plans[0] == plans[1], written
    assert window.run("return document.querySelectorAll('#builder b, #builder u').length") == 0
    window.wait_for_script("return document.getElementById('price').dataset.state !== 'asked'")


def _plan_of(window: Browser, sql: str) -> Any:
    """What EXPLAIN says of a question: what is the same for both is the same question, at the same price."""
    body = json.dumps({"sql": sql, "tolerance": "10%, count=50"})
    sent = f"{{ method: 'POST', headers: {{ 'Content-Type': 'application/json' }}, body: {json.dumps(body)} }}"
    window.run(
        f"window.plan = null; fetch('/console/api/explain', {sent})"
        ".then((told) => told.json()).then((told) => { window.plan = told; })"
    )
    window.wait_for_script("return window.plan !== null")
    plan = window.run("return window.plan")
    assert "question_id" in plan, plan
    return plan


def test_a_test_is_compared_with_other_groups_by_choosing(window: Browser) -> None:
    wait_for_price(window)
    fill(window, "[data-focus='0.0 against']", "average")
    assert window.run("return document.getElementById('sql').value").endswith(
        "HAVING count(*) > 1 * (SELECT avg(n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) AS q)"
    )
    wait_for_price(window)
    fill(window, "[data-focus='0.0 fn']", "avg")
    assert window.run("return document.getElementById('sql').value").endswith("HAVING avg(age) > 100")
    click(window, "#builder [aria-label='Remove the test']")
    click(window, "[data-focus='key room']")
    window.run("document.querySelector('[data-focus=more]').parentElement.open = true")
    click(window, "[data-focus='add formula']")
    fill(window, "[data-focus='c0.0 against']", "before")
    assert window.run("return document.getElementById('sql').value").split("\n")[1] == (
        "       count(*) > 1.2 * lag(count(*)) OVER (PARTITION BY ward ORDER BY room) AS yes"
    )
    wait_for_price(window)


def test_a_scorecard_a_ranking_and_a_join_are_built_by_clicking(window: Browser) -> None:
    wait_for_price(window)
    window.run("document.querySelector('[data-focus=more]').parentElement.open = true")
    click(window, "[data-focus='add join houses']")
    click(window, "[data-focus='key houses.wing']")
    click(window, "[data-focus='key ward']")
    click(window, "[data-focus='add words']")
    click(window, "[data-focus='add bucket']")
    fill(window, "[data-focus='c0 name']", "level")
    fill(window, "[data-focus='c1 cuts']", "100, 2000")
    assert window.run("return document.getElementById('sql').value").split("\n")[:4] == [
        "SELECT houses.wing,",
        "       CASE WHEN count(*) > 100 THEN 'high' ELSE 'low' END AS level,",
        "       width_bucket(count(*), ARRAY[100, 2000]) AS band",
        "FROM visits",
    ]
    wait_for_price(window)
    assert window.run("return document.querySelector('#picture img').alt").startswith("A")
    click(window, "#ask")
    window.wait_for_script("return document.querySelector('#answer table')")
    assert "level" in window.run("return document.querySelector('#answer thead').textContent")
    click(window, "[data-focus='ranking']")
    wait_for_price(window)  # without a tolerance it has a fixed one
    assert "ORDER BY count(*) DESC LIMIT 5" in window.run("return document.getElementById('sql').value")
    if AXE.is_file():
        assert find_faults(window) == []
    window.resize_window(400, 800)
    assert window.run("return document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_every_page(window: Browser, site: str, theme: str) -> None:
    window.run(f"localStorage.setItem('keyhole-theme', '{theme}')")
    for page in PAGES:
        window.visit_page(site + page)
        if page == "/console/ask":
            wait_for_price(window)
            click(window, "#ask")
            window.wait_for_script("return document.querySelector('#answer table')")
        assert find_faults(window) == [], page
        window.resize_window(400, 800)
        assert window.run("return document.documentElement.scrollWidth <= window.innerWidth"), page
        window.resize_window(1280, 800)


def test_whoever_tabs_may_skip_to_the_content_first(window: Browser) -> None:
    first = "document.querySelector('a, button, input, select')"
    assert window.run(f"return {first}.textContent") == "Skip to the content"
    assert window.run(f"return document.querySelector({first}.getAttribute('href')).tagName") == "MAIN"
