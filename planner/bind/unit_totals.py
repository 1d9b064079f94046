"""Totals that a subquery adds up per privacy unit and key: its totals as columns, and which rows they are of.

A question over such a subquery is a question over a table in which one privacy unit has at most one row in each group.
The totals are what a question about whole units would clip: counts, of different values as well, to `rows_per_unit`,
sums to `per_unit`; under a row cap they are those of the rows that count. So every aggregate, condition and threshold
of the question around it works as for any table, one unit adds to each of its functionals at most one value, and
conditions on totals that exclude each other are met by different units.

References: docs/decisions/0008-per-unit.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES, Aggregate, GroupScope
from planner.aggregates.arithmetic import read_linear
from planner.aggregates.comparison import Comparison, Slack
from planner.aggregates.row_expression import Arithmetic, RequiredValues
from planner.bind.bind_refusals import (
    refuse_groups_by_partial_unit,
    refuse_unit_query,
    refuse_unknown_total,
    suggest_with_own_numbers,
)
from planner.bind.fixed_keys import narrow_by_fixed_keys
from planner.bind.joined_tables import read_row_conditions
from planner.bind.unit_query import list_totals, make_unit_table
from planner.catalog.catalog import Column, SqlType, Table
from planner.catalog.row_terms import TermKind
from planner.errors import KeyholeError
from planner.functionals.functional import find_grid, make_functional, make_row_terms
from planner.functionals.row_range import find_row_range
from planner.functionals.unit_rows import find_parts_of_step, identify_total, make_existence
from planner.parser.tree import find_position, read_name, strip_parentheses, write_node
from planner.predicates.computed.read import read_term
from planner.predicates.condition import read_row_condition, read_row_truth
from planner.predicates.row_scope import RowScope
from planner.question.condition import Condition, find_columns, find_fixed_columns, join_all
from planner.question.products import add_products
from planner.question.question import Functional, Measure, Term, UnitRows, UnitTotal
from planner.question.three_valued import Truth
from planner.scope.embedded import EmbeddedQuestion, UnitQuery
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from planner.values.decimals import convert_to_decimal, convert_to_exact_decimal

_TYPES = {
    Arithmetic.INTEGER: (SqlType.INTEGER, "bigint"),
    Arithmetic.EXACT: (SqlType.NUMERIC, "numeric"),
    Arithmetic.FLOATING: (SqlType.DOUBLE, "double precision"),
}

_TAKEN: dict[type[exp.Expr], Measure] = {
    exp.Min: Measure.LEAST,
    exp.Max: Measure.GREATEST,
    exp.Avg: Measure.MEAN,
}
_NAMES = {Measure.LEAST: "min", Measure.GREATEST: "max", Measure.MEAN: "avg"}
_FIRST_DAY = exp.Literal.string("1970-01-01")


@dataclass(slots=True)
class _UnitTotals:
    """The totals found so far, by their meanings. `table` has the products that they add up."""

    query: UnitQuery
    table: Table
    within: GroupScope
    totals_by_identity: dict[str, tuple[UnitTotal, Column]] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)

    def find_column(self, column: str, called: str, node: exp.Expr) -> str:
        """Return the column of the total that the expression is.

        It is a new one under the given name, or one with its meaning.
        """
        total, made, self.table = _make_total(node, self.within, self.table, column=column, called=called)
        known = self.meanings.setdefault(identify_total(total), column)
        self.totals_by_identity.setdefault(known, (total, made))
        return known


def resolve_unit_query(embedded: EmbeddedQuestion, given: ConstantContext) -> tuple[EmbeddedQuestion, UnitRows | None]:
    """Return the question with its subquery's totals as columns, and the rows of these totals.

    A question without a subquery is returned unchanged. Raises KH110 for an expression that is no total of one unit.
    Raises KH2xx, KH005. Positions are in the question's statement.
    """
    query = embedded.unit_query
    if query is None:
        return embedded, None
    try:
        return _resolve(embedded, query, given)
    except KeyholeError as error:
        raise suggest_with_own_numbers(error, query.table, embedded.tree, query.tree) from None


def _resolve(embedded: EmbeddedQuestion, query: UnitQuery, given: ConstantContext) -> tuple[EmbeddedQuestion, UnitRows]:
    select = query.tree
    scope = Scope(table=query.table, alias=query.alias)
    whole: list[Condition] = []
    rows: list[Condition] = []
    groups = {column.name for column in query.groups} & {column.name for column in embedded.table.columns}
    for part in _split_conjuncts(condition for _, condition in read_row_conditions(select, scope, given)):
        (whole if find_columns(part) <= groups else rows).append(part)
    _check_unit(query, select, find_fixed_columns(join_all([*whole, *rows])))
    within = GroupScope(
        scope=scope, keys=embedded.keys, constants=given, fixed_columns=frozenset(), where=join_all(rows)
    )
    bounded = query.table
    if query.declared_table is not None:
        bounded = narrow_by_fixed_keys(query.declared_table, bounded, keys=embedded.keys, where=join_all(rows))
    totals = _UnitTotals(query, bounded, within)
    read = {read_name(column.this) for tree in embedded.trees for column in tree.find_all(exp.Column)}
    names: dict[str, str] = {}
    shown: list[tuple[str, str]] = []
    composed: dict[str, exp.Expr] = {}
    for called, column, node in list_totals(select, query):
        if called not in read:
            continue
        try:
            names[column] = totals.find_column(column, called, node)
        except KeyholeError as error:
            if error.code != "KH110" or isinstance(strip_parentheses(node), AGGREGATES):
                raise
            composed[called] = _replace_by_columns(node, totals, shown, where=called)
    embedded = _compose(embedded, composed)
    having = select.args.get("having")
    if having is not None:
        inside = [(column.name, column.name) for column in query.groups if column.name in groups]
        condition = _replace_by_columns(having.this, totals, inside, where="HAVING")
        own = make_unit_table(query, tuple(column for _, column in totals.totals_by_identity.values()))
        inner = Scope(table=own, alias=query.alias, subquery_columns=tuple(inside))
        whole += _split_conjuncts([read_row_condition(condition, inner, given)])
    table = make_unit_table(query, tuple(column for _, column in totals.totals_by_identity.values()))
    listed = (*((called, names.get(column, column)) for called, column in query.column_names), *shown)
    written = tuple((write_node(node), called) for called, node in composed.items())
    resolved_query = replace(query, column_names=listed, conditions=tuple(whole), total_expressions=written)
    made = UnitRows(totals.table, join_all(rows), tuple(total for total, _ in totals.totals_by_identity.values()))
    return replace(embedded, table=table, unit_query=resolved_query), made


def read_group_totals(query: UnitQuery, condition: exp.Expr, within: GroupScope) -> tuple[UnitRows, Table, Truth]:
    """Return the unit's totals that a condition reads, the table with them as columns, and the condition's truth.

    Parameters:
        query: the subquery with the rows of the unit and its groups. It shows nothing else.
        within: the scope of the rows, with the conditions of WHERE.

    Raises KH110 for an expression that is no total, KH2xx, KH005.
    """
    totals = _UnitTotals(query, query.table, within)
    inside = list(query.column_names)
    read = _replace_by_columns(condition, totals, inside, where="HAVING")
    shown = make_unit_table(query, tuple(column for _, column in totals.totals_by_identity.values()))
    truth = read_row_truth(
        read, Scope(table=shown, alias=query.alias, subquery_columns=tuple(inside)), within.constants
    )
    return (
        UnitRows(totals.table, within.where, tuple(total for total, _ in totals.totals_by_identity.values())),
        shown,
        truth,
    )


def _split_conjuncts(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        yield from condition.list_conjuncts()


def _check_unit(query: UnitQuery, select: exp.Select, fixed: frozenset[str]) -> None:
    grouped = {column.name for column in query.groups} | fixed
    missing = [name_ for name_ in query.table.unit if name_ not in grouped]
    if missing:
        raise refuse_groups_by_partial_unit(select.args["group"], query.table, missing=missing)


def _compose(embedded: EmbeddedQuestion, composed: Mapping[str, exp.Expr]) -> EmbeddedQuestion:
    """Return the question with expressions of totals in the place of the subquery's columns."""
    if not composed:
        return embedded

    def spell(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or read_name(node.this) not in composed:
            return node
        return exp.Paren(this=composed[read_name(node.this)].copy())

    def rewrite(tree: Any) -> Any:
        return tree.transform(spell)

    ranked = embedded.ranked
    return replace(
        embedded,
        tree=rewrite(embedded.tree),
        predicates=tuple(replace(one, tree=rewrite(one.tree)) for one in embedded.predicates),
        ranked=None if ranked is None else replace(ranked, tree=rewrite(ranked.tree)),
    )


def _find_free_name(text: str, where: str, listed: Iterable[tuple[str, str]]) -> str:
    """Return a name for an aggregate without one: its text, and its place as well if another column has that name."""
    return text if all(text != taken for taken, _ in listed) else f"{text} in {where}"


def _replace_by_columns(node: exp.Expr, totals: _UnitTotals, listed: list[tuple[str, str]], *, where: str) -> exp.Expr:
    """Return an expression of totals with a column for every aggregate. Add the columns' names to `listed`."""

    def replace_aggregate(inner: exp.Expr) -> exp.Expr:
        if not isinstance(inner, AGGREGATES):
            return inner
        called = _find_free_name(write_node(inner), where, (*totals.query.column_names, *listed))
        listed.append((called, totals.find_column(called, "", inner)))
        return exp.Column(this=exp.Identifier(this=called, quoted=True))

    numbered = node.copy().transform(partial(_number_days, within=totals.within), copy=False)
    return numbered.transform(replace_aggregate, copy=False)


def _number_days(node: exp.Expr, *, within: GroupScope) -> exp.Expr:
    """Return a time between a unit's first and last dates as the difference of two numbers of days. Both are totals."""
    ends = [strip_parentheses(side) for side in (node.left, node.right)] if isinstance(node, exp.Sub) else []
    if not ends or not all(isinstance(end, exp.Min | exp.Max) and not end.expressions for end in ends):
        return node
    rows = RowScope(within.scope, within.constants)
    terms = [read_term(end.this, rows) for end in ends]
    if not all(term is not None and term.kind is TermKind.DAY for term in terms):
        return node
    for end in ends:
        end.set("this", exp.Sub(this=exp.Paren(this=end.this), expression=exp.cast(_FIRST_DAY.copy(), "date")))
    return node


def _make_total(
    node: exp.Expr, within: GroupScope, table: Table, *, column: str, called: str
) -> tuple[UnitTotal, Column, Table]:
    """Return the total, its column in the question around it, and the table.

    The table has the products that the total adds up.
    """
    taken = _read_extreme_or_mean(node)
    if taken is not None:
        return _make_taken_total(*taken, node, within, table, column=column, called=called)
    found = _read_aggregate(node, within, table)
    comparison = Comparison(
        text=found.text,
        left_text=found.text,
        names=found.names,
        measure=Measure.VALUES if found.measure is Measure.VALUES else Measure.TOTAL,
        summands=found.summands,
        operator=">",
        right_value=Fraction(0),
        threshold=Fraction(0),
        origin=Fraction(0),
        per_row=None,
        required_values=found.required_values,
        slack=Slack.THRESHOLD,
        position=find_position(node),
    )
    table = add_products(table, (part.column for part in found.summands))
    made, step = make_functional(comparison, table=table, min_rows=1, where=within.where)
    low, high = _find_range(made, table, where=within.where)
    exact = convert_to_exact_decimal(step)
    if exact is None:
        raise refuse_unit_query(f"{found.text} has multiples of {step}, which is no decimal number", node, table)
    kind, declared = _TYPES[found.arithmetic]
    if kind is SqlType.INTEGER and step.denominator != 1:
        kind, declared = _TYPES[Arithmetic.EXACT]
    bounds = (exact * low, exact * high)
    described = f"{called} = {found.text}" if called else found.text
    return (
        UnitTotal(column, described, made, _make_presence(found.required_values), low, high),
        Column(column, kind, declared, bounds=bounds, grid=exact),
        table,
    )


def _read_extreme_or_mean(node: exp.Expr) -> tuple[Measure, exp.Expr] | None:
    """Return the measure of a min, max or avg, and `sum` of the same argument with the same FILTER.

    Return None for other aggregates.
    """
    call = strip_parentheses(node.this) if isinstance(strip_parentheses(node), exp.Filter) else strip_parentheses(node)
    measure = _TAKEN.get(type(call))
    if measure is None or call.expressions:
        return None
    summed = exp.Sum(this=call.this.copy())
    return measure, exp.Filter(this=summed, expression=node.expression.copy()) if call is not strip_parentheses(
        node
    ) else summed


def _make_taken_total(
    measure: Measure,
    summed: exp.Expr,
    node: exp.Expr,
    within: GroupScope,
    table: Table,
    *,
    column: str,
    called: str,
) -> tuple[UnitTotal, Column, Table]:
    """Return the least, greatest or mean value of one unit.

    It is within the bounds of a value, however many rows there are.
    """
    found = _read_aggregate(summed, within, table)
    (part, *others) = found.summands or (None,)
    if part is None or others or part.column is None or part.power != 1:
        raise refuse_unknown_total(node, table)
    table = add_products(table, [part.column])
    ends = find_grid(part.column, table, position=find_position(node))
    terms, step = make_row_terms(found.summands, {part.column.name: ends})
    (term,) = terms
    low, high = sorted(term.coefficient * end for end in ends[1:])
    present, parts, arithmetic = _make_presence(found.required_values), 0, found.arithmetic
    if measure is Measure.MEAN:  # above the least value, divided by how many there are
        terms = (term, Term(-low, None, term.condition, 0)) if low else terms
        present = _count_values(found.required_values, table)
    text = f"{_NAMES[measure]}{found.text.removeprefix('sum')}"
    made = Functional(
        name=text,
        measure=measure,
        terms=terms,
        sensitivity=max(-low, high, high - low, 1),
        unit_range=None,
        unit_size=convert_to_decimal(step),
        rows=1,
    )
    if measure is Measure.MEAN:
        parts, arithmetic = find_parts_of_step(low, high), max(arithmetic, Arithmetic.EXACT)
        low, high, step = 2 * parts * low, 2 * parts * high, step / (2 * parts)
    exact = convert_to_exact_decimal(step)
    if exact is None:
        raise refuse_unit_query(f"{text} has multiples of {step}, which is no decimal number", node, table)
    kind, declared = _TYPES[arithmetic]
    if kind is SqlType.INTEGER and step.denominator != 1:
        kind, declared = _TYPES[Arithmetic.EXACT]
    if kind is SqlType.INTEGER:  # a value has its column's type, which sums of it go by
        declared = part.column.declared
    described = f"{called} = {text}" if called else text
    return (
        UnitTotal(column, described, made, present, low, high, parts),
        Column(column, kind, declared, bounds=(exact * low, exact * high), grid=exact),
        table,
    )


def _read_aggregate(node: exp.Expr, within: GroupScope, table: Table) -> Aggregate:
    try:
        found = read_linear(node, within)
    except KeyholeError as error:
        if error.code not in ("KH204", "KH208", "KH209"):
            raise
        found = None
    single = found is not None and len(found.summands) == 1 and not found.constant and found.null_value is None
    if found is None or not single:
        raise refuse_unknown_total(node, table)
    ((aggregate, coefficient),) = found.summands
    if coefficient != 1 or aggregate.divisor or aggregate.measure is Measure.UNITS:
        raise refuse_unknown_total(node, table)
    if len(aggregate.required_values) > 1:
        raise refuse_unknown_total(node, table)
    return replace(aggregate, arithmetic=found.arithmetic)


def _find_range(made: Functional, table: Table, *, where: Condition) -> tuple[int, int]:
    """Return the range of one unit's total: its clipping bounds, or the range of its counted rows."""
    if made.unit_range is not None:
        low, high = made.unit_range
        return min(low, 0), max(high, 0)
    assert table.row_cap is not None
    ranges = {name_: find_grid(table.get_column(name_), table, position=None)[1:] for name_ in made.summed}
    low, high = find_row_range(made.terms, ranges=ranges, table=table, among=where)
    return low * table.row_cap.rows, high * table.row_cap.rows


def _make_presence(values: tuple[RequiredValues, ...]) -> Functional | None:
    """Return a functional of whether a unit has a summed value."""
    return None if not values else make_existence(Term(1, values[0].column, values[0].condition, 0))


def _count_values(values: tuple[RequiredValues, ...], table: Table) -> Functional:
    """Return the count of the values of a unit that are averaged. Nothing is charged for it: only the mean is read."""
    rows = table.row_cap.rows if table.row_cap is not None else 1
    return replace(
        make_existence(Term(1, values[0].column, values[0].condition, 0)),
        measure=Measure.ROWS,
        sensitivity=rows,
        unit_range=None if table.row_cap is not None else (0, rows),
    )
