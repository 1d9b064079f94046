"""The groups that conditions make of a text, boolean, date or timestamp, by which of the conditions hold.

    CASE WHEN code LIKE 'A%' THEN 'new' WHEN code IN ('D', 'POST') THEN 'fee' ELSE 'other' END

Each compared constant is a group. Every other value is grouped by the patterns that it matches. A group is made for
each combination of patterns for which an example text is found. Texts of the few other combinations are in no group.
"""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import permutations

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, SqlType, Table, Value, ValueGroups
from planner.catalog.sql_types import read_text_limit
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, strip_parentheses
from planner.predicates.condition import read_row_truth
from planner.question.condition import Compare, Condition, Like, Within, find_columns
from planner.question.row_work import are_expensive
from planner.scope.key_partitions import list_tests
from planner.scope.name_resolution import Scope, find_column
from planner.scope.truth_keys import TEST_TYPES
from planner.values.constant import ConstantContext
from planner.values.like import collapse_wildcards, matches_pattern

MOST_PATTERNS = 4  # each more doubles the combinations for which a text is looked for
_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_TESTS = (*TEST_TYPES, exp.Is, exp.Case)


def part_by_conditions(scope: Scope, column: Column, items: list[exp.Expr]) -> ValueGroups | None:
    """Divide a column's values into groups by the conditions of `items` that hold for them.

    Return None if `items` read the column outside these conditions.
    """
    leaves: dict[Condition, None] = {}
    for item in items:
        found = _list_conditions(strip_parentheses(item), column, scope)
        if found is None:
            return None
        leaves |= dict.fromkeys(leaf for one in found for leaf in one.walk_leaves())
    derived = {one.name for one in scope.table.columns if isinstance(one.derivation, Derivation)}  # keys of their own
    leaves = {leaf: None for leaf in leaves if not find_columns(leaf) <= derived - {column.name}}
    if any(find_columns(leaf) != {column.name} for leaf in leaves):
        return None
    match column.sql_type:
        case SqlType.BOOLEAN:
            return _group_truths(column)
        case SqlType.DATE | SqlType.TIMESTAMP:
            return _group_times(column, list(leaves))
        case SqlType.TEXT:
            return _group_texts(column, list(leaves), scope.table)
        case _:
            return None


def _list_conditions(node: exp.Expr, column: Column, scope: Scope) -> list[Condition] | None:
    """Return the conditions of an expression on a column, or None if it reads the column in another way."""
    if not any(find_column(one, scope) == column for one in node.find_all(exp.Column)):
        return []
    if isinstance(node, _TESTS) or find_column(node, scope) == column:
        only = all(find_column(one, scope) == column for one in node.find_all(exp.Column))
        if only and not (isinstance(node, exp.Case) and _returns_column_as_value(node, column, scope)):
            try:
                truth = read_row_truth(node, scope, _NOTHING_GIVEN)
            except KeyholeError:
                truth = None
            if truth is not None:
                return [truth.true, truth.false]
    if find_column(node, scope) == column:
        return None
    if isinstance(node, exp.Case) and node.this is not None:
        branches = [exp.EQ(this=node.this.copy(), expression=one.this.copy()) for one in node.args["ifs"]]
        rest = [one.args["true"] for one in node.args["ifs"]]
        rest += [] if node.args.get("default") is None else [node.args["default"]]
        parts: list[exp.Expr] = [*branches, *rest]
    else:
        parts = [one for one in node.iter_expressions() if not isinstance(one, exp.DataType)]
    found: list[Condition] = []
    for part in parts:
        inner = _list_conditions(strip_parentheses(part), column, scope)
        if inner is None:
            return None
        found += inner
    return found


def _returns_column_as_value(node: exp.Case, column: Column, scope: Scope) -> bool:
    """Return True if a CASE returns the column as a value."""
    results = [one.args["true"] for one in node.args["ifs"]]
    results += [] if node.args.get("default") is None else [node.args["default"]]
    return any(
        find_column(strip_parentheses(one), scope) == column or contains_type(one, exp.Column) for one in results
    )


def _make_parts(column: Column, shown: list[Value | None], *, cuts: list[Value], tests: list[Condition]) -> ValueGroups:
    groups: tuple[int | None, ...] = tuple(range(len(shown)))
    nulls = None if column.required else len(shown)
    return ValueGroups(
        column=column.name,
        kind=column.sql_type,
        cut_points=tuple(cuts),
        groups=groups,
        null_group=nulls,
        shown_values=tuple(shown if nulls is None else [*shown, None]),
        tests=tuple(tests),
    )


def _group_truths(column: Column) -> ValueGroups:
    tests: list[Condition] = [Compare(column.name, "=", value) for value in (False, True)]
    return _make_parts(column, [False, True], cuts=[], tests=tests)


def _group_times(column: Column, leaves: list[Condition]) -> ValueGroups | None:
    starts: set[date] = set()
    for operator, value in _list_compared_values(leaves):
        if not isinstance(value, date):
            return None
        if operator in ("=", "<>", ">=", "<"):
            starts.add(value)
        if operator in ("=", "<>", ">", "<="):
            starts.add(_find_next(value))
    cuts = sorted(starts)
    if not cuts:
        return _make_parts(column, [_to_column_type(column, date(2000, 1, 1))], cuts=[], tests=[])
    try:
        shown: list[Value | None] = [cuts[0] - timedelta(days=1), *cuts]
    except OverflowError:
        return None
    return _make_parts(column, shown, cuts=list(cuts), tests=[])


def _to_column_type(column: Column, value: date) -> date:
    return value if column.sql_type is SqlType.DATE else datetime(value.year, value.month, value.day)


def _find_next(value: date) -> date:
    return value + (timedelta(microseconds=1) if isinstance(value, datetime) else timedelta(days=1))


def _list_compared_values(leaves: list[Condition]) -> Iterator[tuple[str, Value]]:
    for leaf in leaves:
        match leaf:
            case Compare(_, operator, value):
                yield operator, value
            case Within(_, values):
                yield from (("=", value) for value in values)
            case _:
                pass


def _group_texts(column: Column, leaves: list[Condition], table: Table) -> ValueGroups | None:
    compared = list(_list_compared_values(leaves))
    if any(operator not in ("=", "<>") for operator, _ in compared):
        return None
    constants = sorted({str(value) for _, value in compared})
    patterns = sorted({collapse_wildcards(leaf.pattern) for leaf in leaves if isinstance(leaf, Like)})
    if len(patterns) > MOST_PATTERNS or are_expensive(leaves, table):
        return None
    limit = read_text_limit(column.declared)
    most = min(column.longest_text, limit or column.longest_text)
    others: dict[tuple[bool, ...], str] = {}
    for text in _list_texts(patterns):
        if len(text) < most and text not in constants:
            others.setdefault(tuple(matches_pattern(text, pattern) for pattern in patterns), text)
    matched = sorted(others)
    tests = list_tests(column.name, constants, patterns, matched)
    if not tests:
        return None
    return _make_parts(column, [*constants, *map(others.__getitem__, matched)], cuts=[], tests=list(tests))


def _list_texts(patterns: list[str]) -> Iterator[str]:
    """Yield a text for each combination of patterns: their own texts joined in every order, and some others."""
    yield from ("", "x", "~", "xx", "-")
    said = [_make_matching_text(pattern) for pattern in patterns]
    for count in range(1, len(said) + 1):
        for chosen in permutations(said, count):
            yield "".join(chosen)
            yield "x".join(chosen)
            yield "x" + "".join(chosen)
            yield "".join(chosen) + "x"


def _make_matching_text(pattern: str) -> str:
    """Return a text that a pattern matches."""
    found, characters = "", iter(pattern)
    for character in characters:
        if character == "\\":
            found += next(characters, "")
        elif character == "_":
            found += "x"
        elif character != "%":
            found += character
    return found
