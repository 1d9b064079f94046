"""The steps of a generated statement as lines: select lists, conditions, groups, and their indentation."""

import re
from collections.abc import Iterable

_WORD = re.compile(r"\w+|`[^`]*`")


def select(columns: list[str]) -> list[str]:
    """Return the SQL of a select list, one column a line."""
    return ["SELECT", ",\n".join(f"  {column}" for column in columns)]


def where(conditions: list[str], *, comment: str | None = None) -> list[str]:
    """Return the SQL of the conjunction of the conditions, with a comment; nothing if there are none.

    A word that is the only condition has no parentheses: to Spark, which knows no reserved words, `FROM visits WHERE
    (FALSE)` is a relation of the name WHERE with a column FALSE, and all its rows.
    """
    if not conditions:
        return []
    narrated = [f"-- {comment}"] if comment is not None else []
    if len(conditions) == 1 and _WORD.fullmatch(conditions[0]):
        return [*narrated, f"WHERE {conditions[0]}"]
    return [*narrated, "WHERE " + " AND ".join(f"({condition})" for condition in conditions)]


def group_by(columns: int) -> list[str]:
    """Return the SQL of groups by the first columns of the select list.

    Without columns, the sum is one group without a clause.
    """
    return ["GROUP BY " + ", ".join(str(i + 1) for i in range(columns))] if columns else []


def indent_blocks(*blocks: Iterable[str]) -> list[str]:
    """Return the lines of the blocks, moved to the right."""
    return ["  " + line for block in blocks for text in block for line in text.split("\n")]
