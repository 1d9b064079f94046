"""Bounds that the owner declares for computed groups: `groupings."store, quantity > 10" = { max_groups = 4 }`.

An expression is read as GROUP BY reads it. It bounds every computed key that its groups determine: the same groups,
however a question writes them, and coarser ones. Without it a unit is in as many groups as the policy allows of the
declared keys, times the values that the question computes.

Guarantee: which bound holds is a function of the policy and the statement. The scan keeps it on any data.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from planner.bind.bind_refusals import refuse_ungrouping_expression
from planner.catalog.catalog import Catalog, Column, Grouping, MergedKeys, Table, Value, ValueGroups
from planner.catalog.derived_columns import PART_RANGES, infer_derived_type
from planner.catalog.fault import Fault, Faults
from planner.errors import KeyholeError
from planner.groups.computed_keys import add_computed_keys
from planner.parser.lexer import quote_identifier, read_tokens
from planner.parser.tree import parse, strip_parentheses
from planner.scope.group_by import read_group_by
from planner.scope.name_resolution import Scope, read_derivation

_MOST_CUTS = 10_000  # that are compared with those of other steps, in some hundredths of a second
Determines = Callable[[Column, Column, Table], bool]


def read_grouping(table: Table, grouping: Grouping) -> tuple[Table, tuple[Column, ...]]:
    """Return the columns that a grouping names, and the table with the columns that it computes.

    Raises KH201 and KH202 for an expression that no question could group by.
    """
    columns = [table.get_column(name) for name in grouping.keys]
    table = replace(table, columns=tuple(one for one in table.columns if not one.computed))  # the question's own
    known_columns = list(table.columns)
    for text in grouping.computed:
        read, column = _read_expression(table, text)
        columns.append(column)
        known = {one.name for one in known_columns}
        known_columns += [one for one in read.columns if one.name not in known]
    return replace(table, columns=tuple(known_columns)), tuple(columns)


def _read_expression(table: Table, text: str) -> tuple[Table, Column]:
    sql = f"SELECT 1 FROM {quote_identifier(table.name)} GROUP BY {text}"
    select = parse(sql, read_tokens(sql)).tree
    group = select.args.get("group")
    if (
        not isinstance(select, exp.Select)
        or group is None
        or len(group.expressions) != 1
        or select.args.get("having") is not None
    ):
        raise refuse_ungrouping_expression(text)
    scope, item = Scope(table=table, alias=table.name), strip_parentheses(group.expressions[0])
    derived = read_derivation(item, scope)
    if derived is not None:  # only a question gives the range of times; parts such as weekdays are few without one
        base = table.get_column(derived.column)
        try:
            kind = infer_derived_type(derived, base.sql_type)
        except Fault:
            raise refuse_ungrouping_expression(text) from None
        ends = PART_RANGES.get(derived.part) if derived.function == "extract" and base.derivation is None else None
        values: tuple[Value, ...] = () if ends is None else tuple(range(ends[0], ends[1] + 1))
        column = Column(text, kind, kind.value, domain=values, derivation=derived, computed=True)
        return table, column
    scope = add_computed_keys(scope, select)
    keys = read_group_by(select, scope)
    if len(keys) != 1 or isinstance(keys[0].derivation, MergedKeys):
        raise refuse_ungrouping_expression(text)
    return scope.table, keys[0]


def find_expression_faults(catalog: Catalog) -> Faults:
    """Find the expressions in groupings that no question could group by."""
    for table in catalog.tables:
        for grouping in table.groupings:
            try:
                read_grouping(table, grouping)
            except KeyholeError as error:
                named = ", ".join((*grouping.keys, *grouping.computed))
                hint = error.hint or "Write what a question groups by, such as quantity > 10."
                yield ("tables", table.name, "groupings", named), Fault("KH005", error.message, hint=hint)


def find_expression_bound(
    table: Table,
    keys: Sequence[Column],
    made: Sequence[Column],
    stated: int,
    determines: Determines,
) -> tuple[int, str] | None:
    """Return a bound on the groups of one unit from the groupings of expressions, and the grouping that gives it.

    Return None if no such grouping gives a lower bound.

    Parameters:
        made: the computed keys among `keys` that nothing determines.
        stated: the number of groups of the other keys that a unit is in.
    """
    if not any(grouping.computed for grouping in table.groupings):
        return None
    open_ = [key for key in keys if not table.determines(key)]
    choices: list[tuple[frozenset[int], int, str]] = []

    def offer(columns: Sequence[Column], groups: int, name: str, known: Table) -> None:
        covered = {at for at, key in enumerate(open_) if any(determines(one, key, known) for one in columns)}
        if covered:
            choices.append((frozenset(covered), groups, name))

    for grouping in table.groupings:
        if grouping.groups is None:
            continue
        try:
            known, columns = read_grouping(table, grouping)
        except KeyholeError:
            continue  # it bounds nothing; keyhole check says so
        own = {one.name for one in table.columns}
        known = replace(table, columns=(*table.columns, *(one for one in known.columns if one.name not in own)))
        offer(columns, grouping.groups, ", ".join((*grouping.keys, *grouping.computed)), known)
    offer([key for key in open_ if not key.computed], stated, "", table)
    for key in made:
        offer([key], len(key.domain or ()), "", table)
    least: dict[frozenset[int], tuple[int, tuple[str, ...]]] = {frozenset(): (1, ())}
    for covered, groups, name in choices:
        for others, (product, names) in list(least.items()):
            both = others | covered
            found = product * groups, (*names, *([name] if name else ()))
            if both != others and found[0] < least.get(both, (found[0] + 1, ()))[0]:
                least[both] = found
    best = least.get(frozenset(range(len(open_))))
    return None if best is None or not best[1] else (best[0], " and ".join(f'groupings."{name}"' for name in best[1]))


def is_finer(fine: ValueGroups, coarse: ValueGroups) -> bool:
    """Return True if rows in one group of `fine` are always in one group of `coarse`.

    Values beyond the column's bounds are the exception: `coarse` may give them a group of their own.
    """
    if fine.column != coarse.column:
        return False
    if fine.meaning == coarse.meaning:
        return True
    if fine.tests or coarse.tests or max(len(fine.cut_points), len(coarse.cut_points)) > _MOST_CUTS:
        return False
    cuts: list[Any] = sorted({*fine.cut_points, *coarse.cut_points})
    pairs = [(fine.groups[0], coarse.groups[0]), (fine.null_group, coarse.null_group)]
    pairs += [(_find_group(fine, cut), _find_group(coarse, cut)) for cut in cuts]
    found: dict[int, int] = {}
    inside = [(inner, outer) for inner, outer in pairs if inner is not None and outer is not None]
    return all(found.setdefault(inner, outer) == outer for inner, outer in inside)


def _find_group(parts: ValueGroups, value: Any) -> int | None:
    cuts: Sequence[Any] = parts.cut_points
    return parts.groups[bisect_right(cuts, value)]


def keep_key_groupings(table: Table) -> Table:
    """Return the table without the groupings that the owner declared for expressions.

    Groupings of plain key columns stay.
    """
    named = tuple(grouping for grouping in table.groupings if not grouping.computed)
    return table if len(named) == len(table.groupings) else replace(table, groupings=named)
