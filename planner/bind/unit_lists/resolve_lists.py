"""Lists of privacy units, resolved: what each asks of the rows that one unit has, as conditions that no row makes fail.

A list may ask for totals of a unit's rows. They are added up over all rows of the unit: neither its bounds nor a cap on
rows apply, as a list tells one bit of a unit, whatever that is a function of. Values are clipped to their columns'
bounds, and totals at what integers hold, far beyond what rows add up to.

Proof: docs/proofs/unit_lists.md.
"""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES, GroupScope
from planner.bind.bind_refusals import refuse_total_in_list
from planner.bind.unit_lists.spell_out_extremes import spell_out_extremes
from planner.bind.unit_totals import read_group_totals
from planner.catalog.catalog import Column, Table, UnitList
from planner.errors import KeyholeError
from planner.functionals.unit_rows import identify_total, rename_columns
from planner.parser.tree import strip_parentheses, write_short
from planner.predicates.condition import read_row_condition
from planner.question.condition import ALWAYS, NEVER, Compare, Condition, IsNull, Leaf, Not, join_all, join_any
from planner.question.condition_text import write_canonical
from planner.question.question import ListedRows, ListedTotals, Measure, UnitRows
from planner.question.three_valued import Truth
from planner.scope.embedded import EmbeddedQuestion, UnitListQuery, UnitQuery
from planner.scope.name_resolution import Scope
from planner.values.comparisons import compare_constants
from planner.values.constant import ConstantContext, NotConstant
from planner.values.expressions import fold_constant
from planner.values.operators import OPERATORS

_MOST_ROWS = (2**40, 2**30, 2**20, 2**10)
"""How many rows of one unit a total is exact for: the most whose total has 2^53 steps at most, so that no sum fails."""
_SOME_ROW = frozenset((Compare("", ">", 0), Compare("", ">=", 1), Compare("", "<>", 0)))


def resolve_lists(embedded: EmbeddedQuestion, given: ConstantContext) -> tuple[EmbeddedQuestion, tuple[str, ...]]:
    """Return the question over the rows of listed units only, and the NOTICEs about its lists.

    Raises KH107, KH2xx for conditions that a list may not have, with positions in the question's statement.
    """
    if not embedded.unit_lists:
        return embedded, ()
    lists = _drop_implied_lists([tuple(_resolve(one, given) for one in clause) for clause in embedded.unit_lists])
    declared = None if embedded.declared_table is None else replace(embedded.declared_table, lists=lists)
    told: tuple[str, ...] = ()
    if any(one.is_negated for clause in lists for one in clause):
        unit = embedded.table.unit_text
        told = (f"rows without {unit} belong to nobody: they are on no list, and NOT IN means NOT EXISTS",)
    return replace(embedded, table=replace(embedded.table, lists=lists), declared_table=declared), told


def _drop_implied_lists(clauses: Iterable[tuple[UnitList, ...]]) -> tuple[tuple[UnitList, ...], ...]:
    """Return the clauses in a fixed order, each list once, without clauses that are true or implied by others."""
    found: dict[frozenset[tuple[str, str, bool]], tuple[UnitList, ...]] = {}
    for clause in clauses:
        named = {_make_sort_key(one): one for one in clause}
        if not any((*key[:2], not key[2]) in named for key in named):
            found[frozenset(named)] = tuple(named[key] for key in sorted(named))
    kept = [names for names in found if not any(other < names for other in found)]
    return tuple(found[names] for names in sorted(kept, key=lambda names: (len(names), sorted(names))))


def _make_sort_key(listed: UnitList) -> tuple[str, str, bool]:
    return listed.meaning, listed.table.name, listed.is_negated


def _resolve(query: UnitListQuery, given: ConstantContext) -> UnitList:
    found = _resolve_rule(query, given)
    if not query.key_columns and query.comparison is None:
        return found
    keyed = [f"{outer} = {inner}" for outer, inner in query.key_columns]
    if query.comparison is not None:
        operator, outer, inner = query.comparison
        keyed.append(f"{inner} {operator} {outer}")
    text = " and ".join(keyed)
    return replace(
        found,
        meaning=f"{found.meaning} for each row by {text}",
        description=f"{found.description}, of each row's own {text}",
        key_columns=query.key_columns,
        comparison=query.comparison,
    )


def _resolve_rule(query: UnitListQuery, given: ConstantContext) -> UnitList:
    scope = Scope(table=query.table, alias=query.alias)
    where = join_all(one for part in query.rows for one in read_row_condition(part, scope, given).list_conjuncts())
    if query.totals is None:
        return _list_rows(query.table, where, is_absent=query.is_negated)
    try:
        return _resolve_totals(query, query.totals, where, scope, given)
    except KeyholeError as error:
        raise refuse_total_in_list(error) if error.code == "KH110" else error from None


def _list_rows(table: Table, where: Condition, *, is_absent: bool) -> UnitList:
    meaning = "a row" if where == ALWAYS else f"a row where {write_canonical(where)}"
    return UnitList(table=table, meaning=meaning, rule=ListedRows(where), is_negated=is_absent, description=meaning)


def _resolve_totals(
    query: UnitListQuery, asked: exp.Expr, where: Condition, scope: Scope, given: ConstantContext
) -> UnitList:
    condition = spell_out_extremes(asked)
    whole_group = query.counts_empty_units and _holds_without_rows(condition, given)
    groups = tuple(query.table.get_column(name) for name in (*query.groups, *query.table.unit))
    stand_in = UnitQuery(
        text="",
        offset=0,
        table=query.table,
        alias=query.alias,
        groups=groups,
        column_names=tuple((column.name, column.name) for column in groups),
        tree=query.tree,
    )
    rows, shown, truth = _read_totals(stand_in, condition, where, scope, given)
    # who has no rows has a group of none: if the condition holds there, those are listed of whom it does not
    holds, absent = (truth.not_true, not query.is_negated) if whole_group else (truth.true, query.is_negated)
    counts = frozenset(total.name for total in rows.totals if total.presence_count is None)
    holds = _simplify_counts(holds, counts)
    counted = None if query.groups else _find_row_condition(rows, holds)
    if counted is not None:
        return _list_rows(query.table, counted, is_absent=absent)
    names = {total.name: f"total {identify_total(total)}" for total in rows.totals}
    by = f" by {', '.join(sorted(query.groups))}" if query.groups else ""
    of_rows = "all rows" if where == ALWAYS else f"the rows where {write_canonical(where)}"
    negated = "NOT " if whole_group else ""
    return UnitList(
        table=query.table,
        meaning=f"totals of {of_rows}{by} where {write_canonical(rename_columns(holds, names))}",
        rule=ListedTotals(rows=rows, groups=tuple(sorted(query.groups)), totals_table=shown, holds=holds),
        is_negated=absent,
        description=f"{negated}{write_short(asked)} over {of_rows}{by}",
    )


def _read_totals(
    query: UnitQuery, condition: exp.Expr, where: Condition, scope: Scope, given: ConstantContext
) -> tuple[UnitRows, Table, Truth]:
    """Return the totals, of as many rows of a unit as integers allow."""
    for rows in _MOST_ROWS[:-1]:
        try:
            return _read_open_totals(query, condition, where, scope, given, rows=rows)
        except KeyholeError as error:
            if error.code != "KH208":
                raise
    return _read_open_totals(query, condition, where, scope, given, rows=_MOST_ROWS[-1])


def _read_open_totals(
    query: UnitQuery, condition: exp.Expr, where: Condition, scope: Scope, given: ConstantContext, *, rows: int
) -> tuple[UnitRows, Table, Truth]:
    table = _lift_bounds(query.table, rows=rows)
    within = GroupScope(
        scope=replace(scope, table=table), keys=(), constants=given, fixed_columns=frozenset(), where=where
    )
    return read_group_totals(replace(query, table=table), condition, within)


def _lift_bounds(table: Table, *, rows: int) -> Table:
    """Return the table with all rows of a unit, and with room for the totals of that many rows."""

    def widen(column: Column) -> Column:
        if column.bounds is None:
            return replace(column, per_unit=None)
        low, high = column.bounds
        return replace(column, per_unit=(min(Decimal(0), low * rows), max(Decimal(0), high * rows)))

    columns = tuple(map(widen, table.columns))
    return replace(table, columns=columns, rows_per_unit=rows, row_cap=None, totals=(), groupings=())


def _simplify_counts(holds: Condition, counts: frozenset[str]) -> Condition:
    """Return the condition without tests whether counts are NULL, which none is, and with >= 3 for > 2 of a count."""

    def test(leaf: Leaf) -> Condition:
        match leaf:
            case IsNull(column) if column in counts:
                return NEVER
            case Compare(column, ">", int(value)) if column in counts:
                return Compare(column, ">=", value + 1)
            case Compare(column, "<", int(value)) if column in counts:
                return Compare(column, "<=", value - 1)
            case _:
                return leaf

    def negate(inner: Condition) -> Condition:
        return ALWAYS if inner == NEVER else Not(inner)

    return holds.fold(test, negation=negate, every=join_all, some=join_any)


def _find_row_condition(rows: UnitRows, holds: Condition) -> Condition | None:
    """Return the condition that a row of the unit must meet, if a condition on a count asks for one such row.

    Return None for any other condition.
    """
    if len(rows.totals) != 1:
        return None
    (total,) = rows.totals
    counted = total.functional
    if counted.measure is not Measure.ROWS or counted.columns or total.presence_count is not None:
        return None
    asked = rename_columns(holds, {total.name: ""})
    if asked not in _SOME_ROW and asked not in {Not(one) for one in _NO_ROW}:
        return None
    return join_all((*rows.where.list_conjuncts(), *counted.terms[0].condition.list_conjuncts()))


_NO_ROW = frozenset((Compare("", "<=", 0), Compare("", "<", 1), Compare("", "=", 0)))


def _holds_without_rows(node: exp.Expr, given: ConstantContext) -> bool:
    """Return True if the condition holds of no rows: counts are 0, all other aggregates NULL. Raise KH107."""

    def put_no_rows(inner: exp.Expr) -> exp.Expr:
        if not isinstance(inner, AGGREGATES):
            return inner
        call = strip_parentheses(inner.this) if isinstance(inner, exp.Filter) else inner
        return exp.Literal.number(0) if isinstance(call, exp.Count) else exp.Null()

    try:
        return _find_truth(node.copy().transform(put_no_rows, copy=False), given) is True
    except NotConstant as problem:
        raise refuse_total_in_list(
            KeyholeError("KH107", f"it is not known whether {write_short(node)} holds for a privacy unit without rows")
        ) from problem


def _find_truth(node: exp.Expr, given: ConstantContext) -> bool | None:
    found = strip_parentheses(node)
    match found:
        case exp.Not():
            value = _find_truth(found.this, given)
            return None if value is None else not value
        case exp.And() | exp.Or():
            sides = {_find_truth(side, given) for side in (found.this, found.expression)}
            decisive = isinstance(found, exp.Or)
            return decisive if decisive in sides else None if None in sides else not decisive
        case exp.Between():
            low = exp.GTE(this=found.this, expression=found.args["low"])
            return _find_truth(
                exp.And(this=low, expression=exp.LTE(this=found.this, expression=found.args["high"])), given
            )
        case exp.Is() if isinstance(strip_parentheses(found.expression), exp.Null):
            return fold_constant(found.this, given) is None
        case exp.In() if found.args.get("query") is None:
            left = fold_constant(found.this, given)
            truths = [compare_constants(left, "=", fold_constant(one, given), found) for one in found.expressions]
            return True if True in truths else None if None in truths else False
        case _ if type(found) in OPERATORS:
            left, right = fold_constant(found.this, given), fold_constant(found.expression, given)
            return compare_constants(left, OPERATORS[type(found)], right, found)
        case _:
            folded = fold_constant(found, given)
            return folded if isinstance(folded, bool) else None
