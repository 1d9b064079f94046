"""The format of a policy's CSV files. `keyhole check` detects the format once, and pins it.

The format is detected again only if a file's first line names other columns. Otherwise the format and the columns'
types stay as the owner confirmed them.
"""

import json
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Protocol

from planner.catalog.csv_file import CsvFile, find_header_line
from planner.catalog.fault import Fault
from planner.catalog.pins import Pins
from planner.catalog.sql_types import SourceColumn
from planner.policy.file import Policy
from planner.policy.relation_names import is_csv
from planner.values.sql_literals import quote_text

_GUESSED = {
    "BIGINT": "bigint",
    "DOUBLE": "double precision",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp without time zone",
}
"""The types that DuckDB may find in a file's rows; every other type is read as text."""
_ISO = ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")


class _Reading(Protocol):
    """The methods of a source that this module needs."""

    def read_schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return the columns of a relation. Raise KH006 if the source cannot read it."""

    def read_for_owner(self, relation: str, sql: str) -> Sequence[Sequence[object]]:
        """Return the result of a statement over a relation, for the owner alone.

        Raise KH006 if the source cannot read it.
        """


def pin_files(policy: Policy, source: _Reading, before: Pins) -> Pins:
    """Return the pins with the format of each CSV file in the policy added. Raise KH006 and KH014."""
    forms = {name: find_form(policy, name, source, before.get_csv_file(name)) for name in policy.tables}
    files = ((name, form) for name, form in forms.items() if form is not None)
    return replace(before, files=tuple((name, _apply_declared_types(policy, name, form)) for name, form in files))


def find_form(policy: Policy, name: str, source: _Reading, known: CsvFile | None) -> CsvFile | None:
    """Return the format of a table's CSV file, or None if the table is not a CSV file.

    The `known` format is kept if the first line still names the same columns. Raise KH006 and KH014.
    """
    if not _is_csv(policy, name):
        return None
    if known is not None and source.read_schema(policy.write_relation(name, csv=known)):
        return known
    return _read_form(policy, name, source, known)


def check_pinned_files(policy: Policy, pins: Pins) -> None:
    """Raise KH007 unless the format of every CSV file is pinned."""
    for name in policy.tables:
        if _is_csv(policy, name) and pins.get_csv_file(name) is None:
            fault = Fault("KH007", "is a CSV file whose form is not pinned yet", hint="Run keyhole check.")
            raise policy.refuse(("tables", name), fault)


def _is_csv(policy: Policy, name: str) -> bool:
    return is_csv(policy.tables[name].relation or name, kind=policy.source.kind)


def _apply_declared_types(policy: Policy, name: str, file: CsvFile) -> CsvFile:
    """Return the file's format with the column types that the policy declares, not those found in rows."""
    declared = {column: section.type for column, section in policy.tables[name].columns.items() if section.type}
    return replace(file, columns=tuple((column, declared.get(column, kind)) for column, kind in file.columns))


def _read_form(policy: Policy, name: str, source: _Reading, known: CsvFile | None) -> CsvFile:
    """Return the common format of a table's files. Refuse files of different formats.

    Raise KH006 and KH014.
    """
    plain = policy.write_relation(name)
    pattern = plain.removeprefix("read_csv(").removesuffix(")")
    files = [str(file) for (file,) in source.read_for_owner(plain, f"SELECT file FROM glob({pattern}) ORDER BY file")]
    forms = [(file, _read_file_form(plain, file, source)) for file in files]
    if not forms:
        source.read_schema(plain)  # raises KH006
    if not _has_quotes(plain, pattern, {'"', *(form.quote for _, form in forms)}, source):
        forms = [(file, replace(form, quote="", escape="")) for file, form in forms]
    first = forms[0][1]
    for file, form in forms[1:]:
        if _drop_types(form) != _drop_types(first):
            hint = "Write all files with the same columns, in the same order and with the same delimiter."
            fault = Fault("KH014", f"is several files: {file} is laid out otherwise than {files[0]}", hint=hint)
            raise policy.refuse(("tables", name, "relation"), fault)
    names = [column for column, _ in first.columns]
    if repeated := [column for column, count in Counter(names).items() if count > 1 or not column]:
        problem = f'names the column "{repeated[0]}" twice' if repeated[0] else "has a column without a name"
        hint = "Give every column of the file a name of its own in its first line."
        raise policy.refuse(("tables", name, "relation"), Fault("KH014", problem, hint=hint))
    kept = dict(known.columns) if known is not None else {}
    kinds = [dict(form.columns) for _, form in forms]
    columns = tuple(
        (column, kept.get(column) or _find_common_type([kind[column] for kind in kinds])) for column in names
    )
    return replace(first, columns=columns)


def _read_file_form(relation: str, file: str, source: _Reading) -> CsvFile:
    quoted = "'" + file.replace("'", "''") + "'"
    (row,) = source.read_for_owner(
        relation,
        "SELECT Delimiter, Quote, Escape, Comment, SkipRows, HasHeader, to_json(Columns)::VARCHAR, "
        f"DateFormat, TimestampFormat FROM sniff_csv({quoted}, ignore_errors = true, strict_mode = false)",
    )
    delimiter, quote, escape, comment, skip, has_header, columns, day, moment = row
    found = [(str(one["name"]), _GUESSED.get(str(one["type"]), "text")) for one in json.loads(str(columns))]
    file_form = CsvFile(
        columns=tuple(found),
        delimiter=_describe_found(delimiter) or ",",
        quote=_describe_found(quote) or '"',
        escape=_describe_found(escape) or _describe_found(quote) or '"',
        comment=_describe_found(comment),
        skip=int(str(skip)),
        has_header=bool(has_header),
        date_format="" if day is None or str(day) in _ISO else str(day),
        timestamp_format="" if moment is None or str(moment) in _ISO else str(moment),
    )
    line = find_header_line(file_form.write_relation(file))
    if line is None:
        return file_form
    # the names as they stand there: DuckDB gives a repeated one another
    (names,) = source.read_for_owner(relation, line.write_statement(file))
    spelled = ["" if one is None else str(one) for one in names]
    return replace(file_form, columns=tuple(zip(spelled, (kind for _, kind in found), strict=True)))


def _has_quotes(relation: str, pattern: str, marks: Set[str], source: _Reading) -> bool:
    """Return True if the files contain any quotation mark.

    Without quotation marks, quoting is switched off. Otherwise one unclosed quotation mark in a later file would hide
    the rows after it.
    """
    lines = (
        f"read_csv({pattern}, auto_detect = false, header = false, delim = '\x1f', quote = '', escape = '', "
        "ignore_errors = true, strict_mode = false, columns = {'line': 'VARCHAR'})"
    )
    has_one = " OR ".join(f"contains(line, {quote_text(mark)})" for mark in sorted(marks))
    ((found,),) = source.read_for_owner(relation, f"SELECT coalesce(bool_or({has_one}), false) FROM {lines}")
    return bool(found)


def _describe_found(found: object) -> str:
    return "" if found is None or str(found) == "(empty)" else str(found)


def _drop_types(form: CsvFile) -> CsvFile:
    names = tuple((name, "") for name, _ in form.columns)
    return replace(form, columns=names, date_format="", timestamp_format="")


def _find_common_type(kinds: Sequence[str]) -> str:
    return kinds[0] if len(set(kinds)) == 1 else "text"
