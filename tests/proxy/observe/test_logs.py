"""The log of a whole process, whatever is done to it: the events of docs/metrics.md, and nothing of data or SQL."""

import ast
import json
import re
import signal
import socket
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from pathlib import Path

import httpx
import psycopg
import pytest

from proxy.cli.check import check
from tests.children import forked
from tests.effort import PATIENCE_S
from tests.proxy.raw_client import RawClient
from tests.worlds import shop
from tests.worlds.house import PASSWORD, VERIFIER, eventually, new_database, write_policy
from tests.worlds.served import ROOT, Served, served

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
SECRET = "zebra"  # stands in everything that a client sends and no operator may read
KEYS = ("north", "south", "west", "east", "closed", "upper", "lower")
SQL = ("select", "from ", "group by", "having", "insert", "amount", "sales", "stores", "generate_series", "count(")
TOKEN = f"{SECRET}-token"
LONG_MS = 1000 * PATIENCE_S


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(psycopg.Error):
        call()


def attack_the_login(port: int, conninfo: str) -> None:
    refused(lambda: psycopg.connect(conninfo, password=SECRET))
    refused(lambda: psycopg.connect(conninfo, user=SECRET))
    refused(lambda: psycopg.connect(conninfo, dbname=SECRET))
    refused(lambda: psycopg.connect(conninfo, options=f"-c {SECRET}.x=1 -c keyhole.fnr={SECRET}"))
    for garbage in (
        f"GET /{SECRET} HTTP/1.1\r\n\r\n".encode(),
        b"\xff" * 64,
        struct.pack("!II", 20, 196608) + b"zebra",
    ):
        with socket.create_connection(("127.0.0.1", port)) as raw:
            raw.sendall(garbage)
            raw.shutdown(socket.SHUT_WR)
            raw.recv(1000)


def use_a_session(conninfo: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as client:
        for _ in range(2):
            assert client.execute(shop.BUSY.encode()).fetchall() == shop.BUSY_STORES
        question = "SELECT store FROM sales WHERE note <> %s GROUP BY store HAVING count(*) > 1000"
        assert client.execute(question, [SECRET]).fetchall() == shop.BUSY_STORES
        client.execute(b"EXPLAIN " + shop.BUSY.encode())
        client.execute(b"SELECT 'zebra'")
        client.execute(b"SELECT * FROM keyhole.budget, stores")
        for statement in (
            "SELECT store, count(*) FROM sales WHERE note = 'zebra' GROUP BY store",
            "SELECT store FROM sales WHERE note ~ '(zebra)+' GROUP BY store HAVING count(*) > 7",
            "INSERT INTO sales (note) VALUES ('zebra')",
            "SELECT 'zebra'::integer",
            "SELECT * FROM sales WHERE note = 'zebra'",
            "SET keyhole.tolerance = 'zebra'",
            "COPY stores TO '/zebra'",
        ):
            refused(partial(client.execute, statement.encode()))


def break_the_protocol(port: int) -> None:
    with RawClient(port, password=PASSWORD) as raw:
        raw.send_bytes(b"Q" + struct.pack("!I", 2**31 - 1) + b"SELECT 'zebra'")
        raw.until_end()


def use_http(served: Served) -> None:
    with httpx.Client(base_url=served.rest, trust_env=False, timeout=PATIENCE_S) as client:
        body = {"sql": "SELECT store FROM sales WHERE note <> $1 GROUP BY store HAVING count(*) > 1000"}
        ada = {"Authorization": f"Bearer {TOKEN}"}
        assert client.get("/readyz").json() == {"status": "ready"}
        assert client.post("/v1/question", json={**body, "parameters": [SECRET]}, headers=ada).status_code == 200
        assert client.post("/v1/question", json={SECRET: SECRET}, headers=ada).is_client_error
        assert client.post("/v1/question", content=SECRET.encode(), headers=ada).is_client_error
        assert client.get("/v1/budget", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 401
        assert client.get(f"/{SECRET}?{SECRET}={SECRET}", headers={SECRET: SECRET}).status_code == 404
    for address in (served.rest, served.operator):
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as raw:
            raw.sendall(f"SELECT {SECRET}\r\nX\x00: {SECRET}\r\n\r\n".encode())
            raw.shutdown(socket.SHUT_WR)
            raw.recv(1000)


def shorten_the_timeout(served: Served) -> None:
    """What fails is told when the policy's timeout is over: until then, questions had all the time they needed."""
    policy = served.policy
    policy.write_text(policy.read_text(encoding="utf-8").replace(f"= {LONG_MS}", "= 300"), encoding="utf-8")
    served.process.send_signal(signal.SIGHUP)
    eventually(lambda: any(event["event"] == "policy reloaded" for event in served.read_log()))


def lose_the_source_and_the_ledger(served: Served, conninfo: str, source: str, ledger: Path) -> None:
    """The engine's own messages name columns and addresses, the ledger's driver its statement."""
    with psycopg.connect(conninfo, autocommit=True) as client:
        with psycopg.connect(source, autocommit=True) as owner:
            owner.execute(b"ALTER TABLE sales RENAME COLUMN store TO zebra")
            refused(lambda: client.execute(b"SELECT store FROM sales GROUP BY store HAVING count(*) > 77"))
            owner.execute(
                b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                b" WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            owner.execute(b"ALTER TABLE visits RENAME TO zebra")
            refused(lambda: client.execute(shop.WARDS.encode()))
        with sqlite3.connect(ledger) as vandal:
            vandal.execute("ALTER TABLE events RENAME TO zebra")
        refused(lambda: client.execute(b"SELECT store FROM sales GROUP BY store HAVING count(*) > 78"))
        eventually(
            lambda: httpx.get(f"{served.operator}/readyz", trust_env=False, timeout=PATIENCE_S).status_code == 503
        )


@pytest.fixture(scope="module")
def logged(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    """What a Keyhole on PostgreSQL logs at level debug while everything above is done to it."""
    tmp_path = tmp_path_factory.mktemp("logged")
    with new_database(postgres_url) as source:
        shop.fill_postgres(source)
        policy = write_policy(tmp_path, source=source, timeout_ms=LONG_MS)
        text = policy.read_text(encoding="utf-8")
        text = text.replace('database = "shop"', 'database = "retail"\nlog_level = "debug"')
        token = sha256(TOKEN.encode()).hexdigest()
        policy.write_text(text.replace("[analysts.ada]", f'[analysts.ada]\ntoken_sha256 = "{token}"'), encoding="utf-8")
        check(policy, confirm=True)
        with served(policy) as running:
            conninfo = f"host=127.0.0.1 port={running.port} user=ada dbname=retail"
            attack_the_login(running.port, conninfo)
            use_a_session(f"{conninfo} password='{PASSWORD}'")
            break_the_protocol(running.port)
            use_http(running)
            shorten_the_timeout(running)
            lose_the_source_and_the_ledger(
                running, f"{conninfo} password='{PASSWORD}'", source, tmp_path / "keyhole.db"
            )
        return running.read_log()


def documented() -> dict[str, set[str]]:
    """The events of docs/metrics.md with their fields."""
    listed = PAGE.split("\n## Logs\n")[1].split("\n## ")[0]
    rows = re.findall(r"^- `([^`]+)`(?: \(([^)]*)\))?:\s", listed, re.MULTILINE)
    return {event: set(re.findall(r"`(\w+)`", fields)) for event, fields in rows}


def test_the_log_tells_what_happened_and_nothing_of_data_or_statements(logged: list[dict[str, object]]) -> None:
    # what an event is called is documented below; a column that is gone is named, as the policy names it
    others = [event for event in logged if event["event"] != "a column is not what it was pinned as"]
    whole = "\n".join(f"{name}={told}" for event in others for name, told in event.items() if name != "event").lower()
    for forbidden in (SECRET, PASSWORD, VERIFIER, *KEYS, *SQL):
        assert forbidden.lower() not in whole, forbidden
    known = documented()
    for event in logged:
        name = str(event["event"])
        assert name in known
        assert set(event) - {"event", "level", "timestamp", "session", "request"} <= known[name], event
    told = {(event["event"], event.get("outcome", event.get("code"))) for event in logged}
    assert told >= {
        ("started", None),
        ("session opened", None),
        ("question", "answered"),
        ("question", "stored"),
        ("question", "failed"),
        ("refused", "KH101"),
        ("refused", "KH401"),
        ("refused", "KH402"),
        ("refused", "KH501"),
        ("refused", "KH502"),
        ("request", "KH401"),
        ("request", "KH408"),
        ("turned away", None),
        ("not ready", None),
        ("session closed", None),
        ("stopping", None),
    }
    for event in logged:
        assert event.get("analyst") in {None, "ada"}


def test_the_log_has_no_durations_of_questions(logged: list[dict[str, object]]) -> None:
    (fields,) = {frozenset(event) for event in logged if event["event"] == "question" and "session" in event}
    assert fields == {"event", "level", "timestamp", "session", "analyst", "question", "outcome"}


LIBRARIES = """
import asyncio, logging, warnings
from proxy.observe.logs import log_to_standard_error
log_to_standard_error("{level}")
logging.getLogger("psycopg.pool").warning("error connecting: %s", "zebra")
logging.getLogger("sqlalchemy").info("SELECT zebra")
warnings.warn("zebra")
async def fail():
    await asyncio.wait({{asyncio.ensure_future(asyncio.to_thread(int, "zebra"))}})
asyncio.run(fail())
"""


def test_what_libraries_log_is_named_and_not_repeated() -> None:
    done = forked.run(
        [sys.executable, "-c", LIBRARIES.format(level="info")], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert SECRET not in done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert {line["library"] for line in lines} == {"psycopg.pool", "py.warnings", "asyncio"}
    (lost,) = (line for line in lines if line["library"] == "asyncio")
    assert lost["kind"] == "ValueError"
    assert {line["event"] for line in lines} <= set(documented())


def test_the_level_decides_what_is_logged() -> None:
    done = forked.run(
        [sys.executable, "-c", LIBRARIES.format(level="error")], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert {json.loads(line)["level"] for line in done.stderr.splitlines()} == {"error"}


def logged_by(path: Path) -> Iterator[str]:
    """The events that a file names in calls of `log`."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "log." in text else ():
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="log")), args=[ast.Constant(value=str(event)), *_]):
                yield event


def test_every_event_is_documented() -> None:
    named = {event for path in (ROOT / "proxy").rglob("*.py") for event in logged_by(path)}
    assert len(named) > 3
    assert named <= set(documented())
