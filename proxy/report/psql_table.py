"""Rows as psql prints them, whole and unadorned, so that a terminal, a pipe and a key of any text do equally well."""

from collections.abc import Iterator, Sequence


def psql_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table: a heading, a rule, one line per row."""
    printed = [[visible(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(len(row[index]) for row in printed) for index in range(len(columns))]
    heading, *body = (" " + " | ".join(map(str.ljust, row, widths)).rstrip() for row in printed)
    yield heading
    yield "-" + "-+-".join("-" * width for width in widths) + "-"
    yield from body


def row_count(number: int) -> str:
    """`1 row`, `2 rows`."""
    return f"{number:,} row{'' if number == 1 else 's'}"


def visible(text: str) -> str:
    """The text on one line, without anything that a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
