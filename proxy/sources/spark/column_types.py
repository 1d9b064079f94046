"""The translation of Spark's type names to PostgreSQL's."""

import re

from planner.catalog.sql_types import SourceColumn

_NAMES = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp_ntz": "timestamp without time zone",
    "timestamp": "timestamp with time zone",
    "binary": "bytea",
    "variant": "json",
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_LENGTH = re.compile(r"(char|varchar)\((\d+)\)")
_BYTES = re.compile(r"string( collate utf8_binary)?")
_TEXT_TYPE = "__CHAR_VARCHAR_TYPE_STRING"  # where Spark keeps what it reads as a string


def make_source_column(
    name: str, *, simple: str, nullable: bool, metadata: dict[str, object] | None = None
) -> SourceColumn:
    """Return a relation's column with PostgreSQL's type name.

    A text column whose collation does not compare bytes is marked. `char(n)` gets a type that Keyhole does not compute
    with.

    Parameters:
        simple: Spark's one-line name of the type.
        metadata: Spark's metadata of the column.
    """
    kind = str((metadata or {}).get(_TEXT_TYPE, simple)).lower()
    return SourceColumn(
        name=name,
        declared=_name_declared_type(kind),
        nullable=nullable,
        has_nondeterministic_collation=_is_collated(kind),
    )


def _is_collated(kind: str) -> bool:
    return kind.startswith("string") and _BYTES.fullmatch(kind) is None


def _name_declared_type(kind: str) -> str:
    if kind.startswith("string"):
        return "text"
    if found := _DECIMAL.fullmatch(kind):
        return f"numeric({found[1]},{found[2]})"
    if found := _LENGTH.fullmatch(kind):
        # Spark holds no row of a file to the length: it is no more than a word
        return "text" if found[1] == "varchar" else f"character({found[2]})"
    return _NAMES.get(kind, kind)
