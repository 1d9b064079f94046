"""`make superset`: Apache Superset over the demo, from an empty folder to three screenshots.

Connects, lists what is there, asks in SQL Lab, draws dashboards of a stored question, a scorecard and a ranking, and
says at every step what Keyhole's ledger made of it. Everything listens on loopback and is stopped at the end.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from deploy.demo.build import install_demo
from deploy.superset.browser import Browser, find_free_port, open_browser
from deploy.superset.superset_api import SupersetApi, SupersetError

T = TypeVar("T")
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
USER = "admin"
DASHBOARD = "Busy markets"
SCORECARD_DASHBOARD = "Scorecard"
# Wider tolerances than a stored question's, and noise of its own: what the demo's scorecard is asked with.
SCORECARD_OPTIONS = "-c keyhole.tolerance=65% -c keyhole.reuse=off"
SCORECARD = """SELECT country, month,
  width_bucket(sum(amount), ARRAY[20000, 40000, 80000]) AS sales,
  width_bucket(count(DISTINCT customer_id), ARRAY[20, 40, 80]) AS customers
FROM sales
GROUP BY country, month"""
# A ranking's tolerance is an amount: countries whose sales are closer may stand in either order.
RANKING_OPTIONS = "-c keyhole.tolerance=sum(amount)=20000"
RANKING = """SELECT country, 6 - row_number() OVER () AS points
FROM (
  SELECT country FROM sales GROUP BY country ORDER BY sum(amount) DESC LIMIT 5
) AS best"""
QUESTION = """SET keyhole.tolerance = '35%';
SELECT country, month
FROM sales
GROUP BY country, month
HAVING count(DISTINCT customer_id) > 20
   AND sum(amount) > 10000
ORDER BY country, month"""
TOO_MUCH = "SELECT country, count(*) FROM sales GROUP BY country"
LARGE = "SUM(amount) > 500000"
OPEN_SCHEMA = """
const found = [...document.querySelectorAll('[role=treeitem], .ant-tree-treenode, [data-test] span, span')]
  .filter(node => node.innerText && node.innerText.trim() === 'public' && node.getBoundingClientRect().top > 160);
found[found.length - 1].click();"""
SPENT = "SELECT max(spent_at_most) AS spent FROM keyhole.budget WHERE scope = 'unit'"


@dataclass(frozen=True, slots=True)
class Server:
    """A process that was started, and the file that it writes to."""

    process: subprocess.Popen[bytes]
    log: Path

    def read_log(self) -> str:
        """Return the text written so far."""
        return self.log.read_text(encoding="utf-8")


def main() -> None:
    """Read the command line and run the show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--superset", type=Path, required=True, help="the bin folder of Superset's own environment")
    parser.add_argument("--pictures", type=Path, default=ROOT / "docs" / "bi", help="where the screenshots go")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="keyhole-superset-") as folder, ExitStack() as running:
        database = running.enter_context(serve_keyhole(Path(folder) / "demo"))
        url = running.enter_context(serve_superset(given.superset.resolve(), Path(folder) / "superset"))
        run_show(SupersetApi(url, user=USER, password=USER), database, pictures=given.pictures)


def run_show(api: SupersetApi, database_url: str, *, pictures: Path) -> None:
    """Serve Keyhole's data through Superset, print each step, and save pictures of the pages in a folder."""
    database = api.connect("Keyhole", url=database_url, options="-c keyhole.fnr=0.04")
    print_step("Connected", "schemas", ", ".join(api.list_schemas(database)))
    for name, kind in api.list_relations(database, "public"):
        columns = api.list_columns(database, "public", name)
        print_step(f"  {kind} {name}", "columns", ", ".join(f"{column} {declared}" for column, declared, _ in columns))

    rows = api.run_in_sql_lab(database, QUESTION)
    print_step("SQL Lab", f"{len(rows)} keys pass; spent at most", read_largest_loss(api, database))
    try:
        api.run_in_sql_lab(database, TOO_MUCH)
        raise SystemExit("an aggregate over a private table was answered")
    except SupersetError as refused:
        print_step("An aggregate over a private table", "refused with", find_code(refused))

    dataset, dashboard = api.make_dataset(database, "public", "busy_markets"), api.make_dashboard(DASHBOARD)
    first = api.read_chart_data(dataset, columns=["country", "month"], metrics=["count"])[1]
    before = read_largest_loss(api, database)
    print_step("Dataset busy_markets", f"{len(first)} keys pass; spent at most", before)
    filters = [{"col": "country", "op": "IN", "val": ["France"]}]
    for times, chosen in ((3, ()), (1, filters)):
        for _ in range(times):
            text, again = api.read_chart_data(dataset, columns=["country", "month"], metrics=["count"], filters=chosen)
    print_step(
        "Refreshed three times, then filtered", f"{len(again)} keys; spent at most", read_largest_loss(api, database)
    )
    print_step("  Superset's SQL", "", " ".join(text.split()))
    if read_largest_loss(api, database) != before:
        raise SystemExit("a refresh has cost something")
    private = api.make_dataset(database, "public", "sales")
    try:
        api.read_chart_data(private, columns=["country"], metrics=["count"])
        raise SystemExit("a chart of a private table was drawn")
    except SupersetError as refused:
        print_step("A chart that counts a private table", "refused with", find_code(refused))
    threshold = {"expressionType": "SQL", "sqlExpression": f"({LARGE})::int", "label": "large"}
    text, rows = api.read_chart_data(private, columns=["country"], metrics=[threshold])
    large = ", ".join(row["country"] for row in rows if row["large"])
    print_step("A chart with a threshold as its metric", f"{large}; spent at most", read_largest_loss(api, database))
    print_step("  Superset's SQL", "", " ".join(text.split()))

    charts = make_charts(api, dataset, dashboard)
    api.arrange_charts(dashboard, charts)
    scorecard = show_scorecard(api, database_url)
    with open_browser() as window:
        window.visit_page(f"{api.url}/static/assets/images/favicon.png")
        for name, value in api.cookies:
            window.add_cookie(name, value)
        save_picture(pictures / "superset-sqllab.png", show_sql_lab(window, api.url, database))
        save_picture(pictures / "superset-chart.png", show_dashboard(window, api.url, dashboard, shows="Germany"))
        save_picture(pictures / "superset-scorecard.png", show_dashboard(window, api.url, scorecard, shows="Apr 2011"))
    print_step("After two pages in a browser", "spent at most", read_largest_loss(api, database))


def show_scorecard(api: SupersetApi, database_url: str) -> int:
    """Make a dataset of SQL with predicates in its select list, and a dashboard with its heat map and pivot table."""
    database = api.connect("Keyhole, wide tolerance", url=database_url, options=SCORECARD_OPTIONS)
    dataset = api.make_virtual_dataset(database, "scorecard", SCORECARD)  # Superset reads one row of it, which asks it
    print_step("Dataset of a scorecard", "spent at most", asked := read_largest_loss(api, database))
    highest = {measure: make_maximum(measure) for measure in ("sales", "customers")}
    text, rows = api.read_chart_data(dataset, columns=["country", "month"], metrics=[highest["sales"]])
    print_step("A chart of it", f"{len(rows)} rows; spent at most", read_largest_loss(api, database))
    print_step("  Superset's SQL", "", " ".join(text.split()))
    in_bands = [{"col": "sales", "op": ">=", "val": 1}]
    _, high = api.read_chart_data(dataset, columns=["country"], metrics=[highest["customers"]], filters=in_bands)
    print_step("Filtered by a band", f"{len(high)} countries; spent at most", read_largest_loss(api, database))
    if read_largest_loss(api, database) != asked:
        raise SystemExit("a chart of the scorecard has cost something")
    dashboard = api.make_dashboard(SCORECARD_DASHBOARD)
    heat = {
        "x_axis": "month",
        "time_grain_sqla": "P1M",
        "groupby": "country",
        "metric": highest["sales"],
        "linear_color_scheme": "schemeBlues",
        "show_values": True,
        "x_axis_time_format": "%b %Y",
        "bottom_margin": "auto",
        "left_margin": "auto",
        "sort_x_axis": "alpha_asc",
        "sort_y_axis": "alpha_desc",
        "row_limit": 1000,
        "adhoc_filters": exclude_lowest_band("sales"),
    }
    pivot = {
        "groupbyRows": ["country"],
        "groupbyColumns": ["month"],
        "metrics": [highest["customers"]],
        "time_grain_sqla": "P1M",
        "date_format": "%b %Y",
        "aggregateFunction": "Maximum",
        "valueFormat": "d",
        "row_limit": 1000,
        "adhoc_filters": exclude_lowest_band("customers"),
    }
    first, second = "Sales: bands of 20,000, 40,000 and 80,000 pounds", "Customers: bands of 20, 40 and 80"
    ranking, bars = make_ranking(api, database_url)
    third = "The five countries that bought most: five points for the first"
    charts = [
        (api.make_chart(first, dataset=dataset, kind="heatmap_v2", dashboard=dashboard, shown=heat), first, 5),
        (api.make_chart(second, dataset=dataset, kind="pivot_table_v2", dashboard=dashboard, shown=pivot), second, 4),
        (
            api.make_chart(third, dataset=ranking, kind="echarts_timeseries_bar", dashboard=dashboard, shown=bars),
            third,
            3,
        ),
    ]
    api.arrange_charts(dashboard, charts)
    return dashboard


def make_ranking(api: SupersetApi, database_url: str) -> tuple[int, dict[str, object]]:
    """Make a dataset of a ranking, and the fields of a bar chart of it."""
    database = api.connect("Keyhole, rankings", url=database_url, options=RANKING_OPTIONS)
    dataset = api.make_virtual_dataset(database, "best_countries", RANKING)
    asked, points = read_largest_loss(api, database), make_maximum("points")
    rows = api.read_chart_data(dataset, columns=["country"], metrics=[points])[1]
    in_order = sorted(rows, key=lambda row: -int(row["points"]))
    print_step("A ranking", f"{', '.join(row['country'] for row in in_order)}; spent at most", asked)
    if read_largest_loss(api, database) != asked:
        raise SystemExit("a chart of the ranking has cost something")
    return dataset, {
        "x_axis": "country",
        "xAxisForceCategorical": True,
        "metrics": [points],
        "x_axis_sort": "points",
        "x_axis_sort_asc": True,
        "orientation": "horizontal",
        "y_axis_format": "d",
        "show_legend": False,
        "row_limit": 5,
        "adhoc_filters": [],
    }


def make_maximum(column: str) -> dict[str, object]:
    """Return the metric of a chart's cells. Each cell stands for one row, so its maximum is that row's value."""
    return {"expressionType": "SQL", "sqlExpression": f"MAX({column})", "label": column}


def exclude_lowest_band(column: str) -> list[dict[str, object]]:
    """Return a chart's filter that excludes the lowest band."""
    return [{"expressionType": "SQL", "clause": "WHERE", "sqlExpression": f"{column} >= 1"}]


def make_charts(api: SupersetApi, dataset: int, dashboard: int) -> list[tuple[int, str, int]]:
    """Make two charts of a dataset. Return their ids, titles and widths."""
    bars = {
        "x_axis": "month",
        "time_grain_sqla": "P1M",
        "metrics": ["count"],
        "groupby": ["country"],
        "stack": "Stack",
        "show_legend": True,
        "x_axis_time_format": "%b %Y",
        "y_axis_format": "d",
        "y_axis_bounds": [0, 5],
        "truncateYAxis": True,
        "y_axis_title": "countries",
        "y_axis_title_margin": 30,
        "row_limit": 1000,
        "rich_tooltip": True,
        "adhoc_filters": [],
    }
    keys = {"query_mode": "raw", "all_columns": ["country", "month"], "table_timestamp_format": "%b %Y"}
    first, second = "Countries with more than 20 customers, month by month", "The keys that pass"
    return [
        (
            api.make_chart(first, dataset=dataset, kind="echarts_timeseries_bar", dashboard=dashboard, shown=bars),
            first,
            8,
        ),
        (api.make_chart(second, dataset=dataset, kind="table", dashboard=dashboard, shown=keys), second, 4),
    ]


def show_sql_lab(window: Browser, url: str, database: int) -> bytes:
    """Show SQL Lab with the question and its answer."""
    opened = {"dbid": database, "schema": "public", "sql": QUESTION, "name": "Busy markets", "autorun": "true"}
    window.visit_page(f"{url}/sqllab/?{urllib.parse.urlencode(opened)}")
    window.wait_for_script("return document.body.innerText.includes('Germany')")
    window.run(OPEN_SCHEMA)
    window.wait_for_script("return document.body.innerText.includes('busy_markets')")
    time.sleep(2)  # fonts and transitions
    return window.take_picture()


def show_dashboard(window: Browser, url: str, dashboard: int, *, shows: str) -> bytes:
    """Open the dashboard, wait until it has a chart and the text `shows`, and return its picture."""
    window.visit_page(f"{url}/superset/dashboard/{dashboard}/")
    window.wait_for_script(
        f"return document.querySelectorAll('canvas').length > 0 && document.body.innerText.includes('{shows}')"
    )
    time.sleep(3)  # the bars grow
    return window.take_picture()


def read_largest_loss(api: SupersetApi, database: int) -> str:
    """Return the most that a customer's month has lost, from `keyhole.budget`, asked through Superset."""
    return f"{api.run_in_sql_lab(database, SPENT)[0]['spent'] or 0} epsilon"


def find_code(refused: SupersetError) -> str:
    """Return the text of a refusal as Superset shows it, in one line."""
    found = re.search(r"KH\d{3}: [^\\\"]*", str(refused))
    if found is None:
        raise SystemExit(f"refused without a code of Keyhole: {refused}")
    return found[0]


def save_picture(path: Path, picture: bytes) -> None:
    """Save a screenshot as a file, and print the file's path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)
    print_step("Screenshot", "", f"{path.name}, {len(picture) // 1000} kB")


def print_step(what: str, between: str, result: object) -> None:
    """Print one step of the show: who talks to whom, and the result."""
    print(f"{what}: {between} {result}".replace(":  ", ": "), flush=True)


@contextmanager
def serve_keyhole(folder: Path) -> Iterator[str]:
    """Run `keyhole serve` over the demo on a free port, and yield the URL to which Superset connects."""
    folder.mkdir()
    policy = install_demo(folder)
    command = [Path(sys.executable).with_name("keyhole")]
    subprocess.run([*command, "check", "--policy", policy], check=True, stdout=subprocess.DEVNULL)
    with run_process([*command, "serve", "--policy", policy, "--port", "0", "--rest-port", "0"], {}, folder) as server:
        address = wait_for_result(server, lambda: re.search(r"endpoint postgresql://([^,]+),", server.read_log()))
        yield f"postgresql://demo:demo@{address[1]}"


@contextmanager
def serve_superset(programs: Path, home: Path) -> Iterator[str]:
    """Run Superset with a fresh database on a free port, and yield its URL."""
    home.mkdir()
    environment = {
        "SUPERSET_HOME": str(home),
        "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
        "FLASK_APP": "superset",
    }
    print_step("Superset", "", "making its own database, about two minutes")
    person = ["--firstname", "A", "--lastname", "Person", "--email", "admin@example.org"]
    for command in (
        ["db", "upgrade"],
        ["fab", "create-admin", "--username", USER, *person, "--password", USER],
        ["init"],
    ):
        with (home / "setup.log").open("a", encoding="utf-8") as log:
            done = subprocess.run(
                [programs / "superset", *command],
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
                check=False,
            )
        if done.returncode:
            raise SystemExit((home / "setup.log").read_text(encoding="utf-8")[-3000:])
    port = find_free_port()
    serving = ["--bind", f"127.0.0.1:{port}", "--threads", "8", "--timeout", "120", "superset.app:create_app()"]
    with run_process([programs / "gunicorn", *serving], environment, home) as server:
        url = f"http://127.0.0.1:{port}"
        wait_for_result(server, lambda: is_answering(f"{url}/health"))
        yield url


@contextmanager
def run_process(command: list[str | Path], environment: Mapping[str, str], folder: Path) -> Iterator[Server]:
    """Run a server for the block."""
    path = folder / "server.log"
    with path.open("w", encoding="utf-8") as log:
        started = subprocess.Popen(command, env={**os.environ, **environment}, stdout=log, stderr=log)
    try:
        yield Server(started, path)
    finally:
        started.terminate()
        started.wait()


def is_answering(url: str) -> bool:
    """Return True if a server answers at this address."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def wait_for_result(server: Server, look: Callable[[], T | None], *, timeout_s: float = 120.0) -> T:
    """Call `look` until it returns a result, and return the result.

    Exit with the server's last words if the server ends before.
    """
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"a server did not start:\n{server.read_log()[-3000:]}")
        time.sleep(0.2)
    return found


if __name__ == "__main__":
    main()
