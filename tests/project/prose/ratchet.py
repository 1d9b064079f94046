"""The ratchet: how many findings each file may still have. A number falls, and never rises."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path

ALLOWED = Path(__file__).with_name("allowed.toml")
_HEAD = "# Findings that a file may still have: python -m tests.project.prose --update lowers them.\n"


def read_allowed(path: Path = ALLOWED) -> dict[str, int]:
    """Return the number of findings that is allowed in each file; a file that is not named may have none."""
    return {str(name): int(number) for name, number in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def find_excess(found: Mapping[str, int], allowed: Mapping[str, int]) -> dict[str, int]:
    """Map each file with more findings than it may have to the number that it may have."""
    return {name: allowed.get(name, 0) for name, number in found.items() if number > allowed.get(name, 0)}


def lowered(found: Mapping[str, int], allowed: Mapping[str, int]) -> dict[str, int]:
    """Return the least numbers that none of the files raises; files without findings have none."""
    least = {name: min(number, found.get(name, 0)) for name, number in allowed.items()}
    return {name: number for name, number in sorted(least.items()) if number}


def write_allowed(allowed: Mapping[str, int], path: Path = ALLOWED) -> None:
    """Write the numbers, a line for each file."""
    lines = "".join(f"{json.dumps(name)} = {number}\n" for name, number in allowed.items())
    path.write_text(_HEAD + lines, encoding="utf-8")
