"""An expression of a row's columns as a term, with the type that PostgreSQL gives it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce

from sqlglot import exp

from planner.catalog.catalog import Column, Computed, Derivation, Product, SqlType
from planner.catalog.row_terms import RowTerm, TermKind
from planner.parser.tree import contains_type, strip_parentheses
from planner.predicates.column_comparison import is_real
from planner.predicates.computed import number_arithmetic, ratios, texts, times
from planner.predicates.computed.number_arithmetic import EXACT, NUMBERS, NoTermError, TooWideError
from planner.predicates.row_scope import RowScope
from planner.scope.name_resolution import find_column, find_numeric_scale, find_text_width, name_cast_type
from planner.values.constant import Constant, Interval, Number, TimeOfDay
from planner.values.datetimes import normalise_unit
from planner.values.functions import get_text
from planner.values.sql_literals import find_integer_limit, read_numeric_modifier

WIDTHS = ((18, 10), (15, 8), (12, 6), (9, 4))
"""Digits before and behind the point that are computed with, of a numeric that may have more: the first of these with
which the whole expression has at most 38."""
MOST_STEPS = 150  # of one expression: some microseconds, and longer than what people write
_ROUNDING = (exp.Floor, exp.Ceil, exp.Round, exp.Trunc)
_MOST_PLACES = 30  # behind or before the point, of what is rounded
_TIMES = frozenset((TermKind.DAY, TermKind.MOMENT))


def read_term(node: exp.Expr, within: RowScope) -> RowTerm | None:
    """Return the term of an expression. Return None if it is no term. Raise KH201 for unknown names."""
    return read_terms((node,), within, lambda found: found[0])


def read_measure(node: exp.Expr, within: RowScope) -> RowTerm | None:
    """Return the term of a summed expression, whose quotients by columns are doubles. Return None if it is no term."""
    return read_terms((node,), within, lambda found: found[0], uses_doubles=True)


def read_terms(
    nodes: tuple[exp.Expr, ...],
    within: RowScope,
    make: Callable[[list[RowTerm]], RowTerm],
    *,
    uses_doubles: bool = False,
) -> RowTerm | None:
    """Return the result of `make` for the terms of some expressions, with the most digits that all engines compute."""
    for width in WIDTHS:
        reader = _Reader(within, width, uses_doubles)
        try:
            made = make([reader.read(node) for node in nodes])
        except TooWideError:
            continue
        except NoTermError:
            return None
        return made if made.size <= MOST_STEPS and made.columns else None
    return None


def _read_age_times(node: exp.Anonymous) -> list[exp.Expr]:
    """Return the two times of an age; for one time, from today's. Raise `NoTermError` if no term computes it."""
    match node.expressions:
        case [one]:
            return [exp.CurrentDate(), one]
        case [_, _]:
            return list(node.expressions)
        case _:
            raise NoTermError


def _keep_remainder(node: exp.Expr, term: RowTerm) -> RowTerm:
    """Return a whole-number term as a numeric if PostgreSQL's type for it is numeric, as for the result of floor."""
    if term.kind is not TermKind.WHOLE:
        return term
    rounded = any(isinstance(one, _ROUNDING) for one in node.walk(prune=lambda one: isinstance(one, exp.Cast)))
    return replace(term, kind=TermKind.EXACT) if rounded else term


def _round_to(places: int, term: RowTerm) -> RowTerm:
    """Return a number cast to a numeric with the given decimals. PostgreSQL fails if it is too long."""
    if term.kind is TermKind.FLOATING:
        return number_arithmetic.round_double("round", term, places)
    rounded = ratios.round_steps("round", term, places)
    return RowTerm("same", TermKind.EXACT, (rounded,), scale=rounded.scale, limit=rounded.limit)


def _read_total(column: Column) -> RowTerm:
    """Return a total of one privacy unit as a term. Raise `NoTermError` for a key, and for doubles."""
    exact = {SqlType.INTEGER: TermKind.WHOLE, SqlType.NUMERIC: TermKind.EXACT}.get(column.sql_type)
    if exact is None or column.derivation is not None or column.grid is None or column.bounds is None:
        raise NoTermError
    scale = max(-int(column.grid.normalize().as_tuple().exponent), 0)
    limit = max(int(max(map(abs, column.bounds)).scaleb(scale)), 1)
    return RowTerm("column", exact, value=column.name, scale=scale, limit=limit)


@dataclass(frozen=True, slots=True)
class _Reader:
    within: RowScope
    width: tuple[int, int]
    uses_doubles: bool

    def read(self, node: exp.Expr) -> RowTerm:
        """Return the term. Raise `NoTermError`, `TooWideError`."""
        node = strip_parentheses(node)
        if self.within.is_constant(node):
            return self._read_constant(self.within.fold_constant(node), node)
        match node:
            case exp.Column() if (column := find_column(node, self.within.scope)) is not None:
                return self._read_column(column)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
                return self._read_arithmetic(node)
            case exp.Neg():
                return ratios.negate(self._number(node.this))
            case exp.Abs():
                return ratios.drop_sign(self._number(node.this))
            case _ if isinstance(node, _ROUNDING):
                return self._step_up(node)
            case exp.Coalesce() | exp.Greatest() | exp.Least():
                return self._choose(node)
            case exp.Nullif():
                return self._read_nullif(node)
            case exp.Cast() if not isinstance(node, exp.TryCast):
                return self._read_cast(node)
            case exp.Date() | exp.TimestampTrunc() | exp.Extract():
                return self._read_time(node)
            case exp.Anonymous() if str(node.this).lower() == "age":
                return times.compute_age(*(self.read(one) for one in _read_age_times(node)))
            case _:
                return self._read_text(node)

    def _read_time(self, node: exp.Expr) -> RowTerm:
        match node:
            case exp.Extract():
                part, of = str(node.this).lower().strip("'"), strip_parentheses(node.expression)
                if isinstance(of, exp.Anonymous) and str(of.this).lower() == "age":
                    return times.extract_age(part, *(self.read(one) for one in _read_age_times(of)))
                return times.extract(part, self._read_local(node.expression))
            case exp.Date() if not node.expressions and node.args.get("zone") is None:
                return times.take_day(self.read(node.this))
            case exp.TimestampTrunc() if node.args.get("zone") is None:
                return times.truncate(normalise_unit(str(node.unit)), self._read_local(node.this))
            case _:
                raise NoTermError

    def _read_constant(self, value: Constant, node: exp.Expr) -> RowTerm:
        match value:
            case Number(exact, integral):
                if not integral and contains_type(node, exp.Cast, exp.Parameter):
                    raise NoTermError  # it may be a double
                return number_arithmetic.make_constant(exact, is_integral=integral)
            case Interval(0, _, _):
                return times.make_length(times.count_microseconds(value))
            case TimeOfDay(microseconds):
                return RowTerm("constant", TermKind.CLOCK, value=microseconds, limit=max(microseconds, 1))
            case date():
                return times.make_time_constant(value)
            case _:
                text = get_text(value)
                if text is None:
                    raise NoTermError
                return texts.make_text_constant(text)

    def _read_column(self, column: Column) -> RowTerm:
        if isinstance(column.derivation, Product | Computed):
            raise NoTermError
        if self.within.scope.subquery_columns is not None:
            return _read_total(column)
        match column.sql_type:
            case SqlType.INTEGER:
                limit = find_integer_limit(column.declared) + 1
                return RowTerm("column", TermKind.WHOLE, value=column.name, limit=limit)
            case SqlType.NUMERIC:
                digits, scale = self._count_digits(column)
                limit = 10 ** (digits + scale) - 1
                return RowTerm("column", TermKind.EXACT, value=column.name, scale=scale, limit=limit)
            case SqlType.DOUBLE if not is_real(column):
                return RowTerm("column", TermKind.FLOATING, value=column.name, limit=number_arithmetic.STORED_EXPONENT)
            case SqlType.DATE | SqlType.TIMESTAMP:
                return times.make_time_column(column)
            case SqlType.TEXT:
                return texts.make_stored_text(column)
            case _:
                raise NoTermError

    def _count_digits(self, column: Column) -> tuple[int, int]:
        """Return the number of digits before and after the point with which a numeric is computed."""
        modifier = read_numeric_modifier(column.declared)
        if modifier is None:
            return self.width
        precision, scale = modifier
        whole, scale = max(precision - scale, 0), max(scale, 0)
        return self.width if whole + 2 * scale > 36 else (whole, scale)

    def _number(self, node: exp.Expr) -> RowTerm:
        found = self.read(node)
        if found.kind not in NUMBERS:
            raise NoTermError
        return found

    def _read_local(self, node: exp.Expr) -> RowTerm:
        """Return a time without time zone, or a duration.

        PostgreSQL reads a moment in the session's zone wherever it reads a date.
        """
        found = self.read(node)
        if (
            found.kind is TermKind.DAY
            and not self.within.constants.is_utc
            and not isinstance(strip_parentheses(node), exp.Cast)
        ):
            raise NoTermError
        if found.kind not in (*_TIMES, TermKind.LENGTH):
            raise NoTermError
        if found.function == "column":
            column = self.within.scope.table.get_column(str(found.value))
            if isinstance(column.derivation, Derivation):
                return RowTerm("same", found.kind, (found,), limit=found.limit)
        return found

    def _move_months(self, node: exp.Binary) -> RowTerm | None:
        """Return a stored time moved by an interval that has months. Return None for any other arithmetic."""
        if self.within.scope.subquery_columns is not None:
            return None
        ways = [(node.this, node.expression)] if isinstance(node, exp.Add | exp.Sub) else []
        ways += [(node.expression, node.this)] if isinstance(node, exp.Add) else []
        for time, by in ways:
            span = self.within.fold_constant(by) if self.within.is_constant(by) else None
            if isinstance(span, Interval) and span.months:
                sign = 1 if isinstance(node, exp.Add) else -1
                moved = times.move_months(self.read(time), sign * span.months)
                rest = Interval(0, span.days, span.microseconds)
                return (
                    times.shift_time(moved, times.make_length(times.count_microseconds(rest)), sign)
                    if rest != Interval(0, 0, 0)
                    else moved
                )
        return None

    def _read_arithmetic(self, node: exp.Binary) -> RowTerm:
        moved = self._move_months(node)
        if moved is not None:
            return moved
        left, right = self.read(node.this), self.read(node.expression)
        if isinstance(node, exp.Div):
            left, right = _keep_remainder(node.this, left), _keep_remainder(node.expression, right)
        kinds = {left.kind, right.kind}
        if kinds <= NUMBERS:
            if isinstance(node, exp.Add) and (months := times.join_months(left, right)) is not None:
                return months
            made = ratios.compute_arithmetic(type(node), left, right)
            by_column = ratios.split_ratio(made)[1].function != "constant"
            return ratios.convert_to_double(made) if self.uses_doubles and by_column else made
        match node:
            case exp.Sub() if kinds <= _TIMES:
                return times.subtract_times(left, right)
            case exp.Add() if right.kind in _TIMES and left.kind not in _TIMES:
                return times.shift_time(right, left, 1)
            case exp.Add() | exp.Sub() if left.kind in _TIMES:
                return times.shift_time(left, right, 1 if isinstance(node, exp.Add) else -1)
            case exp.Add() | exp.Sub() if kinds == {TermKind.LENGTH}:
                by = right if isinstance(node, exp.Add) else number_arithmetic.negate(right)
                return number_arithmetic.add(left, by, kind=TermKind.LENGTH)
            case exp.Mul() if kinds == {TermKind.LENGTH, TermKind.WHOLE}:
                if left.kind is TermKind.WHOLE:
                    left, right = right, left
                return number_arithmetic.make_exact_term(
                    "*", TermKind.LENGTH, left, right, scale=0, limit=left.limit * right.limit
                )
            case _:
                raise NoTermError

    def _step_up(self, node: exp.Expr) -> RowTerm:
        places = node.args.get("decimals")
        function = type(node).__name__.lower()
        count = 0
        if places is not None:
            found = self.within.fold_constant(places) if self.within.is_constant(places) else None
            if not isinstance(found, Number) or not found.is_integral or function in ("floor", "ceil"):
                raise NoTermError
            count = int(found.value)
        if abs(count) > _MOST_PLACES:
            raise NoTermError
        of = strip_parentheses(node.this)
        if isinstance(of, exp.Cast) and name_cast_type(of) == "DECIMAL" and not self.within.is_constant(of):
            double = self.read(of.this)
            if double.kind is TermKind.FLOATING:
                return number_arithmetic.round_double(function, double, count)
        return ratios.round_steps(function, self._number(node.this), count)

    def _choose(self, node: exp.Expr) -> RowTerm:
        found = [self.read(one) for one in (node.this, *node.expressions)]
        found = self._unify(found)
        function = type(node).__name__.lower()
        if found[0].kind is TermKind.TEXT and function != "coalesce":
            raise NoTermError  # the order of texts depends on a collation
        kind = number_arithmetic.find_joint_kind(*found) if found[0].kind in EXACT else found[0].kind
        return RowTerm(function, kind, tuple(found), scale=found[0].scale, limit=max(one.limit for one in found))

    def _unify(self, found: list[RowTerm]) -> list[RowTerm]:
        plain = ratios.convert_to_double if self.uses_doubles else ratios.require_no_ratio
        found = [plain(one) if one.function == "ratio" else one for one in found]
        kinds = {one.kind for one in found}
        if kinds <= NUMBERS:
            return number_arithmetic.unify(found)
        if kinds == _TIMES:
            return [times.convert_to_moment(one) for one in found]
        if len(kinds) > 1:
            raise NoTermError
        return found

    def _read_nullif(self, node: exp.Expr) -> RowTerm:
        value, other = self.read(node.this), ratios.require_no_ratio(self.read(node.expression))
        if value.function == "ratio" and other.function == "constant" and other.value == 0:
            over, under = ratios.split_ratio(value)  # a quotient is 0 where what is divided is
            over, other = self._unify([over, other])
            over = RowTerm("nullif", over.kind, (over, other), scale=over.scale, limit=over.limit)
            return ratios.make_ratio(over, under)
        value = ratios.require_no_ratio(value)
        if value.kind is TermKind.FLOATING or other.kind is not TermKind.FLOATING:
            left, right = self._unify([value, other])
            return RowTerm("nullif", value.kind, (left, right), scale=left.scale, limit=left.limit)
        raise NoTermError

    def _read_cast(self, node: exp.Cast) -> RowTerm:
        kind, inner = name_cast_type(node), self.read(node.this)
        if inner.kind is TermKind.TEXT and (made := self._read_number(kind, inner, node)) is not None:
            return made
        match kind:
            case "DECIMAL" if inner.kind in EXACT:
                return (
                    RowTerm("same", TermKind.EXACT, (inner,), scale=inner.scale, limit=inner.limit)
                    if inner.function != "ratio"
                    else inner
                )
            case "DOUBLE" if inner.kind in NUMBERS:
                return ratios.to_double(inner)
            case "INT" | "BIGINT" if inner.kind is TermKind.WHOLE:
                return inner
            case "INT" | "BIGINT" if inner.kind in NUMBERS:
                return number_arithmetic.round_to_integer(ratios.require_no_ratio(inner))
            case "TIME" if inner.kind is TermKind.MOMENT:
                return times.take_clock(inner)
            case "TIMESTAMP" if inner.kind in _TIMES:
                return times.convert_to_moment(inner)
            case "DATE" if inner.kind in _TIMES:
                return times.take_day(inner)
            case "TEXT" | "VARCHAR" if inner.kind is TermKind.TEXT:
                return inner
            case _ if inner.kind is TermKind.TEXT and (width := find_text_width(node)) is not None:
                return texts.take_part("left", inner, width)
            case _ if inner.kind in NUMBERS and (sizes := find_numeric_scale(node)) is not None:
                return _round_to(sizes[1], inner)
            case _:
                raise NoTermError

    def _read_number(self, kind: str | None, text: RowTerm, node: exp.Cast) -> RowTerm | None:
        """Return the number that a text spells. Return None for a cast to anything else."""
        match kind:
            case "SMALLINT" | "INT" | "BIGINT":
                return texts.parse_number(text, TermKind.WHOLE)
            case "DOUBLE":
                return texts.parse_number(text, TermKind.FLOATING)
            case "DECIMAL":
                return texts.parse_number(text, TermKind.EXACT, digits=self.width)
            case _ if (sizes := find_numeric_scale(node)) is not None:
                whole = max(sizes[0] - sizes[1], 1)
                if sizes[1] < 0 or whole + sizes[1] > texts.MOST_DIGITS:
                    raise NoTermError
                said = texts.parse_number(text, TermKind.EXACT, digits=(whole, texts.MOST_DIGITS - whole))
                return _round_to(sizes[1], said)
            case _:
                return None

    def _read_text(self, node: exp.Expr) -> RowTerm:
        match node:
            case exp.Lower() | exp.Upper():
                return texts.change_case(type(node).__name__.lower(), self.read(node.this))
            case exp.Trim():
                which = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or ""), "trim")
                if node.expression and self._read_word(node.expression) != " ":
                    raise NoTermError
                return texts.change_case(which, self.read(node.this))
            case exp.Left() | exp.Right():
                return texts.take_part(
                    type(node).__name__.lower(), self.read(node.this), self._read_count(node.expression)
                )
            case exp.Substring() if node.args.get("start") is not None:
                counts = [self._read_count(one) for one in (node.args.get("start"), node.args.get("length")) if one]
                return texts.take_part("substring", self.read(node.this), *counts)
            case exp.Replace():
                old, new = self._read_word(node.expression), self._read_word(node.args.get("replacement"))
                return texts.replace_text(self.read(node.this), old, new)
            case exp.SplitPart() if node.args.get("part_index") is not None:
                place, between = self._read_count(node.args["part_index"]), self._read_word(node.args.get("delimiter"))
                return texts.split_text(self.read(node.this), between, place)
            case exp.DPipe():
                return reduce(texts.join_texts, (self.read(node.this), self.read(node.expression)))
            case exp.Length():
                return texts.measure_length(self.read(node.this))
            case _:
                raise NoTermError

    def _read_count(self, node: exp.Expr) -> int:
        found = self.within.fold_constant(node) if self.within.is_constant(node) else None
        if not isinstance(found, Number) or not found.is_integral:
            raise NoTermError
        return int(found.value)

    def _read_word(self, node: exp.Expr | None) -> str:
        found = (
            get_text(self.within.fold_constant(node)) if node is not None and self.within.is_constant(node) else None
        )
        if found is None or "\x00" in found:
            raise NoTermError
        return found
