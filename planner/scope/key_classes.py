"""GROUP BY an expression of declared keys: the key itself if each value has its own result, else classes of values.

Guarantee: which rows form a group is public, a function of a declared key's public values alone. Rows whose key is
outside its public domain, or NULL, are in no group, whatever the expression gives for them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from itertools import product
from math import prod

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, Lookup, LookupValues, MergedKeys, SqlType, Value, ValueGroups
from planner.catalog.derived_columns import EXTRACTED_FROM_DATE
from planner.catalog.key_space import format_value
from planner.errors import KeyholeError
from planner.parser.tree import find_position, strip_parentheses, write_node, write_short
from planner.scope.functional_dependencies import combine_groups
from planner.scope.key_expressions import evaluate_rows
from planner.scope.key_partitions import identify_parts, label_parts, merge_parts, name_merged_keys
from planner.scope.key_times import InCycle, find_cycle, find_finest_part
from planner.scope.key_values import NotExact, TypedValue, round_to_double, type_value
from planner.scope.name_resolution import Scope, find_column, find_truncation_unit, name_cast_type
from planner.scope.number_keys import find_number
from planner.scope.truth_keys import find_truth

MOST_VALUES = 10_000  # every value is computed when the question is read; docs/asking.md promises so many
MOST_WORK = 100_000  # parts of expressions computed for a column's groups, each in a tenth of a millisecond
_COARSEST_FIRST = ("year", "quarter", "month", "week", "day", "hour")
_DETERMINING_PARTS = {
    "year": ("year", "quarter", "month", "day", "hour"),
    "quarter": ("quarter", "month", "day", "hour"),
    "month": ("month", "day", "hour"),
    "week": ("week", "day", "hour"),
    "hour": ("hour",),
}
_FRACTIONS = re.compile(r'^(?:[^"]|"[^"]*")*?(?:[mu](?:s|%s)|%f|ff[1-6])', re.IGNORECASE)  # of seconds, in a pattern

_DETERMINED_BY_DAYS = frozenset((*EXTRACTED_FROM_DATE, "decade", "century", "millennium"))


@dataclass(frozen=True, slots=True)
class KeyExpression:
    """An expression of key columns. `text` is its SQL over these columns, and its identity.

    `columns` maps each column's text in this SQL to the column.
    """

    text: str
    columns: tuple[tuple[str, Column], ...]
    tree: exp.Expr = field(compare=False, repr=False)


def read_key_expression(node: exp.Expr, scope: Scope) -> KeyExpression | None:
    """Return the expression over key columns alone.

    Return None if it reads other columns or none. Raise KH201 for an unknown name, KH202 for an ambiguous key.
    """
    found: dict[str, Column] = {}

    def make_leaf(column: Column, to: exp.DType | None, written: Column | None = None) -> exp.Expr:
        named = scope.make_reference(written or column)
        found[write_node(named)] = column
        return named if to is None else exp.Cast(this=named, to=exp.DataType(this=to))

    def replace_columns(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Paren):
            return part
        column = find_truth(part, scope) or find_number(part, scope) or find_column(part, scope)
        if column is not None and _is_key(column):
            return make_leaf(column, _find_type(part, scope))
        instead = find_stand_in(part, scope) if isinstance(part, exp.Column) else None
        if instead is None and isinstance(part, exp.Column) and (cycle := find_cycle_key(part, scope)) is not None:
            return InCycle(this=make_leaf(cycle[1], exp.DType.DECIMAL, cycle[2]), part=exp.var(cycle[0]))
        if instead is not None and isinstance(part, exp.Column):
            stamp = scope.resolve_column(part).sql_type is SqlType.TIMESTAMP
            return make_leaf(instead, exp.DType.TIMESTAMP if stamp else None)
        parts = None if column is None else find_value_groups(column, scope)
        return part if parts is None else make_leaf(parts, _find_type(part, scope), column)

    if any(isinstance(part, exp.Query | exp.AggFunc | exp.Window | exp.Parameter | exp.Star) for part in node.walk()):
        return None
    if any("percent" in part.meta for part in node.find_all(exp.TimeToStr)):
        raise _refuse(node, "Keyhole does not read patterns with a percent sign.")
    tree = strip_parentheses(_copy_in_place(node).transform(replace_columns, copy=False))
    text = write_node(tree)
    read = {write_node(column) for column in tree.find_all(exp.Column)}
    if not read or not read <= set(found):
        return None
    return KeyExpression(text, tuple((name, found[name]) for name in sorted(read)), tree)


def is_too_wide(columns: Iterable[Column]) -> bool:
    """Return True if keys have too many combinations of values to compute an expression for each."""
    return prod(len(column.domain or (None,)) for column in columns) > MOST_VALUES


def write_identity(node: exp.Expr, scope: Scope) -> str:
    """Return the text that identifies an expression of keys, however its names are spelled.

    For other expressions it is their own text.
    """
    try:
        expression = read_key_expression(node, scope)
    except KeyholeError:
        expression = None
    return write_node(strip_parentheses(node)) if expression is None else expression.text


def list_read_keys(node: exp.Expr, scope: Scope, keys: Sequence[Column]) -> tuple[Column, ...]:
    """Return the keys that a column or an expression reads, in whole or in part."""
    plain = find_plain_column(node, scope)
    expression = read_key_expression(node, scope) if plain is None else None
    read = {plain.name} if plain else {column.name for _, column in expression.columns} if expression else set()
    return tuple(key for key in keys if not read.isdisjoint(_list_bases(key)))


def _list_bases(key: Column) -> tuple[str, ...]:
    """Return the names of a key and of the columns whose values it puts into groups."""
    match key.derivation:
        case MergedKeys(columns=columns):
            return (key.name, *columns)
        case Lookup(column=base, has_classes=True):
            return key.name, base
    return (key.name,)


def find_value_groups(column: Column, scope: Scope) -> Column | None:
    """Return the column of groups into which the question's expressions divide a column's values.

    Return None if there is no such column.
    """
    made = ((one, one.derivation) for one in scope.table.columns)
    return next((one for one, parts in made if isinstance(parts, ValueGroups) and parts.column == column.name), None)


def _copy_in_place(node: exp.Expr) -> exp.Expr:
    """Return a copy that keeps its parent, because a column's surroundings decide which part of it is read."""
    copied: exp.Expr = exp.Tuple(expressions=[node.copy()]).expressions[0]
    return copied


def _is_key(column: Column) -> bool:
    return column.domain is not None


def _find_type(part: exp.Expr, scope: Scope) -> exp.DType | None:
    """Return PostgreSQL's type for an expression of a derived column, if it differs from the column's."""
    part = strip_parentheses(part)
    if isinstance(part, exp.Extract):
        return exp.DType.DECIMAL
    if isinstance(part, exp.TimestampTrunc):
        stamp = _is_of_timestamp(part.this, scope)
        return exp.DType.TIMESTAMP if stamp else exp.DType.TIMESTAMPTZ
    return None


def _is_of_timestamp(node: exp.Expr, scope: Scope) -> bool:
    node = strip_parentheses(node)
    if isinstance(node, exp.Cast):
        return bool(node.to.this == exp.DataType.Type.TIMESTAMP)
    return isinstance(node, exp.Column) and scope.resolve_column(node).sql_type is SqlType.TIMESTAMP


def find_stand_in(node: exp.Column, scope: Scope) -> Column | None:
    """Return the key that determines a part of a time in this place, such as the month inside a quarter."""
    if isinstance(node.this, exp.Star):
        return None
    around = node.parent
    while isinstance(around, exp.Paren) or (
        isinstance(around, exp.Cast) and name_cast_type(around) in ("TIMESTAMP", "DATE") and around.parent is not None
    ):
        around = around.parent
    told = _DETERMINING_PARTS.get(_find_asked_part(around), ("day", "hour"))
    if not isinstance(around, exp.TimestampTrunc | exp.Extract | exp.TimeToStr) or _find_asked_part(around) == "hour":
        return None
    column = scope.resolve_column(node)
    if _is_key(column) or column.sql_type not in (SqlType.DATE, SqlType.TIMESTAMP):
        return None
    if column.sql_type is SqlType.TIMESTAMP and _find_asked_part(around) not in _DETERMINED_BY_DAYS:
        return None
    parts = {find_key_part(key, column): key for key in scope.table.columns if _is_key(key)}
    return next((parts[part] for part in _COARSEST_FIRST if part in told and part in parts), None)


def find_cycle_key(node: exp.Column, scope: Scope) -> tuple[str, Column, Column] | None:
    """Return the one part of a time on which the text of to_char depends, for a column inside to_char.

    Also return the key that determines the part, and the column that the SQL reads.
    """
    around = node.parent
    while isinstance(around, exp.Paren) or (
        isinstance(around, exp.Cast) and name_cast_type(around) in ("TIMESTAMP", "DATE")
    ):
        around = around.parent
    part = find_cycle(around) if isinstance(around, exp.TimeToStr) else ""
    if not part or isinstance(node.this, exp.Star):
        return None
    derived = Derivation("extract", part, scope.resolve_column(node).name)
    read = next((column for column in scope.table.columns if column.derivation == derived), None)
    key = read if read is None or _is_key(read) else find_value_groups(read, scope)
    return None if key is None or read is None else (part, key, read)


def find_key_part(key: Column, column: Column) -> str:
    """Return the unit to which a key truncates a column. Return an empty text if the key does not truncate it."""
    derived = key.derivation
    if not isinstance(derived, Derivation) or derived.column != column.name:
        return ""
    return derived.part if derived.function == "date_trunc" else "day" if derived.function == "date" else ""


def _find_asked_part(node: exp.Expr | None) -> str:
    match node:
        case exp.TimestampTrunc():
            return find_truncation_unit(node)
        case exp.Extract():
            return str(node.this).lower().strip("'")
        case exp.TimeToStr():
            return "microsecond" if _FRACTIONS.search(str(node.args["format"].this)) else find_finest_part(node)
        case _:
            return ""


def find_plain_column(item: exp.Expr, scope: Scope) -> Column | None:
    """Return the column that an item of GROUP BY names, unless the question groups by parts of that column's values."""
    column = find_column(item, scope)
    return (
        None if column is None or (column.domain is None and find_value_groups(column, scope) is not None) else column
    )


def group_by_key_expressions(items: Sequence[exp.Expr], scope: Scope) -> dict[int, tuple[Column, ...]]:
    """Return the columns that replace each item of GROUP BY that is an expression of keys, by the item's index.

    Raise KH202 for expressions whose values are not computed here.
    """
    plain = {column.name: column for item in items if (column := find_plain_column(item, scope)) is not None}
    found: dict[int, KeyExpression] = {}
    for index, item in enumerate(items):
        if find_plain_column(item, scope) is None and (expression := read_key_expression(item, scope)) is not None:
            found[index] = expression
    result: dict[int, tuple[Column, ...]] = {}
    for index, expression in found.items():
        open_ = tuple(column for _, column in expression.columns if column.name not in plain)
        if len(expression.columns) < 2 or index in result:
            continue
        merged = _merge_combinations((expression,), items[index], scope) if open_ else None
        if merged is not None:
            together = _list_sharing_items(index, items, scope)
            if len(together) > 1:
                merged = _merge_combinations(tuple(dict.fromkeys(together.values())), items[index], scope)
            several = () if merged is not None else _list_columns(together.values())
            result |= dict.fromkeys(together, several if merged is None else (merged,))
            continue
        plain |= {column.name: column for column in open_}
        result[index] = tuple(column for _, column in expression.columns)
    for index, expression in found.items():
        if len(expression.columns) == 1 and index not in result:
            (_, base), *_ = expression.columns
            same = [one for one in found.values() if len(one.columns) == 1 and one.columns[0][1].name == base.name]
            alike = tuple(dict.fromkeys(same))
            result[index] = (base if base.name in plain else _group_one_key(alike, base, items[index], scope),)
    return result


def _list_sharing_items(index: int, items: Sequence[exp.Expr], scope: Scope) -> dict[int, KeyExpression]:
    """Return the item at an index and all items that share a column with it, directly or through others, by index."""
    found = {place: one for place, item in enumerate(items) if (one := read_key_expression(item, scope)) is not None}
    chosen = {index: found[index]}
    while True:
        names = {column.name for column in _list_columns(chosen.values())}
        more = {
            place: one
            for place, one in found.items()
            if place not in chosen and any(column.name in names for _, column in one.columns)
        }
        if not more:
            return chosen
        chosen |= more


def _list_columns(expressions: Iterable[KeyExpression]) -> tuple[Column, ...]:
    return tuple({column.name: column for one in expressions for _, column in one.columns}.values())


def _merge_combinations(expressions: tuple[KeyExpression, ...], item: exp.Expr, scope: Scope) -> Column | None:
    """Return the groups that expressions of several keys make of their values.

    Return None if each combination is a group.
    """
    every_read = {pair for expression in expressions for pair in expression.columns}
    read = sorted(every_read, key=lambda one: (_find_stored_name(one[1]), one[0]))
    names = [name for name, _ in read]
    size = prod(len(column.domain or ()) for _, column in read)
    if is_too_wide(column for _, column in read):
        raise _refuse(item, f"It would have to be computed for {size:,} combinations of values.")
    combinations = product(*(_list_domain_values(column) for _, column in read))
    try:
        rows = [dict(zip(names, values, strict=True)) for values in combinations]
        results = list(zip(*(evaluate_rows(expression.tree, rows) for expression in expressions), strict=True))
    except NotExact as part:
        raise _refuse_inexact_key(item, part) from None
    numbers: dict[tuple[tuple[str, object], ...], int] = {}
    groups = tuple(numbers.setdefault(tuple((one.kind, one.raw) for one in found), len(numbers)) for found in results)
    if len(numbers) == size:
        return None
    bases = [column for _, column in read]
    if scope.subquery_columns is not None:
        raise _refuse(item, "It gives several combinations of keys one value, and one is a subquery's column.")
    known = tuple(column.domain or () for column in bases)
    every = list(product(*known))
    merged = MergedKeys(
        columns=tuple(column.name for column in bases),
        known=known,
        groups=groups,
        shown_values=tuple(every[groups.index(number)] for number in range(len(numbers))),
    )
    merged, label, identity = name_merged_keys(merged, bases, scope.table)
    taken = {column.name for column in scope.table.columns}
    text = ", ".join(expression.text for expression in expressions)
    return Column(
        name=f"{text} together" if text in taken else text,
        sql_type=SqlType.INTEGER,
        declared="integer",
        domain=tuple(range(len(numbers))),
        derivation=merged,
        immutable=all(column.immutable for column in bases),
        prunable=False,
        ledger=label,
        computed=True,
        canonical=identity,
    )


def _group_one_key(expressions: tuple[KeyExpression, ...], base: Column, item: exp.Expr, scope: Scope) -> Column:
    """Return the column to group by for expressions that read one key.

    It is the key itself, or the classes that they make of its values.
    """
    domain = base.domain or ()
    if isinstance(base.derivation, ValueGroups) and base.derivation.distinct:
        _refuse_overflow_at_ends(expressions[0], base.derivation, item, scope)
        return base
    if len(domain) > MOST_VALUES:
        raise _refuse(item, f"It would have to be computed for {len(domain):,} values.")
    if isinstance(base.derivation, ValueGroups):
        parts = sum(1 for expression in expressions for _ in expression.tree.walk())
        if parts * len(domain) > MOST_WORK:
            raise _refuse(
                item, f"It has {parts:,} operations, and each would have to be computed for {len(domain):,} values."
            )
    try:
        pairs = _list_pairs(expressions, expressions[0].columns[0][0], base)
    except NotExact as part:
        raise _refuse_inexact_key(item, part) from None
    first = tuple(dict.fromkeys(value for _, value in pairs))
    if len(first) == len(domain):
        return base
    if isinstance(base.derivation, ValueGroups):
        places = {value: place for place, value in enumerate(first)}
        return _merge_parts(base, base.derivation, [places[value] for _, value in pairs], scope)
    if scope.subquery_columns is not None:
        raise _refuse(item, "It gives several values of a key one value, and the key is a subquery's column.")
    name = ", ".join(expression.text for expression in expressions)
    if any(column.name == name for column in scope.table.columns):
        raise _refuse(item, "A column has this name.")
    return _name_classes(name, base, pairs)


def combine_lookups(columns: Sequence[Column], base: Column, scope: Scope) -> Column:
    """Return the key for grouping by several columns that are looked up by the same column `base`.

    The key has the values of `base`, each represented by the first value with the same result in all of the columns. A
    value without a result in one of them is in no group.
    """
    columns = sorted(columns, key=lambda column: column.name)
    firsts: dict[tuple[object, ...], Value] = {}
    pairs = [(value, firsts.setdefault(found, value)) for value, found in combine_groups(base, columns, scope).items()]
    if len(firsts) == len(base.domain or ()):
        return base
    name = ", ".join(column.name for column in columns)
    taken = any(column.name == name for column in scope.table.columns)
    return _name_classes(f"{name} together" if taken else name, base, pairs)


def _name_classes(name: str, base: Column, pairs: Sequence[tuple[Value, Value]]) -> Column:
    """Return a column of classes of a key's values, each named by its first value."""
    digest = sha256(
        "\n".join(f"{format_value(value)!r} {format_value(to)!r}" for value, to in pairs).encode()
    ).hexdigest()
    source = f"classes {digest} of {base.label}"
    return Column(
        name=name,
        sql_type=base.sql_type,
        declared=base.declared,
        domain=tuple(dict.fromkeys(value for _, value in pairs)),
        derivation=Lookup(column=base.name, source=source, pairs=LookupValues.from_pairs(pairs), has_classes=True),
        immutable=base.immutable,
        prunable=False,
        ledger=base.label,
        computed=base.computed,
        canonical=source if base.computed else "",  # of declared keys, stored answers have the text
    )


def _refuse_overflow_at_ends(expression: KeyExpression, parts: ValueGroups, item: exp.Expr, scope: Scope) -> None:
    """Raise the refusal of an expression that rises or falls if PostgreSQL would overflow at the ends of its groups.

    It is checked after keys are found.
    """
    if scope.table.get_column(parts.column).declared not in ("integer", "smallint"):
        return
    if any(one.to.this == exp.DType.DOUBLE for one in expression.tree.find_all(exp.Cast)):
        return  # no integer is computed with
    last = len(parts.shown_values) - 1 - (parts.null_group is not None)
    ends = [{expression.columns[0][0]: type_value(parts.shown_values[at], parts.kind)} for at in (0, last)]
    try:
        evaluate_rows(expression.tree, ends)
    except NotExact as part:
        raise _refuse_inexact_key(item, part) from None


def _merge_parts(column: Column, parts: ValueGroups, merged: Sequence[int], scope: Scope) -> Column:
    """Return a column of groups in which groups with one result are merged and renumbered."""
    together, _ = merge_parts(parts, merged)
    return replace(
        column,
        domain=tuple(range(len(together.shown_values))),
        derivation=together,
        ledger=label_parts(together, scope.table.get_column(parts.column)),
        canonical=identify_parts(together),
    )


def _find_stored_name(column: Column) -> str:
    return column.derivation.column if isinstance(column.derivation, ValueGroups) else column.name


@lru_cache(maxsize=128)
def _list_pairs(expressions: tuple[KeyExpression, ...], name: str, base: Column) -> tuple[tuple[Value, Value], ...]:
    """Return each value of the key with the first value for which all expressions have the same result.

    Raise `NotExact`.

    Doubles are computed bit by bit. If that is not exact, they are computed as decimals, which group the same way
    inside a part.
    """
    if _is_of_doubles(base):
        with suppress(NotExact):
            return _pair_values(expressions, name, base, list(_list_domain_values(base, uses_doubles=True)))
    return _pair_values(expressions, name, base, list(_list_domain_values(base)))


def _pair_values(
    expressions: tuple[KeyExpression, ...], name: str, base: Column, values: Sequence[TypedValue]
) -> tuple[tuple[Value, Value], ...]:
    rows = [{name: typed} for typed in values]
    computed = [evaluate_rows(expression.tree, rows) for expression in expressions]
    firsts: dict[tuple[tuple[str, object], ...], Value] = {}
    pairs: list[tuple[Value, Value]] = []
    for value, *found in zip(base.domain or (), *computed, strict=True):
        results = tuple((one.kind, one.raw) for one in found)
        pairs.append((value, firsts.setdefault(results, value)))
    return tuple(pairs)


def _is_of_doubles(column: Column) -> bool:
    return isinstance(column.derivation, ValueGroups) and column.derivation.kind is SqlType.DOUBLE


def _list_domain_values(column: Column, *, uses_doubles: bool = False) -> Iterator[TypedValue]:
    if isinstance(column.derivation, ValueGroups):
        parts = column.derivation
        found = (type_value(value, parts.kind) for value in parts.shown_values)
        if _is_of_doubles(column) and (parts.is_exhaustive or uses_doubles):
            return (TypedValue("double", None if one.raw is None else round_to_double(one.raw)) for one in found)
        return found
    return (type_value(value, column.sql_type) for value in column.domain or ())


def _refuse_inexact_key(item: exp.Expr, part: NotExact) -> KeyholeError:
    return _refuse(item, f"Keyhole does not compute {part} for a key's values.")


def _refuse(item: exp.Expr, detail: str) -> KeyholeError:
    return KeyholeError(
        "KH202",
        f"{write_short(item)} is not a column with a public domain",
        detail=detail,
        hint="Group by the key itself, and compute from it around the question: SELECT ... FROM (<question>) AS q.",
        position=find_position(item),
    )


def count_charged_groups(keys: Iterable[Column], values: Iterable[Sequence[Value]]) -> int:
    """Return the number of groups after classes are split into the values of their keys, which are charged."""
    sizes = [
        len(key.derivation.pairs) if isinstance(key.derivation, Lookup) and key.derivation.has_classes else len(among)
        for key, among in zip(keys, values, strict=True)
    ]
    return prod(sizes)


def find_stored_key(column: Column, columns: Iterable[Column]) -> Column:
    """Return the key whose values a column of classes merges. Return every other column unchanged."""
    if isinstance(column.derivation, Lookup) and column.derivation.has_classes:
        base = column.derivation.column
        return next(one for one in columns if one.name == base)
    return column
