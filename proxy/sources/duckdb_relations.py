"""Which tables and files a relation of DuckDB is, by the engine's own reading of it: its plan before any rewriting."""

import json
import os.path
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import tokenize

from planner.catalog.relations import RelationIdentity
from planner.values.sql_literals import text

Run = Callable[[str], list[tuple[Any, ...]]]

EXPLAIN_ALL = "SET GLOBAL explain_output = 'all'"
"""What an instance needs for `identify_relation`: EXPLAIN without it shows the optimised plan, where views are gone."""
_STORED = "SEQ_SCAN"
_WORDS = frozenset({"STRING", "IDENTIFIER", "VAR"})
_UNIQUE = """
SELECT lower(database_name || '.' || schema_name || '.' || table_name), constraint_column_names[1]
FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND len(constraint_column_names) = 1
"""
_DEFINITIONS = """
SELECT lower(view_name), sql FROM duckdb_views() WHERE NOT internal
UNION ALL SELECT lower(function_name), macro_definition FROM duckdb_functions()
WHERE NOT internal AND macro_definition IS NOT NULL
"""


def identify_relation(relation: str, *, run: Run, directory: Path) -> RelationIdentity:
    """What `relation` is; files below `directory` are called by their place there.

    DuckDB's logical plan names every stored table by catalog, schema and name, whatever view, macro or spelling led to
    it. It names no files, so these are looked for among the literals of the relation and of the views it may read.
    """
    plans: dict[str, str] = dict(run(f"EXPLAIN (FORMAT json) SELECT * FROM {relation}"))
    (plan,) = json.loads(plans["logical_plan"])
    leaves = [node for node in _walk(plan) if not node["children"]]
    stored = {node["extra_info"]["Table"].lower() for node in leaves if node["name"] == _STORED}
    others = [node for node in leaves if node["name"] != _STORED]
    files = _find_files(relation, run=run) if others else {}
    is_view = any(child["children"] for child in plan["children"])
    if is_view:
        names: tuple[str, ...] = (f"view {relation.lower()}",)
    elif stored:
        ((database,),) = run("SELECT lower(current_database())")
        names = tuple(name.removeprefix(f"{database}.") for name in stored)
    else:
        spelled = {f"file {_place(os.path.abspath(path), directory)}" for path in files}
        followed = {f"file {_place(str(path), directory)}" for one in files.values() for path in one}
        names = (*sorted(spelled), *sorted(followed - spelled)) if files else (f"file {relation}",)
    found = {path.stat() for one in files.values() for path in one}
    return RelationIdentity(
        names=names,
        bases=frozenset(stored | {f"file {one.st_dev}:{one.st_ino}" for one in found}),
        is_view=is_view,
        joins=len(stored) + len(others) > 1,
        unique=frozenset(column for table, column in run(_UNIQUE) if not is_view and table in stored),
    )


def read_state(relation: str, *, run: Run, database: Path | None) -> str:
    """Place, inode, size and time of every file that the relation reads, and of the database's own."""
    files = {path for one in _find_files(relation, run=run).values() for path in one}
    found = [(str(path), path.stat()) for path in sorted(files | ({database} if database is not None else set()))]
    return str([(path, one.st_ino, one.st_size, one.st_mtime_ns) for path, one in found])


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _walk(child)


def _find_files(relation: str, *, run: Run) -> dict[str, list[Path]]:
    """The files that words of the relation's text stand for, or words of a view or macro named there."""
    definitions: dict[str, str] = dict(run(_DEFINITIONS))
    found: dict[str, list[Path]] = {}
    waiting, seen = [relation], set()
    while waiting:
        for token in tokenize(waiting.pop(), read="duckdb"):
            word = token.text
            if token.token_type.name not in _WORDS or word in seen:
                continue
            seen.add(word)
            if word.lower() in definitions:
                waiting.append(definitions[word.lower()])
            elif files := _glob(word, run=run):
                found[word] = files
    return found


def _glob(pattern: str, *, run: Run) -> list[Path]:
    """The files that DuckDB reads under a name; none where it may not look."""
    try:
        return [Path(file).resolve() for (file,) in run(f"SELECT file FROM glob({text(pattern)})")]
    except duckdb.Error:
        return []


def _place(file: str, directory: Path) -> str:
    path, root = Path(file), directory.resolve()
    return str(path.relative_to(root)) if path.is_relative_to(root) else file
