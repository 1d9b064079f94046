"""Which test files have their turn in a run that leaves some out: those near a change, and a share that rotates.

`--turn=COMMIT` keeps the tests of files that are near what the commits of the day before `COMMIT` changed, and one file
in `SHARES` of all others. The commit's hash says which, so that after a few landings every file has had its turn. Where
a day changed nearly everything the nearest have their turn, up to `MOST_NEAR` of all.
`--near=COMMIT` keeps those alone that are near what was changed since `COMMIT`, committed or not.
A file is near a change if it changed, if it imports a module that changed, or if it lies in the folder of tests for the
package of such a module, or below a `conftest.py` that changed; the first are nearest. A run that may not take long
begins with the nearest. Without a history, as in a tree that is no clone, what the tests say takes the place of the
commit's hash.
"""

import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from zlib import crc32

import grimp

SHARES = 4
"""A larger number makes a run shorter, and a fault that only full size shows is found later: after about as many
landings as there are shares."""
MOST_NEAR = 0.3
"""Of all files: with its share a run takes half the time of one that leaves nothing out."""
PACKAGES = ("accountant", "benchmarks", "deploy", "mechanisms", "planner", "proxy", "tests")
ROOT = Path(__file__).parent.parent
_FAR = 3  # farther than whatever is near


@dataclass(frozen=True, slots=True)
class Turn:
    """The files near a change with how near each is, the share of the others that has its turn, if any, and what
    decides which of these come first."""

    near: Mapping[str, int]
    share: int | None = None
    seed: str = ""

    def has(self, file: str) -> bool:
        """Return True if a test file, named from the project's root, has its turn."""
        return file in self.near or crc32(file.encode()) % SHARES == self.share

    def place(self, file: str) -> tuple[int, int]:
        """Return what files are sorted by where not all that have a turn may be run: the nearest, then the others in
        another order at each commit."""
        return self.near.get(file, _FAR), crc32(f"{self.seed} {file}".encode())


@cache
def find_turn(commit: str) -> Turn:
    """Return who has a turn at a commit."""
    try:
        sha, date = _ask_git("log", "-1", "--format=%H %ct", commit).split()
        day_before = f"--since={int(date) - 24 * 3600}"
        changed = _ask_git("log", day_before, "--format=", "--name-only", "--no-renames", "-m", commit).splitlines()
    except (OSError, subprocess.CalledProcessError):
        sha, changed = f"{_hash_tests():x}", []
    share = int(sha, 16) % SHARES
    return Turn(find_nearest(changed, share), share, sha)


def _hash_tests() -> int:
    """A number that another one takes the place of whenever a test changes."""
    return reduce(lambda summed, file: crc32(file.read_bytes(), summed), sorted((ROOT / "tests").rglob("*.py")), 0)


@cache
def find_changed(since: str) -> Turn | None:
    """Return the turn of what was changed since a commit, files that git does not know yet included; None without a
    history."""
    try:
        changed = _ask_git("diff", "--name-only", "--no-renames", since).splitlines()
        changed += _ask_git("ls-files", "--others", "--exclude-standard").splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    return Turn(find_near(changed))


def find_nearest(changed: Collection[str], share: int) -> dict[str, int]:
    """Return the test files near files that changed and how near each is; of too many the nearest, and of equally near
    ones others with each share."""
    near = find_near(changed) if changed else {}
    most = round(MOST_NEAR * sum(1 for _ in (ROOT / "tests").rglob("test_*.py")))
    nearest = sorted(near, key=lambda file: (near[file], crc32(f"{share} {file}".encode())))[:most]
    return {file: near[file] for file in nearest}


@cache
def _build_graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def find_near(changed: Collection[str]) -> dict[str, int]:
    """Return the test files near files that changed, all named from the project's root, and how near: 0 is nearest."""
    python = {one for one in changed if one.endswith(".py")}
    modules = {one.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for one in python}
    graph = _build_graph()
    direct = {
        importer
        for module in modules & graph.modules
        for importer in graph.find_modules_that_directly_import(module)
        if importer.startswith("tests.")
    }
    below = tuple(one.removesuffix("conftest.py") for one in python if one.endswith("/conftest.py"))
    folders = {("tests", *one.split("/")[:-1]) for one in python if not one.startswith("tests/")}

    def distance(file: str) -> int | None:
        if file in python:
            return 0
        if file.removesuffix(".py").replace("/", ".") in direct:
            return 1
        return 2 if tuple(file.split("/")[:-1]) in folders or file.startswith(below) else None

    files = (path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))
    return {file: found for file in files if (found := distance(file)) is not None}


def _ask_git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()
