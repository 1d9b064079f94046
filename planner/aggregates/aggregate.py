"""The aggregates of a HAVING: which of them are bounded linear sums over rows, and when SQL makes them NULL."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from mechanisms.protocol import Deviation, Quantile
from planner.aggregates.computed_measure import Clips
from planner.aggregates.having_refusals import refuse_aggregate, refuse_type, refuse_window
from planner.aggregates.row_expression import Arithmetic, RequiredValues, RowExpression, SumPart, read_row_expression
from planner.catalog.catalog import Column, SqlType, Value
from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.groups.inhabited.key_values import list_inhabited_values
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, find_position, find_start, strip_parentheses, write_node
from planner.predicates.computed import ratios
from planner.predicates.computed.compare import make_computed_column
from planner.predicates.computed.number_arithmetic import NoTermError
from planner.predicates.computed.read import read_measure
from planner.predicates.condition import read_row_condition
from planner.predicates.row_scope import RowScope
from planner.question.condition import ALWAYS, Condition, find_fixed_columns, join_all
from planner.question.condition_text import write_canonical
from planner.question.disjoint import ConditionRows
from planner.question.key_cells import OWN_GROUP_ALONE, KeyCells
from planner.question.question import Measure
from planner.question.unit_groups import MOST_SPLIT, count_split_groups
from planner.scope.name_resolution import Scope, find_column
from planner.values.constant import ConstantContext

ADDED = (Measure.ROWS, Measure.TOTAL, Measure.UNITS)
"""Measures whose numbers of single groups are added up: a unit of several groups counts in each of them."""
COMPARED = (*ADDED, Measure.UNIT_PARTS)
"""Measures that are compared with other groups' numbers."""
_COUNTED = (TermKind.WHOLE, TermKind.EXACT, TermKind.DAY, TermKind.MOMENT, TermKind.TEXT)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate of a group: COUNT, SUM, AVG, or a ratio.

    It is the sum of `summands` over rows, divided by the sum of `divisor` if there is one. The divisor is positive if
    it has rows, unless it `has_either_sign`. The aggregate is NULL in a group without rows of `required_values`. If it
    `divides_by_units`, the divisor counts the privacy units with such rows, instead of the rows. With `cells` the
    aggregate is that of other groups, not of the group that is decided. With a `row_statistic` it is that
    statistic of the rows of a mean, which `mean_text` names.
    """

    function: str
    measure: Measure
    summands: tuple[SumPart, ...]
    divisor: tuple[SumPart, ...]
    required_values: tuple[RequiredValues, ...]
    text: str
    offset: int
    arithmetic: Arithmetic
    divides_by_units: bool = False
    has_either_sign: bool = False
    cells: KeyCells = OWN_GROUP_ALONE
    row_statistic: Deviation | Quantile | None = None
    mean_text: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a tolerance setting may use for the aggregate, the clearest first."""
        argument = self.text.split(" FILTER ")[0]
        columns = dict.fromkeys(part.column.name for part in self.summands if part.column is not None)
        return (self.text, argument, self.function, *columns)

    @property
    def meaning(self) -> tuple[object, ...]:
        """The identity of the aggregate's value. Two spellings of one value have the same identity."""
        sums = identify_sum(self.summands), identify_sum(self.divisor)
        return (self.measure, *sums, self.divides_by_units, self.cells, self.row_statistic)


def identify_sum(parts: tuple[SumPart, ...]) -> tuple[object, ...]:
    """Return the identity of the sum of the parts. It does not depend on their order."""
    return tuple(
        sorted(
            (part.column.name if part.column else "", write_canonical(part.condition), part.power, part.coefficient)
            for part in parts
        )
    )


@dataclass(frozen=True, slots=True)
class GroupScope:
    """The names and conditions with which HAVING is read: a question's table, keys, constants and WHERE.

    `fixed_columns` are the columns that WHERE fixes to one value. `key_values` are the values of each key that the
    question is about; thresholds may depend on them. `clips` has the clips of expressions without a range. If it is
    None, a sum of such an expression is refused.
    """

    scope: Scope
    keys: tuple[Column, ...]
    constants: ConstantContext
    fixed_columns: frozenset[str]
    where: Condition = ALWAYS
    key_values: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    clips: Clips | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an aggregate, with its FILTER as a condition and as text."""

    node: exp.Expr
    condition: Condition
    suffix: str


def read_aggregate_from_cells(found: Aggregate, cells: KeyCells, factor: Fraction, text: str) -> Aggregate:
    """Return `factor` times an aggregate, read from the groups `cells` instead of the group itself.

    Raise KH204 if the aggregate is no sum over rows.
    """
    is_one = not cells.summed_keys and set(map(len, cells.used_places)) <= {0, 1}
    is_mean = bool(found.divisor) and factor == 1 and is_one and cells.statistic is None
    if found.cells != OWN_GROUP_ALONE or (found.divisor and not is_mean) or found.measure not in ADDED:
        raise KeyholeError(
            "KH204",
            f"{text} adds up something other than sums and counts of rows",
            detail="A window over groups reads count(*), count(x), count(DISTINCT unit) or sum(x) of each group.",
            hint="Compare with a number, or with a sum or count of all groups.",
        )
    parts = tuple(part.multiply(factor) for part in found.summands)
    return replace(found, summands=parts, cells=cells, text=text, required_values=())


def average_means(found: Aggregate, cells: KeyCells, text: str) -> Aggregate | None:
    """Return the mean of groups' means of rows. Return None for other aggregates, and along a calendar."""
    counts = len(found.divisor) == 1 and not found.divisor[0].power and not found.divides_by_units
    if found.cells != OWN_GROUP_ALONE or not counts or cells.key is not None or not cells.summed_keys:
        return None
    return replace(found, cells=replace(cells, averages_means=True), text=text, required_values=())


def count_units_in_cells(
    node: exp.Window, found: Aggregate, cells: KeyCells, within: GroupScope, text: str
) -> Aggregate:
    """Return the number of privacy units with rows in any of several groups.

    Raise KH204 if the aggregate does not count units.
    """
    table = within.scope.table
    counted = {column.name for one in node.find_all(exp.Column) if (column := find_column(one, within.scope))}
    if found.measure not in (Measure.UNITS, Measure.ROWS) or not {*table.unit} & {*cells.summed_keys} <= counted:
        raise refuse_window(node)
    most = count_split_groups(table, cells.summed_keys)
    if cells.key is not None or most > MOST_SPLIT:
        raise KeyholeError(
            "KH204",
            f"{text} counts privacy units that may be in more than {MOST_SPLIT} groups, or in periods of a calendar",
            detail="A privacy unit counts once in such a total, however many groups it is in.",
            hint=f"Compare with sum({write_node(node.this)}) OVER (), in which a unit counts in each of its groups.",
            position=find_position(node),
        )
    measure = found.measure if most == 1 else Measure.UNIT_PARTS
    return replace(found, measure=measure, cells=cells, text=text, required_values=())


def sums_no_rows(found: Aggregate, within: GroupScope) -> bool:
    """Return True for a sum that is NULL whatever the data, since no row of any group satisfies its conditions.

    A count of no rows is 0.
    """
    return found.measure is Measure.TOTAL and all(_reads_no_rows(part.condition, within) for part in found.summands)


def _reads_no_rows(condition: Condition, within: GroupScope) -> bool:
    told = [*within.where.list_conjuncts(), *condition.list_conjuncts()]
    if condition == ALWAYS:
        return False
    if ConditionRows.from_condition(join_all(told)).are_none:
        return True
    values, table = dict(within.key_values), within.scope.table
    return any(
        not list_inhabited_values(key, values[key.name], told, table) for key in within.keys if values.get(key.name)
    )


AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Window)


def contains_aggregate(node: exp.Expr) -> bool:
    """Return True if the expression calls an aggregate or window function that the parser knows."""
    return contains_type(node, *AGGREGATES)


def list_group_parts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of an expression that are computed from a group: its aggregates and its windows over groups."""
    over_rows = isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)
    called = node.parent if isinstance(node.parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls) else node
    if not over_rows or (called is not None and isinstance(called.parent, exp.Window) and called.arg_key == "this"):
        yield from (child for child in node.iter_expressions() if not isinstance(child, exp.Identifier | exp.DataType))


def read_call(node: exp.Expr, within: GroupScope) -> Call:
    """Read the call and its FILTER separately. Raise the refusals of the FILTER."""
    node = strip_parentheses(node)
    if not isinstance(node, exp.Filter):
        return Call(node, ALWAYS, "")
    filter_ = node.expression.this
    condition = read_row_condition(filter_, within.scope, within.constants)
    return Call(node.this, condition, f" FILTER (WHERE {write_node(filter_)})")


def read_aggregate(node: exp.Expr, within: GroupScope) -> Aggregate:
    """Read the expression as an aggregate. Raise KH204, KH209, and the refusals of its FILTER."""
    call = read_call(node, within)
    match call.node:
        case exp.Count():
            return _read_count(call.node, call, within)
        case exp.Sum() | exp.Avg() if not isinstance(strip_parentheses(call.node.this), exp.Distinct):
            return _read_total(call.node, call, within)
        case _:
            raise refuse_aggregate(call.node)


def _make_count_parts(summed: RowExpression, within: GroupScope) -> tuple[SumPart, ...]:
    values = summed.required_values
    column = next((part.column for part in summed.summands if part.column and part.column.name == values.column), None)
    if column is None and values.column is not None:
        column = within.scope.table.get_column(values.column)
    return (SumPart(Fraction(1), column, values.condition, 0),)


def _read_count(node: exp.Count, call: Call, within: GroupScope) -> Aggregate:
    argument = strip_parentheses(node.this) if node.this is not None else exp.Star()
    if node.expressions:
        raise KeyholeError(
            "KH204",
            "count of several columns is not supported",
            hint="Count the rows that have all of them: count(*) FILTER (WHERE a IS NOT NULL AND b IS NOT NULL).",
            position=find_position(node),
        )
    if isinstance(argument, exp.Distinct):
        return _read_distinct(node, argument, call, within)
    if isinstance(argument, exp.Star | exp.Boolean) or (isinstance(argument, exp.Literal) and argument.is_string):
        counted, text = RowExpression((), RequiredValues(None, ALWAYS), Arithmetic.INTEGER), "*"
    else:
        counted = read_row_expression(
            argument,
            within.scope,
            within.constants,
            where=within.where,
            among=call.condition,
            is_counted=True,
            clips=within.clips,
        )
        column = find_column(argument, within.scope)
        text = (
            column.name
            if column
            else "*"
            if counted.required_values == RequiredValues(None, ALWAYS)
            else write_node(argument)
        )
    counted = counted.restrict(call.condition)
    return _make_count(node, f"count({text}){call.suffix}", Measure.ROWS, _make_count_parts(counted, within))


def _make_count(node: exp.Expr, text: str, measure: Measure, parts: tuple[SumPart, ...]) -> Aggregate:
    return Aggregate(
        function="count",
        measure=measure,
        summands=parts,
        divisor=(),
        required_values=(),
        text=text,
        offset=find_start(node) or 0,
        arithmetic=Arithmetic.INTEGER,
    )


def _read_distinct(node: exp.Count, distinct: exp.Distinct, call: Call, within: GroupScope) -> Aggregate:
    chosen = _split_distinct_case(distinct)
    if chosen is not None:  # what BI tools write for FILTER
        when, counts = chosen
        condition = join_all((read_row_condition(when, within.scope, within.constants), call.condition))
        earlier = call.suffix.removeprefix(" FILTER (WHERE ").removesuffix(")")
        both = f"({earlier}) AND ({write_node(when)})" if earlier else write_node(when)
        suffix = f" FILTER (WHERE {both})"
        return _read_distinct(node, counts, Call(call.node, condition, suffix), within)
    items = [part for item in distinct.expressions for part in _list_parts(strip_parentheses(item))]
    found = [find_column(item, within.scope) for item in items]
    counted = {column.name for column in found if column is not None}
    keys = {column.name for column in within.keys} | within.fixed_columns | find_fixed_columns(call.condition)
    unit = set(within.scope.table.unit)
    names = ", ".join(write_node(item) for item in items)
    if len(items) == 1 and found[0] is not None and not (unit and unit <= counted | keys and counted <= unit | keys):
        return _read_value_count(node, found[0], call, within, text=found[0].name)
    if len(items) == 1 and found[0] is None and (computed := _compute_column(items[0], within)) is not None:
        return _read_value_count(node, computed, call, within, text=write_node(items[0]))
    if not unit or len(counted) == 0 or not unit <= counted | keys or not counted <= unit | keys:
        raise _refuse_other_units(node, names, [name for name in within.scope.table.unit if name not in keys], within)
    parts = (SumPart(Fraction(1), None, call.condition, 0),)
    cap = within.scope.table.row_cap
    measure = Measure.ROWS if cap is not None and cap.rows == 1 else Measure.UNITS  # one row per unit: rows are units
    return _make_count(node, f"count(DISTINCT {names}){call.suffix}", measure, parts)


def _split_distinct_case(distinct: exp.Distinct) -> tuple[exp.Expr, exp.Distinct] | None:
    """Split `DISTINCT CASE WHEN c THEN x END` into c and `DISTINCT x`.

    For other rows the value is NULL and does not count.
    """
    case = strip_parentheses(distinct.expressions[0]) if len(distinct.expressions) == 1 else None
    if not isinstance(case, exp.Case) or case.this is not None or len(case.args["ifs"]) != 1:
        return None
    default = case.args.get("default")
    if default is not None and not isinstance(strip_parentheses(default), exp.Null):
        return None
    (arm,) = case.args["ifs"]
    return arm.this, exp.Distinct(expressions=[arm.args["true"]])


def _compute_column(item: exp.Expr, within: GroupScope) -> Column | None:
    """Return the column that an expression of a row makes. Return None for doubles, durations and conditions."""
    scope = RowScope(within.scope, within.constants)
    term = read_measure(item, scope)
    if term is not None and term.function == "ratio":
        term, _ = ratios.split_ratio(term)  # by a constant, which merges no values
    if term is None or term.kind not in _COUNTED:
        return None
    try:
        return make_computed_column(term, scope)
    except NoTermError:
        return None


def _read_value_count(node: exp.Count, column: Column, call: Call, within: GroupScope, *, text: str) -> Aggregate:
    """Return the count of different values of a column."""
    table = within.scope.table
    if column.sql_type is SqlType.OTHER:
        raise refuse_type(column, node)
    clipped = not table.is_row_unit and table.row_cap is None and not table.determines(column)
    if clipped and column.sql_type is SqlType.DOUBLE:
        raise KeyholeError(
            "KH209",
            f"count(DISTINCT {text}) cannot count values of a double precision column",
            detail="Keyhole chooses by text which values of a privacy unit count, and the text of a double differs "
            "between engines.",
            hint=f"Instead you can ask: count(*) FILTER (WHERE {spell_name(column.name)} > 5) > 40, or have the owner "
            "expose the column as numeric.",
            position=find_position(node),
        )
    parts = (SumPart(Fraction(1), column, call.condition, 0),)
    return _make_count(node, f"count(DISTINCT {text}){call.suffix}", Measure.VALUES, parts)


def _refuse_other_units(node: exp.Expr, names: str, missing: list[str], within: GroupScope) -> KeyholeError:
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


def _list_parts(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _read_total(node: exp.Sum | exp.Avg, call: Call, within: GroupScope) -> Aggregate:
    function = "sum" if isinstance(node, exp.Sum) else "avg"
    summed = read_row_expression(
        node.this, within.scope, within.constants, where=within.where, among=call.condition, clips=within.clips
    ).restrict(call.condition)
    column = find_column(node.this, within.scope)
    argument = column.name if column else write_node(strip_parentheses(node.this))
    per = _make_count_parts(summed, within) if function == "avg" else ()
    return Aggregate(
        function=function,
        measure=Measure.TOTAL,
        summands=summed.summands,
        divisor=per,
        required_values=(summed.required_values,),
        text=f"{function}({argument}){call.suffix}",
        offset=find_start(node) or 0,
        arithmetic=_find_sum_arithmetic(summed, is_average=function == "avg"),
    )


def _find_sum_arithmetic(summed: RowExpression, *, is_average: bool) -> Arithmetic:
    """Return how PostgreSQL computes with the sum or mean. The sum of bigint is numeric."""
    columns = [part.column for part in summed.summands if part.column is not None]
    wide = any(column.sql_type is SqlType.INTEGER and column.declared == "bigint" for column in columns)
    if summed.arithmetic is Arithmetic.INTEGER and (wide or is_average):
        return Arithmetic.EXACT
    return summed.arithmetic
