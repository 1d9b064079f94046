"""`keyhole serve` in a process of its own, as an operator runs it, with its log in a file."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.effort import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from proxy.cli.main import main; main()")
_STARTED = re.compile(
    r"endpoint postgresql://\S+:(\d+)/\S+, REST and docs http://\S+:(\d+)/docs, metrics on port (\d+)"
)


@dataclass(frozen=True)
class Served:
    """A running Keyhole and where it listens."""

    process: subprocess.Popen[str]
    port: int
    rest: str
    operator: str
    log: Path

    def scrape(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """The metrics, by name and labels."""
        return scraped(
            httpx.get(f"{self.operator}/metrics", trust_env=False, timeout=PATIENCE_S).raise_for_status().text
        )

    def events(self) -> list[dict[str, Any]]:
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
    log = policy.with_name("log")
    arguments = [*COMMAND, "serve", "--policy", str(policy), "--port=0", "--rest-port=0", "--metrics-port=0", *flags]
    own = {**os.environ, **(environment or {})}
    with (
        log.open("w") as errors,
        subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=own) as process,
    ):
        try:
            assert process.stdout is not None
            told = _STARTED.match(process.stdout.readline())
            assert told is not None, log.read_text(encoding="utf-8")
            port, rest, operator = told.groups()
            yield Served(process, int(port), f"http://127.0.0.1:{rest}", f"http://127.0.0.1:{operator}", log)
            assert process.poll() in (None, 0)  # or it was told to end
        finally:
            process.terminate()
            status = process.wait()
        assert status == 0
