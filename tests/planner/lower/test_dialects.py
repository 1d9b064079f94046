"""Engines differ by the fields of their dialects alone: no code asks a dialect for its name to decide what to write."""

import ast
import pickle
from dataclasses import fields
from pathlib import Path

import pytest

import planner
import proxy
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.dialects.sail import SAIL
from planner.lower.dialects.spark import SPARK
from tests.in_turn import in_turn

ROOT = Path(__file__).parents[3]
DIALECTS = (DUCKDB, POSTGRES, SPARK, SAIL)
FILES = [path for package in (planner, proxy) for path in Path(package.__path__[0]).rglob("*.py")]


def _is_dialect(node: ast.expr) -> bool:
    """Whether an expression ends in a dialect or its name: `dialect`, `row.dialect`, `source.dialect.name`."""
    if isinstance(node, ast.Attribute) and node.attr == "name":
        node = node.value
    return (isinstance(node, ast.Attribute) and node.attr == "dialect") or (
        isinstance(node, ast.Name) and node.id == "dialect"
    )


def _compared(path: Path) -> list[str]:
    text = path.read_text()
    if "dialect" not in text:  # most files: without the word there is nothing to find
        return []
    tree = ast.parse(text)
    found: list[ast.expr] = [
        side for node in ast.walk(tree) if isinstance(node, ast.Compare) for side in (node.left, *node.comparators)
    ]
    found += [node.subject for node in ast.walk(tree) if isinstance(node, ast.Match)]
    return [f"{path.relative_to(ROOT)}:{side.lineno}" for side in found if _is_dialect(side)]


def test_no_code_compares_dialects() -> None:
    assert len(FILES) > 250
    assert [place for path in FILES for place in _compared(path)] == []


def test_a_comparison_would_be_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.planner.lower.test_dialects.ROOT", tmp_path)
    path = tmp_path / "row.py"
    path.write_text("if row.dialect.name == 'duckdb':\n    pass\nmatch dialect:\n    case _:\n        pass\n")
    assert _compared(path) == ["row.py:1", "row.py:3"]


@in_turn("field", [field.name for field in fields(Dialect)])
def test_every_field_is_a_difference(field: str) -> None:
    assert len({getattr(dialect, field) for dialect in DIALECTS}) > 1


def test_a_dialect_is_a_value() -> None:
    for dialect in DIALECTS:
        assert pickle.loads(pickle.dumps(dialect)) == dialect
        assert hash(dialect) == hash(pickle.loads(pickle.dumps(dialect)))
