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


def test_what_is_named_is_there_and_named_once() -> None:
    for file, named in LONG.items():
        assert {name.partition("[")[0] for name in named} <= _tests_of(TESTS / file), file
        assert len(set(named)) == len(named), file
        parts, whole = {name.partition("[")[0] for name in named if "[" in name}, {*named}
        assert not parts & whole, file


def test_every_folder_keeps_most_of_its_tests() -> None:
    folders = {Path(file).parent for file in LONG}
    for folder in folders:
        whole = {file: [name for name in names if "[" not in name] for file, names in LONG.items()}
        left_out = {name for file, names in whole.items() if Path(file).parent == folder for name in names}
        every = [name for path in (TESTS / folder).glob("test_*.py") for name in _tests_of(path)]
        assert len(left_out) < len(every) / 2, folder


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
