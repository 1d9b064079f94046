"""Pairs of SQL and outcome from tests/spec: a statement on one or more lines, then `--> ` and what becomes of it."""

from pathlib import Path

SPEC = Path(__file__).parent.parent / "spec"


def pairs(name: str) -> list[tuple[str, str]]:
    """The pairs of one file, in order."""
    found: list[tuple[str, str]] = []
    lines: list[str] = []
    for line in (SPEC / name).read_text().splitlines():
        if line.startswith("--> "):
            found.append(("\n".join(lines).strip(), line.removeprefix("--> ")))
            lines = []
        elif not line.startswith("-- #"):
            lines.append(line)
    assert not "".join(lines).strip(), "a statement without an outcome"
    return found
