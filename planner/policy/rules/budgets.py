"""Rules for accuracy and caps: what is missing, and caps that contradict one another or have no effect."""

import json
from collections.abc import Iterator

from planner.catalog.fault import Fault, Faults
from planner.catalog.tolerance import parse_tolerances
from planner.errors import KeyholeError
from planner.policy.sections import BudgetSection, PolicyDocument, TableSection


def find_accuracy_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for a tolerance that cannot be parsed, and for a default mechanism that sessions may not choose."""
    try:
        parse_tolerances(policy.accuracy.tolerance)
    except KeyholeError:
        hint = 'Write "10%" of each threshold, "25", or per functional "count=25, age=2".'
        yield ("accuracy", "tolerance"), Fault("KH002", "is not a tolerance", hint=hint)
    chosen, allowed = policy.accuracy.mechanism, policy.accuracy.mechanisms
    if chosen not in allowed:
        hint = f"Choose one of them, or allow it: mechanisms = {json.dumps([*allowed, chosen])}"
        yield ("accuracy", "mechanism"), Fault("KH002", "is not among accuracy.mechanisms", hint=hint)


def find_budget_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault if the policy protects units and has no cap for them."""
    protected = [", ".join(table.unit_columns) for table in policy.private_tables.values() if table.privacy_unit]
    if protected and policy.budget.epsilon_per_unit is None:
        hint = f"Add epsilon_per_unit: the most that all answers together may cost one unit of {protected[0]}."
        yield ("budget", "epsilon_per_unit"), Fault("KH005", "is missing", hint=hint)
    if policy.budget.delta is not None and policy.budget.epsilon_per_unit is None:
        hint = "Leave it out, or add the cap that it is about: epsilon_per_unit."
        yield ("budget", "delta"), Fault("KH002", "has no meaning without epsilon_per_unit", hint=hint)


def find_shared_cap_faults(table: TableSection) -> Iterator[tuple[str, Fault]]:
    """Yield a fault for each cap that only the root table of several tables with the same units may have.

    These tables have one balance.
    """
    if table.leads_to is not None and table.epsilon_per_table is not None:
        beside = "same_unit_as" if table.path is None else "a path to the unit"
        hint = f"Say it of the table that {beside} leads to: the two are one table in the ledger."
        yield "epsilon_per_table", Fault("KH002", f"has no meaning beside {beside}", hint=hint)


def describe_idle_caps(policy: PolicyDocument) -> Iterator[str]:
    """Yield a sentence for each cap that is allowed but probably a mistake."""
    budget = policy.budget
    if budget.epsilon_per_query > budget.epsilon_per_predicate:
        yield (
            f"budget.epsilon_per_query ({budget.epsilon_per_query:g}) is above budget.epsilon_per_predicate "
            f"({budget.epsilon_per_predicate:g}): a question that costs more than epsilon_per_predicate never passes."
        )
    yield from _compare_with_unit_cap(policy)
    yield from _compare_with_query_cap("budget", budget, per_query=budget.epsilon_per_query, about="question")
    for name, table in policy.private_tables.items():
        of = f"tables.{name}"
        yield from _compare_with_query_cap(of, table, per_query=budget.epsilon_per_query, about="question about it")
    for name, analyst in policy.analysts.items():
        for key in ("epsilon_per_predicate", "epsilon_per_unit"):
            own, shared = getattr(analyst, key), getattr(budget, key)
            if own is not None and shared is not None and own > shared:
                yield f"analysts.{name}.{key} ({own:g}) is above budget.{key} ({shared:g}) and changes nothing."


def _compare_with_unit_cap(policy: PolicyDocument) -> Iterator[str]:
    """Yield caps that no group and no question can reach, because the cap of a unit or of a table is lower."""
    budget = policy.budget
    # with a delta a group's plain sum may be above what its units' balance counts
    whole = budget.delta is None and all(table.privacy_unit for table in policy.private_tables.values())
    for key in ("epsilon_per_predicate", "epsilon_per_query"):
        cap = getattr(budget, key)
        if whole and budget.epsilon_per_unit is not None and policy.private_tables and cap > budget.epsilon_per_unit:
            yield (
                f"budget.{key} ({cap:g}) is above budget.epsilon_per_unit ({budget.epsilon_per_unit:g}) and is never "
                "reached: what a group loses, each unit in it has lost."
            )
    for name, table in policy.private_tables.items():
        per_table = budget.epsilon_per_table if table.epsilon_per_table is None else table.epsilon_per_table
        if per_table is not None and table.leads_to is None and per_table < budget.epsilon_per_predicate:
            yield (
                f"budget.epsilon_per_predicate ({budget.epsilon_per_predicate:g}) is never reached by groups of "
                f"tables.{name}: all questions on it together may cost {per_table:g}."
            )


def _compare_with_query_cap(
    place: str, section: BudgetSection | TableSection, *, per_query: float, about: str
) -> Iterator[str]:
    threshold, per_table = section.approval_above_epsilon, section.epsilon_per_table
    if threshold is not None and threshold >= per_query:
        yield (
            f"{place}.approval_above_epsilon ({threshold:g}) is not below budget.epsilon_per_query "
            f"({per_query:g}): no {about} ever waits for approval."
        )
    if per_table is not None and per_table < per_query:
        yield (
            f"{place}.epsilon_per_table ({per_table:g}) is below budget.epsilon_per_query "
            f"({per_query:g}): a question that costs more than epsilon_per_table never passes."
        )
