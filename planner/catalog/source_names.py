"""The names that the source has for tables of the policy, in schemas beside `public`.

`public` has the policy's names.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST_NAME = 63
"""Bytes of an identifier of PostgreSQL."""

_RESERVED = frozenset({"public", "keyhole", "information_schema", ""})


@dataclass(frozen=True, slots=True)
class SourceName:
    """A name, `schema.name`, by which clients may write the table that the policy calls `table`."""

    schema: str
    name: str
    table: str


def is_free_schema(schema: str) -> bool:
    """Return True if a schema is neither PostgreSQL's nor Keyhole's, nor `public`."""
    return schema not in _RESERVED and not schema.lower().startswith("pg_")


def is_identifier(name: str) -> bool:
    """Return True if the name fits into a PostgreSQL identifier without being cut."""
    return "\0" not in name and 0 < len(name.encode("utf-8", "surrogatepass")) <= LONGEST_NAME


def drop_ambiguous_names(names: Iterable[SourceName]) -> tuple[SourceName, ...]:
    """Return the names that clients may write. A name that two tables have is dropped."""
    usable = [
        one for one in names if is_free_schema(one.schema) and is_identifier(one.schema) and is_identifier(one.name)
    ]
    times = Counter((one.schema, one.name) for one in usable)
    return tuple(one for one in usable if times[one.schema, one.name] == 1)


def find_source_name(names: Iterable[SourceName], schema: str, name: str) -> SourceName | None:
    """Return the source name `schema.name`.

    If the schema is empty, return the first source name with that table name.
    """
    return next((one for one in names if one.name == name and schema in ("", one.schema)), None)
