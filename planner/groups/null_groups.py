"""Rows with NULL in a computed key: which keys give them a group, and a notice for keys that do not.

GROUP BY extract(month FROM returned_at)   twelve groups, and one for rows without a time GROUP BY coalesce(city,
'unknown')         of a declared key: a NOTICE says that rows without a city are in no group
"""

from collections.abc import Iterable, Iterator

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, SqlType, Value, ValueGroups
from planner.catalog.derived_columns import PART_RANGES
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, strip_parentheses, write_node
from planner.question.condition import Compare, Condition, IsNull, Like, Not, Within
from planner.scope.embedded import EmbeddedQuestion
from planner.scope.group_by import has_no_keys, resolve_item
from planner.scope.key_classes import KeyExpression, read_key_expression
from planner.scope.key_expressions import evaluate
from planner.scope.key_times import find_cycle
from planner.scope.key_values import NotExact, TypedValue, type_value
from planner.scope.name_resolution import Scope, find_column, read_derivation


def has_null_group(base: Column, items: Iterable[exp.Expr], scope: Scope, said: tuple[Condition, ...]) -> bool:
    """Return True if keys computed from the time column `base` need a group for rows in which `base` is NULL.

    None is needed if no row has NULL there, if WHERE leaves these rows out, or if another key of `base` has such a
    group.
    """
    if base.required or not keeps_null(base, scope, said):
        return False
    return not any(_reads_time_without_null_group(node, base, scope) for item in items for node in item.walk())


def keeps_null(base: Column, scope: Scope, said: tuple[Condition, ...]) -> bool:
    """Return True if WHERE may be true for a row in which a column is NULL."""
    derived = (one for one in scope.table.columns if isinstance(one.derivation, Derivation))
    names = {base.name, *(one.name for one in derived if _is_derived_of(one, base))}
    return not any(_rejects_null(one, names) for one in said)


def _is_derived_of(column: Column, base: Column) -> bool:
    return isinstance(column.derivation, Derivation) and column.derivation.column == base.name


def _rejects_null(one: Condition, names: set[str]) -> bool:
    match one:
        case Compare(name) | Within(name) | Like(name) | Not(Compare(name) | Within(name) | Like(name) | IsNull(name)):
            return name in names
        case _:
            return False


def _reads_time_without_null_group(node: exp.Expr, base: Column, scope: Scope) -> bool:
    """Return True if an expression reads a time in a key without a group for NULL."""
    found = find_column(node, scope)
    if found == base and isinstance(node, exp.Column):
        around: exp.Expr | None = node.parent
        while isinstance(around, exp.Paren | exp.Cast) and read_derivation(around, scope) is None:
            around = around.parent
        written = None if around is None else read_derivation(around, scope)
        if written is None:
            shown = isinstance(around, exp.TimeToStr) and bool(find_cycle(around))
            return not shown and not isinstance(around, exp.Predicate)
        return written.function != "extract" or written.part not in PART_RANGES
    return found is not None and bool(found.domain) and _is_derived_of(found, base)


def group_time_part(derived: Column, ends: tuple[int, int]) -> ValueGroups:
    """Return the groups of a part of a time: one for each number from `ends[0]` to `ends[1]`, and one for NULL."""
    count = ends[1] - ends[0] + 1
    numbers: tuple[Value, ...] = tuple(range(ends[0], ends[1] + 1))
    return ValueGroups(
        column=derived.name,
        kind=SqlType.INTEGER,
        cut_points=(*numbers, ends[1] + 1),
        groups=(None, *range(count), None),
        null_group=count,
        shown_values=(*numbers, None),
    )


def describe_lost_nulls(embedded: EmbeddedQuestion) -> Iterator[str]:
    """Yield a sentence for each declared key without a group for its NULL rows, although SQL would show one."""
    select, scope = embedded.tree, embedded.scope
    if embedded.unit_query is not None or has_no_keys(select):
        return
    for one in select.args["group"].expressions:
        try:
            item = resolve_item(strip_parentheses(one), select, scope)
            asks = contains_type(item, exp.Coalesce, exp.Null)
            expression = read_key_expression(item, scope) if asks else None
        except KeyholeError:
            continue
        for name, key in () if expression is None else expression.columns:
            if (
                not isinstance(key.derivation, ValueGroups)
                and not key.required
                and _has_image_of_null(expression, name)
            ):
                named = spell_name(key.derivation.column if isinstance(key.derivation, Derivation) else key.name)
                written = write_node(item)
                yield f"rows without {named} are in no group, although {written} would give them one"


def _has_image_of_null(expression: KeyExpression | None, name: str) -> bool:
    """Return True if an expression of keys has a value if one key is NULL and the others are not."""
    if expression is None:
        return False
    values = {one: type_value(next(iter(key.domain or ()), None), key.sql_type) for one, key in expression.columns}
    try:
        return evaluate(expression.tree, {**values, name: TypedValue(values[name].kind, None)}).raw is not None
    except NotExact:
        return False
