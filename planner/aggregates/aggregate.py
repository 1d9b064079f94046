"""The aggregates of a HAVING: which of them are bounded linear sums over rows, and when SQL makes them NULL."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.computed_measure import Clips
from planner.aggregates.having_refusals import unsupported_aggregate, unusable_type
from planner.aggregates.row_expression import Arithmetic, Part, RowExpression, Values, row_expression
from planner.catalog.catalog import Column, SqlType, Value
from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, find_position, find_start, strip_parentheses, write_node
from planner.predicates.computed import ratios
from planner.predicates.computed.compare import computed_column
from planner.predicates.computed.number_arithmetic import NoTermError
from planner.predicates.computed.read import read_measure
from planner.predicates.condition import row_condition
from planner.predicates.row_scope import RowScope
from planner.question.condition import ALWAYS, Condition, all_of, fixed_columns
from planner.question.condition_text import canonical
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.question import Measure
from planner.scope.name_resolution import Scope, find_column
from planner.values.constant import ConstantContext

_COUNTED = (TermKind.WHOLE, TermKind.EXACT, TermKind.DAY, TermKind.MOMENT, TermKind.TEXT)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A sum over rows of `parts`, divided by the sum of `per` where there is one: COUNT, SUM, AVG, or a ratio.

    `per` is positive wherever it has rows, but where it may have `either_sign`. `values` are rows that must exist for
    the aggregate not to be NULL. Where `by_units`, `per` counts the privacy units that have such rows, instead of the
    rows. With `cells` it is the same aggregate of other groups.
    """

    function: str
    measure: Measure
    parts: tuple[Part, ...]
    per: tuple[Part, ...]
    values: tuple[Values, ...]
    text: str
    offset: int
    arithmetic: Arithmetic
    by_units: bool = False
    either_sign: bool = False
    cells: KeyCells = OWN_GROUP_ALONE

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that a tolerance may use for it, the clearest first."""
        argument = self.text.split(" FILTER ")[0]
        columns = dict.fromkeys(part.column.name for part in self.parts if part.column is not None)
        return (self.text, argument, self.function, *columns)

    @property
    def meaning(self) -> tuple[object, ...]:
        """Return the meaning of what it computes, whatever its text."""
        return (self.measure, sum_meaning(self.parts), sum_meaning(self.per), self.by_units, self.cells)


def sum_meaning(parts: tuple[Part, ...]) -> tuple[object, ...]:
    """Return the meaning of the parts' sum, whatever their order."""
    return tuple(
        sorted(
            (part.column.name if part.column else "", canonical(part.condition), part.power, part.coefficient)
            for part in parts
        )
    )


@dataclass(frozen=True, slots=True)
class GroupScope:
    """A question's table, keys, given constants, the columns to which WHERE leaves one value, and what it says.

    `values` are the values of each key that the question is about; thresholds may depend on them. `clips` are those of
    expressions without a range; without any a sum of one is refused.
    """

    scope: Scope
    keys: tuple[Column, ...]
    given: ConstantContext
    fixed: frozenset[str]
    where: Condition = ALWAYS
    values: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    clips: Clips | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate call with the rows that its FILTER leaves, and the FILTER as text."""

    node: exp.Expr
    condition: Condition
    suffix: str


AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Window)


def contains_aggregate(node: exp.Expr) -> bool:
    """Return True if the expression calls an aggregate or window function that the parser knows."""
    return contains_type(node, *AGGREGATES)


def list_beside_aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of an expression that are computed of a group, not of its rows: a window reads groups."""
    over_rows = isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)
    called = node.parent if isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) else node
    if not over_rows or (called is not None and isinstance(called.parent, exp.Window) and called.arg_key == "this"):
        yield from (child for child in node.iter_expressions() if not isinstance(child, exp.Identifier | exp.DataType))


def read_call(node: exp.Expr, within: GroupScope) -> Call:
    """Read the call without its FILTER. Raise what its FILTER raises."""
    node = strip_parentheses(node)
    if not isinstance(node, exp.Filter):
        return Call(node, ALWAYS, "")
    filter_ = node.expression.this
    condition = row_condition(filter_, within.scope, within.given)
    return Call(node.this, condition, f" FILTER (WHERE {write_node(filter_)})")


def aggregate(node: exp.Expr, within: GroupScope) -> Aggregate:
    """Read the expression as an aggregate. Raise KH204, KH209, and what its FILTER raises."""
    call = read_call(node, within)
    match call.node:
        case exp.Count():
            return _count(call.node, call, within)
        case exp.Sum() | exp.Avg() if not isinstance(strip_parentheses(call.node.this), exp.Distinct):
            return _total(call.node, call, within)
        case _:
            raise unsupported_aggregate(call.node)


def _count_parts(summed: RowExpression, within: GroupScope) -> tuple[Part, ...]:
    values = summed.values
    column = next((part.column for part in summed.parts if part.column and part.column.name == values.column), None)
    if column is None and values.column is not None:
        column = within.scope.table.get_column(values.column)
    return (Part(Fraction(1), column, values.condition, 0),)


def _count(node: exp.Count, call: Call, within: GroupScope) -> Aggregate:
    argument = strip_parentheses(node.this) if node.this is not None else exp.Star()
    if node.expressions:
        raise KeyholeError("KH204", "count of several columns is not supported", position=find_position(node))
    if isinstance(argument, exp.Distinct):
        return _distinct(node, argument, call, within)
    if isinstance(argument, exp.Star | exp.Boolean) or (isinstance(argument, exp.Literal) and argument.is_string):
        counted, text = RowExpression((), Values(None, ALWAYS), Arithmetic.INTEGER), "*"
    else:
        counted = row_expression(
            argument,
            within.scope,
            within.given,
            where=within.where,
            among=call.condition,
            counted=True,
            clips=within.clips,
        )
        column = find_column(argument, within.scope)
        text = column.name if column else "*" if counted.values == Values(None, ALWAYS) else write_node(argument)
    counted = counted.where(call.condition)
    return _counts(node, f"count({text}){call.suffix}", Measure.ROWS, _count_parts(counted, within))


def _counts(node: exp.Expr, text: str, measure: Measure, parts: tuple[Part, ...]) -> Aggregate:
    return Aggregate(
        function="count",
        measure=measure,
        parts=parts,
        per=(),
        values=(),
        text=text,
        offset=find_start(node) or 0,
        arithmetic=Arithmetic.INTEGER,
    )


def _distinct(node: exp.Count, distinct: exp.Distinct, call: Call, within: GroupScope) -> Aggregate:
    chosen = _split_distinct_case(distinct)
    if chosen is not None:  # what BI tools write for FILTER
        when, counts = chosen
        condition = all_of((row_condition(when, within.scope, within.given), call.condition))
        earlier = call.suffix.removeprefix(" FILTER (WHERE ").removesuffix(")")
        both = f"({earlier}) AND ({write_node(when)})" if earlier else write_node(when)
        suffix = f" FILTER (WHERE {both})"
        return _distinct(node, counts, Call(call.node, condition, suffix), within)
    items = [part for item in distinct.expressions for part in _parts(strip_parentheses(item))]
    found = [find_column(item, within.scope) for item in items]
    counted = {column.name for column in found if column is not None}
    keys = {column.name for column in within.keys} | within.fixed | fixed_columns(call.condition)
    unit = set(within.scope.table.unit)
    names = ", ".join(write_node(item) for item in items)
    if len(items) == 1 and found[0] is not None and not (unit and unit <= counted | keys and counted <= unit | keys):
        return _values(node, found[0], call, within, text=found[0].name)
    if len(items) == 1 and found[0] is None and (computed := _compute(items[0], within)) is not None:
        return _values(node, computed, call, within, text=write_node(items[0]))
    if not unit or len(counted) == 0 or not unit <= counted | keys or not counted <= unit | keys:
        raise _no_units(node, names, [name for name in within.scope.table.unit if name not in keys], within)
    parts = (Part(Fraction(1), None, call.condition, 0),)
    cap = within.scope.table.row_cap
    measure = Measure.ROWS if cap is not None and cap.rows == 1 else Measure.UNITS  # one row per unit: rows are units
    return _counts(node, f"count(DISTINCT {names}){call.suffix}", measure, parts)


def _split_distinct_case(distinct: exp.Distinct) -> tuple[exp.Expr, exp.Distinct] | None:
    """Return `DISTINCT CASE WHEN c THEN x END` as c and `DISTINCT x`.

    Of other rows the value is NULL and does not count.
    """
    case = strip_parentheses(distinct.expressions[0]) if len(distinct.expressions) == 1 else None
    if not isinstance(case, exp.Case) or case.this is not None or len(case.args["ifs"]) != 1:
        return None
    default = case.args.get("default")
    if default is not None and not isinstance(strip_parentheses(default), exp.Null):
        return None
    (arm,) = case.args["ifs"]
    return arm.this, exp.Distinct(expressions=[arm.args["true"]])


def _compute(item: exp.Expr, within: GroupScope) -> Column | None:
    """Return the column that an expression of a row makes; None for doubles, lengths of time and conditions."""
    scope = RowScope(within.scope, within.given)
    term = read_measure(item, scope)
    if term is not None and term.function == "ratio":
        term, _ = ratios.split(term)  # by a constant, which merges no values
    if term is None or term.kind not in _COUNTED:
        return None
    try:
        return computed_column(term, scope)
    except NoTermError:
        return None


def _values(node: exp.Count, column: Column, call: Call, within: GroupScope, *, text: str) -> Aggregate:
    """Return the count of different values of a column."""
    table = within.scope.table
    if column.sql_type is SqlType.OTHER:
        raise unusable_type(column, node)
    clipped = not table.is_row_unit and table.row_cap is None and not table.determines(column)
    if clipped and column.sql_type is SqlType.DOUBLE:
        raise KeyholeError(
            "KH209",
            f"count(DISTINCT {text}) of a double precision column",
            detail="Keyhole chooses the values of a privacy unit that count by their text, and the text of a double "
            "differs between engines.",
            hint=f"Instead you can ask: count(*) FILTER (WHERE {spell_name(column.name)} > 5) > 40, or have the owner "
            "expose the column as numeric.",
            position=find_position(node),
        )
    parts = (Part(Fraction(1), column, call.condition, 0),)
    return _counts(node, f"count(DISTINCT {text}){call.suffix}", Measure.VALUES, parts)


def _no_units(node: exp.Expr, names: str, missing: list[str], within: GroupScope) -> KeyholeError:
    table = within.scope.table
    wanted = ", ".join(missing or table.unit)
    return KeyholeError(
        "KH209",
        f"count(DISTINCT {names}) does not count privacy units in these groups",
        detail=f"The privacy unit is {table.unit_text}. Of other columns, the distinct values of one can be counted.",
        hint=f"Instead you can ask: count(DISTINCT {wanted if len(missing) < 2 else f'({wanted})'})."
        if table.unit
        else "Instead you can ask: count(*), since every row is its own unit here.",
        position=find_position(node),
    )


def _parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _total(node: exp.Sum | exp.Avg, call: Call, within: GroupScope) -> Aggregate:
    function = "sum" if isinstance(node, exp.Sum) else "avg"
    summed = row_expression(
        node.this, within.scope, within.given, where=within.where, among=call.condition, clips=within.clips
    ).where(call.condition)
    column = find_column(node.this, within.scope)
    argument = column.name if column else write_node(strip_parentheses(node.this))
    per = _count_parts(summed, within) if function == "avg" else ()
    return Aggregate(
        function=function,
        measure=Measure.TOTAL,
        parts=summed.parts,
        per=per,
        values=(summed.values,),
        text=f"{function}({argument}){call.suffix}",
        offset=find_start(node) or 0,
        arithmetic=_arithmetic_of_sum(summed, average=function == "avg"),
    )


def _arithmetic_of_sum(summed: RowExpression, *, average: bool) -> Arithmetic:
    """Return how PostgreSQL computes with the sum or mean; the sum of bigint is numeric."""
    columns = [part.column for part in summed.parts if part.column is not None]
    wide = any(column.sql_type is SqlType.INTEGER and column.declared == "bigint" for column in columns)
    if summed.arithmetic is Arithmetic.INTEGER and (wide or average):
        return Arithmetic.EXACT
    return summed.arithmetic
