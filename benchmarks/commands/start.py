"""The cost of starting a command, in starts of an empty Python: `python -m benchmarks.commands.start`.

Processor time of whole processes, the least of several rounds; a round starts each command once, so that other work on
the machine weighs on all alike. A first round, which does not count, writes compiled files.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from deploy.demo import build
from proxy.cli.check import check

ROUNDS = 7
NOTHING = "an empty Python"
QUESTION = "SELECT country, month FROM sales GROUP BY country, month HAVING count(*) > 500"
_KEYHOLE = "from proxy.cli.script import run; run()"


def list_commands(policy: Path) -> Mapping[str, Sequence[str]]:
    """The arguments for Python of everything that is started, by name; the last ones work over `policy`."""
    asked = ("--version", "--help", "explain --help", "budget --help", "check --help")
    over = {"explain": ("explain", QUESTION), "budget": ("budget",), "check": ("check",)}
    return {
        NOTHING: ("-c", "pass"),
        **{name: ("-c", _KEYHOLE, *name.split()) for name in asked},
        **{name: ("-c", _KEYHOLE, *words, "--policy", str(policy)) for name, words in over.items()},
    }


def measure(started: Mapping[str, Sequence[str]], *, rounds: int) -> dict[str, float]:
    """The least processor time of each in seconds. Raises RuntimeError for one that fails."""
    spent: dict[str, list[float]] = {name: [] for name in started}
    for _ in range(1 + rounds):
        for name, arguments in started.items():
            spent[name].append(_run(arguments))
    return {name: min(taken[1:]) for name, taken in spent.items()}


def _run(arguments: Sequence[str]) -> float:
    """The processor time of a Python with these arguments and of what it waited for. What it prints is thrown away."""
    silent = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    process = os.posix_spawn(sys.executable, [sys.executable, *arguments], compiled, file_actions=silent)
    _, status, used = os.wait4(process, 0)
    if status:
        raise RuntimeError(f"{' '.join(arguments)} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def write_report(least: Mapping[str, float]) -> Iterator[str]:
    """The report: each in milliseconds, and in starts of an empty Python."""
    for name, taken in least.items():
        yield f"{name:16} {1000 * taken:6.0f} ms {taken / least[NOTHING]:6.1f}"


def main() -> None:
    """Measure over the demo's policy, and print."""
    with tempfile.TemporaryDirectory(prefix="keyhole-") as folder:
        policy = build.install_demo(Path(folder))
        check(policy, confirm=True)
        print(*write_report(measure(list_commands(policy), rounds=ROUNDS)), sep="\n")


if __name__ == "__main__":
    main()
