"""A real Prometheus that reads `keyhole serve`: the metrics' form, the configuration, the alerts, the dashboard."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import yaml

from proxy.cli.check import check
from proxy.cli.monitor import start as start_watching
from tests.effort import PATIENCE_S
from tests.worlds.house import eventually
from tests.worlds.served import ROOT, Served, served
from tests.worlds.wards import PASSWORD, QUESTION, install

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
DEPLOYED = ROOT / "deploy" / "prometheus"
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/dashboard.json").read_text(encoding="utf-8"))
QUERIES = [
    pytest.param(target, id=f"{panel['title']}-{number}")
    for panel in DASHBOARD["panels"]
    for number, target in enumerate(panel["targets"])
]

# its windows have not begun: its look is due, and never late
WATCHED = """
[tables.arrivals]
relation = "arrivals.csv"
privacy_unit = "row"
refresh = "live"
append_only = true

[tables.arrivals.columns.ward]
key = { values = ["A", "B"] }

[tables.arrivals.columns.day]
key = { range = ["2126-01-01", "2126-01-10"] }

[monitors.crowded]
sql = "SELECT ward, day FROM arrivals GROUP BY ward, day HAVING count(*) > 400"
window = "day"
every = "6 hours"
from = "2126-01-01"
until = "2126-01-10"
analysts = ["ada"]
"""

pytestmark = pytest.mark.skipif(PROMETHEUS is None or PROMTOOL is None, reason="needs apt-get install prometheus")


def promtool(*arguments: str, given: str = "") -> str:
    """What promtool prints; it must find nothing wrong, and nothing to remark either."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def keyhole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("wards")
    policy = install(folder)
    (folder / "arrivals.csv").write_text("ward,day\n" + "A,2126-01-01\n" * 500, encoding="ascii")
    with policy.open("a", encoding="utf-8") as file:
        file.write(WATCHED)
    check(policy, confirm=False)
    start_watching("crowded", why="to see", policy=policy, yes=True)
    with served(policy) as running:
        yield running


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus, and how to ask it."""

    client: httpx.Client

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query. Fails with Prometheus' own message."""
        answer = self.client.get("/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", answer
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def value(self, expression: str) -> float | None:
        """The value of the only series, None where there is none yet."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None


@contextmanager
def scraping(target: str, folder: Path) -> Iterator[Prometheus]:
    """Prometheus with the deployed configuration, on another target and more often."""
    assert PROMETHEUS is not None
    configuration = yaml.safe_load((DEPLOYED / "prometheus.yml").read_text(encoding="utf-8"))
    configuration["global"] = {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
    configuration["rule_files"] = [str(DEPLOYED / name) for name in configuration["rule_files"]]
    configuration["scrape_configs"][0]["static_configs"][0]["targets"] = [target]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(configuration), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    arguments = [
        PROMETHEUS,
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'series'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (
        (folder / "log").open("w") as log,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE_S) as client,
        subprocess.Popen(arguments, stdout=log, stderr=log) as process,
    ):
        try:
            eventually(lambda: process.poll() is not None or is_ready(client))
            assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
            yield Prometheus(client)
        finally:
            process.terminate()
            process.wait()


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/-/ready").is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def watched(keyhole: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus that has seen Keyhole before a question, a refusal and a wrong password, and after."""
    where = f"host=127.0.0.1 port={keyhole.port} dbname=keyhole user=ada"
    with scraping(keyhole.operator.removeprefix("http://"), tmp_path_factory.mktemp("prometheus")) as prometheus:
        eventually(lambda: (prometheus.value("count_over_time(keyhole_build_info[1m])") or 0) >= 2)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(where, password="wrong")
        with psycopg.connect(where, password=PASSWORD, autocommit=True) as client:
            assert client.execute(QUESTION.format(1500).encode()).fetchall() == [("A",)]
            with pytest.raises(psycopg.Error, match="KH101"):
                client.execute(b"SELECT ward, count(*) FROM visits GROUP BY ward")
            eventually(lambda: prometheus.value('keyhole_questions_total{outcome="answered"}') == 1)
            eventually(lambda: bool(prometheus.query('increase(keyhole_refusals_total{code="KH101"}[1m])')))
            yield prometheus


def test_the_configuration_is_one_that_prometheus_takes() -> None:
    assert "SUCCESS" in promtool("check", "config", str(DEPLOYED / "prometheus.yml"))
    assert "SUCCESS" in promtool("check", "rules", str(DEPLOYED / "alerts.yml"))


def test_the_metrics_have_the_form_that_prometheus_recommends(keyhole: Served) -> None:
    text = httpx.get(f"{keyhole.operator}/metrics", trust_env=False, timeout=PATIENCE_S).text
    assert promtool("check", "metrics", given=text) == ""


@pytest.mark.parametrize("target", QUERIES)
def test_every_query_of_the_dashboard_finds_series_with_the_labels_of_its_legend(
    watched: Prometheus, target: dict[str, Any]
) -> None:
    found = watched.query(target["expr"].replace("$__rate_interval", "1m"))
    assert found
    wanted = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", target.get("legendFormat", "")))
    for series in found:
        assert wanted <= set(series["metric"])


def test_nothing_alerts_while_all_is_well(watched: Prometheus) -> None:
    rules = watched.client.get("/api/v1/rules").json()["data"]["groups"]
    (alerts,) = (group["rules"] for group in rules)
    assert {rule["health"] for rule in alerts} <= {"ok", "unknown"}
    for rule in alerts:
        assert not watched.query(rule["query"]), rule["name"]


ALERTS = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'up{{job="keyhole", instance="one"}}'
        values: '1 1 0x20'
      - series: 'keyhole_ready{{part="ledger", instance="one"}}'
        values: '1 1 0x20'
      - series: 'keyhole_refusals_total{{code="KH502", face="rest", instance="one"}}'
        values: '0 0 1x20'
      - series: 'keyhole_refusals_total{{code="KH501", face="rest", instance="one"}}'
        values: '0 0 9x20'
      - series: 'keyhole_refusals_total{{code="KH900", face="rest", instance="one"}}'
        values: '0 0 1x20'
      - series: 'keyhole_data_moved{{table="sales", instance="one"}}'
        values: '0 0 1x20'
      - series: 'keyhole_clock_jump_seconds{{instance="one"}}'
        values: '0 0 -3600x20'
      - series: 'keyhole_failed_logins_total{{face="rest", instance="one"}}'
        values: '0+20x20'
      - series: 'process_open_fds{{job="keyhole", instance="one"}}'
        values: '90x20'
      - series: 'process_max_fds{{job="keyhole", instance="one"}}'
        values: '100x20'
    promql_expr_test:
      - expr: count by (alertname) (ALERTS{{alertstate="firing"}})
        eval_time: 10m
        exp_samples: [{samples}]
      - expr: count(ALERTS{{alertname!~"KeyholeFewDescriptors|KeyholePasswordsGuessed"}})
        eval_time: 1m
        exp_samples: []
"""


def test_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    rules = yaml.safe_load((DEPLOYED / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    samples = ", ".join(f"{{labels: '{{alertname=\"{rule['alert']}\"}}', value: 1}}" for rule in rules)
    path = tmp_path / "alerts.yml"
    path.write_text(ALERTS.format(rules=DEPLOYED / "alerts.yml", samples=samples), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(path))
