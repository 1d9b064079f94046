"""A Keyhole that runs as its owner would run it: `keyhole serve` in a process of its own, with its log in a file."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psycopg
import sqlalchemy
from prometheus_client.parser import text_string_to_metric_families

from planner.policy.file import Policy
from proxy.open_policy.service import open_ledger
from tests.children import forked
from tests.effort import PATIENCE_S
from tests.worlds.house import PASSWORD

USER = "ada"
ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from proxy.cli.script import run; run()")
_STARTED = re.compile(r"endpoint postgresql://([\w.]+):(\d+)/(\w+), REST and docs (\S+)/docs, metrics on port (\d+)")
_NUMBERS = count()


@dataclass(frozen=True)
class Served:
    """A running Keyhole, where it listens, and how ada reaches it."""

    policy: Path
    process: subprocess.Popen[str]
    host: str
    port: int
    database: str
    rest: str
    operator: str
    log: Path

    @property
    def address(self) -> dict[str, Any]:
        """What most drivers call the parts of an address."""
        return {
            "host": self.host,
            "port": self.port,
            "database": self.database,
            "user": USER,
            "password": PASSWORD,
        }

    @property
    def conninfo(self) -> str:
        """libpq's connection string."""
        return f"host={self.host} port={self.port} dbname={self.database} user={USER} password='{PASSWORD}'"

    @property
    def uri(self) -> str:
        """libpq's URI, password included."""
        return f"postgresql://{USER}:{quote(PASSWORD)}@{self.host}:{self.port}/{self.database}"

    def url(self, dialect: str) -> sqlalchemy.URL:
        """SQLAlchemy's URL for a driver."""
        return sqlalchemy.URL.create(dialect, USER, PASSWORD, host=self.host, port=self.port, database=self.database)

    def connect(self) -> psycopg.Connection[Any]:
        """A psycopg connection that commits every statement."""
        return psycopg.connect(self.conninfo, autocommit=True)

    @property
    def events(self) -> int:
        """How many events the ledger has; it is read anew and found unbroken."""
        ledger = open_ledger(Policy.load(self.policy))
        try:
            return ledger.verify_everything()
        finally:
            ledger.close()

    def scrape(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """The metrics, by name and labels."""
        return scraped(
            httpx.get(f"{self.operator}/metrics", trust_env=False, timeout=PATIENCE_S).raise_for_status().text
        )

    def read_log(self) -> list[dict[str, Any]]:
        """What was logged, each line as JSON."""
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]


def scraped(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Prometheus' text format as values by name and labels."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


@contextmanager
def served(policy: Path, *flags: str, environment: Mapping[str, str] | None = None) -> Iterator[Served]:
    """A Keyhole on free ports of loopback while the block runs; it is told to end with SIGTERM, and ends well."""
    log = policy.with_name(f"log{next(_NUMBERS)}")  # of its own: several may serve one policy at once
    arguments = [*COMMAND, "serve", "--policy", str(policy), "--port=0", "--rest-port=0", "--metrics-port=0", *flags]
    own = {**os.environ, **(environment or {})}
    with (
        log.open("w") as errors,
        forked.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=own) as process,
    ):
        try:
            assert process.stdout is not None
            told = _STARTED.match(process.stdout.readline())
            assert told is not None, log.read_text(encoding="utf-8")
            host, port, database, rest, operator = told.groups()
            yield Served(policy, process, host, int(port), database, rest, f"http://127.0.0.1:{operator}", log)
            assert process.poll() in (None, 0)  # or it was told to end
        finally:
            process.terminate()
            status = process.wait()
        assert status == 0


@contextmanager
def unchanged(clinic: Served) -> Iterator[None]:
    """Insist that the block changes nothing in the ledger."""
    before = clinic.events
    yield
    assert clinic.events == before
