"""Which caps in a policy contradict one another, or never come to matter."""

from collections.abc import Iterator

from planner.catalog.fault import Fault
from planner.policy.sections import BudgetSection, PolicyDocument, TableSection


def caps_of_another(table: TableSection) -> Iterator[tuple[str, Fault]]:
    """The keys of a private table that only another one may have: tables with the same units have one balance."""
    if table.same_unit_as is not None and table.epsilon_per_table is not None:
        hint = "Say it of the table that same_unit_as leads to: the two are one table in the ledger."
        yield "epsilon_per_table", Fault("KH002", "has no meaning beside same_unit_as", hint=hint)


def caps_that_never_matter(policy: PolicyDocument) -> Iterator[str]:
    """Caps that are allowed but surely not meant, one sentence each."""
    budget = policy.budget
    if budget.epsilon_per_query > budget.epsilon_per_predicate:
        yield (
            f"budget.epsilon_per_query ({budget.epsilon_per_query:g}) is above budget.epsilon_per_predicate "
            f"({budget.epsilon_per_predicate:g}): a question that costs more than the latter never passes."
        )
    yield from _beside_one_question("budget", budget, per_query=budget.epsilon_per_query, about="question")
    for name, table in policy.private_tables.items():
        of = f"tables.{name}"
        yield from _beside_one_question(of, table, per_query=budget.epsilon_per_query, about="question about it")
    for name, analyst in policy.analysts.items():
        for key in ("epsilon_per_predicate", "epsilon_per_unit"):
            own, shared = getattr(analyst, key), getattr(budget, key)
            if own is not None and shared is not None and own > shared:
                yield f"analysts.{name}.{key} ({own:g}) is above budget.{key} ({shared:g}) and changes nothing."


def _beside_one_question(
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
            f"({per_query:g}): a question that costs more than the former never passes."
        )
