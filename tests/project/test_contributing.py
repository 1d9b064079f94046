"""CONTRIBUTING.md leads to what is there: recipes and walks through files that exist, and targets of make."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = ("A setting", "An error code", "An aggregate", "A mechanism", "A source", "A page of the console")
WALKS = (
    "A new aggregate is refused",
    "An answer has the wrong SQL type",
    "A new ledger event",
    "A new REST field",
    "A new mechanism",
)


def named_files(text: str) -> list[str]:
    return re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", text)


def test_the_recipes_and_walks_name_files_that_exist() -> None:
    recipes = PAGE.split("\n## Recipes\n")[1].split("\n## ")[0]
    assert tuple(re.findall(r"\n### (.+)\n", recipes)) == RECIPES
    walks = PAGE.split("\n## Which file to change\n")[1].split("\n## ")[0]
    for walk in WALKS:
        (paragraph,) = (part for part in walks.split("\n\n") if part.startswith(f"**{walk}"))
        assert len(set(named_files(paragraph))) >= 5
    named = named_files(PAGE)
    assert len(named) > 60
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", PAGE))
    assert len(targets) >= 5
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
