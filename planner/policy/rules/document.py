"""All rules of a policy in order, and the warnings about settings that are probably not meant."""

from planner.catalog.fault import Faults
from planner.policy.rules.analysts import find_analyst_faults, find_certificate_faults, find_token_faults
from planner.policy.rules.band_rules import describe_band_doubts
from planner.policy.rules.budgets import describe_idle_caps, find_accuracy_faults, find_budget_faults
from planner.policy.rules.doubts import describe_doubts, describe_join_doubts
from planner.policy.rules.groupings import describe_grouping_doubts
from planner.policy.rules.monitor_rules import find_monitor_faults
from planner.policy.rules.name_rules import find_name_faults
from planner.policy.rules.server_rules import (
    find_console_faults,
    find_listen_faults,
    find_play_faults,
    find_rest_faults,
    find_source_faults,
)
from planner.policy.rules.table_rules import find_private_table_faults, find_public_table_faults, find_unit_root
from planner.policy.sections import PolicyDocument, TableSection


def find_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for every broken rule of the policy, each with its dotted key, the most basic first."""
    yield from find_name_faults(policy)
    yield from find_source_faults(policy)
    yield from find_listen_faults(policy)
    yield from find_rest_faults(policy)
    yield from find_console_faults(policy)
    yield from find_play_faults(policy)
    yield from find_accuracy_faults(policy)
    for name, table in policy.tables.items():
        place = ("tables", name)
        yield from (
            find_public_table_faults(place, table) if table.public else find_private_table_faults(place, table, policy)
        )
    yield from find_monitor_faults(policy)
    yield from find_budget_faults(policy)
    yield from find_token_faults(policy)
    yield from find_certificate_faults(policy)
    for name, analyst in policy.analysts.items():
        yield from find_analyst_faults(("analysts", name), analyst)


def describe_warnings(policy: PolicyDocument) -> tuple[str, ...]:
    """Return a sentence for each setting that is allowed but probably a mistake."""
    said = [
        *describe_idle_caps(policy),
        *describe_doubts(policy),
        *describe_join_doubts(policy),
        *describe_grouping_doubts(policy.private_tables),
    ]
    said += describe_band_doubts(policy.private_tables)
    for name, table in policy.private_tables.items():
        if not _has_keys(table):
            others = [other for other in _list_same_units(policy, name) if _has_keys(policy.tables[other])]
            means = f"ask it joined with {' or '.join(others)}" if others else "no question can be asked of it"
            said.append(f"tables.{name} has no column with a key domain: {means}.")
        if table.refresh == "live":
            said.append(f"tables.{name} is live: every question is new, no answer is reused, and each is paid again.")
    return tuple(said)


def _has_keys(table: TableSection) -> bool:
    return any(column.key for column in table.columns.values())


def _list_same_units(policy: PolicyDocument, name: str) -> list[str]:
    """Return the other private tables that have the same units as a table."""
    root = find_unit_root(policy, name)
    return [one for one in policy.private_tables if one != name and find_unit_root(policy, one) == root]
