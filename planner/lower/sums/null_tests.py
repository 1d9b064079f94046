"""Tests for NULL that can be left out, because a sum's own values imply them, and tests that cost nothing."""

from collections.abc import Iterator
from dataclasses import replace

from planner.catalog.catalog import Lookup, Product, Table
from planner.question.condition import Condition, IsNull, Leaf, Not, Or, join_all, join_any
from planner.question.question import Functional, Measure, Term


def drop_implied_tests(functional: Functional, table: Table) -> Functional:
    """Return the functional without the tests for NULL that its summed values imply.

    Every row adds the same as before. If a number is subtracted from each unit, all tests stay, because the condition
    also decides which units have it subtracted.
    """
    if functional.off_each_unit or functional.measure not in (Measure.TOTAL, Measure.ROWS):
        return functional
    return replace(functional, terms=tuple(_drop_tests(term, table) for term in functional.terms))


def list_factors(table: Table, name: str | None) -> tuple[str, ...]:
    """Return the columns that a product column multiplies, each as often as it occurs.

    For any other column return its own name.
    """
    if name is None:
        return ()
    derivation = table.get_column(name).derivation
    return derivation.columns if isinstance(derivation, Product) else (name,)


def list_conjuncts(condition: Condition) -> Iterator[Condition]:
    """Yield the parts of a conjunction.

    `NOT (a IS NULL OR b IS NULL)` has two parts, because neither is ever unknown.
    """
    for part in condition.list_conjuncts():
        match part:
            case Not(Or(parts)) if all(isinstance(one, IsNull) for one in parts):
                yield from (Not(one) for one in parts)
            case _:
                yield part


def reads_no_value(condition: Condition, table: Table) -> bool:
    """Return True if the condition only tests whether stored or looked-up columns are NULL."""
    return all(
        isinstance(leaf, IsNull) and isinstance(table.get_column(leaf.column).derivation, Lookup | None)
        for leaf in condition.walk_leaves()
    )


def _drop_tests(term: Term, table: Table) -> Term:
    implied = {Not(IsNull(name)) for name in list_factors(table, term.column)}

    def spell_out(leaf: Leaf) -> Condition:
        """Spell out that a product is NULL if a factor is."""
        return join_any(IsNull(name) for name in list_factors(table, leaf.column)) if isinstance(leaf, IsNull) else leaf

    spelled = term.condition.map_leaves(spell_out)
    return replace(term, condition=join_all(part for part in list_conjuncts(spelled) if part not in implied))
