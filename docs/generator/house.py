"""The lists of docs/architecture.md: every package of the house and the sentence of its sign.

A package's sign is the docstring of its `__init__.py`: one sentence, then lines that begin as `LINES` has them. The
layers in pyproject.toml say what a room may import, and import-linter checks it.
"""

import ast
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "architecture.md"
HOUSES = ("planner", "proxy", "accountant", "mechanisms")
_LEAST_WORDS = 3
LINES = ("May refuse:", "May import:", "Read first:")


@dataclass(frozen=True, slots=True)
class Room:
    """A package, or a module that stands for itself, on its layer of a house."""

    house: str
    name: str
    below: tuple[str, ...]  # the rooms of the next layer down

    @property
    def path(self) -> Path:
        """The file whose docstring is the room's sign."""
        package = ROOT / self.house / self.name
        return package / "__init__.py" if package.is_dir() else package.with_suffix(".py")

    @property
    def shown(self) -> str:
        """The room's path from the root of the project."""
        path = self.path.relative_to(ROOT)
        return f"{path.parent}/" if path.name == "__init__.py" else str(path)

    @property
    def may_import(self) -> str:
        """The line of the sign on imports."""
        if not self.below:
            return f"nothing else of {self.house}"
        return f"{', '.join(f'`{name}`' for name in self.below)} and below"


def read_rooms(house: str) -> list[Room]:
    """Return the rooms of a house from the top layer down, as its contract in pyproject.toml has them."""
    layers = [tuple(name.strip() for name in layer.split("|")) for layer in _read_contract(house)["layers"]]
    below = [*layers[1:], ()]
    return [Room(house, name, under) for layer, under in zip(layers, below, strict=True) for name in layer]


def _read_contract(house: str) -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (found,) = (contract for contract in contracts if contract.get("containers") == [house])
    return dict(found)


def read_sign(path: Path) -> str:
    """Return the docstring of a package or module, empty if it has none."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def take_first_sentence(text: str) -> str:
    """Return a sign's first paragraph in one line."""
    return " ".join(text.split("\n\n")[0].split())


def find_line(text: str, beginning: str) -> str:
    """Return the text of a sign after one of `LINES`, continued lines included; empty if it has none."""
    said: list[str] = []
    for found in text.splitlines():
        if found.startswith(beginning):
            said = [found.removeprefix(beginning).strip()]
        elif said and not found.startswith(LINES):
            said.append(found.strip())
        elif said:
            break
    return " ".join(said).strip()


def write_list(house: str) -> str:
    """Return the packages of a house as a Markdown list, from the top layer down."""
    packages = (room for room in read_rooms(house) if room.path.name == "__init__.py")
    return "\n".join(f"- `{room.shown}`: {_shorten(take_first_sentence(read_sign(room.path)))}" for room in packages)


def _shorten(text: str) -> str:
    """Return the noun before a colon if it says enough by itself, else the whole sentence."""
    noun, _, rest = text.partition(":")
    return f"{noun}." if rest and len(noun.split()) >= _LEAST_WORDS else text


def replace_lists(page: str) -> str:
    """Return the page with every house's list as it is now, between the comments that mark its place."""
    for house in HOUSES:
        begin, end = f"<!-- {house}: made by docs.generator -->", f"<!-- {house}: end -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{write_list(house)}\n{end}{after}"
    return page
