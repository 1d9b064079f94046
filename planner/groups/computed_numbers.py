"""Numbers that GROUP BY computes from several columns, or by a function of one: a key with the possible values.

    GROUP BY sibsp + parch + 1        a key of fifteen groups, and NULL
    GROUP BY floor(price * n / 100)   steps of price * n

Guarantee: a row's group follows from the row alone, and computing it fails on no row. A row is in no group if its
number is impossible by the ranges of the columns. If PostgreSQL would divide by zero, the number is NULL.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import Column, Computed, ComputedName, Derivation, SqlType, ValueGroups
from planner.catalog.row_terms import RowTerm, TermKind
from planner.catalog.sql_types import read_text_limit
from planner.catalog.steps import Steps
from planner.errors import KeyholeError
from planner.groups.cuts import CutFinder
from planner.groups.lengths import find_length_range, is_length
from planner.groups.null_groups import keeps_null
from planner.groups.number_parts import make_number_parts
from planner.groups.number_spans import Ends, NumberSpan, find_span, is_never_null
from planner.groups.pieces import NotFinite, TooManyCuts
from planner.groups.ranges import find_number_range
from planner.groups.truths import replace_truths
from planner.parser.tree import strip_parentheses, write_node
from planner.predicates.computed.compare import make_computed_column
from planner.predicates.computed.number_arithmetic import NoTermError, TooWideError
from planner.predicates.computed.read import read_term
from planner.predicates.row_scope import RowScope
from planner.question.condition import Condition
from planner.scope.key_classes import is_too_wide
from planner.scope.key_partitions import identify_parts, label_parts
from planner.scope.name_resolution import Scope, find_column, name_cast_type
from planner.scope.number_keys import NUMBERS, find_number
from planner.scope.truth_keys import find_truth, spell_canonically
from planner.values.constant import ConstantContext
from planner.values.sql_literals import find_integer_limit, read_numeric_modifier

_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_FARTHEST = 10**18  # steps of a number that is computed with in 64 bits
_MOST_TERM = 36  # steps of an expression that some rows are spared: no more than `UNNOTICED_TESTS`
_TYPES = ("smallint", "integer", "bigint", "numeric")
_ROUNDED = (exp.Floor, exp.Ceil, exp.Round, exp.Trunc)
_EXACT = (SqlType.INTEGER, SqlType.NUMERIC)


def add_numbers(scope: Scope, items: Sequence[exp.Expr], said: tuple[Condition, ...], *, only_lengths: bool) -> Scope:
    """Return the scope with a key column for each number in `items` that is computed from several columns.

    Numbers computed from declared keys alone are left out.

    Parameters:
        only_lengths: add only distances of times, before it is known which times are keys.
    """
    if scope.table.members:
        return scope
    for item in items:
        for node in _list_numbers(strip_parentheses(item), scope):
            if only_lengths and not is_length(node, scope):
                continue
            scope = _add_number(scope, node, items, said)
    return scope


def replace_numbers(item: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the expression with every number that has a key column replaced by that column."""

    def replace_number(node: exp.Expr) -> exp.Expr:
        found = find_number(node, scope)
        return node if found is None else scope.make_reference(found)

    copied: exp.Expr = exp.Tuple(expressions=[item.copy()]).expressions[0]
    return copied.transform(replace_number, copy=False)


def _list_numbers(node: exp.Expr, scope: Scope) -> Iterator[exp.Expr]:
    """Yield the smallest expressions that compute with several columns, from left to right.

    If all columns are keys, an expression is yielded only if their combinations are too many to evaluate one by one.
    """
    if find_truth(node, scope) is not None or find_number(node, scope) is not None:
        return
    read = _list_columns_read(node, scope)
    if all(column.domain is not None for column in read) and not is_too_wide(read):
        return
    if isinstance(node, _ROUNDED) and len(read) > 1 and _is_number(node, scope) and _divides_columns(node, scope):
        yield node
        return
    children = [strip_parentheses(one) for one in node.iter_expressions()]
    together = sum(one.find(exp.Column) is not None for one in children) == 1
    if isinstance(node, NUMBERS) and not together and len(read) > 1 and _is_number(node, scope):
        yield node
        return
    if (isinstance(node, exp.Length) and isinstance(children[0], exp.Column)) or is_length(node, scope):
        yield node
        return
    for child in children:
        yield from _list_numbers(child, scope)


def _divides_columns(node: exp.Expr, scope: Scope) -> bool:
    """Return True for a rounding of a quotient whose divisor is a column."""
    found = read_term(node, RowScope(scope, _NOTHING_GIVEN))
    while found is not None and found.function in ("same", "*") and found.arguments:
        found = found.arguments[0]
    return found is not None and found.function.endswith(" of")


def _list_columns_read(node: exp.Expr, scope: Scope) -> dict[Column, None]:
    found = (find_column(one, scope) for one in node.find_all(exp.Column))
    return dict.fromkeys(column for column in found if column is not None)


def _is_number(node: exp.Expr, scope: Scope) -> bool:
    return all(column.sql_type in _EXACT for column in _list_columns_read(node, scope))


def _add_number(scope: Scope, node: exp.Expr, items: Sequence[exp.Expr], said: tuple[Condition, ...]) -> Scope:
    """Return the scope with a column for a number. It is unchanged if the number's values may be infinitely many."""
    name = spell_canonically(node, scope)
    read = tuple(_list_columns_read(node, scope))
    if any(column.name == name for column in scope.table.columns) or not all(one.groupable for one in read):
        return scope
    base = _read_number(node, scope)
    if base is None:
        return scope
    term = _get_term(base)
    span, low, high = _find_range(node, base, term, scope, said)
    unit = Fraction(1, 10**term.scale)
    made = Column(name, SqlType.INTEGER, "integer", domain=(0,), computed=True)
    named = replace(scope, table=replace(scope.table, columns=(*scope.table.columns, made)))
    placed = replace(
        made,
        derivation=ValueGroups(ComputedName(base.name), SqlType.INTEGER, (), (None,), None, ()),
    )
    finding = replace(scope, table=replace(scope.table, columns=(*scope.table.columns, placed)))
    reading = [
        item for item in items if any(spell_canonically(one, scope) == name for one in item.find_all(type(node)))
    ]
    finder = CutFinder(
        name=write_node(named.make_reference(made)),
        is_whole=term.kind is TermKind.WHOLE,
        is_double=False,
        low=None if low is None else low * unit,
        high=None if high is None else high * unit,
        unit=unit,
        stride=(unit * (1 if span is None else span.step or 1), unit * (0 if span is None else span.offset)),
    )
    replaced = [replace_numbers(replace_truths(item, scope), finding) for item in reading]
    try:
        for item in replaced:
            finder.add_cuts(item)
        shape = _make_value_column(base, term, required=_is_never_null(base, term, scope, said))
        parts = make_number_parts(shape, finder, distinct=len(replaced) == 1 and finder.is_chain(replaced[0]))
    except (NotFinite, TooManyCuts):
        return scope
    parts = replace(parts, column=base.name, cut_points=_scale_cuts(parts, term.scale))
    made = replace(
        made,
        domain=tuple(range(len(parts.shown_values))),
        derivation=parts,
        prunable=False,
        ledger=label_parts(parts, base),
        canonical=identify_parts(parts),
    )
    return replace(scope, table=replace(scope.table, columns=(*scope.table.columns, made)))


def _read_number(node: exp.Expr, scope: Scope) -> Column | None:
    """Return the column of a number in steps of its own. Its comment is PostgreSQL's type."""
    shown = _find_type(node, scope)
    if shown is None:
        return None
    within = RowScope(scope, _NOTHING_GIVEN)
    try:
        term = read_term(node, within)
        if term is None or term.kind not in (TermKind.WHOLE, TermKind.EXACT) or term.function in ("ratio", "column"):
            return None
        if term.size > _MOST_TERM:
            return None
        made = make_computed_column(term, within)
    except (KeyholeError, NoTermError, TooWideError):
        return None
    return ComputedName.from_column(replace(made, comment=shown)).column


def _find_range(
    node: exp.Expr, base: Column, term: RowTerm, scope: Scope, said: tuple[Condition, ...]
) -> tuple[NumberSpan | None, Fraction | None, Fraction | None]:
    """Return the known span of the numbers, and the ends between which groups are made, in steps.

    The ends also respect the limits of PostgreSQL's type.
    """
    span = find_span(
        term,
        lambda one: _find_ends(scope.table.get_column(one), said),
        required=lambda one: _is_required(scope, one, said),
    )
    if span is None and (apart := find_length_range(node, term, scope, said)) is not None:
        span = NumberSpan(*apart)
    if span is not None and term.function == "length":
        (text,) = term.arguments
        typed = read_text_limit(scope.table.get_column(str(text.value)).declared)
        span = replace(
            span, high=term.limit - 1 if typed is None or typed > term.limit else typed
        )  # longer ones are cut
    low, high = find_number_range(replace(base, bounds=None if span is None else _convert_bounds(span)), said)
    shown = str(base.comment)
    largest = Fraction(_FARTHEST if shown == "numeric" else min(find_integer_limit(shown), _FARTHEST))
    return span, None if low is None else max(low, -largest - 1), None if high is None else min(high, largest)


def _get_term(base: Column) -> RowTerm:
    assert isinstance(base.derivation, Computed)
    return base.derivation.term


def _convert_bounds(span: NumberSpan) -> tuple[Decimal, Decimal]:
    return Decimal(span.low), Decimal(span.high)


def _find_ends(column: Column, said: tuple[Condition, ...]) -> Ends:
    if column.domain is not None:
        numbers = [Fraction(one) for one in column.domain if isinstance(one, int | Decimal)]
        if column.bounds is None and numbers:
            column = replace(column, bounds=(_to_decimal(min(numbers)), _to_decimal(max(numbers))))
    return find_number_range(column, said)


def _to_decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _is_never_null(base: Column, term: RowTerm, scope: Scope, said: tuple[Condition, ...]) -> bool:
    """Return True if a number has a value on every row that WHERE keeps."""
    if not keeps_null(base, scope, said):
        return True
    known = all(_is_required(scope, one, said) for one in term.columns)
    return known and is_never_null(term, lambda one: _is_required(scope, one, said))


def _is_required(scope: Scope, name: str, said: tuple[Condition, ...]) -> bool:
    column = scope.table.get_column(name)
    return column.required or not keeps_null(column, scope, said)


def _make_value_column(base: Column, term: RowTerm, *, required: bool) -> Column:
    """Return a column of the number's own values, in the place of the column of its steps."""
    if term.scale == 0:
        return replace(base, required=required)
    return replace(base, sql_type=SqlType.NUMERIC, declared=f"numeric(38,{term.scale})", required=required)


def _scale_cuts(parts: ValueGroups, scale: int) -> Steps | tuple[int, ...]:
    if isinstance(parts.cut_points, Steps):
        return Steps(parts.cut_points.runs, None)
    return tuple(int(Fraction(str(cut)) * 10**scale) for cut in parts.cut_points)


def _find_type(node: exp.Expr, scope: Scope) -> str | None:
    """Return PostgreSQL's type of an exact number. Return None for other expressions and functions of unknown type."""
    node = strip_parentheses(node)
    if is_length(node, scope):
        return "numeric" if isinstance(node, exp.Extract) else "integer"
    match node:
        case exp.Column():
            return _find_column_type(node, scope)
        case exp.Literal() if not node.is_string:
            text = str(node.this)
            if not text.isdigit():
                return "numeric"
            return "integer" if int(text) < 2**31 else "bigint" if int(text) < 2**63 else "numeric"
        case exp.Neg() | exp.Abs():
            return _find_type(node.this, scope)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod() | exp.Nullif():
            found = [_find_type(node.this, scope), _find_type(node.expression, scope)]
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            found = [_find_type(one, scope) for one in (node.this, *node.expressions)]
        case exp.Length():
            return "integer"
        case exp.Cast() if name_cast_type(node) == "DECIMAL":
            return None if _find_type(node.this, scope) is None else "numeric"
        case exp.Floor() | exp.Ceil() | exp.Round() | exp.Trunc():
            return "numeric" if _find_type(node.this, scope) == "numeric" else None
        case _:
            return None
    known = [one for one in found if one is not None]
    return max(known, key=_TYPES.index) if len(known) == len(found) else None


def _find_column_type(node: exp.Column, scope: Scope) -> str | None:
    column = find_column(node, scope)
    if column is None:
        return None
    if column.sql_type is SqlType.INTEGER and not isinstance(column.derivation, Derivation):
        limit = find_integer_limit(column.declared)
        return _TYPES[0] if limit < 2**15 else _TYPES[1] if limit < 2**31 else _TYPES[2]
    if column.sql_type is SqlType.INTEGER and column.declared == "integer":
        return "integer"
    typed = read_numeric_modifier(column.declared)
    told = typed is not None and 0 <= typed[1] <= typed[0] and typed[0] + typed[1] <= 36
    return "numeric" if column.sql_type is SqlType.NUMERIC and told else None
