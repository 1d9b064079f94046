"""Apply each mutant in a copy of the project, and run the tests near it: `python -m tests.mutants [PART OF A NAME]...`

Survivors are told, and end the run with 1. Each is to be killed by a test, or to say in the catalogue why it changes
nothing.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.catalogue import ROOT, Mutant, read_mutants

TIMEOUT_S = 900  # a mutant that hangs is noticed, too
_SELECTED = "not (installed or long)"  # what `make test` runs: nothing else may be what notices a mutant
_COPIED = ("accountant", "benchmarks", "deploy", "docs", "mechanisms", "planner", "proxy", "tests", "pyproject.toml")


def _copy(folder: Path) -> None:
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)


def _pass(tests: Iterable[str], folder: Path) -> bool:
    """Return True if the tests pass in the copy; a run that never ends does not."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", _SELECTED, *tests]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, timeout=TIMEOUT_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def _survives(mutant: Mutant, folder: Path) -> bool:
    before = mutant.apply(folder)
    try:
        return _pass(mutant.tests, folder)
    finally:
        (folder / mutant.file).write_text(before, encoding="utf-8")


def main(wanted: list[str]) -> int:
    """Run those mutants whose name has one of the texts, or all that are not equivalent; return the exit code."""
    mutants = [one for one in read_mutants() if not one.equivalent]
    chosen = [one for one in mutants if not wanted or any(text in one.name for text in wanted)]
    survivors = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _copy(folder)
        if not _pass(sorted({path for one in chosen for path in one.tests}), folder):
            print("the tests fail without any mutant")
            return 2
        for number, mutant in enumerate(chosen, start=1):
            survived = _survives(mutant, folder)
            print(f"{number}/{len(chosen)} {'SURVIVED' if survived else 'killed'} {mutant.name}", flush=True)
            survivors += [mutant] if survived else []
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} killed")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
