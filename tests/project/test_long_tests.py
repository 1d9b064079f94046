"""What `make test` leaves out is there, and leaves something of its folder in; what `make test-oldest` leaves out is
run at full size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import spread
from tests.long_tests import LONG
from tests.mutants.catalogue import read_mutants

TESTS = Path(__file__).parents[1]


def _tests_of(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_what_is_named_is_there() -> None:
    for file, named in LONG.items():
        assert set(named) <= _tests_of(TESTS / file), file


def test_every_folder_keeps_most_of_its_tests() -> None:
    for folder in {Path(file).parent for file in LONG}:
        files = {file: named for file, named in LONG.items() if Path(file).parent == folder}
        left_out = [name for named in files.values() for name, kept in named.items() if kept == 0]
        every = [name for path in (TESTS / folder).glob("test_*.py") for name in _tests_of(path)]
        assert len(every) == 1 or len(left_out) < len(every) / 2, folder


def test_what_notices_a_mutant_is_left_out_on_a_second_engine_alone() -> None:
    near = {path.removeprefix("tests/") for mutant in read_mutants() for path in mutant.tests}
    for file in near & set(LONG):
        assert all(kept in (["postgresql"], ["postgres"]) for kept in LONG[file].values()), file


def test_of_many_cases_some_are_run_spread_over_all() -> None:
    assert spread(range(10), 3) == [0, 7, 4]
    assert sorted(spread(range(10), 12)) == [*range(10)]


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
