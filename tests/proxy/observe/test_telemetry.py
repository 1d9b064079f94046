"""Metrics, readiness and what a service manager hears: every name documented, every number what happened."""

import asyncio
import os
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import suppress
from pathlib import Path

import httpx
import psycopg
import pytest
import structlog
from structlog.testing import capture_logs

from accountant.charges import NANO
from accountant.errors import LedgerUnavailable
from planner.errors import KeyholeError
from proxy.concurrency.thread_pool import WorkerPool
from proxy.observe.telemetry import DisconnectReason, Interface, QuestionEnding, Stage, Telemetry
from proxy.open_policy.service import Service
from proxy.process.addresses import Addresses, ListenAddress
from proxy.process.announcements import ALIVE, READY, notify_service_manager, report_alive
from proxy.process.serve import serve_in_background
from proxy.rest.readiness import LEDGER_ROOM_BYTES, Readiness
from proxy.shadow.wheel import read_wheel_release
from tests.effort import PATIENCE_S
from tests.worlds.house import check_once
from tests.worlds.served import ROOT, scraped
from tests.worlds.wards import PASSWORD, QUESTION, TOKENS, install

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
ADA = {"Authorization": f"Bearer {TOKENS['ada']}"}
Scrape = dict[str, dict[tuple[tuple[str, str], ...], float]]


class Watched:
    """A house that is served, and its three ports."""

    def __init__(self, service: Service, addresses: Addresses) -> None:
        self.service = service
        self.addresses = addresses
        self.operator = f"http://127.0.0.1:{addresses.metrics_port}"

    def connect(self, password: str = PASSWORD) -> psycopg.Connection[tuple[str]]:
        there = f"host=127.0.0.1 port={self.addresses.port} dbname=keyhole user=ada"
        return psycopg.connect(there, password=password, autocommit=True)

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.operator}{path}", trust_env=False, timeout=PATIENCE_S)

    def scrape(self) -> Scrape:
        return scraped(self.get("/metrics").raise_for_status().text)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    policy = check_once(install(tmp_path))
    with (
        Service.open(policy) as service,
        serve_in_background(
            service, host="127.0.0.1", port=0, rest_port=0, metrics=ListenAddress("127.0.0.1", 0)
        ) as addresses,
    ):
        yield Watched(service, addresses)


def labelled(scrape: Scrape, name: str, **labels: str) -> float:
    return scrape.get(name, {}).get(tuple(sorted(labels.items())), 0.0)


def test_what_happened_is_counted(watched: Watched) -> None:
    before = watched.scrape()
    with watched.connect() as client:
        for _ in range(2):
            assert client.execute(QUESTION.format(1501).encode()).fetchall() == [("A",)]
        client.execute(b"SET keyhole.max_epsilon = 0.001")
        for refused in (QUESTION.format(1502), "SELECT ward, count(*) FROM visits GROUP BY ward"):
            with pytest.raises(psycopg.Error, match=r"KH302|KH101"):
                client.execute(refused.encode())
        after = watched.scrape()
    with pytest.raises(psycopg.OperationalError, match="KH401"):
        watched.connect("wrong")
    with httpx.Client(base_url=watched.addresses.rest, trust_env=False, timeout=PATIENCE_S) as rest:
        assert rest.get("/v1/budget").status_code == 401
        assert rest.post("/v1/question", json={"sql": QUESTION.format(1501)}, headers=ADA).json()["reused"]
    last = watched.scrape()

    def gained(name: str, scrape: Scrape = after, **labels: str) -> float:
        return labelled(scrape, name, **labels) - labelled(before, name, **labels)

    assert {ending: gained("keyhole_questions_total", outcome=ending) for ending in QuestionEnding} == {
        QuestionEnding.ANSWERED: 1,
        QuestionEnding.STORED: 1,
        QuestionEnding.REFUSED: 1,
        QuestionEnding.FAILED: 0,
    }
    assert {stage: gained("keyhole_stage_seconds_count", stage=stage) for stage in Stage} == {
        Stage.PARSE: 3,
        Stage.PLAN: 3,
        Stage.TURN: 2,
        Stage.RESERVE: 2,
        Stage.AGGREGATE: 1,
        Stage.DECIDE: 1,
        Stage.COMMIT: 1,
    }
    assert gained("keyhole_refusals_total", face="postgresql", code="KH302") == 1
    assert gained("keyhole_refusals_total", face="postgresql", code="KH101") == 1
    (asked,) = watched.service.ledger.read_history()
    reserved = gained("keyhole_epsilon_reserved_total", table="visits")
    assert round(reserved * NANO) == asked.charge.epsilon_nano
    assert asked.spent is not None
    charged = gained("keyhole_epsilon_charged_total", table="visits")
    assert round(charged * NANO) == asked.spent.epsilon_nano <= round(reserved * NANO)
    assert labelled(after, "keyhole_ledger_events") == watched.service.ledger.verify_everything() == 2
    assert labelled(after, "keyhole_sessions", state="idle") == 1
    assert labelled(after, "keyhole_connections") == labelled(after, "keyhole_shadow_connections") == 1
    major, minor = read_wheel_release()
    assert labelled(after, "keyhole_shadow_version") == 10_000 * major + minor
    assert gained("keyhole_sessions_opened_total", last) == 1
    for face in Interface:
        assert gained("keyhole_failed_logins_total", last, face=face) == 1
        assert gained("keyhole_refusals_total", last, face=face, code="KH401") == 1
    assert gained("keyhole_questions_total", last, outcome="stored") == 2
    for gauge in ("keyhole_source_turns", "keyhole_question_workers"):
        assert set(last[gauge].values()) == {0.0}


def test_a_connection_that_breaks_the_protocol_is_counted(watched: Watched) -> None:
    with socket.create_connection(("127.0.0.1", watched.addresses.port)) as raw:
        raw.sendall(b"\xff" * 64)
        while raw.recv(1000):
            pass
    assert labelled(watched.scrape(), "keyhole_connections_turned_away_total", reason=DisconnectReason.PROTOCOL) == 1


def test_connections_that_are_ended_again_and_again_fill_no_log() -> None:
    """Anybody can have many ended a second. Each reason has its lines, and all that are counted are told of."""
    clock = [0.0]
    with capture_logs() as logged:
        seen = Telemetry(log=structlog.get_logger(), clock=lambda: clock[0])
        for clock[0] in (0.0, 0.1, 59.9, 60.0, 60.1, 200.0):
            for _ in range(500):
                seen.count_disconnect(DisconnectReason.LIMIT, address="192.0.2.1")
        seen.count_disconnect(DisconnectReason.TLS, address=None)
    assert [(line["reason"], line["times"]) for line in logged] == [
        ("limit", 1),
        ("limit", 1500),
        ("limit", 1000),
        ("tls", 1),
    ]
    counted = scraped(seen.write_prometheus_text().decode())
    assert labelled(counted, "keyhole_connections_turned_away_total", reason=DisconnectReason.LIMIT) == 3000


def documented() -> dict[str, set[str]]:
    """The metrics of docs/metrics.md with their labels."""
    listed = PAGE.split("\n## Metrics\n")[1].split("\n## ")[0]
    rows = re.findall(r"^- `([^`]+)`(?: \(([^)]*)\))?:\s", listed, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def test_every_metric_is_documented_with_its_labels(watched: Watched) -> None:
    with watched.connect() as client:
        client.execute(QUESTION.format(1503).encode())
        with pytest.raises(psycopg.Error):
            client.execute(b"SELECT * FROM visits")
    scrape = watched.scrape()
    own = {
        re.sub(r"_(bucket|count|sum)$", "", name): {label for labels in values for label, _ in labels} - {"le"}
        for name, values in scrape.items()
        if name.startswith("keyhole_")
    }
    # a monitor has some once it is looked at
    assert own == {name: labels for name, labels in documented().items() if not name.startswith("keyhole_monitor_")}
    assert all(name.startswith(("keyhole_", "process_", "python_gc_")) for name in scrape)


@pytest.mark.parametrize(
    ("names", "metric"),
    [
        (QuestionEnding, "keyhole_questions_total"),
        (Stage, "keyhole_stage_seconds"),
        (DisconnectReason, "keyhole_connections_turned_away_total"),
    ],
)
def test_every_value_of_a_label_is_documented(
    names: type[QuestionEnding | Stage | DisconnectReason], metric: str
) -> None:
    (item,) = re.findall(rf"^- `{metric}` .*\n(?:  .*\n)*", PAGE, re.MULTILINE)
    assert {f"`{name}`" for name in names} <= set(re.findall(r"`\w+`", item))


def test_health_is_told_on_both_ports_and_what_is_missing_on_the_operators_alone(watched: Watched) -> None:
    with httpx.Client(base_url=watched.addresses.rest, trust_env=False, timeout=PATIENCE_S) as rest:
        assert rest.get("/healthz").json() == watched.get("/healthz").json() == {"status": "ok"}
        assert rest.get("/readyz").json() == {"status": "ready"}
        assert watched.get("/readyz").json() == {"status": "ready", "missing": []}
        assert rest.get("/metrics").status_code == 404


class Parts:
    """Two parts of which one can be missing, or slow to tell."""

    def __init__(self) -> None:
        self.looks = 0
        self.broken = False
        self.hold = threading.Event()
        self.hold.set()

    def ledger(self) -> None:
        self.looks += 1
        self.hold.wait()
        if self.broken:
            raise KeyholeError("KH502", "the ledger is not available")


def looked(parts: Parts, monkeypatch: pytest.MonkeyPatch, *, fresh_s: float) -> Readiness:
    monkeypatch.setattr("proxy.rest.readiness.FRESH_S", fresh_s)
    monkeypatch.setattr("proxy.rest.readiness.LATE_S", 0.01)
    return Readiness({"ledger": parts.ledger, "source": lambda: None}, telemetry=Telemetry())


def test_many_who_ask_at_once_look_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = Parts()
    ready = looked(parts, monkeypatch, fresh_s=3600)

    async def ask() -> list[tuple[str, ...]]:
        return [*await asyncio.gather(*(ready.find_missing() for _ in range(50))), await ready.find_missing()]

    monkeypatch.setattr("proxy.rest.readiness.LATE_S", 60)
    assert set(asyncio.run(ask())) == {()}
    assert parts.looks == 1


def test_what_is_gone_or_does_not_answer_is_missing_until_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = Parts()
    ready = looked(parts, monkeypatch, fresh_s=0)

    async def ask() -> tuple[str, ...]:
        monkeypatch.setattr("proxy.rest.readiness.LATE_S", 60)
        return await ready.find_missing()

    async def ask_in_a_hurry() -> tuple[tuple[str, ...], tuple[str, ...]]:
        parts.hold.clear()
        first, second = await ready.find_missing(), await ready.find_missing()
        parts.hold.set()
        return first, second

    parts.broken = True
    assert asyncio.run(ask()) == ("ledger",)
    parts.broken = False
    assert asyncio.run(ask()) == ()
    monkeypatch.setattr("proxy.rest.readiness.LATE_S", 0.01)
    before = parts.looks
    hurried = asyncio.run(ask_in_a_hurry())
    assert all("ledger" in missing for missing in hurried)
    assert parts.looks == before + 1
    assert asyncio.run(ask()) == ()


def test_a_ledger_that_is_asked_whether_it_can_be_written_is_not(watched: Watched) -> None:
    ledger = watched.service.ledger
    before = ledger.verify_everything()
    ledger.check_writable(room_bytes=LEDGER_ROOM_BYTES)
    assert ledger.verify_everything() == ledger.known_event_count == before


def test_a_ledger_whose_disk_has_no_room_left_is_missing(watched: Watched) -> None:
    with pytest.raises(LedgerUnavailable):
        watched.service.ledger.check_writable(room_bytes=1 << 62)


def test_a_reading_that_fails_spoils_no_scrape(watched: Watched) -> None:
    watched.service.source.close()
    scrape = watched.scrape()
    assert labelled(scrape, "keyhole_ready", part="ledger") == 1
    assert scrape["keyhole_build_info"]


def test_workers_are_counted_while_they_wait_and_work() -> None:
    telemetry, free = Telemetry(), threading.Event()
    started = threading.Semaphore(0)

    def work() -> None:
        started.release()
        free.wait()

    def counted() -> dict[str, float]:
        values = scraped(telemetry.write_prometheus_text().decode())["keyhole_question_workers"]
        return {dict(labels)["state"]: value for labels, value in values.items()}

    pool = WorkerPool(3, telemetry=telemetry)
    futures = [pool.make_executor("ada").submit(work) for _ in range(5)]
    for _ in range(2):
        started.acquire()
    assert counted() == {"busy": 2, "waiting": 3}
    assert futures[-1].cancel()
    assert counted() == {"busy": 2, "waiting": 2}
    free.set()
    wait(futures[:-1])
    pool.shutdown()
    assert counted() == {"busy": 0, "waiting": 0}


@pytest.mark.parametrize("abstract", [False, True])
def test_the_service_manager_is_told(tmp_path: Path, abstract: bool) -> None:
    address = f"@{tmp_path.name}-keyhole" if abstract else str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{address[1:]}" if abstract else address)
        notify_service_manager(READY, environment={"NOTIFY_SOCKET": address})
        assert manager.recv(100) == b"READY=1"


def test_without_a_service_manager_nothing_happens(tmp_path: Path) -> None:
    for environment in ({}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": str(tmp_path / "nobody")}):
        notify_service_manager(READY, environment=environment)


@pytest.mark.parametrize("is_named", [False, True])
def test_the_service_manager_hears_of_a_loop_that_turns_until_the_end(tmp_path: Path, is_named: bool) -> None:
    address = str(tmp_path / "notify")
    pid = {"WATCHDOG_PID": str(os.getpid())} if is_named else {}

    async def work(manager: socket.socket) -> None:
        async with report_alive(environment={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000"} | pid):
            for _ in range(3):
                assert await asyncio.get_running_loop().sock_recv(manager, 100) == ALIVE.encode()
        with suppress(BlockingIOError):
            while manager.recv(100):
                pass
        await asyncio.sleep(0.01)
        with pytest.raises(BlockingIOError):
            manager.recv(100)

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.setblocking(False)
        asyncio.run(work(manager))


@pytest.mark.parametrize("asked", [{}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}])
def test_a_service_manager_that_does_not_ask_hears_nothing(tmp_path: Path, asked: dict[str, str]) -> None:
    address = str(tmp_path / "notify")

    async def work() -> None:
        async with report_alive(environment={"NOTIFY_SOCKET": address} | asked):
            await asyncio.sleep(0.01)

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.setblocking(False)
        asyncio.run(work())
        with pytest.raises(BlockingIOError):
            manager.recv(100)
