"""`keyhole serve` in processes of its own, so that its memory is its own and a second core is used."""

import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.workload import ANALYST, PASSWORD

_STARTED = re.compile(r"endpoint (postgresql://\S+), REST and docs (\S+)/docs")


@dataclass(frozen=True, slots=True)
class Serving:
    """A running Keyhole: its URL for PostgreSQL's drivers, where REST is, and the ids of its processes."""

    url: str
    rest: str
    processes: tuple[int, ...]


@contextmanager
def run_keyhole(policy: Path, *, workers: int) -> Iterator[Serving]:
    """A Keyhole in processes of its own."""
    command = [sys.executable, "-c", "from proxy.cli.script import run; run()", "serve", f"--policy={policy}"]
    command += ["--port=0", "--rest-port=0", f"--workers={workers}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as parent:
        try:
            told = _STARTED.match("" if parent.stdout is None else parent.stdout.readline())
            if told is None:
                raise RuntimeError("Keyhole did not start")
            place = told[1].removeprefix("postgresql://")
            yield Serving(f"postgresql://{ANALYST}:{PASSWORD}@{place}", told[2], _list_family(parent.pid))
            parent.send_signal(signal.SIGTERM)
            if parent.wait(timeout=60):
                raise RuntimeError("Keyhole did not end well")
        finally:
            parent.kill()


def _list_family(parent: int) -> tuple[int, ...]:
    """Keyhole's own processes; the shadow's are not its children."""
    found = [parent]
    for folder in Path("/proc").iterdir():
        with suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[1]) == parent and b"python" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return tuple(found)


def measure_memory(processes: tuple[int, ...]) -> Counter[str]:
    """Bytes of all of them by the kernel's names: Rss, Pss (shared pages divided), and private ones as Uss."""
    found: Counter[str] = Counter()
    for process in processes:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
            name, size, *_ = line.replace(":", " ").split()
            found[name] += 1024 * int(size)
            if name.startswith("Private"):
                found["Uss"] += 1024 * int(size)
    return found
