"""Rules for relations whose identity the source has told: none is exposed under two names with a budget each."""

from collections.abc import Iterator, Mapping
from itertools import combinations

from planner.catalog.fault import Fault, Faults
from planner.catalog.relation_names import RelationIdentity
from planner.policy.rules.table_rules import find_unit_root
from planner.policy.sections import PolicyDocument


def find_shared_relations(policy: PolicyDocument, identities: Mapping[str, RelationIdentity]) -> Faults:
    """Yield a fault for tables of the policy that show rows of one relation, directly or through a view of it alone.

    Two budgets for the same rows would double the promised loss. A public table with a private table's rows would
    reveal everything. Private tables that `same_unit_as` leads to one table are charged together, and are allowed.
    """
    for one, other in _find_pairs(policy, identities):
        if identities[one].is_join or identities[other].is_join or _are_charged_together(policy, one, other):
            continue
        kinds = {policy.tables[one].public, policy.tables[other].public}
        if kinds == {True, False}:
            hint = "Rows are private or public: remove one of the two tables."
        else:
            hint = "A relation is exposed once: remove one, or let same_unit_as charge both together."
        problem = f"shows the rows of {identities[other].name}, as tables.{one} does"
        yield ("tables", other, "relation"), Fault("KH002", problem, hint=hint)


def describe_shared_relations(policy: PolicyDocument, identities: Mapping[str, RelationIdentity]) -> Iterator[str]:
    """Yield a sentence for each view of several relations that several private tables read.

    The owner has to judge them.
    """
    for one, other in _find_pairs(policy, identities):
        if policy.tables[one].public or policy.tables[other].public or _are_charged_together(policy, one, other):
            continue
        yield (
            f"tables.{one} and tables.{other} show rows of one relation of the source, through a view: what both tell "
            "about the same rows adds up, and the groups of each have a budget of their own."
        )


def _find_pairs(policy: PolicyDocument, identities: Mapping[str, RelationIdentity]) -> Iterator[tuple[str, str]]:
    for one, other in combinations((name for name in policy.tables if name in identities), 2):
        if identities[one].bases & identities[other].bases:
            yield one, other


def _are_charged_together(policy: PolicyDocument, one: str, other: str) -> bool:
    if policy.tables[one].public or policy.tables[other].public:
        return policy.tables[one].public and policy.tables[other].public
    return find_unit_root(policy, one) == find_unit_root(policy, other)
