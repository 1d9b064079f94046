"""The check of parquet files' columns. The files of one pattern are read as one table, by column name.

Guarantee: a value in the table equals the value in its file. Files of different types are read as a type that holds
the values of each without loss, or refused by name. That type is pinned like that of any column. And no value of a
column makes DuckDB's reader fail. Its reader converts two storage forms and can fail on their values, so files with
these forms are refused. The refusal depends on the files' column descriptions, never on rows.
"""

import re
from collections.abc import Container, Iterator, Sequence
from itertools import groupby
from pathlib import PurePath
from typing import Protocol

from planner.catalog.fault import Fault
from planner.policy.compile_column import list_exposed_names
from planner.policy.file import Policy
from planner.values.sql_literals import quote_text

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19, "HUGEINT": 39}
_DIGITS |= {"UTINYINT": 3, "USMALLINT": 5, "UINTEGER": 10, "UBIGINT": 20, "UHUGEINT": 39}
_WHOLE_IN = {"FLOAT": 7, "DOUBLE": 15}  # digits of whole numbers that a binary fraction holds exactly
_BYTES = ((4, 2), (9, 4), (18, 8), (38, 16))  # in which DuckDB keeps a decimal, by its digits
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


class _Reading(Protocol):
    """The methods of a source that this module needs."""

    def read_for_owner(self, relation: str, sql: str) -> Sequence[Sequence[object]]:
        """Return the result of a statement over a relation, for the owner alone.

        Raise KH006 if the source cannot read it.
        """


def check_parquet_files(policy: Policy, source: _Reading, *, broken: Container[str] = ()) -> None:
    """Raise KH014 unless every file's columns can be read, whatever their values.

    The files of each pattern must form one table without losing any value. Raise KH006 for a missing file.

    Parameters:
        broken: tables that cannot be read now. They are not checked.
    """
    for name in policy.tables:
        if (
            name not in broken
            and policy.source.kind == "duckdb"
            and PurePath(policy.tables[name].relation or name).suffix == ".parquet"
        ):
            fault = next(_find_faults(policy, name, source), None)
            if fault is not None:
                raise policy.refuse(("tables", name, "relation"), fault)


def _find_faults(policy: Policy, name: str, source: _Reading) -> Iterator[Fault]:
    relation = policy.write_relation(name)
    pattern = str(policy.directory / (policy.tables[name].relation or name))
    files = [str(file) for (file,) in source.read_for_owner(relation, f"FROM glob({quote_text(pattern)}) ORDER BY ALL")]
    if name in policy.private_tables:
        yield from _find_fallible_columns(relation, pattern, list_exposed_names(policy, name), source)
    if len(files) < 2:
        return
    together = _read_types(relation, f"SELECT * FROM {relation}", source)
    exposed = list_exposed_names(policy, name) or together.keys()
    for file in files:
        types = _read_types(relation, f"SELECT * FROM read_parquet({quote_text(file)})", source)
        for column in sorted(exposed & together.keys()):
            if column not in types and not _is_in_path(column, file):
                hint = "Write all files with the columns that the policy names."
                yield Fault("KH014", f'is several files: {file} has no column "{column}"', hint=hint)
            elif column in types and not is_lossless(types[column], together[column]):
                problem = f'is several files: "{column}" is {types[column]} in {file}, and {together[column]} in all'
                hint = "Write all files with one type, or with types one of which holds the values of the others."
                yield Fault("KH014", f"{problem} of them together, which would change its values", hint=hint)


def _find_fallible_columns(relation: str, pattern: str, exposed: Container[str], source: _Reading) -> Iterator[Fault]:
    """Yield a fault for each column in a storage form that DuckDB converts, since some values would make it fail."""
    told = source.read_for_owner(
        relation,
        "SELECT file_name, name, coalesce(num_children, 0), type, CAST(type_length AS integer), precision, "
        f"concat_ws(' ', converted_type, logical_type) FROM parquet_schema({quote_text(pattern)})",
    )
    hint = "Write the file anew in DuckDB, COPY (FROM 'old.parquet') TO 'new.parquet': that fails on such a value."
    for file, nodes in groupby(told, lambda node: node[0]):
        for column, stored in _list_columns(nodes):
            if column in exposed and stored is not None:
                problem = f'has "{column}" as {stored} in {file}: a value beyond DuckDB\'s would make its reader fail'
                yield Fault("KH014", problem, hint=hint)


def _list_columns(nodes: Iterator[Sequence[object]]) -> Iterator[tuple[str, str | None]]:
    """Yield a file's columns, each with its storage form if DuckDB may fail on a value, and otherwise with None."""
    next(nodes)  # all of them
    for _, name, parts, *stored in nodes:
        yield str(name), _describe_fallible_type(*stored)
        left = int(str(parts))
        while left:  # what it is made of
            left += int(str(next(nodes)[2])) - 1


def _describe_fallible_type(kind: object, length: object, digits: object, meaning: object) -> str | None:
    if re.search(r"TIMESTAMP_MILLIS|TimestampType.*MILLIS=Milli", str(meaning)):
        return "a timestamp in milliseconds"
    if "DECIMAL" not in str(meaning).upper():
        return None
    if kind == "BYTE_ARRAY":
        return "a decimal of any number of bytes"
    kept = next((size for most, size in _BYTES if int(str(digits)) <= most), _BYTES[-1][1])
    if kind == "FIXED_LEN_BYTE_ARRAY" and int(str(length)) > kept:
        return f"a decimal of {digits} digits in {length} bytes"
    return None


def is_lossless(one: str, wide: str) -> bool:
    """Return True if the type `wide` can hold every value of the DuckDB type `one` unchanged.

    >>> is_lossless("INTEGER", "BIGINT"), is_lossless("BIGINT", "DOUBLE"), is_lossless("FLOAT", "DOUBLE")
    (True, False, True)
    """
    if one == wide or (one, wide) == ("FLOAT", "DOUBLE"):
        return True
    if one in _DIGITS and wide in _DIGITS:
        if one.startswith("U") or not wide.startswith("U"):
            return _DIGITS[one] < _DIGITS[wide]
        return False
    if one in _DIGITS and wide in _WHOLE_IN:
        return _DIGITS[one] <= _WHOLE_IN[wide]
    narrow, broad = _count_digits(one), _count_digits(wide)
    return narrow is not None and broad is not None and narrow[0] <= broad[0] and narrow[1] <= broad[1]


def _count_digits(kind: str) -> tuple[int, int] | None:
    """Return the digits before and after the point of a numeric type. Return None for other types."""
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else (int(found[1]) - int(found[2]), int(found[2]))


def _is_in_path(column: str, file: str) -> bool:
    """Return True if the column's value is part of the file's path, such as `year=2026/`."""
    return any(part.partition("=")[0] == column for part in PurePath(file).parts if "=" in part)


def _read_types(relation: str, sql: str, source: _Reading) -> dict[str, str]:
    return {str(name): str(kind) for name, kind, *_ in source.read_for_owner(relation, f"DESCRIBE {sql}")}
