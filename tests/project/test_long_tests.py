"""What `make test` leaves out is there, and leaves something of its folder in; what `make test-oldest` leaves out is
run at full size."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.long_tests import LONG

TESTS = Path(__file__).parents[1]


def _tests_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {name for name in functions if name.startswith("test_")}


@pytest.mark.parametrize("file", LONG)
def test_what_is_named_is_there_and_named_once(file: str) -> None:
    named = LONG[file]
    assert {name.partition("[")[0] for name in named} <= _tests_of(TESTS / file)
    assert len(set(named)) == len(named)
    assert not {name.partition("[")[0] for name in named if "[" in name} & {name for name in named if "[" not in name}


@pytest.mark.parametrize("folder", sorted({str(Path(file).parent) for file in LONG}))
def test_every_folder_keeps_most_of_its_tests(folder: str) -> None:
    files = (TESTS / folder).glob("test_*.py")
    left_out = {
        name for file, names in LONG.items() if str(Path(file).parent) == folder for name in names if "[" not in name
    }
    every = [name for path in files for name in _tests_of(path)]
    assert len(left_out) < len(every) / 2


@pytest.mark.parametrize(("selected", "files"), [("sized", {"test_same_integers.py"}), ("not sized", set[str]())])
def test_what_the_oldest_python_leaves_out_is_drawn_and_sized(selected: str, files: set[str]) -> None:
    """Statements that hypothesis draws, where nothing runs side by side: all of them are in `make test-thorough`."""
    folder = "tests/proxy/sources"
    names = ("test_rollups.py", "test_same_integers.py", "test_sources.py")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", f"drawn and {selected}"]
        + [f"{folder}/{name}" for name in names],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    found = {line.partition("::")[0] for line in told.stdout.splitlines() if "::" in line}
    assert found == {f"{folder}/{name}" for name in files}, told.stdout
