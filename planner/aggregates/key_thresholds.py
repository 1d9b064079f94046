"""Thresholds that one key determines: read from HAVING as one exact number per value of that key (MIDE's c_1 ... c_k).

An expression of looked-up columns, numeric keys and constants is computed as PostgreSQL would for every value of the
key. `max` and `min` of a column with one value per group are that value, and NULL for groups without rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES, GroupScope, contains_aggregate
from planner.aggregates.comparison import (
    FAILS,
    HOLDS,
    UNKNOWN,
    Comparison,
    Complement,
    Conjunction,
    Disjunction,
    Having,
    SpreadComparison,
    replace_unknown,
)
from planner.aggregates.having_refusals import refuse_several_keys, refuse_threshold_type, refuse_variable_threshold
from planner.aggregates.key_numbers import KeyNumbers
from planner.aggregates.row_expression import Arithmetic, RequiredValues
from planner.catalog.catalog import Column, Lookup, SqlType, Value
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, read_name, write_node
from planner.question.condition import ALWAYS
from planner.scope.functional_dependencies import map_key_values
from planner.scope.name_resolution import find_column
from planner.values.constant import Constant, Number, Untyped, read_number
from planner.values.expressions import fold_constant

KeyPlaces: TypeAlias = tuple[str, tuple[int, ...]]
"""A key of the question, and the indices of some of its values."""
_NUMBERS = (SqlType.INTEGER, SqlType.NUMERIC)


def is_public(node: exp.Expr, within: GroupScope) -> bool:
    """Return True if the expression has one public value per group.

    It reads at least one key and constants, and no aggregate other than the maximum or minimum of such an expression.
    """
    plain = _strip_extremes(node)
    if isinstance(plain, exp.Literal) or contains_type(plain, exp.Query, *AGGREGATES):
        return False
    columns = [find_column(column, within.scope) for column in plain.find_all(exp.Column)]
    return bool(columns) and all(column is not None and _is_key(column, within) for column in columns)


def read_key_numbers(node: exp.Expr, within: GroupScope) -> tuple[KeyNumbers, Arithmetic]:
    """Return the numbers of an expression that `is_public`.

    Raise KH208 if they depend on several keys or are not exact.
    """
    plain = _strip_extremes(node)
    columns: dict[tuple[str, str], Column] = {}
    for read in plain.find_all(exp.Column):
        column = find_column(read, within.scope)
        assert column is not None
        if column.sql_type not in _NUMBERS:
            raise KeyholeError(
                "KH208",
                f'"{column.name}" of type {column.declared} is no exact number to compare with',
                hint="Compare with a public column of type integer or numeric.",
                position=find_position(node),
            )
        columns[read_name(read.args.get("table")), read_name(read.this)] = column
    keys = [
        key
        for key in within.keys
        if all(_look_up_values(column, key, within) is not None for column in columns.values())
    ]
    if not keys:
        raise refuse_several_keys(node)
    key = keys[0]
    found = {place: _look_up_values(column, key, within) or {} for place, column in columns.items()}
    folded: dict[tuple[Value | None, ...], Number | None] = {}
    numbers: list[Number | None] = []
    for value in dict(within.key_values)[key.name]:
        at = tuple(values[value] for values in found.values())
        if at not in folded:
            known = {
                place: _make_constant(one, column) for (place, column), one in zip(columns.items(), at, strict=True)
            }
            folded[at] = _require_number(fold_constant(plain, replace(within.constants, columns=known)), node)
        numbers.append(folded[at])
    spelled = dict.fromkeys(within.scope.spell_column(column) for column in columns.values())
    made = KeyNumbers(
        key=key.name,
        numbers=tuple(None if one is None else one.value for one in numbers),
        summands=((Fraction(1), write_node(plain)),),
        columns=tuple(spelled),
        required_values=(RequiredValues(None, ALWAYS),) if contains_aggregate(node) else (),
    )
    whole = all(one is None or one.is_integral for one in numbers)
    return made, Arithmetic.INTEGER if whole else Arithmetic.EXACT


def subtract_from_mean(left: exp.Expr, threshold: exp.Expr) -> exp.Expr | None:
    """Return `avg(x) - threshold` as the mean of `x - threshold`, for a threshold that `is_public`.

    It is a sum over rows. Its sensitivity follows from the greatest distance of any row of any key from its threshold.
    Return None if the expression is no mean.
    """
    call = left.this if isinstance(left, exp.Filter) else left
    if not isinstance(call, exp.Avg) or isinstance(call.this, exp.Distinct):
        return None
    read = exp.Paren(this=call.this.copy())
    mean: exp.Expr = exp.Avg(this=exp.Sub(this=read, expression=exp.Paren(this=_strip_extremes(threshold).copy())))
    return exp.Filter(this=mean, expression=left.expression.copy()) if isinstance(left, exp.Filter) else mean


def refuse_column_threshold(node: exp.Expr, within: GroupScope) -> KeyholeError | None:
    """Return KH208 for a threshold that depends on columns.

    The message names a key by which each group would have one threshold, if there is one. Return None for an expression
    without columns, and for an aggregate that would not be constant in a group with any further key.
    """
    plain = _strip_extremes(node)
    if contains_aggregate(plain) or contains_type(plain, exp.Query):
        return None
    read = [column for one in plain.find_all(exp.Column) if (column := find_column(one, within.scope)) is not None]
    columns = [column for column in read if not _is_key(column, within)]
    by = [
        key
        for key in within.scope.table.columns
        if key.domain is not None and all(map_key_values(column, key, key.domain) is not None for column in read)
    ]
    by.sort(key=lambda key: (key in columns, isinstance(key.derivation, Lookup)))
    if not columns or (contains_aggregate(node) and not (by and by[0] not in columns)):
        return None
    spelled = ", ".join(dict.fromkeys(within.scope.spell_column(column) for column in columns))
    hint = "Compare an aggregate with a number, a parameter, or a public table's column joined by one of the keys."
    if by:
        hint = f"Add {within.scope.spell_column(by[0])} to GROUP BY, so that every group has one {spelled}."
    return refuse_variable_threshold(
        node, detail="A group may have several values of it: no key determines it.", hint=hint
    )


def _strip_extremes(node: exp.Expr) -> exp.Expr:
    """Return the expression with `max` and `min` replaced by their arguments."""
    if not contains_type(node, exp.Max, exp.Min):
        return node
    plain: exp.Expr = node.copy().transform(
        lambda one: one.this if isinstance(one, exp.Max | exp.Min) and not one.expressions else one, copy=False
    )
    return plain


def _is_key(column: Column, within: GroupScope) -> bool:
    return any(_look_up_values(column, key, within) is not None for key in within.keys)


def _look_up_values(column: Column, key: Column, within: GroupScope) -> Mapping[Value, Value | None] | None:
    values = dict(within.key_values).get(key.name)
    return None if values is None else map_key_values(column, key, values)


def _make_constant(value: Value | None, column: Column) -> Constant:
    return None if value is None else _convert_number(value, column)


def _convert_number(value: Value, column: Column) -> Number:
    found = read_number(str(value), exp.Literal.number(str(value)))
    return Number(found.value, is_integral=column.sql_type is SqlType.INTEGER)


def _require_number(value: Constant, node: exp.Expr) -> Number | None:
    match value:
        case None | Number():
            return value
        case Untyped(text):
            return read_number(text, node)
        case _:
            raise refuse_threshold_type(node)


def drop_missing_thresholds(
    formula: Having, values: Mapping[str, tuple[Value, ...]]
) -> tuple[Having, Mapping[str, tuple[Value, ...]]]:
    """Return the formula without thresholds that are NULL, and the values of the keys for which it can be true.

    A comparison with NULL is not true. A key's value is left out if the formula is false without the comparisons that
    are NULL for it. Raise KH208 if the formula may still be true for such a value.
    """
    left = dict(values)
    for key in dict.fromkeys(own.key for _, own in _list_key_thresholds(formula)):
        own = {one: numbers for one, numbers in _list_key_thresholds(formula) if numbers.key == key}
        missing: dict[int, set[Comparison]] = {}
        for one, numbers in own.items():
            for place in numbers.missing_places:
                missing.setdefault(place, set()).add(one)
        for absent in dict.fromkeys(frozenset(found) for found in missing.values()):
            if _drop_comparisons(formula, absent) != FAILS:
                raise _refuse_unknown_threshold(next(one for one in own if one in absent))
        kept = tuple(place for place in range(len(left[key])) if place not in missing)
        left[key] = tuple(left[key][place] for place in kept)
        formula = _select_places(formula, key, kept) if kept else FAILS
    return formula, left


def restrict_thresholds(
    formula: Having, whole: Mapping[str, tuple[Value, ...]], left: Mapping[str, tuple[Value, ...]]
) -> tuple[Having, tuple[KeyPlaces, ...], tuple[KeyPlaces, ...]]:
    """Return a predicate over the remaining key values.

    Also return, by key, the places where it is always false, and where always NULL. At these places a threshold is
    NULL. The threshold of another value takes its place in the formula. Raise KH208 if the predicate may be true at
    such a place.
    """
    false_at: list[KeyPlaces] = []
    null_at: list[KeyPlaces] = []
    for key in dict.fromkeys(own.key for _, own in _list_key_thresholds(formula)):
        kept = frozenset(left[key])
        formula = _select_places(formula, key, tuple(place for place, value in enumerate(whole[key]) if value in kept))
        missing: dict[int, set[Comparison]] = {}
        for one, own in _list_key_thresholds(formula):
            for place in own.missing_places if own.key == key else ():
                missing.setdefault(place, set()).add(one)
        for absent in dict.fromkeys(frozenset(found) for found in missing.values()):
            if _drop_comparisons(formula, absent) != FAILS:
                raise _refuse_unknown_threshold(next(one for one, _ in _list_key_thresholds(formula) if one in absent))
        null = {place for place, absent in missing.items() if _holds_whatever_unknown(formula, frozenset(absent))}
        if missing and len(null) == len(left[key]):
            return UNKNOWN, (), ()
        if len(missing) == len(left[key]):
            return FAILS, (), ()
        if missing:
            false_at.append((key, tuple(sorted(missing.keys() - null))))
            null_at.append((key, tuple(sorted(null))))
            formula = formula.map_comparisons(_fill_in_null_thresholds)
    return formula, tuple(one for one in false_at if one[1]), tuple(one for one in null_at if one[1])


def _fill_in_null_thresholds(leaf: Comparison | SpreadComparison) -> Having:
    """Return the comparison with a number in place of each NULL."""
    match leaf:
        case Comparison(key_thresholds=KeyNumbers() as own) if own.known_numbers:
            greatest = max(own.known_numbers)
            return replace(
                leaf, key_thresholds=replace(own, numbers=tuple(greatest if n is None else n for n in own.numbers))
            )
        case _:
            return leaf


def _list_key_thresholds(formula: Having) -> Iterator[tuple[Comparison, KeyNumbers]]:
    for leaf in formula.list_comparisons():
        if isinstance(leaf, Comparison) and leaf.key_thresholds is not None:
            yield leaf, leaf.key_thresholds


def _drop_comparisons(formula: Having, absent: frozenset[Comparison]) -> Having:
    """Return the formula, simplified, if some comparisons are not true."""
    return formula.fold(
        lambda leaf: FAILS if leaf in absent else leaf,
        outside=Complement,
        every=lambda parts: FAILS if FAILS in parts else Conjunction(tuple(parts)),
        some=lambda parts: Disjunction(tuple(part for part in parts if part != FAILS)),
    )


def _holds_whatever_unknown(formula: Having, unknown: frozenset[Comparison]) -> bool:
    """Return True if the formula holds whatever the data once some comparisons, which are NULL, are true."""
    return replace_unknown(formula.map_comparisons(lambda leaf: UNKNOWN if leaf in unknown else leaf), HOLDS) == HOLDS


def _select_places(formula: Having, key: str, places: tuple[int, ...]) -> Having:
    def select_from_leaf(leaf: Comparison | SpreadComparison) -> Having:
        match leaf:
            case Comparison(key_thresholds=KeyNumbers() as own) if own.key == key:
                return replace(leaf, key_thresholds=own.select_places(places))
            case _:
                return leaf

    return formula.map_comparisons(select_from_leaf)


def _refuse_unknown_threshold(comparison: Comparison) -> KeyholeError:
    assert comparison.key_thresholds is not None
    conditions = " AND ".join(f"{column} IS NOT NULL" for column in comparison.key_thresholds.columns)
    return KeyholeError(
        "KH208",
        f"{comparison.text} has no threshold for some groups, which may qualify all the same",
        detail="A looked-up value is NULL there.",
        hint=f"Leave these groups out: WHERE {conditions}",
        position=comparison.position,
    )
