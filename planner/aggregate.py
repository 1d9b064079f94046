"""The aggregates of a HAVING: which of them are bounded linear sums over rows, and when SQL makes them NULL."""

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from planner.catalog import Column, SqlType
from planner.condition import ALWAYS, Condition, all_of, fixed_columns
from planner.constant import Given, NotConstant, Number, fold
from planner.errors import KeyholeError
from planner.question import Measure
from planner.reference import Scope, referenced
from planner.row_condition import row_condition
from planner.syntax import bare, position, start, written


@dataclass(frozen=True, slots=True)
class Values:
    """The rows that must exist for an aggregate not to be NULL: those with a value of `column` under `condition`.

    `exact` is False if NULL depends on more than that; then a guard can only be avoided, not asked for.
    """

    column: str | None
    condition: Condition
    exact: bool


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate call. `average` tells AVG from SUM, both of measure TOTAL. `values` is None if it is never NULL."""

    function: str
    measure: Measure
    average: bool
    column: Column | None
    condition: Condition
    text: str
    values: Values | None
    offset: int

    @property
    def names(self) -> tuple[str, ...]:
        """What a tolerance may call it, the most telling first."""
        argument = self.text.split(" FILTER ")[0]
        return (self.text, argument, self.function, *((self.column.name,) if self.column else ()))

    @property
    def meaning(self) -> tuple[object, ...]:
        """What it computes, whatever its text."""
        return (self.measure, self.average, self.column and self.column.name, self.condition)


@dataclass(frozen=True, slots=True)
class GroupScope:
    """A question's table, keys, given constants, and the columns to which WHERE leaves one value."""

    scope: Scope
    keys: tuple[Column, ...]
    given: Given
    fixed: frozenset[str]


AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Window)


def contains_aggregate(node: exp.Expr) -> bool:
    """Whether the expression calls an aggregate or window function that the parser knows."""
    return node.find(*AGGREGATES) is not None


def aggregate(node: exp.Expr, within: GroupScope) -> Aggregate:
    """The aggregate that the expression is. Raises KH204, KH209, and what its FILTER raises."""
    node = bare(node)
    condition: Condition = ALWAYS
    suffix = ""
    call = node
    if isinstance(node, exp.Filter):
        call = node.this
        filter_ = node.expression.this
        condition = row_condition(filter_, within.scope, within.given)
        suffix = f" FILTER (WHERE {written(filter_)})"
    match call:
        case exp.Count():
            return _count(call, condition, suffix, within)
        case exp.Sum() | exp.Avg():
            return _total(call, condition, suffix, within)
        case _:
            raise _unsupported(call)


_LATER = {
    exp.Max: "max",
    exp.Min: "min",
    exp.Median: "median",
    exp.WithinGroup: "percentile",
    exp.PercentileCont: "percentile",
    exp.PercentileDisc: "percentile",
    exp.Quantile: "percentile",
}


def _unsupported(call: exp.Expr) -> KeyholeError:
    kind = _LATER.get(type(call))
    column = next((str(found.name) for found in call.find_all(exp.Column)), "x")
    if kind in ("max", "min"):
        detail = f"{kind}({column}) hinges on one record, so it cannot be answered privately with a tolerance."
        side = ">" if kind == "max" else "<"
        hint = f"Ask how many rows are beyond t: count(*) FILTER (WHERE {column} {side} t) >= m."
    elif kind is not None:
        detail = f"A {kind} is above t where enough rows are above t."
        hint = f"Ask for the rows above t: count(*) FILTER (WHERE {column} > t) >= m."
    else:
        detail = "HAVING may use count, sum and avg, each with FILTER, compared with constants."
        hint = "Ask for example count(*) FILTER (WHERE ...) >= m, sum(x) > t or avg(x) > t."
    return KeyholeError(
        "KH204", f"{written(call)[:80]} is not supported", detail=detail, hint=hint, position=position(call)
    )


def _made(
    call: exp.Expr,
    function: str,
    argument: str,
    suffix: str,
    *,
    measure: Measure,
    condition: Condition,
    column: Column | None = None,
    values: Values | None = None,
) -> Aggregate:
    return Aggregate(
        function=function,
        measure=measure,
        average=function == "avg" and measure is Measure.TOTAL,
        column=column,
        condition=condition,
        text=f"{function}({argument}){suffix}",
        values=values,
        offset=start(call) or 0,
    )


def _count(call: exp.Count, condition: Condition, suffix: str, within: GroupScope) -> Aggregate:
    argument = bare(call.this) if call.this is not None else exp.Star()
    if call.expressions:
        raise KeyholeError("KH204", "count of several columns is not supported", position=position(call))
    if isinstance(argument, exp.Distinct):
        return _units(call, argument, condition, suffix, within)
    if isinstance(argument, exp.Star) or _one(argument, within):
        return _made(call, "count", "*", suffix, measure=Measure.ROWS, condition=condition)
    if isinstance(argument, exp.Case):
        chosen, value, otherwise = _case(argument, within)
        if otherwise is None and value is not None:
            column = None if _one(value, within) else _measured(value, within)
            both = all_of((condition, chosen))
            text = written(argument)
            return _made(call, "count", text, suffix, measure=Measure.ROWS, condition=both, column=column)
        raise _unsupported(call)
    column = _measured(argument, within)
    return _made(call, "count", column.name, suffix, measure=Measure.ROWS, condition=condition, column=column)


def _units(call: exp.Count, distinct: exp.Distinct, condition: Condition, suffix: str, within: GroupScope) -> Aggregate:
    items = [part for item in distinct.expressions for part in _parts(bare(item))]
    counted = {column.name for column in (referenced(item, within.scope) for item in items) if column is not None}
    keys = {column.name for column in within.keys} | within.fixed | fixed_columns(condition)
    unit = set(within.scope.table.unit)
    names = ", ".join(written(item) for item in items)
    if not unit or len(counted) == 0 or not unit <= counted | keys or not counted <= unit | keys:
        missing = [name for name in within.scope.table.unit if name not in keys]
        wanted = ", ".join(missing or within.scope.table.unit)
        raise KeyholeError(
            "KH209",
            f"count(DISTINCT {names}) does not count privacy units in these groups",
            detail=f"The privacy unit is {within.scope.table.unit_text}; "
            "one unit could change any other distinct count by more than one.",
            hint=f"Ask count(DISTINCT {wanted if len(missing) < 2 else f'({wanted})'})."
            if unit
            else "Ask count(*); every row is its own unit here.",
            position=position(call),
        )
    return _made(call, "count", f"DISTINCT {names}", suffix, measure=Measure.UNITS, condition=condition)


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _total(call: exp.Sum | exp.Avg, condition: Condition, suffix: str, within: GroupScope) -> Aggregate:
    function = "sum" if isinstance(call, exp.Sum) else "avg"
    argument = bare(call.this)
    if isinstance(argument, exp.Case):
        return _case_total(call, function, argument, condition, suffix, within)
    column = _measured(argument, within)
    return _made(
        call,
        function,
        column.name,
        suffix,
        measure=Measure.TOTAL,
        condition=condition,
        column=column,
        values=Values(column.name, condition, exact=True),
    )


def _case_total(
    call: exp.Sum | exp.Avg,
    function: str,
    case: exp.Case,
    condition: Condition,
    suffix: str,
    within: GroupScope,
) -> Aggregate:
    chosen, value, otherwise = _case(case, within)
    zero = otherwise is not None and _is_number(otherwise, 0, within)
    if value is None or (otherwise is not None and not zero) or (function == "avg" and zero):
        raise _unsupported(call)
    both = all_of((condition, chosen))
    text = written(case)
    if _one(value, within):
        if function == "avg":
            raise _unsupported(call)
        seen = Values(None, condition if zero else both, exact=True)
        return _made(call, function, text, suffix, measure=Measure.ROWS, condition=both, values=seen)
    column = _measured(value, within)
    seen = Values(column.name, both, exact=not zero)
    return _made(call, function, text, suffix, measure=Measure.TOTAL, condition=both, column=column, values=seen)


def _case(case: exp.Case, within: GroupScope) -> tuple[Condition, exp.Expr | None, exp.Expr | None]:
    """The condition of a one-armed CASE, its value, and what stands in ELSE (None for NULL)."""
    arms = case.args["ifs"]
    if case.this is not None or len(arms) != 1:
        return ALWAYS, None, None
    condition = row_condition(arms[0].this, within.scope, within.given)
    otherwise = case.args.get("default")
    if otherwise is not None and isinstance(bare(otherwise), exp.Null):
        otherwise = None
    return condition, bare(arms[0].args["true"]), otherwise


def _is_number(node: exp.Expr, wanted: int, within: GroupScope) -> bool:
    try:
        value = fold(node, within.given)
    except NotConstant:
        return False
    return isinstance(value, Number) and value.value == Fraction(wanted)


def _one(node: exp.Expr, within: GroupScope) -> bool:
    return _is_number(node, 1, within)


def _measured(node: exp.Expr, within: GroupScope) -> Column:
    column = referenced(node, within.scope)
    if column is None:
        raise KeyholeError(
            "KH204",
            f"an aggregate of {written(node)[:80]} is not supported",
            detail="An aggregate is over one declared column, or over rows.",
            hint="Ask the owner to expose the expression as a column of a view, with bounds.",
            position=position(node),
        )
    if column.sql_type is SqlType.OTHER:
        raise KeyholeError(
            "KH204",
            f'column "{column.name}" has type {column.declared}, which aggregates cannot use',
            position=position(node),
        )
    return column
