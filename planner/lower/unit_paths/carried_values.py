"""Values of a row as a join carries them: once shortened, before many rows meet it.

Guarantee: no question tells a value from what is carried of it. Behind a join a value is read once for each row that
meets it, so that a long one would make one row dear.

References: docs/decisions/0034-rows-before-a-join.md.
"""

from planner.catalog.catalog import LONGEST_TEXT, Column, Lookup, SqlType, Table
from planner.catalog.sql_types import read_text_limit
from planner.lower.row import RowSql


def find_longest(table: Table) -> dict[str, int]:
    """Return the length of the longest text by which each column of the table is looked up."""
    found: dict[str, int] = {}
    for column in table.columns:
        if isinstance(column.derivation, Lookup):
            base = column.derivation.column
            found[base] = max(found.get(base, 0), column.derivation.pairs.longest_known)
    return found


def shorten(row: RowSql, column: Column, *, longest: int) -> str:
    """Return a stored column as a join carries it: of a longer text its beginning, of a unit's an md5 of all beside.

    Units that differ stay different, and so do numbers. Constants and keys of up to `longest` characters find the texts
    that they found, and numbers compare to constants as they did.
    """
    identifier, dialect = row.dialect.spelling.identifier(column.name), row.dialect
    if column.sql_type is SqlType.NUMERIC:
        return dialect.short_numeric(identifier, column.declared)
    if column.sql_type is not SqlType.TEXT or column.enumerated:
        return identifier
    value = row.column(column.name)
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
