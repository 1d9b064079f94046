"""PostgreSQL's type names as the source declares them, and the few types that Keyhole computes with."""

import re
from dataclasses import dataclass, field

from planner.catalog.catalog import SqlType


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """One column as the source declares it. `declared` is PostgreSQL's name for the type, with its modifier.

    `has_nondeterministic_collation`: its collation treats some texts as equal that differ in bytes. `prunable`: a
    condition on a range of it may spare reading other rows (an index, a partition key, an engine's block statistics).
    Columns that differ only in this are equal. `enumerated`: the source has an enum, whose labels are read as text.
    """

    name: str
    declared: str
    nullable: bool
    has_nondeterministic_collation: bool = False
    prunable: bool = field(default=True, compare=False)
    enumerated: bool = field(default=False, compare=False)


_NAMES: dict[str, SqlType] = {
    "text": SqlType.TEXT,
    "character varying": SqlType.TEXT,
    "varchar": SqlType.TEXT,
    "smallint": SqlType.INTEGER,
    "integer": SqlType.INTEGER,
    "int": SqlType.INTEGER,
    "bigint": SqlType.INTEGER,
    "int2": SqlType.INTEGER,
    "int4": SqlType.INTEGER,
    "int8": SqlType.INTEGER,
    "numeric": SqlType.NUMERIC,
    "decimal": SqlType.NUMERIC,
    "double precision": SqlType.DOUBLE,
    "float8": SqlType.DOUBLE,
    "real": SqlType.DOUBLE,
    "float4": SqlType.DOUBLE,
    "boolean": SqlType.BOOLEAN,
    "bool": SqlType.BOOLEAN,
    "date": SqlType.DATE,
    "timestamp": SqlType.TIMESTAMP,
    "timestamp without time zone": SqlType.TIMESTAMP,
    "uuid": SqlType.UUID,
}
_MODIFIER = re.compile(r"\s*\(\s*-?\d+(\s*,\s*-?\d+)?\s*\)")
_LENGTH = re.compile(r"\(\s*(\d+)\s*\)")
_ZONED = re.compile(r"timestamp(\(\d+\))? with time zone|timestamptz(\(\d+\))?")


def _strip_modifier(declared: str) -> str:
    return " ".join(_MODIFIER.sub("", declared.lower()).split())


def read_sql_type(declared: str) -> SqlType:
    """Return the type that Keyhole uses for a declared PostgreSQL type.

    `OTHER` for everything else, `character(n)` included: its padding compares differently from engine to engine.
    """
    return _NAMES.get(_strip_modifier(declared), SqlType.OTHER)


def read_text_limit(declared: str) -> int | None:
    """Return the number of characters that a declared text type holds: n of `varchar(n)`.

    Return None if it has no limit.
    """
    found = _LENGTH.search(declared)
    return None if found is None else int(found[1])


def has_time_zone(declared: str) -> bool:
    """Return True if a declared type is a timestamp with time zone, whose days and months depend on a setting."""
    return _ZONED.fullmatch(" ".join(declared.lower().split())) is not None
