"""The lines of a generated statement: select lists, conditions, groups, and their indentation."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+|`[^`]*`")


def write_select(columns: list[str]) -> list[str]:
    """Return the SQL of a select list, one column a line."""
    return ["SELECT", ",\n".join(f"  {column}" for column in columns)]


def write_where(conditions: list[str], *, comment: str | None = None) -> list[str]:
    """Return the SQL of the conjunction of the conditions, with a comment. Return nothing if there are none.

    A single word has no parentheses. Spark, which has no reserved words, would read `FROM visits WHERE (FALSE)` as a
    relation named WHERE with a column FALSE, and return all its rows.
    """
    if not conditions:
        return []
    narrated = [f"-- {comment}"] if comment is not None else []
    if len(conditions) == 1 and _WORD.fullmatch(conditions[0]):
        return [*narrated, f"WHERE {conditions[0]}"]
    return [*narrated, "WHERE " + " AND ".join(f"({condition})" for condition in conditions)]


def write_group_by(columns: int) -> list[str]:
    """Return the SQL that groups by the first columns of the select list, or nothing for no columns."""
    return ["GROUP BY " + ", ".join(str(i + 1) for i in range(columns))] if columns else []


def indent_blocks(*blocks: Iterable[str]) -> list[str]:
    """Return the lines of the blocks, indented."""
    return ["  " + line for block in blocks for text in block for line in text.split("\n")]
