"""Texts without a public list: WHERE may list a few as groups, or a refusal suggests a CASE that names some.

WHERE code IN ('A1', 'B2') GROUP BY code WHERE left(code, 2) IN ('A1', 'B2') GROUP BY left(code, 2)
"""

from collections.abc import Iterable, Mapping
from datetime import date

from sqlglot import exp

from planner.catalog.catalog import Column, SqlType, ValueGroups
from planner.errors import KeyholeError
from planner.parser.tree import find_position, write_node, write_short
from planner.predicates.condition import read_row_condition
from planner.question.condition import Compare, Condition, Like, Or, Within
from planner.scope.key_classes import read_key_expression
from planner.scope.name_resolution import Scope, find_column
from planner.values.constant import ConstantContext
from planner.values.like import escape_pattern, split_pattern

_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_MOST_TEXTS = 1_000  # each is compared with every row's text
_MOST_ENDS = 100  # a pattern takes some ten times what comparing two texts takes


def refuse_open_texts(items: Iterable[exp.Expr], scope: Scope) -> None:
    """Raise KH202 for a computed key that reads a text without a public list of values."""
    for item in items:
        read = _find_open_text(item, scope)
        if read is None:
            continue
        node, column = read
        _refuse_test(item, scope)
        raise KeyholeError(
            "KH202",
            f"{write_short(item)} is not a column with a public domain",
            detail=f"Any text may be in {column.name}, so nothing public says which values {write_short(node)} has.",
            hint=f"Name the texts that you ask about: "
            f"CASE WHEN {write_node(node)} IN ('A', 'B') THEN 'A or B' ELSE 'other' END.",
            position=find_position(item),
        )


def _refuse_test(item: exp.Expr, scope: Scope) -> None:
    """Raise KH202 if a key has a condition that Keyhole cannot test on a row, such as one on the order of texts."""
    for test in item.find_all(exp.Predicate):
        try:
            read_row_condition(test, scope, _NOTHING_GIVEN)
        except KeyholeError as error:
            raise KeyholeError(
                "KH202",
                f"{write_short(item)} is not a column with a public domain",
                detail=f"A row cannot be asked {write_short(test)}: {error.message}.",
                hint=error.hint,
                position=find_position(test),
            ) from None


def _find_open_text(item: exp.Expr, scope: Scope) -> tuple[exp.Expr, Column] | None:
    """Return the part of a key that reads a text, and the text's column. Return None if its values are known."""
    try:
        if find_column(item, scope) is not None or read_key_expression(item, scope) is not None:
            return None
        for node in item.find_all(exp.Column):
            column = find_column(node, scope)
            if column is not None and column.domain is None and column.sql_type is SqlType.TEXT:
                whole = (item, node.parent or node, node)
                return next(one for one in whole if one is node or _is_compared(one, scope)), column
    except KeyholeError:
        return None
    return None


def _is_compared(node: exp.Expr, scope: Scope) -> bool:
    """Return True if WHERE may compare an expression with texts."""
    if node.find(exp.Case, exp.Predicate) is not None:
        return False
    texts = [exp.Literal.string(text) for text in "AB"]
    try:
        read_row_condition(exp.In(this=node.copy(), expressions=texts), scope, _NOTHING_GIVEN)
    except KeyholeError:
        return False
    return True


def group_listed_texts(column: Column, said: tuple[Condition, ...]) -> ValueGroups | None:
    """Return a group for each text of a column that WHERE lists, in order.

    Return None if it lists none or too many.
    """
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
    return _group_by_tests(column, {text: Compare(column.name, "=", text) for text in sorted(found)})


def group_listed_ends(
    column: Column, items: Iterable[exp.Expr], scope: Scope, said: tuple[Condition, ...]
) -> ValueGroups | None:
    """Return a group for each beginning, or each end, of a text that WHERE lists, if all have one length.

    Return None if WHERE lists none or too many, or if the items read more of the text.
    """
    for one in said:
        for from_end in (False, True):
            ends = _read_ends(one, column, from_end=from_end)
            if ends and all(_reads_at_most(item, column, scope, len(ends[0]), from_end=from_end) for item in items):
                patterns = {end: _write_pattern(end, from_end=from_end) for end in ends}
                return _group_by_tests(column, {end: Like(column.name, one) for end, one in patterns.items()})
    return None


def _group_by_tests(column: Column, tests: Mapping[str, Condition]) -> ValueGroups:
    """Return a group of texts for each test, shown by the key of `tests`."""
    return ValueGroups(
        column=column.name,
        kind=SqlType.TEXT,
        cut_points=(),
        groups=tuple(range(len(tests))),
        null_group=None,
        shown_values=tuple(tests),
        tests=tuple(tests.values()),
    )


def _read_ends(condition: Condition, column: Column, *, from_end: bool) -> list[str]:
    """Return the beginnings or ends to which a condition restricts a text, or nothing if it says something else."""
    found: set[str] = set()
    for one in condition.conditions if isinstance(condition, Or) else (condition,):
        if not isinstance(one, Like) or one.column != column.name:
            return []
        text = "".join(part or "" for part in split_pattern(one.pattern))
        if one.pattern != _write_pattern(text, from_end=from_end):
            return []
        found.add(text)
    lengths = {len(text) for text in found}
    return sorted(found) if len(lengths) == 1 and 0 not in lengths and len(found) <= _MOST_ENDS else []


def _write_pattern(end: str, *, from_end: bool) -> str:
    return f"%{escape_pattern(end)}" if from_end else f"{escape_pattern(end)}%"


def _reads_at_most(item: exp.Expr, column: Column, scope: Scope, count: int, *, from_end: bool) -> bool:
    """Return True if an item reads only the first, or the last, `count` characters of a text."""
    for node in item.find_all(exp.Column):
        if find_column(node, scope) != column:
            continue
        around = node.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        numbers: list[object] = []
        match around:
            case exp.Right(expression=exp.Literal() as last) if from_end:
                numbers = [last]
            case exp.Left(expression=exp.Literal() as last) if not from_end:
                numbers = [last]
            case exp.Substring() if not from_end:
                numbers = [around.args.get("start"), around.args.get("length")]
            case _:
                return False
        texts = [str(one.this) for one in numbers if isinstance(one, exp.Literal)]
        if len(texts) < len(numbers) or not all(text.isdigit() for text in texts):
            return False
        first, *rest = map(int, texts)
        if not 0 < first <= count or any(first + length - 1 > count for length in rest):
            return False
    return True
