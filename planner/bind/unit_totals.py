"""What a subquery adds up per privacy unit and key: its totals as columns, and which rows they are of.

A question over such a subquery is a question over a table in which one privacy unit has at most one row in each group.
The totals are what a question about whole units would clip: counts, of different values as well, to `rows_per_unit`,
sums to `per_unit`; under a row cap they are those of the rows that count. So every aggregate, condition and threshold
of the question around it works as for any table, one unit adds to each of its functionals at most one value, and
conditions on totals that exclude each other are met by different units.

References: docs/decisions/0008-per-unit.md.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES, Aggregate, GroupScope
from planner.aggregates.arithmetic import linear
from planner.aggregates.comparison import Comparison, Slack
from planner.aggregates.row_expression import Arithmetic, Values
from planner.bind.fixed_keys import bound_fixed
from planner.bind.joins import row_conditions
from planner.bind.refusals import no_total, not_by_whole_unit, unit_query_refusal
from planner.bind.unit_query import total_columns, unit_table
from planner.catalog.model import Column, SqlType, Table
from planner.errors import KeyholeError
from planner.functionals.functional import functional, grid
from planner.functionals.row_range import row_range
from planner.functionals.unit_rows import _total_meaning, one_row
from planner.parser.tree import name, position, write_node
from planner.predicates.condition import row_condition
from planner.question.condition import (
    Condition,
    all_of,
    columns,
    fixed_columns,
)
from planner.question.model import Functional, Measure, Term, UnitRows, UnitTotal
from planner.question.products import with_products
from planner.scope.embedded import Embedded, UnitQuery
from planner.scope.names import Scope
from planner.values.decimals import terminating_decimal
from planner.values.model import Given

_TYPES = {
    Arithmetic.INTEGER: (SqlType.INTEGER, "bigint"),
    Arithmetic.EXACT: (SqlType.NUMERIC, "numeric"),
    Arithmetic.FLOATING: (SqlType.DOUBLE, "double precision"),
}


@dataclass(slots=True)
class _Totals:
    """The totals met so far, by what they mean; `table` has the products that they add up."""

    query: UnitQuery
    table: Table
    within: GroupScope
    made: dict[str, tuple[UnitTotal, Column]] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)

    def add(self, column: str, called: str, node: exp.Expr) -> str:
        """The column of the total that the expression is: a new one under the given name, or one with its meaning."""
        total, made, self.table = _total(node, self.within, self.table, column=column, called=called)
        known = self.meanings.setdefault(_total_meaning(total), column)
        self.made.setdefault(known, (total, made))
        return known


def resolve_unit_query(embedded: Embedded, given: Given) -> tuple[Embedded, UnitRows | None]:
    """The question with its subquery's totals as columns, and which rows these are of; as it is without a subquery.

    Raises KH110 for what is no total of one unit, KH2xx, KH005, with positions in the question's statement.
    """
    query = embedded.per_unit
    return (embedded, None) if query is None else _resolve(embedded, query, given)


def _resolve(embedded: Embedded, query: UnitQuery, given: Given) -> tuple[Embedded, UnitRows]:
    select = query.tree
    scope = Scope(table=query.table, alias=query.alias)
    whole: list[Condition] = []
    rows: list[Condition] = []
    groups = {column.name for column in query.groups} & {column.name for column in embedded.table.columns}
    for part in _conjuncts(condition for _, condition in row_conditions(select, scope, given)):
        (whole if columns(part) <= groups else rows).append(part)
    _check_unit(query, select, fixed_columns(all_of([*whole, *rows])))
    within = GroupScope(scope=scope, keys=embedded.keys, given=given, fixed=frozenset(), where=all_of(rows))
    bounded = query.table
    if query.declared is not None:
        bounded = bound_fixed(query.declared, bounded, keys=embedded.keys, where=all_of(rows))
    totals = _Totals(query, bounded, within)
    read = {name(column.this) for tree in embedded.trees for column in tree.find_all(exp.Column)}
    names = {
        column: totals.add(column, called, node)
        for called, column, node in total_columns(select, query)
        if called in read
    }
    having = select.args.get("having")
    if having is not None:
        shown = [(column.name, column.name) for column in query.groups if column.name in groups]
        condition = _on_totals(having.this, totals, shown)
        own = unit_table(query, tuple(column for _, column in totals.made.values()))
        inner = Scope(table=own, alias=query.alias, listed=tuple(shown))
        whole += _conjuncts([row_condition(condition, inner, given)])
    table = unit_table(query, tuple(column for _, column in totals.made.values()))
    listed = tuple((called, names.get(column, column)) for called, column in query.listed)
    resolved_query = replace(query, listed=listed, conditions=tuple(whole))
    made = UnitRows(totals.table, all_of(rows), tuple(total for total, _ in totals.made.values()))
    return replace(embedded, table=table, per_unit=resolved_query), made


def _conjuncts(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        yield from condition.conjuncts()


def _check_unit(query: UnitQuery, select: exp.Select, fixed: frozenset[str]) -> None:
    grouped = {column.name for column in query.groups} | fixed
    missing = [name_ for name_ in query.table.unit if name_ not in grouped]
    if missing:
        raise not_by_whole_unit(select.args["group"], query.table, missing=missing)


def _on_totals(node: exp.Expr, totals: _Totals, listed: list[tuple[str, str]]) -> exp.Expr:
    """The subquery's HAVING with a column in the place of every aggregate; its name is added to `listed`."""

    def column(inner: exp.Expr) -> exp.Expr:
        if not isinstance(inner, AGGREGATES):
            return inner
        called = f"{write_node(inner)} in HAVING"
        listed.append((called, totals.add(called, "", inner)))
        return exp.Column(this=exp.Identifier(this=called, quoted=True))

    return node.copy().transform(column, copy=False)


def _total(
    node: exp.Expr, within: GroupScope, table: Table, *, column: str, called: str
) -> tuple[UnitTotal, Column, Table]:
    """The total, the column that it is to the question around it, and the table with the products that it adds up."""
    found = _aggregate(node, within, table)
    comparison = Comparison(
        text=found.text,
        left=found.text,
        names=found.names,
        measure=Measure.VALUES if found.measure is Measure.VALUES else Measure.TOTAL,
        parts=found.parts,
        operator=">",
        at=Fraction(0),
        threshold=Fraction(0),
        origin=Fraction(0),
        per_row=None,
        values=found.values,
        slack=Slack.THRESHOLD,
        position=position(node),
    )
    table = with_products(table, (part.column for part in found.parts))
    made, step = functional(comparison, table=table, min_rows=1, where=within.where)
    low, high = _range(made, table, where=within.where)
    exact = terminating_decimal(step)
    if exact is None:
        raise unit_query_refusal(f"{found.text} comes in steps that no decimal number is", node, table)
    kind, declared = _TYPES[found.arithmetic]
    if kind is SqlType.INTEGER and step.denominator != 1:
        kind, declared = _TYPES[Arithmetic.EXACT]
    bounds = (exact * low, exact * high)
    described = f"{called} = {found.text}" if called else found.text
    return (
        UnitTotal(column, described, made, _present(found.values), low, high),
        Column(column, kind, declared, bounds=bounds, grid=exact),
        table,
    )


def _aggregate(node: exp.Expr, within: GroupScope, table: Table) -> Aggregate:
    try:
        found = linear(node, within)
    except KeyholeError as error:
        if error.code not in ("KH204", "KH208", "KH209"):
            raise
        found = None
    single = found is not None and len(found.summands) == 1 and not found.constant and found.missing is None
    if found is None or not single:
        raise no_total(node, table)
    ((aggregate, coefficient),) = found.summands
    if coefficient != 1 or aggregate.per or aggregate.measure is Measure.UNITS:
        raise no_total(node, table)
    if len(aggregate.values) > 1:
        raise no_total(node, table)
    return replace(aggregate, arithmetic=found.arithmetic)


def _range(made: Functional, table: Table, *, where: Condition) -> tuple[int, int]:
    """What one unit's total is clipped to, or what the rows that count can add up to."""
    if made.unit_range is not None:
        low, high = made.unit_range
        return min(low, 0), max(high, 0)
    assert table.row_cap is not None
    ranges = {name_: grid(table.column(name_), table, position=None)[1:] for name_ in made.summed}
    low, high = row_range(made.terms, ranges=ranges, table=table, among=where)
    return low * table.row_cap.rows, high * table.row_cap.rows


def _present(values: tuple[Values, ...]) -> Functional | None:
    """Whether a unit has a value of what is summed."""
    return None if not values else one_row(Term(1, values[0].column, values[0].condition, 0))
