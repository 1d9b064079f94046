"""The tables and files behind a relation of Spark, from its catalog. Views are followed by their text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from planner.catalog.relation_names import RelationIdentity
from planner.catalog.sql_types import SourceColumn
from proxy.sources.spark.column_types import make_source_column
from proxy.sources.spark.connection import SparkSession
from proxy.sources.spark.spark_refusals import refuse_unread_view

_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FORMATS = frozenset({"parquet", "orc", "delta", "iceberg", "csv", "json", "avro"})
_MOST_VIEWS = 50  # behind one relation: more than anybody writes
_ROWS = re.compile(r"(?:rowCount=|Rows=(?:Exact|Inexact)\()([0-9.]+(?:E\+?\d+)?)")
_BYTES = re.compile(r"sizeInBytes=([0-9.]+) (B|[KMGTPE]iB)")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_VALUE_BYTES = 4  # of one value in a compressed file, about


def quote_name(name: str) -> str:
    """Return a name quoted for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def list_relations(session: SparkSession, *, database: str | None) -> tuple[str, ...]:
    """Return the tables and views of a database, or of the whole current catalog.

    Relations of the current database are named without it.
    """
    current = str(session.read_rows("SELECT current_database() AS name")[0]["name"])
    found = []
    for place in (
        [database] if database is not None else [_read_first(row) for row in session.read_rows("SHOW DATABASES")]
    ):
        for row in session.read_rows(f"SHOW TABLES IN {quote_name(place)}"):
            if row["isTemporary"]:
                continue
            parts = (row["tableName"],) if place == current else (place, row["tableName"])
            found.append(".".join(part if _PLAIN.fullmatch(part) else quote_name(part) for part in parts))
    return tuple(sorted(found))


def read_columns(relation: str, session: SparkSession) -> tuple[SourceColumn, ...]:
    """Return the relation's columns, with their types by PostgreSQL's names."""
    return tuple(
        make_source_column(
            field.name, simple=field.dataType.simpleString(), nullable=field.nullable, metadata=dict(field.metadata)
        )
        for field in session.read_fields(relation)
    )


def identify_relation(relation: str, session: SparkSession) -> RelationIdentity:
    """Return the stored tables and files that a relation reads.

    Tables are named by catalog and files by path, so two relations can be compared. Raise KH006 for a view whose text
    cannot be followed.
    """
    known = _describe(relation, session)
    leaves = {one.name for one in _follow(known, session)}
    return RelationIdentity(
        names=(known.name,),
        bases=frozenset(leaves | {f"file {file}" for file in _list_files(relation, session)}),
        is_view=known.view is not None,
        is_join=len(leaves) > 1,
    )


def read_state(relation: str, session: SparkSession) -> str:
    """Return a digest of the names of the relation's files. The digest is constant if the server names no file."""
    return sha256("\n".join(_list_files(relation, session)).encode()).hexdigest()


def estimate_rows(relation: str, session: SparkSession) -> int:
    """Return the engine's estimate of the relation's number of rows, or an estimate from its size in bytes."""
    plan = _read_first(session.read_rows(f"EXPLAIN COST SELECT * FROM {relation}")[0])
    if (rows := _ROWS.search(plan)) is not None:
        return int(float(rows[1]))
    (size,) = _BYTES.findall(plan)[:1]
    width = _VALUE_BYTES * max(1, len(session.read_fields(relation)))
    return int(float(size[0]) * 1024 ** _UNITS.index(size[1]) / width)


@dataclass(frozen=True, slots=True)
class _DescribedRelation:
    """A relation by its full name. For a view, `view` is its SQL and `place` is where its names are looked up."""

    name: str
    view: str | None = None
    place: tuple[str, ...] = ()


def _describe(relation: str, session: SparkSession) -> _DescribedRelation:
    parts = tuple(quoted.replace("``", "`") or plain for quoted, plain in _PART.findall(relation))
    if len(parts) == 2 and parts[0].lower() in _FORMATS and "/" in parts[1]:
        return _DescribedRelation(f"{parts[0].lower()} {parts[1]}")
    told: dict[str, str] = {}
    seen_head = False
    for row in session.read_rows(f"DESCRIBE TABLE EXTENDED {relation}"):
        seen_head = seen_head or str(row["col_name"]).startswith("# Detailed")
        if seen_head:  # a column may be called like what is told of the table
            told.setdefault(str(row["col_name"]), str(row["data_type"]))
    catalog = told.get("Catalog") or _read_first(session.read_rows("SELECT current_catalog()")[0])
    place = (catalog, told["Database"]) if "Database" in told else (catalog, *parts[:-1])
    name = ".".join((*place, told.get("Table", parts[-1])))
    if told.get("Type", "").upper() != "VIEW":
        return _DescribedRelation(f"table {name}")
    text = told.get("View Text")
    if not text:
        raise refuse_unread_view(relation)
    return _DescribedRelation(f"view {name}", view=text, place=place)


def _follow(known: _DescribedRelation, session: SparkSession) -> Iterator[_DescribedRelation]:
    """Yield the tables and files that a relation reads."""
    waiting, seen = [known], {known.name}
    while waiting:
        one = waiting.pop()
        if one.view is None:
            yield one
            continue
        for named in _list_named_relations(one):
            further = _describe(named, session)
            if further.name not in seen:
                seen.add(further.name)
                waiting.append(further)
        if len(seen) > _MOST_VIEWS:
            raise refuse_unread_view(known.name)


def _list_named_relations(view: _DescribedRelation) -> Iterator[str]:
    """Yield the relations that a view's text names, with the schema in which each name is looked up."""
    try:
        tree = sqlglot.parse_one(view.view or "", read="spark")
    except SqlglotError:
        tree = None
    if tree is None or not isinstance(tree, exp.Query):
        raise refuse_unread_view(view.name)
    steps = {one.alias_or_name for one in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        parts = [part.name for part in table.parts]
        if not all(parts):
            raise refuse_unread_view(view.name)  # a function
        if len(parts) == 1 and parts[0] in steps:
            continue
        is_path = len(parts) == 2 and parts[0].lower() in _FORMATS and "/" in parts[1]
        missing = () if is_path else view.place[: max(0, len(view.place) + 1 - len(parts))]
        yield ".".join(map(quote_name, (*missing, *parts)))


def _list_files(relation: str, session: SparkSession) -> list[str]:
    try:
        return session.list_files(relation)
    except Exception:
        return []  # a table of a kind that names no files


def _read_first(row: dict[str, object]) -> str:
    return str(next(iter(row.values())))
