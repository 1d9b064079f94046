"""CSV files as SQL of DuckDB, once `keyhole check` has pinned their form.

Guarantee: no row decides how another is read. Every column is read as text and cast by an expression that gives NULL
for a text that is no value of the type. Fields beyond the last column are not read. A row with too few fields, of more
than two megabytes, or with broken UTF-8 in a column that is asked about, is left out by itself. In a file that was
pinned without quotation marks, none has a meaning. In a file with quotation marks, one that is left open takes all rows
behind it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from planner.catalog.catalog import SqlType
from planner.catalog.sql_types import read_sql_type

READ_FUNCTION = "read_csv"
_INTEGERS = {"smallint": "SMALLINT", "int2": "SMALLINT", "integer": "INTEGER", "int": "INTEGER", "int4": "INTEGER"}
_MODIFIER = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_NAMED, _UNNAMED = ", auto_detect = false, header = true", ", auto_detect = false, header = false"
_PINNED = re.compile(rf"\(SELECT .* FROM {READ_FUNCTION}\('((?:[^']|'')*)'({_NAMED},.*)\)\)", re.DOTALL)
_WHOLE = r"\s*[+-]?[0-9]+\s*"
_DECIMAL = r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*"
_DAY = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}\s*"
_MOMENT = r"\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2}(\.[0-9]*)?)?)?\s*"


@dataclass(frozen=True, slots=True)
class CsvFile:
    """The form of a CSV file, and its columns in order, each with the type that its texts are cast to.

    `has_header`: the first line after `skip` lines names the columns. `date_format` and `timestamp_format` are empty
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

    def write_relation(self, path: str) -> str:
        """Return the SQL that reads the file's rows with typed columns."""
        typed = ", ".join(f"{self._write_cast(name, kind)} AS {_quote_identifier(name)}" for name, kind in self.columns)
        return f"(SELECT {typed} FROM {self._write_scan(path, has_header=self.has_header)})"

    def count_unconverted(self, path: str, names: Sequence[str]) -> str:
        """Write the statement that counts, by column, the texts that cannot be converted to the column's type."""
        kinds = dict(self.columns)
        counts = (
            f"count(*) FILTER (WHERE {_quote_identifier(name)} <> '' AND {self._write_cast(name, kinds[name])} IS NULL)"
            for name in names
        )
        return f"SELECT {', '.join(counts)} FROM {self._write_scan(path, has_header=self.has_header)}"

    def _write_scan(self, path: str, *, has_header: bool) -> str:
        columns = ", ".join(f"{_quote_text(name)}: 'VARCHAR'" for name, _ in self.columns)
        # one thread: several disagree on where a row with line ends in its texts begins
        return (
            f"{READ_FUNCTION}({_quote_text(path)}, auto_detect = false, header = {str(has_header).lower()}, "
            f"skip = {self.skip}, delim = {_quote_text(self.delimiter)}, quote = {_quote_text(self.quote)}, "
            f"escape = {_quote_text(self.escape)}, comment = {_quote_text(self.comment)}, "
            "ignore_errors = true, strict_mode = false, parallel = false, "
            f"columns = {{{columns}}})"
        )

    def _write_cast(self, name: str, declared: str) -> str:
        value = _quote_identifier(name)
        match read_sql_type(declared):
            case SqlType.INTEGER:
                return _write_match(value, _WHOLE, _INTEGERS.get(declared.strip().lower(), "BIGINT"))
            case SqlType.NUMERIC:
                found = _MODIFIER.search(declared)
                precision, scale = (38, 10) if found is None else (int(found[1]), int(found[2] or 0))
                return _write_match(value, _DECIMAL, f"DECIMAL({precision}, {scale})")
            case SqlType.DOUBLE:
                return f"TRY_CAST({value} AS DOUBLE)"
            case SqlType.BOOLEAN:
                return f"TRY_CAST({value} AS BOOLEAN)"
            case SqlType.UUID:
                return f"TRY_CAST({value} AS UUID)"
            case SqlType.DATE if self.date_format:
                return f"TRY_CAST(try_strptime({value}, {_quote_text(self.date_format)}) AS DATE)"
            case SqlType.DATE:
                return _write_match(value, _DAY, "DATE")
            case SqlType.TIMESTAMP if self.timestamp_format:
                return f"TRY_CAST(try_strptime({value}, {_quote_text(self.timestamp_format)}) AS TIMESTAMP)"
            case SqlType.TIMESTAMP:
                return _write_match(value, _MOMENT, "TIMESTAMP")
            case _:
                return value


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """The line that names the columns of a pinned CSV file. `pattern` is one file, or a pattern for several."""

    pattern: str
    options: str

    def write_statement(self, file: str) -> str:
        """Return the SQL that reads the column names of one file as a row."""
        return f"SELECT * FROM {READ_FUNCTION}({_quote_text(file)}{self.options}) LIMIT 1"


def find_header_line(relation: str) -> HeaderLine | None:
    """Return the header line of a relation that is a pinned CSV file.

    Return None for a file without a header line, and for any other relation.
    """
    found = _PINNED.fullmatch(relation)
    if found is None:
        return None
    return HeaderLine(found[1].replace("''", "'"), found[2].replace(_NAMED, _UNNAMED, 1))


def _write_match(value: str, pattern: str, kind: str) -> str:
    return f"CASE WHEN regexp_full_match({value}, '{pattern}') THEN TRY_CAST({value} AS {kind}) END"


def _quote_identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
