"""Pairs of SQL and outcome from tests/spec: a statement on one or more lines, then `--> ` and what becomes of it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Followed:
    """A hint in words that was followed: what was refused with it over which catalog, what was written then, and what
    came of that."""

    catalog: str
    refused: str
    hint: str
    written: str
    outcome: str


SPEC = Path(__file__).parent.parent / "spec"


def pairs(name: str) -> list[tuple[str, str]]:
    """The pairs of one file, in order; of a hint that was followed what was written then."""
    found: list[tuple[str, str]] = []
    lines: list[str] = []
    for line in (SPEC / name).read_text().splitlines():
        if line.startswith("--> "):
            found += [("\n".join(lines).strip(), line.removeprefix("--> "))] if lines else []
            lines = []
        elif line.startswith("--! "):
            lines = []
        elif not line.startswith(("-- #", "--@ ")):
            lines.append(line)
    assert not "".join(lines).strip(), "a statement without an outcome"
    return found


def followed_hints() -> list[Followed]:
    """What tests/spec/followed.sql says: `--@ ` names the catalog, `--! ` is the hint of what stands before it."""
    found: list[Followed] = []
    catalog, hint, refused = "", "", ""
    lines: list[str] = []
    for line in (SPEC / "followed.sql").read_text().splitlines():
        if line.startswith("--@ "):
            catalog = line.removeprefix("--@ ")
        elif line.startswith("--! "):
            refused, hint, lines = "\n".join(lines), line.removeprefix("--! "), []
        elif line.startswith("--> "):
            found.append(Followed(catalog, refused, hint, "\n".join(lines), line.removeprefix("--> ")))
            lines = []
        elif not line.startswith("-- #"):
            lines.append(line)
    assert not lines, "a statement without an outcome"
    return found
