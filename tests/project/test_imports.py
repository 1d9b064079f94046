"""No module imports itself through others: what reads another's names stands above it, for types as well."""

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("accountant", "mechanisms", "planner", "proxy")


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# To parse a thousand whole files takes three seconds, their imports alone less than half a second.
_IMPORT = re.compile(
    r"^[ \t]*(from [\w.]+ import (?:\([^)]*\)|[^(\n]+)|import [\w.]+(?: as \w+)?(?=[ \t]*(?:#.*)?$))", re.MULTILINE
)


def imported_names(text: str) -> Iterator[str]:
    """Every name that an import statement reaches, at the top, under TYPE_CHECKING or inside a function."""
    for node in (ast.parse(one).body[0] for one in _IMPORT.findall(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "imports are absolute"
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def nearest_module(name: str, modules: Mapping[str, Path]) -> str | None:
    """The module that a dotted name is, or is defined in."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def import_graph(root: Path) -> dict[str, set[str]]:
    """Every module of the packages, and which others it imports."""
    paths = {module_name(path, root): path for package in PACKAGES for path in (root / package).rglob("*.py")}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        names = imported_names(path.read_text(encoding="utf-8"))
        found = {nearest_module(name, paths) for name in names}
        graph[module] = {other for other in found if other is not None and other != module}
    return graph


def test_no_module_imports_itself_through_others() -> None:
    graph = import_graph(ROOT)
    assert len(graph) > 300
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("a cycle of imports: " + " <- ".join(error.args[1]))


def test_a_cycle_that_only_types_close_is_found(tmp_path: Path) -> None:
    (tmp_path / "planner").mkdir()
    (tmp_path / "planner" / "above.py").write_text("def f():\n    from planner.below import g\n")
    (tmp_path / "planner" / "below.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from planner.above import f\n"
    )
    with pytest.raises(CycleError):
        TopologicalSorter(import_graph(tmp_path)).prepare()
