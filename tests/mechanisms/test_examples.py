"""The examples in docstrings are run, and say what they print."""

import doctest
import importlib
from pathlib import Path
from types import ModuleType

from tests.in_turn import in_turn

ROOT = Path(__file__).resolve().parents[2]
PATHS = [
    path.relative_to(ROOT)
    for package in ("mechanisms", "accountant", "planner", "proxy")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>> " in path.read_text()
]


def module(path: Path) -> ModuleType:
    return importlib.import_module(".".join(path.with_suffix("").parts))


@in_turn("path", PATHS)
def test_examples(path: Path) -> None:
    tried = doctest.testmod(module(path))
    assert (tried.attempted > 0, tried.failed) == (True, 0)


def test_the_numbers_that_everything_rests_on_have_examples() -> None:
    """Of each package that computes without state: formulas, noise, splits of rates, tests of a threshold, losses."""
    assert {str(path.parent) for path in PATHS} >= {
        "mechanisms",
        "mechanisms/apportionment",
        "mechanisms/noise",
        "mechanisms/threshold",
    }
