"""A question's values of units, once its constants are known: which rows each is of.

Guarantee: values with equal meanings over equal tables are equal, however the subquery was spelled.
"""

from collections.abc import Hashable, Iterator
from dataclasses import replace

from sqlglot import exp

from planner.bind.from_clause import split_conjuncts
from planner.catalog.catalog import UnitValues
from planner.predicates.condition import read_row_condition
from planner.question.condition import ALWAYS, Compare, Condition, IsNull, Not, join_all
from planner.question.condition_text import write_canonical
from planner.question.question import OwnValue, ValuesOfRows
from planner.scope.embedded import EmbeddedQuestion, UnitValuesQuery
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext


def resolve_values(embedded: EmbeddedQuestion, given: ConstantContext) -> EmbeddedQuestion:
    """Return the question with the rows and conditions of its values resolved.

    Raises KH2xx for conditions that such a subquery may not have, with positions in the question's statement.
    """
    if not embedded.unit_values:
        return embedded
    found: dict[str, UnitValues] = {}
    conditions: dict[Condition, exp.Expr] = {}
    for query in embedded.unit_values:
        table, rule = query.table, _resolve(query, given)
        key = f"{table.name} {write_canonical(rule.where)}"
        if key in found:
            rule = _combine(found[key].rule, rule)
        found[key] = UnitValues(table=table, meaning=_describe(rule), rule=rule)
        for condition in _list_conditions(query, embedded, given):
            conditions.setdefault(condition, query.tree)
    own = tuple(found[key] for key in sorted(found))
    declared = None if embedded.declared_table is None else replace(embedded.declared_table, own=own)
    asked = tuple((node, condition) for condition, node in conditions.items())
    return replace(embedded, table=replace(embedded.table, own=own), declared_table=declared, conditions=asked)


def _list_conditions(query: UnitValuesQuery, embedded: EmbeddedQuestion, given: ConstantContext) -> Iterator[Condition]:
    """Yield the conditions that the subquery sets for a row of the question: its unit has a row there."""
    if query.presence_value is not None:
        yield Not(IsNull(query.presence_value))
    if query.keeps_rows:
        scope = Scope(table=query.table, alias=query.alias)
        for part in query.rows:
            yield from read_row_condition(part, scope, given).list_conjuncts()
    if query.rank_value is not None:
        yield Compare(query.rank_value, "=", 1)
    for part in split_conjuncts(query.having):
        yield read_row_condition(part, Scope(table=embedded.table, alias=""), given)


def _resolve(query: UnitValuesQuery, given: ConstantContext) -> ValuesOfRows:
    scope = Scope(table=query.table, alias=query.alias)
    where = join_all(one for part in query.rows for one in read_row_condition(part, scope, given).list_conjuncts())
    values = tuple(
        OwnValue(
            one.name,
            one.kind,
            one.column,
            ALWAYS if one.filter is None else read_row_condition(one.filter, scope, given),
            one.order,
            one.steps,
        )
        for one in query.values
    )
    return ValuesOfRows(where, values)


def _combine(first: Hashable, second: ValuesOfRows) -> ValuesOfRows:
    """Return the values of both, of the same rows, each once."""
    assert isinstance(first, ValuesOfRows)
    values = {one.name: one for one in (*first.values, *second.values)}
    return replace(second, values=tuple(values.values()))


def _describe(rule: ValuesOfRows) -> str:
    """Return a description of the computed values, in a fixed order."""
    said = sorted(
        one.name
        + (f" in the order of {', '.join(by.text for by in one.order)}" if one.order else "")
        + (f", {one.steps} rows away" if one.steps != 1 else "")
        + ("" if one.where == ALWAYS else f" of rows where {write_canonical(one.where)}")
        for one in rule.values
    )
    where = "" if rule.where == ALWAYS else f" where {write_canonical(rule.where)}"
    return f"{', '.join(said)}{where}"
