"""The hints that Keyhole adds to PostgreSQL's errors about names.

A hint gives the most similar name in the catalogue, the missing quotes or join, or the clause where the expression
belongs.

Guarantee: a hint depends on the client's own text and on names that its analyst may read in the catalogue.
"""

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches

from planner.bind.other_tables import offer_join
from planner.catalog.catalog import Catalog, Table
from planner.errors import UnknownColumn
from planner.extract.hints.windows_around import write_windows_around
from planner.extract.virtual_relations import VIRTUAL_RELATIONS, VIRTUAL_SCHEMA
from planner.parser.lexer import spell_name
from planner.values.sql_literals import quote_text as text_literal
from proxy.session.error_fields import add_hint
from proxy.wire import backend
from proxy.wire.backend import Report
from proxy.wire.encodings import find_codec
from proxy.wire.frames import Frame

_RELATION = re.compile(r'relation "(?:(.*)\.)?([^".]+)" does not exist', re.DOTALL)
_COLUMN = re.compile(r'column (?:"([^"]+)"|\S*?\.?([^".\s]+)) does not exist', re.DOTALL)
_UNGROUPED = re.compile(r'column "(?:.*\.)?([^".]+)" must appear in the GROUP BY clause or be used in .*', re.DOTALL)
_HAVING = re.compile(r"\bHAVING\b", re.IGNORECASE)
_AGGREGATE_IN_WHERE = "aggregate functions are not allowed in WHERE"
_WINDOW_IN_CLAUSE = "window functions are not allowed in "
_WINDOWING = b"42P20"
_NO_RELATION, _NO_COLUMN, _SYNTAX, _GROUPING = b"42P01", b"42703", b"42601", b"42803"
_IN_SINGLE_QUOTES = "A text is written in single quotes: {}."
_NAME_WINDOW = "Name the window in a subquery, and compare it in the WHERE of the query around."
_AFTER_TABLE = {"where", "group", "having", "order", "join", "left", "right", "inner", "full", "cross", "natural", "on"}
_MOST_NAMES = 5_000  # that a name is held against


class NameHints:
    """The hints about misspelled names for one session of an analyst. `encoding` returns the client's encoding."""

    def __init__(
        self, catalog: Catalog, analyst: str, *, encoding: Callable[[], str], hint_in_message: Callable[[], bool]
    ) -> None:
        self._catalog = catalog
        self._analyst = analyst
        self._encoding = encoding
        self._hint_in_message = hint_in_message

    def add_hint_to_error(self, frame: Frame, sent: bytes) -> Frame:
        """Return an ErrorResponse with a hint added. Return it unchanged if it has a hint, or if no hint is known.

        Parameters:
            sent: the statement to which the error's position refers, or empty if it is not known.
        """
        report, found = backend.decode(frame), find_codec(self._encoding())
        if not isinstance(report, Report) or found is None:
            return frame
        message = found.decode(report.find_field(b"M") or b"", "replace")[0]
        text = found.decode(sent, "replace")[0]
        at = int(report.find_field(b"P") or b"0") - 1
        is_quoted = text[at : at + 1] == '"'
        hint: str | None = None
        match report.find_field(b"C"):
            case code if report.find_field(b"H"):  # the nearest column, also of a text in the wrong quotes
                if code == _NO_COLUMN and is_quoted and (named := _COLUMN.fullmatch(message)):
                    hint = self._suggest_value(named[1] or named[2], text)
            case code if code == _NO_RELATION and (named := _RELATION.fullmatch(message)):
                hint = self._suggest_relation(named[2], named[1] or "")
            case code if code == _NO_COLUMN and (named := _COLUMN.fullmatch(message)):
                hint = self._suggest_column(named[1] or named[2], text, is_quoted=is_quoted)
            case code if code == _SYNTAX and text and at >= 0:
                hint = self._suggest_quotes(text, at)
            case code if code == _GROUPING and (named := _UNGROUPED.fullmatch(message)) and at >= 0:
                hint = self._suggest_aggregate(named[1], text, at)
            case code if code == _GROUPING and message == _AGGREGATE_IN_WHERE:
                hint = "A condition on an aggregate stands in HAVING."
            case code if code == _WINDOWING and message.startswith(_WINDOW_IN_CLAUSE):
                hint = _suggest_subquery(text)
        if hint is None:
            return frame
        without = Report(report.kind, tuple(field for field in report.fields if field[0] != b"H"))
        told = add_hint(without, hint, codec=found, hint_in_message=self._hint_in_message())
        return Frame(frame.kind, told.encode())

    def _suggest_relation(self, wanted: str, schema: str) -> str | None:
        if (hint := self._suggest_qualified(wanted, schema)) is not None:
            return hint
        names = [*self._list_table_names(), *(question.name for question in self._catalog.stored_questions)]
        names += [monitor.name for monitor in self._catalog.monitors if self._analyst in monitor.analysts]
        spelled = {name: spell_name(name) for name in names}
        spelled |= {one.name: f"{VIRTUAL_SCHEMA}.{one.name}" for one in VIRTUAL_RELATIONS if one.name not in spelled}
        nearest = _find_nearest_name(wanted, spelled)
        if nearest == wanted and nearest in names:
            return f"Perhaps you meant public.{spelled[nearest]}."
        return None if nearest is None else f"Perhaps you meant {spelled[nearest]}."

    def _suggest_qualified(self, wanted: str, schema: str) -> str | None:
        """Return a hint with the source's own name for a table: in the given schema, or in another schema."""
        names = self._catalog.source_names
        in_schema = _find_nearest_name(wanted, {one.name: "" for one in names if one.schema == schema})
        of_table = (
            _find_nearest_name(schema, {one.schema: "" for one in names if one.name == wanted}) if schema else None
        )
        meant = (schema, in_schema) if in_schema is not None else (of_table, wanted)
        found = next((one for one in names if (one.schema, one.name) == meant), None)
        return None if found is None else f"Perhaps you meant {spell_name(found.schema)}.{spell_name(found.name)}."

    def _suggest_column(self, wanted: str, text: str, *, is_quoted: bool) -> str | None:
        nearest = _find_nearest_name(wanted, self._list_named_columns(text))
        if nearest is not None and nearest != wanted:
            return f"Perhaps you meant {spell_name(nearest)}."
        if is_quoted:
            return self._suggest_value(wanted, text) or _IN_SINGLE_QUOTES.format(text_literal(wanted))
        return self._suggest_join(wanted, text)

    def _suggest_value(self, wanted: str, text: str) -> str | None:
        """Return a hint that quotes a key's public value, for a word that was written like a column."""
        for table in self._find_named_tables(text):
            for column in table.columns:
                if column.domain is not None and len(column.domain) <= _MOST_NAMES and wanted in column.domain:
                    return _IN_SINGLE_QUOTES.format(text_literal(wanted))
        return None

    def _suggest_join(self, wanted: str, text: str) -> str | None:
        """Return a hint with the join that makes a column of another table about the same people available."""
        for table in self._find_named_tables(text):
            called = re.search(rf"\b{re.escape(table.name)}\s+(?:as\s+)?(\w+)", text, re.IGNORECASE)
            alias = called[1] if called and called[1].lower() not in _AFTER_TABLE else table.name
            unknown = UnknownColumn(wanted, "", detail=None, hint=None, position=None)
            if (hint := offer_join(unknown, table, self._catalog, alias=alias).hint) is not None:
                return hint
        return None

    def _suggest_aggregate(self, wanted: str, text: str, at: int) -> str | None:
        """Return a hint with an aggregate for HAVING, in place of a bare column."""
        if _HAVING.search(text, 0, at) is None:
            return None
        columns = [column for table in self._find_named_tables(text) for column in table.columns]
        is_measure = any(column.name == wanted and column.bounds is not None for column in columns)
        example = f"sum({spell_name(wanted)})" if is_measure else "count(*)"
        return f"HAVING compares aggregates, such as {example}. A condition on rows stands in WHERE."

    def _suggest_quotes(self, text: str, at: int) -> str | None:
        """Return a hint to quote a name with a blank, at or just before the position of PostgreSQL's syntax error."""
        lowered = text.lower()
        for name in (*self._list_table_names(), *self._list_named_columns(text)):
            first = lowered.find(name.lower(), max(at - len(name) - 1, 0)) if " " in name else -1
            if 0 <= first < at <= first + len(name) + 1 and text[first - 1 : first] != '"':
                return f"Write the name in double quotes: {spell_name(name)}."
        return None

    def _list_table_names(self) -> Iterator[str]:
        yield from (table.name for table in self._catalog.tables)
        yield from (table.name for table in self._catalog.public_tables)

    def _find_named_tables(self, text: str) -> list[Table]:
        """Return the private tables that a text names."""
        lowered = text.lower()
        return [table for table in self._catalog.tables if table.name.lower() in lowered]

    def _list_named_columns(self, text: str) -> list[str]:
        """Return the columns of the tables that a text names."""
        lowered = text.lower()
        relations = [
            (table.name, [*(one.name for one in table.columns), *(one.name for one in table.band_columns)])
            for table in self._catalog.tables
        ]
        relations += [(table.name, [one.name for one in table.columns]) for table in self._catalog.public_tables]
        return [column for name, columns in relations if name.lower() in lowered for column in columns]


def _suggest_subquery(text: str) -> str:
    """Return a hint for a window where PostgreSQL allows none, with the statement as it may be written if possible."""
    written = write_windows_around(text)
    return _NAME_WINDOW if written is None else f"Instead you can ask: {written};"


def _find_nearest_name(wanted: str, names: Iterator[str] | list[str] | dict[str, str]) -> str | None:
    """Return the name most similar to `wanted`, ignoring case. Return None if no name is similar enough."""
    known = dict.fromkeys(list(names)[:_MOST_NAMES])
    if wanted in known:
        return wanted
    lowered = {name.lower(): name for name in reversed(list(known))}
    found = get_close_matches(wanted.lower(), lowered, n=1)
    return lowered[found[0]] if found else None
