"""What `make test` leaves out is there, and leaves something of its folder in."""

import ast
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
