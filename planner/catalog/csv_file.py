"""How a CSV file is read once `keyhole check` has pinned it, as SQL of DuckDB.

Guarantee: no row decides how another is read. Every column is read as text and cast by an expression that gives NULL
for a text that is no value of the type. Fields beyond the last column are not read. A row with too few fields, of more
than two megabytes, or with broken UTF-8 in a column that is asked about, is left out by itself. A file without
quotation marks is read so that none means anything. In one that has some, one left open takes all rows behind it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from planner.catalog.catalog import SqlType
from planner.catalog.sql_types import sql_type

READ = "read_csv"
_INTEGERS = {"smallint": "SMALLINT", "int2": "SMALLINT", "integer": "INTEGER", "int": "INTEGER", "int4": "INTEGER"}
_MODIFIER = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_NAMED, _UNNAMED = ", auto_detect = false, header = true", ", auto_detect = false, header = false"
_PINNED = re.compile(rf"\(SELECT .* FROM {READ}\('((?:[^']|'')*)'({_NAMED},.*)\)\)", re.DOTALL)
_WHOLE = r"\s*[+-]?[0-9]+\s*"
_DECIMAL = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
_DAY = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*"
_MOMENT = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]*)?)?)?\s*"


@dataclass(frozen=True, slots=True)
class CsvFile:
    """The form of a CSV file, and its columns in their order, each with the type that its texts are cast to.

    `has_header`: the first line behind `skip` others names the columns. `date_format` and `timestamp_format` are empty
    for ISO 8601.
    """

    columns: tuple[tuple[str, str], ...]
    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'
    comment: str = ""
    skip: int = 0
    has_header: bool = True
    date_format: str = ""
    timestamp_format: str = ""

    def relation(self, path: str) -> str:
        """Return the file's rows with typed columns."""
        typed = ", ".join(f"{self._cast(name, kind)} AS {_identifier(name)}" for name, kind in self.columns)
        return f"(SELECT {typed} FROM {self._read(path, has_header=self.has_header)})"

    def count_unconverted(self, path: str, names: Sequence[str]) -> str:
        """Write the statement that counts, by column, the texts that are there and no value of its type."""
        kinds = dict(self.columns)
        counts = (
            f"count(*) FILTER (WHERE {_identifier(name)} <> '' AND {self._cast(name, kinds[name])} IS NULL)"
            for name in names
        )
        return f"SELECT {', '.join(counts)} FROM {self._read(path, has_header=self.has_header)}"

    def _read(self, path: str, *, has_header: bool) -> str:
        columns = ", ".join(f"{_text(name)}: 'VARCHAR'" for name, _ in self.columns)
        # one thread: several disagree on where a row with line ends in its texts begins
        return (
            f"{READ}({_text(path)}, auto_detect = false, header = {str(has_header).lower()}, skip = {self.skip}, "
            f"delim = {_text(self.delimiter)}, quote = {_text(self.quote)}, escape = {_text(self.escape)}, "
            f"comment = {_text(self.comment)}, ignore_errors = true, strict_mode = false, parallel = false, "
            f"columns = {{{columns}}})"
        )

    def _cast(self, name: str, declared: str) -> str:
        value = _identifier(name)
        match sql_type(declared):
            case SqlType.INTEGER:
                return _match(value, _WHOLE, _INTEGERS.get(declared.strip().lower(), "BIGINT"))
            case SqlType.NUMERIC:
                found = _MODIFIER.search(declared)
                precision, scale = (38, 10) if found is None else (int(found[1]), int(found[2] or 0))
                return _match(value, _DECIMAL, f"DECIMAL({precision}, {scale})")
            case SqlType.DOUBLE:
                return f"TRY_CAST({value} AS DOUBLE)"
            case SqlType.BOOLEAN:
                return f"TRY_CAST({value} AS BOOLEAN)"
            case SqlType.UUID:
                return f"TRY_CAST({value} AS UUID)"
            case SqlType.DATE if self.date_format:
                return f"TRY_CAST(try_strptime({value}, {_text(self.date_format)}) AS DATE)"
            case SqlType.DATE:
                return _match(value, _DAY, "DATE")
            case SqlType.TIMESTAMP if self.timestamp_format:
                return f"TRY_CAST(try_strptime({value}, {_text(self.timestamp_format)}) AS TIMESTAMP)"
            case SqlType.TIMESTAMP:
                return _match(value, _MOMENT, "TIMESTAMP")
            case _:
                return value


@dataclass(frozen=True, slots=True)
class FirstLine:
    """The reading of the line that names the columns of a pinned file: `pattern` is the file, or several."""

    pattern: str
    options: str

    def statement(self, file: str) -> str:
        """Return the statement that gives one file's names, each as a column."""
        return f"SELECT * FROM {READ}({_text(file)}{self.options}) LIMIT 1"


def find_first_line(relation: str) -> FirstLine | None:
    """Find the line that names the columns of a relation, if it is a pinned CSV file that has one."""
    found = _PINNED.fullmatch(relation)
    if found is None:
        return None
    return FirstLine(found[1].replace("''", "'"), found[2].replace(_NAMED, _UNNAMED, 1))


def _match(value: str, pattern: str, kind: str) -> str:
    return f"CASE WHEN regexp_full_match({value}, '{pattern}') THEN TRY_CAST({value} AS {kind}) END"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
