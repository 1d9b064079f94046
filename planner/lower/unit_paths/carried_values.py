"""The values of a row in the form in which a join carries them, shortened once before many rows find them.

Guarantee: no question distinguishes a value from its carried form. Behind a join a value is read once for each row that
finds it, so that a long value would make one row expensive.

References: docs/decisions/0034-rows-before-a-join.md.
"""

from planner.catalog.catalog import LONGEST_TEXT, Column, Lookup, SqlType, Table
from planner.catalog.sql_types import read_text_limit
from planner.lower.row import RowSql


def find_longest_lookup_texts(table: Table) -> dict[str, int]:
    """Return the length of the longest text by which a column of the table is looked up, by that column."""
    found: dict[str, int] = {}
    for column in table.columns:
        if isinstance(column.derivation, Lookup):
            base = column.derivation.column
            found[base] = max(found.get(base, 0), column.derivation.pairs.longest_known)
    return found


def write_shortened_column(row: RowSql, column: Column, *, longest: int) -> str:
    """Return SQL for a stored column as a join carries it, with long texts cut.

    A cut text of a unit's column gets an md5 of the whole text. Different units stay different, and so do numbers.
    Texts of up to `longest` characters are found by the same constants and keys as before. Numbers compare with
    constants as before.
    """
    identifier, dialect = row.dialect.spelling.quote_identifier(column.name), row.dialect
    if column.sql_type is SqlType.NUMERIC:
        return dialect.shorten_numeric(identifier, column.declared)
    if column.sql_type is not SqlType.TEXT or column.enumerated:
        return identifier
    value = row.write_column(column.name)
    longest = max(longest, column.longest_text, *(len(str(one)) for one in column.domain or ()))
    typed = read_text_limit(column.declared) if dialect.enforces_lengths else None
    if typed is not None and typed <= longest:
        return identifier
    if column.name not in row.table.unit:
        return f"left({value}, {longest + 1})"
    longest = max(longest, LONGEST_TEXT)
    size = f"{dialect.byte_length}({value})"  # of at most four bytes for a character
    is_short = f"{size} <= {longest} OR ({size} <= {4 * longest} AND length({value}) <= {longest})"
    return f"CASE WHEN {is_short} THEN {value} ELSE left({value}, {longest}) || md5({value}) END"
