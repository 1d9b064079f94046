"""Texts that WHERE lists, each a group: of a column for which the policy has no list of values.

WHERE code IN ('A1', 'B2') GROUP BY code
"""

from planner.catalog.model import Column, Parts, SqlType
from planner.question.condition import Compare, Condition, Within

_MOST_TEXTS = 1_000  # each is compared with every row's text


def list_said_texts(column: Column, said: tuple[Condition, ...]) -> Parts | None:
    """Return the groups of a column's texts that WHERE leaves, in order; None if it does not list few."""
    found: set[str] | None = None
    for one in said:
        match one:
            case Compare(name, "=", str() as text) if name == column.name:
                listed = {text}
            case Within(name, values) if name == column.name:
                listed = {value for value in values if isinstance(value, str)}
            case _:
                continue
        found = listed if found is None else found & listed
    if not found or len(found) > _MOST_TEXTS or column.sql_type is not SqlType.TEXT:
        return None
    texts = sorted(found)
    return Parts(
        column=column.name,
        kind=SqlType.TEXT,
        cuts=(),
        groups=tuple(range(len(texts))),
        nulls=None,
        shown=tuple(texts),
        tests=tuple(Compare(column.name, "=", text) for text in texts),
    )
