"""The mutants: each is one text of one file that becomes another, and the tests nearby that must fail of it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CATALOGUE = Path(__file__).parent / "mutants.toml"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place of a file; `tests` are the files that are run on it, from the project's root.

    `equivalent` says why nothing can tell it from the original; "" if something can.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @property
    def name(self) -> str:
        """The file and the change, in one line."""
        return f"{self.file}: {' '.join(self.old.split())} -> {' '.join(self.new.split())}"

    def apply(self, root: Path) -> str:
        """Change the file below a root, and return its text of before."""
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(self.old, self.new, 1), encoding="utf-8")
        return text


def read_mutants() -> tuple[Mutant, ...]:
    """Read the catalogue, in its order."""
    found = []
    for name, group in tomllib.loads(CATALOGUE.read_text(encoding="utf-8")).items():
        tests = tuple(group["tests"])
        for one in group["mutants"]:
            own = tuple(one.get("tests", tests))
            found.append(Mutant(name, one["old"], one["new"], own, one.get("equivalent", "")))
    return tuple(found)
