"""What docker-compose.yml starts, without Docker: the same loader, policy, commands and queries, on free ports."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import pytest
import typer.main
import yaml

from planner.policy.sections import LimitsSection
from proxy.cli.main import app as command
from proxy.endpoint.server import STOP_GRACE_S
from proxy.process.self_watch import HUNG_S
from proxy.shadow.wheel import make_postgres_server
from proxy.sources.open import ROLE_CONNECTIONS
from tests.effort import PATIENCE_S
from tests.worlds.served import COMMAND, ROOT, Served, served

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/dashboard.json").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
DEMO = tomllib.loads((ROOT / "deploy/demo/questions.toml").read_text(encoding="utf-8"))["questions"]
QUESTION = DEMO[0]["sql"]


def defaults(text: str) -> str:
    """A value of the file as Compose reads it where the environment sets nothing."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


@pytest.fixture(scope="module")
def source_url() -> Iterator[str]:
    """The server of the service `source`, with the database that it starts with."""
    with tempfile.TemporaryDirectory(prefix="keyhole-") as parent:
        Path(parent).chmod(0o755)
        server = make_postgres_server(Path(parent) / "data", cleanup_mode="stop")
        server.start()
        try:
            with psycopg.connect(server.get_uri(), autocommit=True) as owner:
                owner.execute(f"CREATE DATABASE {SERVICES['source']['environment']['POSTGRES_DB']}".encode())
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="module")
def started(source_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`source`, `sample` and `keyhole`: a PostgreSQL, what fills it, and what serves it, in the file's environment."""
    folder = tmp_path_factory.mktemp("compose")
    policy = Path(shutil.copyfile(ROOT / "deploy/compose/keyhole.toml", folder / "keyhole.toml"))
    socket = quote(source_url.partition("host=")[2], safe="")
    environment = {name: defaults(text) for name, text in SERVICES["sample"]["environment"].items()}
    for name, text in SERVICES["keyhole"]["environment"].items():
        assert environment.setdefault(name, defaults(text)) == defaults(text)
    environment["SOURCE_URL"] = environment["SOURCE_URL"].replace("@source/", f"@{socket}/")
    assert environment["KEYHOLE_SOURCE_HOST"] == "source"
    environment["KEYHOLE_SOURCE_HOST"] = socket
    for _ in range(2):  # as on the first start, and on every further one
        run(*SERVICES["sample"]["command"], environment=environment)
    run("keyhole", "check", "--policy", str(policy), environment=environment)
    with served(policy, environment=environment) as running:
        yield running


def run(program: str, *arguments: str, environment: dict[str, str]) -> None:
    start = COMMAND if program == "keyhole" else (sys.executable,)
    done = subprocess.run(
        [*start, *arguments], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_sample_can_be_asked_as_the_file_says(started: Served) -> None:
    conninfo = f"host=127.0.0.1 port={started.port} user=demo password=demo dbname=retail"
    with psycopg.connect(conninfo, autocommit=True) as client:
        client.execute(b"SET keyhole.tolerance = '25%'")
        answer = client.execute(QUESTION.encode()).fetchall()
        assert len(answer) > 3
        assert client.execute(b"SELECT count(*) FROM countries").fetchone() == (38,)
    document = httpx.post(
        f"{started.rest}/v1/question",
        json={"sql": QUESTION, "tolerance": "25%"},
        headers={"Authorization": "Bearer demo"},
        trust_env=False,
        timeout=PATIENCE_S,
    ).json()
    assert document["reused"]
    assert len(document["keys"]) == len(answer)


def test_the_readers_role_reads_and_nothing_else(started: Served, source_url: str) -> None:
    assert httpx.get(f"{started.operator}/readyz", trust_env=False, timeout=PATIENCE_S).json()["missing"] == []
    with psycopg.connect(source_url, user="keyhole_reader", dbname="retail", autocommit=True) as reader:
        assert reader.execute(b"SELECT count(*) FROM sales").fetchone() == (541909,)
        reader.execute(b"SET default_transaction_read_only = off")
        for statement in ("DELETE FROM sales", "CREATE TABLE mine (x integer)", "ALTER TABLE sales ADD x integer"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(statement.encode())
        limit = reader.execute(b"SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user").fetchone()
        assert limit == (ROLE_CONNECTIONS,)


def test_the_policy_that_is_mounted_is_the_one_to_change() -> None:
    """It lies over whatever the volume has by that name, as the guide says."""
    volumes = [volume.split(":") for volume in SERVICES["keyhole"]["volumes"]]
    (state,) = (inside for here, inside, *_ in volumes if here == "keyhole-state")
    (mounted,) = (here for here, inside, *_ in volumes if inside == f"{state}/keyhole.toml")
    containers = (ROOT / "docs/operating.md").read_text(encoding="utf-8").partition("### Containers")[2]
    assert f"](../{mounted.removeprefix('./')})" in containers.partition("###")[0]


def test_every_query_of_the_dashboard_finds_its_metric_and_labels(started: Served) -> None:
    scrape = started.scrape()
    names = {
        name: {label for labels in values for label, _ in labels} | {"job", "instance"}
        for name, values in scrape.items()
    }
    names["keyhole_monitor_late_seconds"] = {"monitor", "job", "instance"}  # the demo has no monitor
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(expressions) > 15
    for expression in expressions:
        named = re.findall(r"\b(?:keyhole|process|python)_\w+", expression)
        assert named
        labels = {
            label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")
        } | set(re.findall(r"[{,]\s*(\w+)\s*=", expression))
        for name in named:
            assert name in names, name
            assert labels <= names[name], (expression, names[name])


def test_alerts_ask_for_metrics_that_there_are(started: Served) -> None:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    names = set(started.scrape())
    for rule in rules:
        assert set(re.findall(r"\b(?:keyhole|process)_\w+", rule["expr"])) <= names, rule


def test_every_metric_of_keyhole_is_on_the_dashboard(started: Served) -> None:
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"])
    for name in started.scrape():
        if name.startswith("keyhole_"):
            assert name in shown, name


def test_the_dashboard_has_a_source_and_room_for_every_panel() -> None:
    (source,) = yaml.safe_load((ROOT / "deploy/grafana/provisioning/datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    assert {panel["datasource"]["uid"] for panel in DASHBOARD["panels"]} == {source["uid"]}
    assert source["url"] == "http://prometheus:9090"
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_prometheus_scrapes_keyhole_where_it_listens() -> None:
    configuration = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8"))
    for name in configuration["rule_files"]:  # read from beside the configuration
        assert (ROOT / "deploy/prometheus" / name).is_file()
    (job,) = configuration["scrape_configs"]
    (targets,) = job["static_configs"]
    policy = tomllib.loads((ROOT / "deploy/compose/keyhole.toml").read_text(encoding="utf-8"))
    assert targets == {"targets": [f"keyhole:{policy['server']['metrics_port']}"]}
    assert job["job_name"] == "keyhole"  # which the dashboard's queries name


def test_everything_is_published_on_loopback_and_the_source_not_at_all() -> None:
    for name, service in SERVICES.items():
        for port in service.get("ports", ()):
            assert re.fullmatch(r"127\.0\.0\.1:(\d+):\1", port), (name, port)
    assert not {"source", "sample", "lake"} & {name for name, service in SERVICES.items() if service.get("ports")}
    assert SERVICES["source"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"] == {"internal": True}


def compose() -> list[str]:
    """How Compose is called here: the plugin of docker, or the program of its own. Skips where there is neither."""
    if shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0:
        return ["docker", "compose"]
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("needs docker compose, or apt-get install docker-compose")
    return [program]


def test_compose_takes_the_file_and_reads_it_as_it_is_meant(tmp_path: Path) -> None:
    """No engine is needed for that."""
    here = [*compose(), "-f", str(ROOT / "docker-compose.yml"), "--profile", "spark", "config"]
    done = subprocess.run(here, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr
    read = yaml.safe_load(done.stdout)["services"]
    assert set(read) == set(SERVICES)
    for name, service in SERVICES.items():
        environment = {key: defaults(str(text)) for key, text in service.get("environment", {}).items()}
        assert {key: str(text) for key, text in (read[name].get("environment") or {}).items()} == environment


def test_spark_is_started_where_it_is_wanted_alone() -> None:
    """The lake's lines and the policy over them are tried on Sail in tests/end_to_end/spark."""
    assert {name for name, service in SERVICES.items() if service.get("profiles") == ["spark"]} == {"lake", "spark"}
    (volume,) = SERVICES["lake"]["volumes"]
    assert SERVICES["spark"]["volumes"] == [f"{volume}:ro"]
    program, flag, module, folder, _ = SERVICES["lake"]["command"]
    assert (program, flag, module, folder) == ("python", "-m", "deploy.spark.lake", volume.partition(":")[2])
    policy = tomllib.loads((ROOT / "deploy/spark/keyhole.toml").read_text(encoding="utf-8"))
    assert policy["source"] == {"url": "sc://127.0.0.1:15002", "engine": "spark"}
    assert [port.rpartition(":")[2] for port in SERVICES["spark"]["ports"]] == ["15002"]
    for table in policy["tables"].values():
        assert f"`{folder}/" in table["relation"]


def test_whoever_stops_keyhole_waits_for_its_longest_question() -> None:
    """A question waits for its turn and then reads; who is idle or late hears that it ends."""
    longest_s = 2 * LimitsSection().statement_timeout_ms / 1000 + 2 * STOP_GRACE_S
    assert float(SERVICES["keyhole"]["stop_grace_period"].removesuffix("s")) > longest_s
    unit = (ROOT / "deploy/systemd/keyhole.service").read_text(encoding="utf-8")
    (waits_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert float(waits_s) > longest_s


def test_what_ends_with_a_status_is_started_anew() -> None:
    """Killed, hanging (SIGALRM), or without a shadow (1): `docs/operating.md`, "What hangs"."""
    assert SERVICES["keyhole"]["restart"] == "unless-stopped"
    unit = (ROOT / "deploy/systemd/keyhole.service").read_text(encoding="utf-8")
    assert "\nRestart=on-failure\n" in unit
    assert f"\nWatchdogSec={HUNG_S:.0f}\n" in unit


def test_what_the_file_refers_to_is_there() -> None:
    assert set(COMPOSE) == {"services", "networks", "volumes"}
    volumes = set()
    for name, service in SERVICES.items():
        assert ("build" in service) == (service["image"] == "keyhole"), name
        assert set(service.get("depends_on", {})) <= set(SERVICES)
        assert set(service["networks"]) <= set(COMPOSE["networks"])
        for volume in service.get("volumes", ()):
            here, inside = volume.split(":")[:2]
            assert inside.startswith("/")
            if here.startswith("./"):
                assert (ROOT / here).exists(), here
                assert volume.endswith(":ro")
            else:
                volumes.add(here)
    assert volumes == set(COMPOSE["volumes"])
    build = SERVICES["keyhole"]["build"]
    assert SERVICES["sample"]["build"] == SERVICES["lake"]["build"] == build
    assert (ROOT / build["context"] / build["dockerfile"]).is_file()


def test_the_image_holds_what_is_installed_and_starts_what_there_is() -> None:
    """The image itself is not built here: its instructions are held against the project."""
    copies = [line for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line]
    copied = {line.split()[1] for line in copies if ".lock " not in line}  # tests/project/test_lock.py has those
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {*project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"], "pyproject.toml"}
    assert copied == wanted
    (line,) = (line for line in DOCKERFILE.splitlines() if line.startswith("COPY pyproject.toml"))
    assert {project["project"]["readme"], *project["project"]["license-files"]} <= set(line.split())
    (version,) = set(re.findall(r"FROM python:(3\.\d+)-slim", DOCKERFILE))
    assert f"Programming Language :: Python :: {version}" in project["project"]["classifiers"]
    (started,) = re.findall(
        r'^CMD \["sh", "-c", "keyhole check && exec keyhole serve (.*)"\]$', DOCKERFILE, re.MULTILINE
    )
    flags = _flags_of_serve()
    assert set(re.findall(r"--[\w-]+", started)) <= flags
    assert re.search(r"^USER keyhole$", DOCKERFILE, re.MULTILINE)


def _flags_of_serve() -> set[str]:
    group: Any = typer.main.get_group(command)
    return {flag for option in group.commands["serve"].params for flag in option.opts}


def test_the_health_check_is_python_that_asks_for_readiness(started: Served) -> None:
    (told,) = re.findall(r'CMD \["python", "-c", "(.*)"\]$', DOCKERFILE, re.MULTILINE)
    ast.parse(told)
    here = told.replace("http://127.0.0.1:9432", started.operator)
    assert here != told
    assert subprocess.run([sys.executable, "-c", here], check=False, capture_output=True).returncode == 0
    elsewhere = told.replace("/readyz", "/nowhere").replace("http://127.0.0.1:9432", started.operator)
    assert subprocess.run([sys.executable, "-c", elsewhere], check=False, capture_output=True).returncode == 1


def test_the_unit_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    """Where systemd is installed it says so itself; elsewhere the unit's commands and folders are compared."""
    unit = (ROOT / "deploy/systemd/keyhole.service").read_text(encoding="utf-8")
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, verb, *flags = start.split()
    assert (program, verb) == ("/opt/keyhole/bin/keyhole", "serve")
    assert {flag for flag in flags if flag.startswith("--")} <= _flags_of_serve()
    for line in ("Type=notify", "NoNewPrivileges=true", "ProtectSystem=strict", "KillMode=mixed", "User=keyhole"):
        assert f"\n{line}\n" in unit
    analyse = shutil.which("systemd-analyze")
    if analyse is not None:
        copy = tmp_path / "keyhole.service"
        copy.write_text(unit.replace(program, "/bin/true"), encoding="utf-8")
        done = subprocess.run([analyse, "verify", str(copy)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        most = ["--offline=true", "--threshold=15"]  # of 100: how much a break-in could reach beyond the service
        done = subprocess.run([analyse, "security", *most, str(copy)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
