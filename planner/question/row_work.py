"""The cost of a question's conditions on a single row, whatever the row contains, bounded before data is touched.

Most tests cost the same on every row. A LIKE pattern with text behind a `%` does not, because it is searched for at
every place of a text. So its cost depends on the text, and an analyst could choose a pattern that is expensive on one
person's row alone. Therefore the work of all patterns on a row has a public limit. It is so small that nobody can infer
from the time of an answer how much of it one row took.

| symbol | name | meaning |
|---|---|---|
| n | `Column.longest_text` | the characters of a text that conditions see |
| m | bytes of a pattern's longest part between two `%` | what is compared at one place |
| n m | `bound_pattern_work` | comparisons of a byte: 100,000 take about .1 ms on PostgreSQL and DuckDB alike |
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from planner.catalog.catalog import Column, Computed, Lookup, Table
from planner.errors import KeyholeError
from planner.question.condition import Condition, Like
from planner.values.like import collapse_wildcards, split_at_percent

MOST_PATTERN_WORK = 100_000
"""The most comparisons on one row. They take .1 ms, less than answers vary anyway, and allow twenty words of ten
letters in texts of 500 characters."""
MOST_PATTERNS = 1_000  # different ones in one question
MOST_PERCENTS = 100  # in one pattern: PostgreSQL calls itself once for each
UNNOTICED_TESTS = 16
"""The most tests that an engine may skip on some rows: a microsecond or two together. If DuckDB skips them on all rows
of a table by its statistics, that is a part of the time of reading the rows."""
MOST_TESTS = 20_000
"""The most comparisons and steps of expressions on one row, a millisecond. A list in WHERE has thousands of parts."""
_AS_MANY_TESTS = 5  # whose time a derived column takes


def are_expensive(conditions: Iterable[Condition], table: Table) -> bool:
    """Return True if evaluating conditions is so slow that an answer's time could reveal on which rows it happens.

    Raises KH214 if one row could cost more than any may.
    """
    leaves = [leaf for condition in conditions for leaf in condition.walk_leaves()]
    patterns = dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, Like))
    by_column: dict[str, list[str]] = defaultdict(list)
    for leaf in patterns:
        by_column[leaf.column].append(leaf.pattern)
    work = sum(bound_pattern_work(found, table.get_column(name)) for name, found in by_column.items())
    most_percents = max((leaf.pattern.count("%") for leaf in patterns), default=0)
    if work > MOST_PATTERN_WORK or len(patterns) > MOST_PATTERNS or most_percents > MOST_PERCENTS:
        raise _refuse_expensive(work, [table.get_column(name) for name in by_column])
    looked_for = any(is_searched(leaf.pattern) for leaf in patterns)
    tests = sum(_count_equal_tests(table.get_column(leaf.column)) for leaf in leaves)
    if tests > MOST_TESTS:
        raise _refuse_long(tests)
    return looked_for or tests > UNNOTICED_TESTS


def _count_equal_tests(column: Column) -> int:
    """Return the number of simple tests that take as much time as a test of the column."""
    match column.derivation:
        case None | Lookup():  # which is joined, and read as if it were stored
            return 1
        case Computed(term):
            return 1 + term.size // 3
        case _:
            return 1 + _AS_MANY_TESTS


def _refuse_long(tests: int) -> KeyholeError:
    return KeyholeError(
        "KH214",
        f"the conditions of this question may take the time of {tests:,} comparisons on a single row",
        detail=f"At most {MOST_TESTS:,} are allowed, so that the time of an answer reveals no row. "
        "Each step of an expression counts as well.",
        hint="Ask for fewer conditions at once.",
    )


def is_searched(pattern: str) -> bool:
    """Return True if an engine searches for a part of the pattern at every position of a text."""
    return any(split_at_percent(collapse_wildcards(pattern))[1:])


def bound_pattern_work(patterns: Sequence[str], column: Column) -> int:
    """Return the most byte comparisons that LIKE needs for these patterns on one text of the column.

    An engine searches for the parts between two `%` in their order, each from the end of the previous match. So at one
    position of a text it compares one part of each pattern.
    """
    fixed, floating = 0, 0
    words: list[str] = []
    for pattern in patterns:
        head, *behind = split_at_percent(collapse_wildcards(pattern))
        fixed += _count_bytes(head) + 1
        parts = [part for part in behind if part]
        if len(parts) == 1 and all(parts[0]):
            words.append("".join(parts[0]))
        else:
            floating += max((_count_bytes(part) for part in parts), default=0)
    return fixed + column.longest_text * (floating + _count_compared_bytes(words))


def _count_bytes(part: Sequence[str]) -> int:
    return sum(len(character.encode("utf-8", "surrogatepass")) or 1 for character in part)


def _count_compared_bytes(words: list[str]) -> int:
    """Return the most bytes that are compared at one place of a text until each word is found there or excluded.

    Words whose beginning differs from the text are excluded early. So the worst text is followed letter by letter.
    """
    most = 0
    waiting = [(words, 0, 0)]
    while waiting:
        alike, place, before = waiting.pop()
        following: dict[str, list[str]] = defaultdict(list)
        for word in alike:
            if len(word) > place:
                following[word[place]].append(word)
        size = max((len(letter.encode("utf-8", "surrogatepass")) for letter in following), default=0)
        here = before + size * sum(map(len, following.values()))
        most = max(most, here)
        waiting += [(found, place + 1, here) for found in following.values()]
    return most


def _refuse_expensive(work: int, columns: Sequence[Column]) -> KeyholeError:
    read = ", ".join(f"{column.name} up to {column.longest_text:,} characters" for column in columns)
    return KeyholeError(
        "KH214",
        f"the LIKE patterns of this question may need {work:,} comparisons on a single row",
        detail=f"At most {MOST_PATTERN_WORK:,} are allowed, {MOST_PATTERNS:,} patterns, and {MOST_PERCENTS} wildcards "
        f"% in one, so that the time of an answer reveals no row. The text behind a % is searched at every place; "
        f"conditions read {read}.",
        hint="Ask for fewer or shorter patterns, or let them begin with text: LIKE 'flu%'. The owner may declare a "
        "smaller max_length.",
    )
