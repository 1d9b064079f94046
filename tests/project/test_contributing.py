"""CONTRIBUTING.md leads to what is there: recipes through files that exist, and targets of make."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = (
    *("A setting", "A refusal", "An aggregate", "A mechanism", "A source", "A REST endpoint", "A page of the console"),
    *("A page of the documentation", "A SQL type", "A ledger event"),
)


def named_files(text: str) -> list[str]:
    return re.findall(r"`((?:[\w.-]+/)+[\w.-]*)`", text)


def test_the_recipes_name_files_that_exist() -> None:
    recipes = re.split(r"\n### (.+)\n", PAGE.split("\n## Recipes\n")[1].split("\n## ")[0])
    assert tuple(recipes[1::2]) == RECIPES
    for recipe in recipes[2::2]:
        assert len(set(named_files(recipe))) >= 5, recipe
    named = named_files(PAGE)
    assert len(named) > 60
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_targets_that_are_named_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", PAGE))
    assert len(targets) >= 5
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
