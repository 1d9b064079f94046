"""The names of a policy's relations in its source: SQL names or files, and the SQL that reads them."""

import re
from pathlib import Path, PurePath

from planner.catalog.csv_file import CsvFile
from planner.catalog.fault import Fault
from planner.catalog.source_names import SourceName, drop_ambiguous_names
from planner.policy.sections import PolicyDocument, SourceKind, TableSection

FILE_ENDINGS = {".parquet": "read_parquet", ".csv": "read_csv"}  # relations that are files, and how DuckDB reads them
NAME_PART = re.compile(r'"(?:[^"]|"")+"|[^".]+')
SPARK_PART = re.compile(r"`(?:[^`]|``)+`|[^`.]+")
_WITHOUT_TYPES = frozenset({"csv", "json", "text", "xml"})  # formats that Spark names before a path
_QUOTES = frozenset('"`')
_QUALIFIED = 2  # parts of a name that says its schema
_PARQUET = ".parquet"  # files that Spark reads as a table; a CSV file has no types there


def write_relation(
    name: str, table: TableSection, *, directory: Path, kind: SourceKind, csv: CsvFile | None = None
) -> str:
    """Return the SQL name of a table's data in the source.

    The result is a quoted name, a file function of DuckDB for .parquet and .csv, or for Spark a path after its format.
    A relative path starts from `directory`.

    Parameters:
        csv: the form of a CSV file, once it is pinned.
    """
    text = table.relation or name
    suffix = PurePath(text).suffix.lower()
    if kind == "spark":
        if is_spark_file(text):
            path = text if "://" in text else str(directory / text)
            return f"`parquet`.{_quote(path)}"
        return ".".join(part if part.startswith("`") else _quote(part) for part in SPARK_PART.findall(text))
    if is_csv(text, kind=kind) and csv is not None:
        return csv.write_relation(str(directory / text))
    if suffix in FILE_ENDINGS:
        file = str(directory / text).replace("'", "''")
        # by name, in a type that holds what each file has; a byte that is no UTF-8 is read as "?", or it would fail all
        options = ", utf8_validation = 'replace', union_by_name = true" if suffix == _PARQUET else ""
        return f"{FILE_ENDINGS[suffix]}('{file}'{options})"
    return ".".join(part if part.startswith('"') else f'"{part}"' for part in NAME_PART.findall(text))


def list_known_names(document: PolicyDocument) -> tuple[SourceName, ...]:
    """Return further names that clients may use for tables: `known_as`, else the relation's name.

    Names are folded as the source folds them: DuckDB and Spark ignore case, PostgreSQL keeps what is written.
    """
    found = ((name, find_known_name(table, kind=document.source.kind)) for name, table in document.tables.items())
    return drop_ambiguous_names(SourceName(*known, name) for name, known in found if known is not None)


def find_known_name(table: TableSection, *, kind: SourceKind) -> tuple[str, str] | None:
    """Return the schema and name that clients may use for a table, besides its name in the policy.

    Return None for a file, and if the policy names no schema for the relation.
    """
    if table.known_as is not None:
        written = [_unquote(_fold(part)) for part in NAME_PART.findall(table.known_as)]
        return (written[0], written[1]) if len(written) == _QUALIFIED else ("", "")
    text = table.relation or ""
    if (kind == "spark" and is_spark_file(text)) or PurePath(text).suffix.lower() in FILE_ENDINGS:
        return None
    parts = (SPARK_PART if kind == "spark" else NAME_PART).findall(text)
    if len(parts) < _QUALIFIED:
        return None
    schema, name = (_unquote(part) if kind == "postgresql" else _unquote(_fold(part)) for part in parts[-_QUALIFIED:])
    return schema, name


def _fold(part: str) -> str:
    return part if part[0] in _QUOTES else part.lower()


def _unquote(part: str) -> str:
    return part[1:-1].replace(part[0] * 2, part[0]) if part[0] in _QUOTES else part


def is_csv(text: str, *, kind: SourceKind) -> bool:
    """Return True if a relation is a CSV file, which has no types of its own."""
    return kind == "duckdb" and PurePath(text).suffix.lower() == ".csv"


def is_spark_file(text: str) -> bool:
    """Return True if a relation of Spark is written as files or a folder: `visits.parquet`, `s3://lake/visits/*`."""
    return "`" not in text and PurePath(text).suffix.lower() == _PARQUET


def find_relation_fault(text: str, *, kind: SourceKind) -> Fault | None:
    """Return the KH002 fault if no relation of such a source can have this name."""
    if kind == "spark":
        return _find_spark_fault(text)
    is_file = PurePath(text).suffix.lower() in FILE_ENDINGS
    if is_file and kind != "duckdb":
        hint = 'Use source.url = "duckdb://", or name a table of the source.'
        return Fault("KH002", "is a file, and this source reads no files", hint=hint)
    if not is_file and ".".join(NAME_PART.findall(text)) != text:
        hint = 'Write a table, schema.table, or "schema"."table" with odd names in double quotes.'
        return Fault("KH002", "is not a name of a table", hint=hint)
    return None


def _find_spark_fault(text: str) -> Fault | None:
    if is_spark_file(text):
        return None
    if PurePath(text).suffix.lower() in FILE_ENDINGS and "`" not in text:
        hint = "Write them as parquet, or as a table of the catalog."
        return Fault("KH002", "is a file without types, which Spark reads as text", hint=hint)
    form, _, path = text.partition(".")
    if path.startswith("`") and form.strip("`").lower() in _WITHOUT_TYPES:
        hint = "Write them as parquet, or as a table of the catalog, which has types of its own."
        problem = "are files whose types Spark finds in their rows: one more row could change what a column is"
        return Fault("KH002", problem, hint=hint)
    if ".".join(SPARK_PART.findall(text)) != text or '"' in text or "/" in SPARK_PART.sub(_quote_unless_plain, text):
        hint = (
            "Write a table, database.table, catalog.database.table, with odd names in backticks, or a path behind its "
            "format: parquet.`/data/visits`."
        )
        return Fault("KH002", "is not a name of a table", hint=hint)
    return None


def _quote_unless_plain(part: re.Match[str]) -> str:
    return "" if part[0].startswith("`") else part[0]


def _quote(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"
