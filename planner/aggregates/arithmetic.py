"""Arithmetic over aggregates: sums and multiples of them, means and ratios, casts, COALESCE and NULLIF."""

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from mechanisms.protocol import Quantile
from planner.aggregates.aggregate import (
    AGGREGATES,
    Aggregate,
    GroupScope,
    average_means,
    contains_aggregate,
    count_units_in_cells,
    identify_sum,
    read_aggregate,
    read_aggregate_from_cells,
    sums_no_rows,
)
from planner.aggregates.cell_windows import (
    counts_units,
    find_default,
    find_rows_read,
    find_window_argument,
    find_window_arithmetic,
    is_mean_of_groups,
    read_cells,
    read_rows,
    reads_groups,
)
from planner.aggregates.computed_measure import find_least_value, is_unbounded
from planner.aggregates.having_refusals import (
    refuse_arithmetic,
    refuse_distinct_divisor,
    refuse_divisor,
    refuse_group_divisor,
    refuse_group_quotient,
    refuse_integer_quotient,
    refuse_key_factor,
    refuse_sum_with_coalesce,
    refuse_threshold_type,
    refuse_variable_threshold,
    refuse_window,
)
from planner.aggregates.key_numbers import KeyNumbers
from planner.aggregates.key_thresholds import is_public, read_key_numbers, refuse_column_threshold
from planner.aggregates.row_expression import Arithmetic, RequiredValues, SumPart
from planner.catalog.catalog import Product
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import find_position, find_start, strip_parentheses, write_node
from planner.predicates.where_refusals import refuse_subquery
from planner.question.condition import And, Condition, IsNull, Not, join_any
from planner.question.condition_text import write_canonical
from planner.question.disjoint import are_disjoint
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.products import find_steps
from planner.question.question import Measure
from planner.scope.name_resolution import find_column, find_numeric_scale
from planner.values.constant import Constant, NotConstant, Number, Untyped, read_number
from planner.values.decimals import convert_to_decimal
from planner.values.expressions import fold_constant
from planner.values.group_statistics import find_statistic_alone

UNIT_MEASURES = (Measure.UNITS, Measure.VALUES)
"""Measures that do not count row by row."""

CAST_TYPES = {
    "DECIMAL": Arithmetic.EXACT,
    "DOUBLE": Arithmetic.FLOATING,
    "INT": Arithmetic.INTEGER,
    "BIGINT": Arithmetic.INTEGER,
}


@dataclass(frozen=True, slots=True)
class Linear:
    """A linear expression: `sum of coefficient * aggregate + key number + constant`.

    `key_numbers` are numbers that a key determines, if any. `null_value` is the value where SQL would say NULL (None:
    NULL).
    """

    summands: tuple[tuple[Aggregate, Fraction], ...]
    constant: Fraction
    arithmetic: Arithmetic
    null_value: Fraction | None = None
    key_numbers: KeyNumbers | None = None

    def add(self, other: "Linear", factor: Fraction) -> "Linear":
        """Return the sum of this and a multiple of another expression."""
        summands = list(self.summands)
        for found, coefficient in other.summands:
            summands = _add_summand(summands, found, factor * coefficient)
        missing = None
        if self.null_value is not None and not other.summands:
            missing = self.null_value + factor * other.constant
        elif other.null_value is not None and not self.summands:
            missing = self.constant + factor * other.null_value
        return Linear(
            tuple(summands),
            self.constant + factor * other.constant,
            max(self.arithmetic, other.arithmetic),
            missing,
            _add_key_numbers(self.key_numbers, other.key_numbers, factor),
        )

    @property
    def text(self) -> str:
        """The summands as an analyst would write them."""
        written_ = ""
        for found, coefficient in self.summands:
            size = "" if abs(coefficient) == 1 else f"{convert_to_decimal(abs(coefficient))} * "
            sign = (" - " if coefficient < 0 else " + ") if written_ else ("-" if coefficient < 0 else "")
            written_ += f"{sign}{size}{found.text}"
        return written_


def _add_key_numbers(one: KeyNumbers | None, other: KeyNumbers | None, factor: Fraction) -> KeyNumbers | None:
    """Return the sum of one key's numbers and a multiple of another's."""
    if other is None:
        return one
    if one is None:
        return other.multiply(factor)
    if one.key != other.key:
        raise KeyholeError(
            "KH208",
            f"{one.text} and {other.text} cannot stand in one threshold: different keys determine them",
            hint="Compare with numbers that all depend on the same key.",
        )
    return one.add(other.multiply(factor))


def _add_summand(
    summands: list[tuple[Aggregate, Fraction]], found: Aggregate, coefficient: Fraction
) -> list[tuple[Aggregate, Fraction]]:
    for index, (known, before) in enumerate(summands):
        if known.meaning == found.meaning:
            values = tuple(dict.fromkeys((*known.required_values, *found.required_values)))
            return [
                *summands[:index],
                (replace(known, required_values=values), before + coefficient),
                *summands[index + 1 :],
            ]
    return [*summands, (found, coefficient)]


def read_linear(node: exp.Expr, within: GroupScope) -> Linear | None:
    """Read the expression as a sum of aggregates, each times a constant. Return None for a constant NULL.

    Raise KH204, KH208 and the refusals of its aggregates.
    """
    node = strip_parentheses(node)
    node = find_statistic_alone(node) or node
    if not isinstance(node, AGGREGATES):
        with suppress(NotConstant):
            return _make_constant(fold_constant(node, within.constants), node)
    if is_public(node, within):
        own, arithmetic = read_key_numbers(node, within)
        return Linear((), Fraction(0), arithmetic, key_numbers=own)
    match node:
        case exp.Add() | exp.Sub():
            left, right = read_linear(node.this, within), read_linear(node.expression, within)
            if left is None or right is None:
                return None
            if left.summands and right.summands and (left.null_value, right.null_value) != (None, None):
                raise refuse_sum_with_coalesce(node)
            return left.add(right, Fraction(1 if isinstance(node, exp.Add) else -1))
        case exp.Neg():
            inner = read_linear(node.this, within)
            return inner and _multiply(inner, Fraction(-1))
        case exp.Mul():
            return _read_product(node, within)
        case exp.Div():
            return _read_quotient(node, within)
        case exp.Cast():
            return _read_cast(node, within)
        case exp.Coalesce():
            return _read_coalesce(node, within)
        case _ if isinstance(node, AGGREGATES):
            return _read_aggregate(node, within)
        case _:
            raise refuse_column_threshold(node, within) or refuse_nonlinear(node, within)


def _read_window(node: exp.Window, within: GroupScope) -> Linear | None:
    """Read a window over groups as the sum of its aggregates over these. Raise KH204 for any other window."""
    if find_rows_read(node) is not None:
        read_off = read_rows(node, within)
        is_value = isinstance(read_off.row_statistic, Quantile)
        arithmetic = read_off.arithmetic if is_value else max(read_off.arithmetic, Arithmetic.EXACT)
        return Linear(((read_off, Fraction(1)),), Fraction(0), arithmetic)
    read = read_linear(find_window_argument(node), within)
    if read is None:
        return None
    if read.constant or read.key_numbers is not None or read.null_value is not None:
        raise refuse_nonlinear(node, within)
    cells, factor = read_cells(node, within)
    if cells.statistic is not None:
        if len(read.summands) != 1 or (read.summands[0][1] < 0 and isinstance(cells.statistic, Quantile)):
            raise refuse_window(node)
        read = replace(read, summands=tuple((found, abs(coefficient)) for found, coefficient in read.summands))
    text = write_node(node)
    if counts_units(node):
        ((found, _),) = read.summands
        return replace(read, summands=((count_units_in_cells(node, found, cells, within, text), Fraction(1)),))
    alone = len(read.summands) == 1 and abs(read.summands[0][1]) == 1
    averaged = average_means(read.summands[0][0], cells, text) if alone and is_mean_of_groups(node) else None
    if averaged is not None:
        return replace(read, summands=((averaged, read.summands[0][1]),))
    placed = tuple(
        (read_aggregate_from_cells(found, cells, factor, text if alone else f"{found.text} in {text}"), coefficient)
        for found, coefficient in read.summands
    )
    read = replace(read, summands=placed, arithmetic=max(read.arithmetic, find_window_arithmetic(node)))
    other = find_default(node)
    default = None if other is None else read_linear(other, within)
    if default is None or not any(found.cells.indices_without_groups for found, _ in placed):
        return read
    if default.summands or default.key_numbers is not None:
        raise refuse_window(node)
    return _fill_missing_groups(read, default)


def _fill_missing_groups(one: Linear, default: Linear) -> Linear | None:
    """Return the expression with `default` as its value in a group for which no other group exists that it reads.

    Return None if only some of the groups that it reads could be missing.
    """
    (found, factor), *others = one.summands
    empty = {other.cells.indices_without_groups for other, _ in one.summands}
    if len(empty) > 1 or any(other.cells.empty_value is not None for other, _ in one.summands):
        return None
    first = replace(found, cells=replace(found.cells, empty_value=(default.constant - one.constant) / factor))
    rest = tuple(
        (replace(other, cells=replace(other.cells, empty_value=Fraction(0))), times) for other, times in others
    )
    return replace(one, summands=((first, factor), *rest), arithmetic=max(one.arithmetic, default.arithmetic))


def _read_aggregate(node: exp.Expr, within: GroupScope) -> Linear | None:
    if isinstance(node, exp.Window) and reads_groups(node):
        return _read_window(node, within)
    if (problem := refuse_column_threshold(node, within)) is not None:
        raise problem
    found = read_aggregate(node, within)
    return Linear(((found, Fraction(1)),), Fraction(0), found.arithmetic)


def _make_constant(value: Constant, node: exp.Expr) -> Linear | None:
    match value:
        case None:
            return None
        case Number(exact, integral):
            return Linear((), exact, Arithmetic.INTEGER if integral else Arithmetic.EXACT)
        case Untyped(text):
            found = read_number(text, node)
            return Linear((), found.value, Arithmetic.INTEGER)
        case _:
            raise refuse_threshold_type(node)


def _multiply(one: Linear, factor: Fraction) -> Linear:
    return Linear((), Fraction(0), Arithmetic.INTEGER).add(one, factor)


def _read_product(node: exp.Mul, within: GroupScope) -> Linear | None:
    left, right = read_linear(node.this, within), read_linear(node.expression, within)
    if left is None or right is None:
        return None
    if left.summands and right.summands:
        raise refuse_nonlinear(node, within)
    if right.summands:
        left, right = right, left
    if right.key_numbers is not None:
        raise refuse_key_factor(node)
    return replace(_multiply(left, right.constant), arithmetic=max(left.arithmetic, right.arithmetic))


def _read_quotient(node: exp.Div, within: GroupScope) -> Linear | None:
    found = read_exact_quotient(node, within)
    if found is not None and found.arithmetic is Arithmetic.INTEGER:
        raise refuse_integer_quotient(node)
    return found


def read_exact_quotient(node: exp.Div, within: GroupScope) -> Linear | None:
    """Read a quotient as an exact one, which keeps the remainder. Return None for a constant NULL.

    If SQL would drop the remainder, the result's `arithmetic` is that of integers.
    """
    left = read_linear(node.this, within)
    right = read_linear(strip_nullif(strip_parentheses(node.expression), within), within)
    if left is None or right is None:
        return None
    if right.key_numbers is not None:
        raise refuse_key_factor(node)
    if not right.summands and not right.constant:
        raise KeyholeError("KH212", "a constant divides by zero", position=find_position(node))
    arithmetic = max(left.arithmetic, right.arithmetic)
    ratio = _make_ratio(node, left, right, within) if right.summands else None
    if ratio is None:
        return replace(_multiply(left, 1 / right.constant), arithmetic=arithmetic)
    return Linear(((ratio, Fraction(1)),), Fraction(0), arithmetic)


def strip_nullif(divisor: exp.Expr, within: GroupScope) -> exp.Expr:
    """Return `x` for a divisor `nullif(x, 0)`, also under a cast. The caller requires a divisor other than 0 anyway."""
    if isinstance(divisor, exp.Nullif) and _is_zero(divisor.expression, within):
        return strip_parentheses(divisor.this)
    inner = strip_parentheses(divisor.this) if isinstance(divisor, exp.Cast) else None
    if isinstance(inner, exp.Nullif) and _is_zero(inner.expression, within):
        return exp.Cast(this=inner.this.copy(), to=divisor.args["to"].copy())
    return divisor


def _is_zero(node: exp.Expr, within: GroupScope) -> bool:
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        return False
    return isinstance(value, Number) and value.value == 0


def _make_ratio(node: exp.Div, left: Linear, right: Linear, within: GroupScope) -> Aggregate:
    cells = {found.cells for found, _ in (*left.summands, *right.summands)}
    if len(cells) > 1:
        means = any(found.divisor and found.cells != OWN_GROUP_ALONE for found, _ in right.summands)
        raise refuse_group_quotient(node) if means else refuse_group_divisor(node)
    if cells != {OWN_GROUP_ALONE}:
        return _make_group_ratio(node, left, right, cells.pop(), within)
    left, right = _cancel_divisors(left, right, within)
    divided = [found for found, _ in (*left.summands, *right.summands)]
    by_units = _counts_units(right)
    measures = {found.measure for found, _ in left.summands}
    alone = measures.intersection(UNIT_MEASURES) and not (by_units and measures == {Measure.UNITS})
    if not by_units:
        alone = any(found.measure in UNIT_MEASURES for found in divided)
    if any(found.divisor for found in divided) or alone:
        raise refuse_nonlinear(node, within)
    if left.null_value is not None:
        raise refuse_nonlinear(node, within)
    if (
        left.key_numbers is not None
        or left.constant
        or right.constant
        or right.null_value is not None
        or len(right.summands) != 1
    ):
        raise refuse_divisor(node)
    ((below, coefficient),) = right.summands
    if coefficient <= 0:
        raise refuse_divisor(node)
    above = tuple(
        replace(part, coefficient=part.coefficient * factor / coefficient)
        for found, factor in left.summands
        for part in found.summands
    )
    rows = join_any(_find_rows(part) for part in below.summands)
    needed = RequiredValues(None, rows)
    if len(below.summands) == 1:
        (only,) = below.summands
        needed = RequiredValues(only.column.name if only.column else None, only.condition)
    values = dict.fromkeys((*(values for found, _ in left.summands for values in found.required_values), needed))
    over = f"({left.text})" if len(left.summands) > 1 else left.text
    return Aggregate(
        function=left.summands[0][0].function,
        measure=Measure.UNITS if measures == {Measure.UNITS} else Measure.TOTAL,
        summands=above,
        divisor=below.summands,
        required_values=tuple(values),
        text=f"{over} / {below.text}"
        if coefficient == 1
        else f"{over} / ({convert_to_decimal(coefficient)} * {below.text})",
        offset=find_start(node) or 0,
        arithmetic=max(left.arithmetic, right.arithmetic),
        divides_by_units=by_units and not within.scope.table.is_row_unit,  # else each row is a unit
        has_either_sign=not (find_least_per_row(below.summands) > 0 or is_never_negative(below.summands)),
    )


def _make_group_ratio(node: exp.Div, left: Linear, right: Linear, cells: KeyCells, within: GroupScope) -> Aggregate:
    """Return the quotient of two sums of the same other groups. Raise KH204 if it is no mean of their rows."""
    below = right.summands[0][0] if len(right.summands) == 1 else None
    counts = below is not None and len(below.summands) == 1 and not below.summands[0].power
    if below is None or len(below.summands) != 1 or not (counts or is_never_negative(below.summands)):
        raise refuse_group_divisor(node)
    if below.summands[0].coefficient <= 0:
        raise refuse_group_divisor(node)
    once = 1 / below.summands[0].coefficient  # a mean of groups divides both sums by their number

    def place(one: Linear) -> Linear:
        own = tuple(
            (
                replace(found, cells=OWN_GROUP_ALONE, summands=tuple(part.multiply(once) for part in found.summands)),
                factor,
            )
            for found, factor in one.summands
        )
        return replace(one, summands=own)

    made = _make_ratio(node, place(left), place(right), within)
    return replace(made, cells=replace(cells, most_places=0))


def _cancel_divisors(left: Linear, right: Linear, within: GroupScope) -> tuple[Linear, Linear]:
    """Return both sides multiplied by their common divisor, if all their means and ratios have the same one.

    Otherwise return both sides unchanged.
    """
    divided = [found for found, _ in (*left.summands, *right.summands)]
    if not left.summands or left.constant or right.constant or not all(found.divisor for found in divided):
        return left, right
    if any(found.divides_by_units for found in divided):
        return left, right
    if not all(have_same_rows(divided[0].divisor, found.divisor, within) for found in divided):
        return left, right

    def drop_divisor(one: Linear) -> Linear:
        return replace(one, summands=tuple((_get_numerator(found), factor) for found, factor in one.summands))

    return drop_divisor(left), drop_divisor(right)


def _get_numerator(found: Aggregate) -> Aggregate:
    """Return the sum that a mean or ratio divides."""
    is_mean = found.function == "avg"
    text = f"sum({found.text.removeprefix('avg(')}" if is_mean else found.text.rpartition(" / ")[0]
    return replace(found, function="sum", divisor=(), text=text)


def is_positive_mean(mean: Linear) -> bool:
    """Return True for a mean or ratio, times a constant, that is above 0 in every group where it is not NULL."""
    if len(mean.summands) != 1 or mean.constant or mean.key_numbers is not None or mean.null_value is not None:
        return False
    ((found, factor),) = mean.summands
    return bool(found.divisor) and not found.divides_by_units and factor > 0 and find_least_per_row(found.summands) > 0


def _counts_units(divisor: Linear) -> bool:
    """Return True if a divisor counts privacy units."""
    return [found.measure for found, _ in divisor.summands] == [Measure.UNITS]


def _find_rows(part: SumPart) -> Condition:
    return RequiredValues(part.column.name if part.column else None, part.condition).rows


def find_least_per_row(parts: tuple[SumPart, ...]) -> Fraction:
    """Return the least amount that one counted row adds to a sum.

    Return 0 if that amount is not known to be positive.
    """
    least: list[Fraction] = []
    for part in parts:
        if not part.power:
            least.append(part.coefficient)
            continue
        assert part.column is not None
        low, grid = find_least_value(part.column) or Fraction(0), Fraction(part.column.grid or 1)
        end = floor(low / grid) * grid
        if part.coefficient < 0:  # what is taken off may be as large as the column
            end = ceil(Fraction(part.column.bounds[1]) / grid) * grid if part.column.bounds is not None else Fraction(0)
        least.append(part.coefficient * end)
    found = max(Fraction(0), min(least, default=Fraction(0)))
    return found or max((_find_least_by_factor(part, parts) for part in parts), default=Fraction(0))


def _find_least_by_factor(factor: SumPart, parts: tuple[SumPart, ...]) -> Fraction:
    """Return the least of `x * (c + d * y + ...)`, where `x` counts if any part does.

    Return 0 if it is not known to be positive. For `price * (1 - discount)` it is at least 900 * (1 - 0.1). The largest
    `y` is that of `x * y` divided by that of `x`.

    Parameters:
        factor: the part with `x` alone, which is positive by its bounds.
    """
    column = factor.column
    sized = None if column is None or factor.power != 1 else find_steps(column)
    if column is None or sized is None or sized[1] <= 0 or factor.coefficient <= 0:
        return Fraction(0)
    step, low, high = sized
    rest = factor.coefficient
    for part in parts:
        if part is factor:
            continue
        other = part.column
        names = other.derivation.columns if other is not None and isinstance(other.derivation, Product) else ()
        has_value = write_canonical(Not(IsNull(other.name))) if other is not None else ""
        has_factor = _list_conjuncts(factor) <= _list_conjuncts(part) | {has_value}
        steps = None if other is None or column.name not in names or part.power != 1 else find_steps(other)
        if steps is None or steps[1] < 0 or not has_factor:
            return Fraction(0)
        if part.coefficient < 0:
            rest += part.coefficient * steps[0] * steps[2] / (step * high)
    return max(Fraction(0), rest * step * low)


def _list_conjuncts(part: SumPart) -> frozenset[str]:
    """Return the conditions on the rows of a part, except that its column has a value."""
    return frozenset(write_canonical(one) for one in part.condition.list_conjuncts())


def is_never_negative(parts: tuple[SumPart, ...]) -> bool:
    """Return True if no row can lower the sum, by declared bounds or by the clip of a column without bounds."""

    def is_positive(part: SumPart) -> bool:
        least = None if part.column is None else find_least_value(part.column)
        clipped = is_unbounded(part.column) and least is None
        return part.coefficient > 0 and (not part.power or clipped or (least is not None and least >= 0))

    return all(map(is_positive, parts))


def have_same_rows(one: tuple[SumPart, ...], other: tuple[SumPart, ...], within: GroupScope) -> bool:
    """Return True if two counts are provably of the same rows."""
    if identify_sum(one) == identify_sum(other):
        return True
    if len(one) != 1 or len(other) != 1 or write_canonical(one[0].condition) != write_canonical(other[0].condition):
        return False
    known = And((within.where, one[0].condition))
    return all(part.column is None or are_disjoint(known, IsNull(part.column.name)) for part in (*one, *other))


def find_cast_arithmetic(node: exp.Cast) -> Arithmetic | None:
    """Return the arithmetic that a cast gives. Return None for a cast that may fail or lose digits."""
    kind = str(node.to.this.value) if isinstance(node.to.this, exp.DataType.Type) and not node.to.expressions else ""
    return CAST_TYPES.get(kind)


def _read_cast(node: exp.Cast, within: GroupScope) -> Linear | None:
    inner = read_linear(node.this, within)
    if inner is None:
        return None
    arithmetic = find_cast_arithmetic(node)
    if arithmetic is Arithmetic.INTEGER and _is_whole_window(node.this, within):
        return replace(inner, arithmetic=arithmetic)
    if inner.arithmetic is Arithmetic.INTEGER and find_numeric_scale(node) is not None:
        arithmetic = Arithmetic.EXACT  # which rounds no whole number
    if arithmetic is None or (arithmetic is Arithmetic.INTEGER and inner.arithmetic is not Arithmetic.INTEGER):
        raise refuse_nonlinear(node, within)
    return replace(inner, arithmetic=arithmetic)


def _is_whole_window(node: exp.Expr, within: GroupScope) -> bool:
    """Return True for the sum of whole numbers of groups, which PostgreSQL gives as numeric."""
    node = strip_parentheses(node)
    if not isinstance(node, exp.Window) or not reads_groups(node) or not isinstance(node.this, exp.Sum):
        return False
    read = read_linear(find_window_argument(node), within)
    return read is not None and read.arithmetic is Arithmetic.INTEGER


def _read_coalesce(node: exp.Coalesce, within: GroupScope) -> Linear | None:
    inner = read_linear(node.this, within)
    others = [read_linear(other, within) for other in node.expressions]
    if inner is None or len(others) != 1 or others[0] is None or others[0].summands or inner.null_value is not None:
        raise refuse_nonlinear(node, within)
    if inner.key_numbers is not None or others[0].key_numbers is not None:
        raise refuse_nonlinear(node, within)
    missing = others[0].constant
    if any(found.cells.indices_without_value for found, _ in inner.summands):
        if missing and any(found.measure is not Measure.ROWS for found, _ in inner.summands):
            raise refuse_nonlinear(node, within)  # a sum without values is NULL, too, and read as 0
        filled = _fill_missing_groups(inner, others[0])
        if filled is None:
            return replace(inner, null_value=missing)
        instead = f", {convert_to_decimal(missing)})"
        named = [(replace(one, text=f"coalesce({one.text}{instead}"), times) for one, times in filled.summands]
        return replace(filled, summands=tuple(named))
    plain = all(not found.divisor for found, _ in inner.summands) and not inner.constant
    if plain and missing == 0 and len(inner.summands) == 1:
        ((found, coefficient),) = inner.summands
        zero = replace(found, required_values=(), text=f"coalesce({found.text}, 0)")
        if found.cells != OWN_GROUP_ALONE and sums_no_rows(found, within):
            zero = replace(zero, cells=replace(found.cells, empty_value=Fraction(0)))
        return replace(inner, summands=((zero, coefficient),))
    return replace(inner, null_value=missing)


def refuse_nonlinear(node: exp.Expr, within: GroupScope) -> KeyholeError:
    """Return KH204 for arithmetic over aggregates that is no sum over rows.

    Return KH208 for a threshold that is not constant.
    """
    if node.find(exp.Query):
        return refuse_subquery(node)
    if not contains_aggregate(node):
        return refuse_variable_threshold(node, hint="Compare an aggregate with a number or a parameter.")
    for ratio in node.find_all(exp.Div):
        counted = strip_parentheses(ratio.expression).find(exp.Distinct)
        if counted is not None and contains_aggregate(ratio.this):
            return refuse_distinct_divisor(ratio, hint=_suggest_mean_per_unit(counted, within, ratio))
    counted = node.find(exp.Distinct)
    return refuse_arithmetic(node, hint=None if counted is None else _suggest_mean_per_unit(counted, within))


def _suggest_mean_per_unit(counted: exp.Distinct, within: GroupScope, ratio: exp.Div | None = None) -> str | None:
    """Return a question for the mean number of rows of a unit, if the divisor counts units. Return None otherwise.

    A `ratio` by only some of the units' columns is replaced by the one by all of them.
    """
    scope, select = within.scope, counted.find_ancestor(exp.Select)
    found = [find_column(item, scope) for item in counted.expressions]
    of_unit = all(column is not None and column.name in scope.table.unit for column in found)
    if of_unit and select is not None and isinstance(ratio, exp.Div) and len(set(found)) < len(scope.table.unit):
        units = ", ".join(map(spell_name, scope.table.unit))
        part = write_node(counted.find_ancestor(exp.Count) or counted)
        return f"Instead you can ask: {write_node(select).replace(part, f'count(DISTINCT ({units}))', 1)};"
    if (
        not of_unit
        or select is None
        or not within.keys
        or scope.public_tables
        or scope.members
        or scope.subquery_columns is not None
    ):
        return None
    keys = [spell_name(key.name) for key in within.keys]
    names = ", ".join(dict.fromkeys((*keys, *(spell_name(column.name) for column in found if column is not None))))
    where = select.args.get("where")
    rows = spell_name(scope.table.name)
    if where is not None:
        rows += ("" if scope.alias == scope.table.name else f" AS {spell_name(scope.alias)}") + f" {write_node(where)}"
    inner = f"SELECT {names}, count(*) AS n FROM {rows} GROUP BY {names}"
    shown = ", ".join(keys)
    return f"Instead you can ask: SELECT {shown} FROM ({inner}) AS v GROUP BY {shown} HAVING avg(n) > 2;"
