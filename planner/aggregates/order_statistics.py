"""Aggregates that pick one value of a group, as counts: max, min, percentiles, median, bool_and and bool_or.

| SQL | literal | needs values |
|---|---|---|
| `MAX(x) > t`, `>=` | `count(x > t) >= 1`, `count(x >= t) >= 1` | |
| `MAX(x) <= t`, `<` | `count(x > t) <= 0`, `count(x >= t) <= 0` | yes |
| `MIN(x) < t`, `<=` | `count(x < t) >= 1`, `count(x <= t) >= 1` | |
| `MIN(x) >= t`, `>` | `count(x < t) <= 0`, `count(x <= t) <= 0` | yes |
| `percentile_disc(p) > t`, `>=` | `sum (1[x > t] - (1 - p)) > 0`, `sum (1[x >= t] - (1 - p)) > 0` | |
| `percentile_disc(p) <= t`, `<` | the same `<= 0` | yes |
| `percentile_cont(p) > t`, `>=` | `sum (1[x > t] - (1 - p)) > -(1 - p)`, with `x >= t` | yes |
| `percentile_cont(p) <= t`, `<` | `sum (1[x > t] - (1 - p)) < p`, with `x >= t` | yes |

All are exact but percentile_cont, which interpolates between two neighbours. Its literal holds wherever SQL's
comparison does, so the false-negative rate holds; where it holds and SQL's does not, one row more or less would make
SQL's hold. `p` is the share below: with n values, percentile_disc is the first with `p * n` values up to it,
percentile_cont lies `p * (n - 1)` places from the first.

References: docs/asking.md, what can be asked.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import Call, GroupScope, contains_aggregate, read_call
from planner.aggregates.arithmetic import read_linear
from planner.aggregates.comparison import UNKNOWN, Comparison, Conjunction, Disjunction, Having, Slack
from planner.aggregates.having_refusals import refuse_aggregate, refuse_descending_percentile
from planner.aggregates.row_expression import RequiredValues, SumPart
from planner.catalog.catalog import ComputedName, SqlType
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.predicates.computed.compare import read_computed_term
from planner.predicates.computed.read import read_term
from planner.predicates.condition import read_row_truth
from planner.predicates.row_scope import RowScope
from planner.predicates.terms.term import ColumnTerm, make_plain_term
from planner.question.condition import Condition, join_all, join_any
from planner.question.condition_text import write_condition
from planner.question.question import Measure
from planner.scope.name_resolution import find_column
from planner.values.constant import Constant, NotConstant, Number
from planner.values.expressions import fold_constant
from planner.values.operators import OPPOSITE_OPERATORS

_NUMBERS = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)


@dataclass(frozen=True, slots=True)
class _PickedValue:
    """An aggregate that picks one value of `term` among the rows of `condition`, with the share `share` below it."""

    call: exp.Expr
    function: str
    term: ColumnTerm
    argument: str
    condition: Condition
    suffix: str
    text: str
    share: Fraction | None

    @property
    def values(self) -> RequiredValues:
        return RequiredValues(self.term.column.name, self.condition)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.text, self.text.split(" FILTER ")[0], self.function)


def is_pick(node: exp.Expr) -> bool:
    """Return True if the expression is max, min, median or a percentile: a value picked from the rows by its rank."""
    inner = _strip_filter(node)
    if isinstance(inner, exp.WithinGroup):
        return isinstance(inner.this, exp.PercentileCont | exp.PercentileDisc)
    return isinstance(inner, exp.Max | exp.Min | exp.Median)


def is_truth(node: exp.Expr) -> bool:
    """Return True if the expression is bool_and or bool_or, which combine the truths of the rows."""
    return isinstance(_strip_filter(node), exp.LogicalAnd | exp.LogicalOr)


def _strip_filter(node: exp.Expr) -> exp.Expr:
    node = strip_parentheses(node)
    return node.this if isinstance(node, exp.Filter) else node


def compare_pick(node: exp.Expr, operator: str, threshold: exp.Expr, within: GroupScope) -> Having:
    """Return the comparison `node operator threshold`, for a node that `is_pick`, in terms of counts.

    Raise KH204, KH208, KH212 and the refusals of a FILTER.
    """
    try:
        constant = fold_constant(threshold, within.constants)
    except NotConstant:
        raise KeyholeError(
            "KH208",
            f"{write_short(threshold)} is not a constant threshold",
            detail="max, min, percentiles and median are compared with a constant each.",
            hint="Compare each by itself, with constants of your own.",
            position=find_position(_strip_filter(node) if contains_aggregate(threshold) else threshold),
        ) from None
    if constant is None:
        return UNKNOWN
    picked = _read_pick(read_call(node, within), within)
    if operator == "=":
        return Conjunction(tuple(_compare_value(picked, side, constant, threshold) for side in (">=", "<=")))
    if operator == "<>":
        return Disjunction(tuple(_compare_value(picked, side, constant, threshold) for side in (">", "<")))
    return _compare_value(picked, operator, constant, threshold)


def _read_pick(call: Call, within: GroupScope) -> _PickedValue:
    node = call.node
    argument: exp.Expr = node.this
    function, share = "max" if isinstance(node, exp.Max) else "min", None
    if isinstance(node, exp.Median):
        function, share = "median", Fraction(1, 2)
    elif isinstance(node, exp.WithinGroup):
        function = "percentile_cont" if isinstance(node.this, exp.PercentileCont) else "percentile_disc"
        share = _read_share(node, within)
        (ordered,) = node.expression.expressions
        argument = ordered.this
        if ordered.args.get("desc"):
            if function == "percentile_disc":
                raise refuse_descending_percentile(node, ordered, share=share)
            share = 1 - share
    elif node.expressions:
        raise refuse_aggregate(node)
    term = _read_term(argument, function, within)
    named = find_column(argument, within.scope)
    name = write_node(argument) if named is None else named.name
    text = f"{f'median({name})' if function == 'median' else write_node(node)}{call.suffix}"
    return _PickedValue(node, function, term, name, call.condition, call.suffix, text, share)


def _read_term(argument: exp.Expr, function: str, within: GroupScope) -> ColumnTerm:
    """Read the argument of a pick: a column, or a number or time that is computed from several columns.

    Raise KH204 for any other argument.
    """
    column = find_column(argument, within.scope)
    rows = RowScope(within.scope, within.constants)
    found = read_computed_term(argument, rows) if column is None else make_plain_term(column)
    numeric = found is not None and (found.column.sql_type in _NUMBERS or _is_quotient(argument, rows))
    if found is None or (column is None and not numeric):
        raise KeyholeError(
            "KH204",
            f"{function} of {write_short(argument)} is not supported",
            detail="Its argument is a column, or a number or length of time that is computed from columns.",
            hint="Instead you can ask: bool_or(x > 5) or bool_and(x > 5), for some row or for every row."
            if contains_type(argument, exp.Case)
            else f"Instead you can ask: count(*) FILTER (WHERE {write_node(argument)} = 'x') > 40.",
            position=find_position(argument),
        )
    if function in ("percentile_cont", "median") and not numeric:
        name, kind = found.column.name, found.column.declared
        raise KeyholeError(
            "KH204", f'column "{name}" of type {kind} has no {function}', position=find_position(argument)
        )
    if column is not None:
        return found
    written = ComputedName.from_column(replace(found.column, comment=write_node(argument))).column
    return replace(found, column=written)


def _is_quotient(node: exp.Expr, rows: RowScope) -> bool:
    read = read_term(node, rows)
    return read is not None and read.function == "ratio"


def _read_share(node: exp.WithinGroup, within: GroupScope) -> Fraction:
    try:
        value = fold_constant(node.this.this, within.constants)
    except NotConstant:
        value = None
    if not isinstance(value, Number) or not 0 < value.value <= 1 or len(node.expression.expressions) != 1:
        raise KeyholeError(
            "KH204",
            f"{write_short(node)} is not a percentile that Keyhole tests",
            detail="The share is a constant above 0 and at most 1, and the order is by one column.",
            hint="Write for example percentile_disc(0.9) WITHIN GROUP (ORDER BY x) > t.",
            position=find_position(node),
        )
    return value.value


def _compare_value(picked: _PickedValue, operator: str, constant: Constant, node: exp.Expr) -> Comparison:
    if picked.share is None:
        return _compare_minimum_or_maximum(picked, operator, constant, node)
    return _compare_percentile(picked, picked.share, operator, constant, node)


def _find_rows_beyond(picked: _PickedValue, operator: str, constant: Constant, node: exp.Expr) -> Condition:
    return join_all((picked.condition, picked.term.compare(operator, constant, node).true))


def _write_text(picked: _PickedValue, operator: str, node: exp.Expr) -> str:
    return f"{picked.text} {operator} {write_node(node)}"


def _compare_minimum_or_maximum(picked: _PickedValue, operator: str, constant: Constant, node: exp.Expr) -> Comparison:
    above = operator in (">", ">=")
    exists = above is (picked.function == "max")
    beyond = operator if exists else OPPOSITE_OPERATORS[operator]
    counted = _find_rows_beyond(picked, beyond, constant, node)
    also = picked.suffix.removeprefix(" FILTER (WHERE ").removesuffix(")")
    spelled = f"{picked.argument} {beyond} {write_node(node)}{f' AND ({also})' if also else ''}"
    return compare_record(
        _write_text(picked, operator, node),
        picked.text,
        picked.names,
        counted,
        needs_record=exists,
        values=picked.values,
        position=find_position(picked.call),
        spelled=None if picked.term.is_plain else spelled,
    )


def compare_record(
    text: str,
    left: str,
    names: tuple[str, ...],
    counted: Condition,
    *,
    needs_record: bool,
    values: RequiredValues,
    position: int | None,
    spelled: str | None = None,
) -> Comparison:
    """Return a comparison that is true if at least one of the rows `values` is `counted`, or if none is.

    Its truth depends on a single record. `needs_record` is True if at least one row is needed.
    """
    advice = f"count(*) FILTER (WHERE {spelled or write_condition(counted)}) {'>=' if needs_record else '<'} 5"
    return Comparison(
        text=text,
        left_text=left,
        names=names,
        measure=Measure.ROWS,
        summands=(SumPart(Fraction(1), None, counted, 0),),
        operator=">" if needs_record else "<=",
        right_value=Fraction(0),
        threshold=Fraction(0),
        origin=Fraction(0),
        per_row=None,
        required_values=() if needs_record else (values,),
        slack=Slack.RECORD,
        position=position,
        warnings=(f"{text} depends on one record, which is expensive. Instead you can ask: {advice}",),
    )


def _compare_percentile(
    picked: _PickedValue, share: Fraction, operator: str, constant: Constant, node: exp.Expr
) -> Comparison:
    above = operator in (">", ">=")
    counted = _find_rows_beyond(picked, ">" if operator in (">", "<=") else ">=", constant, node)
    at, strict = Fraction(0), ">" if above else "<="
    if picked.function != "percentile_disc":
        at, strict = (share - 1, ">") if above else (share, "<")
    # these are the rows that the first part's condition sees, which takes NaN for more than every number
    present = picked.values.rows
    return Comparison(
        text=_write_text(picked, operator, node),
        left_text=picked.text,
        names=picked.names,
        measure=Measure.TOTAL,
        summands=tuple(
            part
            for part in (SumPart(Fraction(1), None, counted, 0), SumPart(share - 1, None, present, 0))
            if part.coefficient
        ),
        operator=strict,
        right_value=at,
        threshold=Fraction(100),
        origin=100 * (1 - share),
        per_row=Fraction(1, 100),
        required_values=(picked.values,),
        slack=Slack.ROWS,
        position=find_position(picked.call),
        divisor_rows=SumPart(Fraction(1), picked.term.column, picked.condition, 0),
    )


def compare_truth(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    """Return `bool_and(c)` or `bool_or(c)`, or with `negated` its negation, as a comparison of a count.

    Raise the refusals of the condition.
    """
    call = read_call(node, within)
    truth = read_row_truth(call.node.this, within.scope, within.constants)
    every = isinstance(call.node, exp.LogicalAnd)
    counted = join_all((call.condition, truth.false if every else truth.true))
    known = RequiredValues(None, join_all((call.condition, join_any((truth.true, truth.false)))))
    function = "bool_and" if every else "bool_or"
    left = f"{function}({write_node(strip_parentheses(call.node.this))}){call.suffix}"
    return compare_record(
        f"NOT {left}" if negated else left,
        left,
        (left, left.split(" FILTER ")[0], function),
        counted,
        needs_record=every is negated,
        values=known,
        position=find_position(call.node),
    )


def split_extremes(
    left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope
) -> tuple[list[tuple[exp.Expr, exp.Expr]], bool] | None:
    """Rewrite a comparison with greatest or least as several comparisons.

    Also return True if AND joins them, False for OR. `x > greatest(a, b)` is `x > a AND x > b`, and `x > least(a, b)`
    is `x > a OR x > b`. Return None without these, for `=` and `<>`, and if they skip a NULL that private rows decide.
    """
    for side, other, above in ((right, left, operator in (">", ">=")), (left, right, operator in ("<", "<="))):
        found = _list_extremes(side, within)
        if found is None or operator in ("=", "<>"):
            continue
        parts, is_greatest = found
        pairs = [(part, other) if side is left else (other, part) for part in parts]
        return pairs, is_greatest is above
    return None


def _list_extremes(node: exp.Expr, within: GroupScope) -> tuple[list[exp.Expr], bool] | None:
    """Return what greatest (True) or least (False) chooses from, without constants that are NULL. None for others."""
    node = strip_parentheses(node)
    if isinstance(node, exp.Mul):
        for one, called in ((node.this, node.expression), (node.expression, node.this)):
            factor, found = _fold_number(one, within), _list_extremes(called, within)
            if factor and found is not None:
                times = [exp.Mul(this=one.copy(), expression=exp.Paren(this=part.copy())) for part in found[0]]
                return list[exp.Expr](times), found[1] is (factor > 0)
        return None
    if not isinstance(node, exp.Greatest | exp.Least) or not contains_aggregate(node):
        return None
    parts: list[exp.Expr] = []
    for part in (node.this, *node.expressions):
        read = read_linear(part, within)
        if read is None:
            continue
        sure = all(
            not found.required_values and not found.divisor and not found.cells.indices_without_value
            for found, _ in read.summands
        )
        if not sure or read.key_numbers is not None or any(found.cells.may_have_no_value for found, _ in read.summands):
            return None
        parts.append(part)
    return (parts, isinstance(node, exp.Greatest)) if parts else None


def _fold_number(node: exp.Expr, within: GroupScope) -> Fraction | None:
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        return None
    return value.value if isinstance(value, Number) else None
