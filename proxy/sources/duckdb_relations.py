"""The tables, files and columns that a relation of DuckDB reads, found before any question is rewritten."""

import json
import os.path
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import duckdb

from planner.catalog.csv_file import find_header_line
from planner.catalog.relation_names import ForeignKey, RelationIdentity
from planner.catalog.sql_types import SourceColumn
from planner.question.plan import ReadRelation
from planner.values.sql_literals import quote_text
from proxy.sources.read_types import check_after_reading, check_types

Run = Callable[[str], list[tuple[Any, ...]]]
Looks: TypeAlias = Mapping[Path, tuple[int, int, int, int]]
"""Inode, size, time and time of the last change of files."""

_STAND_IN_NS = 978_307_200 * 10**9  # 2001: archives and image builds give files an earlier time, one to all

EXPLAIN_ALL = "SET GLOBAL explain_output = 'all'"
"""The settings of an instance for `identify_relation`: EXPLAIN without it shows the optimised plan, without views."""
_CSV = re.compile(r"^read_csv\('((?:[^']|'')*)'\)$")
_NAME = r'"((?:[^"]|"")+)"'
_NAMES = re.compile(rf"{_NAME}(?:\.{_NAME})*")
_PARQUET = re.compile(r"read_parquet\('((?:[^']|'')*)', utf8_validation = .*\)")
_STORED = "SEQ_SCAN"
_WORDS = frozenset({"STRING", "IDENTIFIER", "VAR"})
_TYPES = {
    "VARCHAR": "text",
    "TINYINT": "smallint",
    "UTINYINT": "smallint",
    "SMALLINT": "smallint",
    "USMALLINT": "integer",
    "INTEGER": "integer",
    "UINTEGER": "bigint",
    "BIGINT": "bigint",
    "UBIGINT": "numeric(20,0)",
    "HUGEINT": "numeric(38,0)",
    "UHUGEINT": "numeric(38,0)",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIME": "time without time zone",
    "TIMESTAMP": "timestamp without time zone",
    "TIMESTAMP_S": "timestamp without time zone",
    "TIMESTAMP_MS": "timestamp without time zone",
    "TIMESTAMP_NS": "timestamp without time zone",
    "TIMESTAMP WITH TIME ZONE": "timestamp with time zone",
    "INTERVAL": "interval",
    "UUID": "uuid",
    "BLOB": "bytea",
    "JSON": "json",
}
# of a fresh instance it makes all of DuckDB's own tables, too, which takes as long as all else that is asked of it
_UNIQUE = """
SELECT lower(database_name || '.' || schema_name || '.' || table_name), constraint_column_names[1]
FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND len(constraint_column_names) = 1
"""
_VIEWS = "SELECT lower(view_name), sql FROM duckdb_views() WHERE NOT internal"
# as dear as `_UNIQUE`
_MACROS = """
SELECT lower(function_name), macro_definition FROM duckdb_functions()
WHERE NOT internal AND macro_definition IS NOT NULL
"""


class FilesChanged(Exception):
    """The error for a relation whose files changed during reading."""


def identify_relation(relation: str, *, run: Run, directory: Path, database: Path | None) -> RelationIdentity:
    """Return the stored tables and files that a relation reads. Name files below `directory` by relative path.

    `database` is the file of the database, if there is one.

    DuckDB's logical plan names every stored table by catalog, schema and name, through any view, macro or spelling. The
    plan names no files. They are searched for among the literals of the relation, and of the views that it may read.
    """
    # a CSV file is not looked into: which rows it has must not decide whether it can be found
    found_by = _CSV.sub(r"read_text('\1')", relation)
    plans: dict[str, str] = dict(run(f"EXPLAIN (FORMAT json) SELECT * FROM {found_by}"))
    (plan,) = json.loads(plans["logical_plan"])
    leaves = [node for node in _walk(plan) if not node["children"]]
    stored = {node["extra_info"]["Table"].lower() for node in leaves if node["name"] == _STORED}
    others = [node for node in leaves if node["name"] != _STORED]
    files = _find_files(relation, run=run, database=database) if others else {}
    is_view = any(child["children"] for child in plan["children"])
    if is_view:
        names: tuple[str, ...] = (f"view {relation.lower()}",)
    elif stored:
        ((database,),) = run("SELECT lower(current_database())")
        names = tuple(name.removeprefix(f"{database}.") for name in stored)
    else:
        spelled = {f"file {_find_relative_path(os.path.abspath(path), directory)}" for path in files}
        followed = {f"file {_find_relative_path(str(path), directory)}" for one in files.values() for path in one}
        names = (*sorted(spelled), *sorted(followed - spelled)) if files else (f"file {relation}",)
    found = {path.stat() for one in files.values() for path in one}
    return RelationIdentity(
        names=names,
        bases=frozenset(stored | {f"file {one.st_dev}:{one.st_ino}" for one in found}),
        is_view=is_view,
        is_join=len(stored) + len(others) > 1,
        unique=_find_unique_columns(relation, stored, run=run) if stored and not is_view else frozenset(),
    )


def _find_unique_columns(relation: str, stored: Set[str], *, run: Run) -> frozenset[str]:
    """Return the columns of the stored tables that are unique keys, each on its own."""
    try:
        has_keys = any(key is not None for _, _, _, key, *_ in run(f"DESCRIBE {relation}"))
    except duckdb.ParserException:  # it is no name of a table
        has_keys = True
    return frozenset(column for table, column in run(_UNIQUE) if table in stored) if has_keys else frozenset()


def estimate_rows(relation: str, *, run: Run) -> int:
    """Return DuckDB's own estimate of the relation's number of rows, from its query plan."""
    plans: dict[str, str] = dict(run(f"EXPLAIN (FORMAT json) SELECT * FROM {relation}"))
    (plan,) = json.loads(plans["physical_plan"])
    return int(plan["extra_info"]["Estimated Cardinality"])


def read_columns(relation: str, *, run: Run) -> tuple[SourceColumn, ...]:
    """Return the relation's columns, with their types by PostgreSQL's names."""
    rows = run(f"DESCRIBE SELECT * FROM {relation}")
    if not _has_named_columns(relation, [name for name, *_ in rows], run=run):
        return ()
    return tuple(
        SourceColumn(name=name, declared=_name_declared_type(kind), nullable=null != "NO")
        for name, kind, null, *_ in rows
    )


def _has_named_columns(relation: str, names: Sequence[str], *, run: Run) -> bool:
    """Return False if the relation is a CSV file with fixed column names, whose first line now has other names."""
    line = find_header_line(relation)
    if line is None:
        return True
    found = [run(line.write_statement(str(file))) for file in _glob(line.pattern, run=run)]
    return bool(found) and all([tuple(names)] == [tuple(one) for one in rows] for rows in found)


@contextmanager
def check_same_types(relations: Sequence[ReadRelation], cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Check that the columns of the relations keep their types while the block reads the relations.

    Compare the types before and after the block, since a file may be replaced in between. Raise `TypesChanged` if they
    differ.
    """

    def read_schema(relation: str) -> tuple[SourceColumn, ...]:
        return read_columns(relation, run=lambda sql: cursor.execute(sql).fetchall())

    check_types(relations, read_schema)
    yield
    with check_after_reading():
        check_types(relations, read_schema)


@contextmanager
def check_same_files(relations: Sequence[ReadRelation], *, run: Run, database: Path | None) -> Iterator[None]:
    """Check that no file of the relations changes while the block runs several statements.

    Stored tables cannot change within the one transaction. Compare the files before and after the block, and raise
    `FilesChanged` if they differ. Otherwise a unit that moved could be counted twice.
    """

    def look() -> list[str]:
        return [read_state(one.relation, run=run, database=database) for one in relations]

    before = look()
    yield
    if look() != before:
        raise FilesChanged


def read_state(relation: str, *, run: Run, database: Path | None) -> str:
    """Return the name, size and time of each file that the relation reads, and of the database file, as text."""
    return describe_files(
        find_file_patterns(relation, run=run, database=database), run=run, database=read_file_states(database)
    )


def find_file_patterns(relation: str, *, run: Run, database: Path | None) -> tuple[str, ...]:
    """Return the file names and glob patterns that the relation reads."""
    return tuple(_find_files(relation, run=run, database=database))


def describe_files(patterns: Sequence[str], *, run: Run, database: Looks) -> str:
    """Return the name, size and time of all files that match the patterns, and of the database file, as text.

    Names are relative to the files' common folder, so that a folder can be copied or restored with its times. If a
    file's time is only the placeholder for an unknown time, its inode and change time are added.
    """
    files = {path for pattern in patterns for path in _glob(pattern, run=run)}
    found = {**{path: _stat(path) for path in files}, **database}
    top = os.path.commonpath([path.parent for path in found]) if found else ""
    return str([(os.path.relpath(path, top), *_identify(look)) for path, look in sorted(found.items())])


def read_file_states(database: Path | None) -> Looks:
    """Return inode, size and times of a database's file and of its write-ahead log.

    Raise OSError if the database's file cannot be read.
    """
    if database is None:
        return {}
    log = database.with_name(f"{database.name}.wal")
    with suppress(FileNotFoundError):
        return {database: _stat(database), log: _stat(log)}
    return {database: _stat(database)}


def read_open_file_states(opened: Looks, now: Looks) -> Looks:
    """Return inode, size and times of the files that the open database reads.

    DuckDB still reads a file that was renamed or replaced, in its old state. If the file was overwritten in place,
    DuckDB reads the new content.
    """
    (before, *_), (after, *_) = opened.items(), now.items()
    return opened if before[1][0] != after[1][0] else now


def _stat(path: Path) -> tuple[int, int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _identify(look: tuple[int, int, int, int]) -> tuple[int, ...]:
    inode, size, time, changed = look
    return (size, time) if time >= _STAND_IN_NS else (size, time, inode, changed)


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _walk(child)


def _find_files(relation: str, *, run: Run, database: Path | None) -> dict[str, list[Path]]:
    """Return the files named by words of the relation's text, or by words of a view or macro that it uses."""
    line = find_header_line(relation)
    if line is not None:
        return {line.pattern: _glob(line.pattern, run=run)}
    if (named := _PARQUET.fullmatch(relation) or _CSV.fullmatch(relation)) is not None:
        pattern = named[1].replace("''", "'")
        return {pattern: _glob(pattern, run=run)}
    # Keyhole makes neither views nor macros: without a file there are none
    definitions: dict[str, str] = {} if database is None else dict(run(_VIEWS))
    found: dict[str, list[Path]] = {}
    calls = any("(" in written for written in (relation, *definitions.values()))  # nothing else calls a macro
    if database is not None and calls:
        definitions |= run(_MACROS)
    waiting, seen = [relation], set()
    while waiting:
        for word in _read_words(waiting.pop()):
            if word in seen:
                continue
            seen.add(word)
            if word.lower() in definitions:
                waiting.append(definitions[word.lower()])
            elif files := _glob(word, run=run):
                found[word] = files
    return found


def _read_words(sql: str) -> list[str]:
    """Return the identifiers and string literals in DuckDB's SQL."""
    if _NAMES.fullmatch(sql):
        return [name.replace('""', '"') for name in re.findall(_NAME, sql)]
    from sqlglot import tokenize  # only here: it brings all of the dialect, a tenth of a second of a start

    return [token.text for token in tokenize(sql, read="duckdb") if token.token_type.name in _WORDS]


def _glob(pattern: str, *, run: Run) -> list[Path]:
    """Return the files that match a name or pattern. Return none if DuckDB may not read there."""
    try:
        return [Path(file).resolve() for (file,) in run(f"SELECT file FROM glob({quote_text(pattern)})")]
    except duckdb.Error:
        return []


def _find_relative_path(file: str, directory: Path) -> str:
    path, root = Path(file), directory.resolve()
    return str(path.relative_to(root)) if path.is_relative_to(root) else file


def _name_declared_type(kind: str) -> str:
    if kind.startswith("DECIMAL"):
        return kind.replace("DECIMAL", "numeric")
    if kind.startswith("ENUM"):
        return "text"
    return _TYPES.get(kind, kind.lower())


_KEYS = """
SELECT lower(database_name || '.' || schema_name || '.' || table_name), lower(schema_name || '.' || referenced_table),
  constraint_column_names, referenced_column_names
FROM duckdb_constraints() WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE', 'FOREIGN KEY') ORDER BY constraint_index
"""


def read_keys(identity: RelationIdentity, *, run: Run) -> RelationIdentity:
    """Return a relation's identity with its multi-column unique keys and its foreign keys added.

    Only stored tables have such keys.
    """
    tables = {base for base in identity.bases if not base.startswith("file ")}
    if identity.is_view or not tables:
        return identity
    own = [row[1:] for row in run(_KEYS) if row[0] in tables]
    return replace(
        identity,
        keys=frozenset(frozenset(columns) for other, columns, _ in own if other is None and len(columns) > 1),
        foreign_keys=tuple(
            ForeignKey(tuple(columns), other, tuple(reached)) for other, columns, reached in own if other is not None
        ),
    )
