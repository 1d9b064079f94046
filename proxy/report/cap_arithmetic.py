"""The arithmetic of a policy's caps: the most that one question by certain keys can cost a group, and odds in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from planner.bind.grouping_bounds import apply_grouping_bounds
from planner.catalog.catalog import Budget, Catalog, Column, Table
from planner.explain.rounded_numbers import write_floor
from proxy.report.odometer import write_belief


@dataclass(frozen=True, slots=True)
class CostliestQuestion:
    """The most expensive possible question by certain keys of a table, and the cap that limits its cost.

    `epsilon` is the most that the question can cost a group. `epsilon` is `cap_epsilon`, the value of the cap `cap`,
    divided by `groups`. One unit may be in that many groups, and is charged for all of them.
    """

    table: str
    unit_text: str
    keys: tuple[str, ...]
    groups: int
    epsilon: float
    cap: str
    cap_epsilon: float

    @property
    def sentence(self) -> str:
        """The arithmetic in one sentence."""
        loses = "may lose" if self.cap == "epsilon_per_unit" else "may lose to questions on this table"
        return (
            f"no question by {', '.join(self.keys)} can cost a group more than {write_floor(self.epsilon)}, since "
            "one "
            f"({self.unit_text}) may be in {self.groups:,} of them and {loses} {self.cap_epsilon:g} over all questions"
        )

    def make_document(self) -> dict[str, Any]:
        """Return the question and its cap as a JSON document."""
        return {
            "table": self.table,
            "keys": list(self.keys),
            "groups_of_one_unit": self.groups,
            "epsilon_of_a_group_at_most": self.epsilon,
            "cap": self.cap,
        }


def list_costliest_questions(catalog: Catalog) -> Iterator[CostliestQuestion]:
    """Yield the most expensive question for each key of a table, and for each declared set of keys.

    A question is yielded only if the cap on a unit is the tightest: it allows less than the cap on one question and the
    cap on a group. A question about fewer groups may cost more. So may one by keys of which a unit has one value.
    """
    budget = catalog.budget
    for table in catalog.tables:
        if table.is_row_unit:
            continue
        for keys in _list_key_sets(table):
            found = _find_costliest_question(table, keys, budget)
            if found is not None:
                yield found


def _list_key_sets(table: Table) -> Iterator[tuple[Column, ...]]:
    by_name = {column.name: column for column in table.columns if column.domain is not None}
    yield from ((column,) for column in by_name.values())
    for grouping in table.groupings:
        if len(grouping.keys) > 1 and not grouping.computed and set(grouping.keys) <= set(by_name):
            yield tuple(by_name[name] for name in grouping.keys)


def _find_costliest_question(table: Table, keys: tuple[Column, ...], budget: Budget) -> CostliestQuestion | None:
    values = prod(len(column.domain or ()) for column in keys if not table.determines(column))
    groups = max(1, min(apply_grouping_bounds(table, keys).groups_per_unit, values))
    own = next((caps.per_table for caps in budget.tables if caps.table == table.ledger_root.table), None)
    per_table = budget.per_table if own is None else own
    # with a delta what one unit loses over its groups is no sum
    per_unit = budget.per_unit if budget.delta is None else None
    caps = {"epsilon_per_unit": per_unit, "epsilon_per_table": per_table}
    if per_unit is None and per_table is None:
        return None
    cap, least = min(((name, cap) for name, cap in caps.items() if cap is not None), key=lambda one: one[1])
    if groups == 1 or least / groups >= min(budget.per_query, budget.per_predicate):
        return None
    return CostliestQuestion(
        table=table.name,
        unit_text=table.unit_text,
        keys=tuple(column.name for column in keys),
        groups=groups,
        epsilon=least / groups,
        cap=cap,
        cap_epsilon=least,
    )


def describe_odds(catalog: Catalog) -> Iterator[str]:
    """Yield sentences on how sure the caps let an attacker become of one unit, starting from even odds."""
    budget = catalog.budget
    of_group = _write_exception(budget.delta_per_cell)
    if any(table.is_row_unit for table in catalog.tables):
        belief = _lower_first(write_belief(budget.per_predicate, of="that a row"))
        yield f"  all answers about a group together: {belief}{of_group}"
    for unit in sorted({table.unit_text for table in catalog.tables if not table.is_row_unit}):
        told = write_belief(budget.per_predicate, of=f"that one ({unit}) is in a group")
        yield f"  all answers about a group together: {_lower_first(told)}{of_group}"
    if budget.per_unit is not None and any(not table.is_row_unit for table in catalog.tables):
        units = sorted({table.unit_text for table in catalog.tables if not table.is_row_unit})
        told = write_belief(budget.per_unit, of=f"that one ({' or '.join(units)}) is in the data at all")
        yield f"  all answers of all together: {_lower_first(told)}{_write_exception(budget.delta)}"


def _write_exception(delta: float | None) -> str:
    return "" if delta is None else f", but for a delta of {delta:g}"


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:].removesuffix(".")
