"""The columns of several parquet files that a pattern names, which are read as one table by name.

Guarantee: a value is in the table what it is in its file. Files whose types differ are read by a type that holds the
values of each without a loss, or refused by name; which type that is, is pinned as of any column. What a file is, no
row decides.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Protocol

from planner.catalog.fault import Fault
from planner.policy.compile_column import exposed_names
from planner.policy.file import Policy
from planner.values.sql_literals import text

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19, "HUGEINT": 39}
_DIGITS |= {"UTINYINT": 3, "USMALLINT": 5, "UINTEGER": 10, "UBIGINT": 20, "UHUGEINT": 39}
_WHOLE_IN = {"FLOAT": 7, "DOUBLE": 15}  # digits of whole numbers that a binary fraction holds exactly
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


class _Reading(Protocol):
    """What this needs of a source."""

    def read_for_owner(self, relation: str, sql: str) -> Sequence[Sequence[object]]:
        """What a statement over a relation gives, for the owner alone. Raises KH006."""


def check_parquet_files(policy: Policy, source: _Reading) -> None:
    """Raise KH014 unless every pattern's files can be read as one table without a loss. Raises KH006."""
    for name in policy.tables:
        if policy.source.kind == "duckdb" and PurePath(policy.tables[name].relation or name).suffix == ".parquet":
            fault = next(_find_faults(policy, name, source), None)
            if fault is not None:
                raise policy.refuse(("tables", name, "relation"), fault)


def _find_faults(policy: Policy, name: str, source: _Reading) -> Iterator[Fault]:
    relation = policy.relation(name)
    pattern = str(policy.directory / (policy.tables[name].relation or name))
    files = [str(file) for (file,) in source.read_for_owner(relation, f"FROM glob({text(pattern)}) ORDER BY ALL")]
    if len(files) < 2:
        return
    together = _read_types(relation, f"SELECT * FROM {relation}", source)
    exposed = exposed_names(policy, name) or together.keys()
    for file in files:
        types = _read_types(relation, f"SELECT * FROM read_parquet({text(file)})", source)
        for column in sorted(exposed & together.keys()):
            if column not in types and not _is_of_path(column, file):
                hint = "Write all files with the columns that the policy names."
                yield Fault("KH014", f'is several files: {file} has no column "{column}"', hint=hint)
            elif column in types and not is_lossless(types[column], together[column]):
                problem = f'is several files: "{column}" is {types[column]} in {file}, and {together[column]} in all'
                hint = "Write all files with one type, or with types one of which holds the values of the others."
                yield Fault("KH014", f"{problem} of them together, which would change its values", hint=hint)


def is_lossless(one: str, wide: str) -> bool:
    """Return True if every value of a DuckDB type is the same in another.

    >>> is_lossless("INTEGER", "BIGINT"), is_lossless("BIGINT", "DOUBLE"), is_lossless("FLOAT", "DOUBLE")
    (True, False, True)
    """
    if one == wide or (one, wide) in {("FLOAT", "DOUBLE"), ("DATE", "TIMESTAMP")}:
        return True
    if one in _DIGITS and wide in _DIGITS:
        if one.startswith("U") or not wide.startswith("U"):
            return _DIGITS[one] < _DIGITS[wide]
        return False
    if one in _DIGITS and wide in _WHOLE_IN:
        return _DIGITS[one] <= _WHOLE_IN[wide]
    narrow, broad = _digits(one), _digits(wide)
    return narrow is not None and broad is not None and narrow[0] <= broad[0] and narrow[1] <= broad[1]


def _digits(kind: str) -> tuple[int, int] | None:
    """Digits before and behind the point of a decimal or whole number; None of other types."""
    if kind in _DIGITS:
        return _DIGITS[kind], 0
    found = _DECIMAL.fullmatch(kind)
    return None if found is None else (int(found[1]) - int(found[2]), int(found[2]))


def _is_of_path(column: str, file: str) -> bool:
    """Return True if the column's value stands in the file's path, as `year=2026/`."""
    return any(part.partition("=")[0] == column for part in PurePath(file).parts if "=" in part)


def _read_types(relation: str, sql: str, source: _Reading) -> dict[str, str]:
    return {str(name): str(kind) for name, kind, *_ in source.read_for_owner(relation, f"DESCRIBE {sql}")}
