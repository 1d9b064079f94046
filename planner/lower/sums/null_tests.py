"""Tests for NULL: those that a sum's own values imply, and those that cost nothing."""

from collections.abc import Iterator
from dataclasses import replace

from planner.catalog.catalog import Lookup, Product, Table
from planner.question.condition import Condition, IsNull, Leaf, Not, Or, all_of, any_of
from planner.question.question import Functional, Measure, Term


def drop_implied_tests(functional: Functional, table: Table) -> Functional:
    """Return the functional without the tests for NULL that the values which it adds up imply.

    A row adds the same to both. Where a number is taken off each unit, the condition says more than which rows count.
    """
    if functional.off_each_unit or functional.measure not in (Measure.TOTAL, Measure.ROWS):
        return functional
    return replace(functional, terms=tuple(_drop(term, table) for term in functional.terms))


def list_factors(table: Table, name: str | None) -> tuple[str, ...]:
    """Return the columns that a product is made of, each as often as it is multiplied; of any other column it alone."""
    if name is None:
        return ()
    derivation = table.get_column(name).derivation
    return derivation.columns if isinstance(derivation, Product) else (name,)


def list_conjuncts(condition: Condition) -> Iterator[Condition]:
    """Yield the parts of a conjunction; `NOT (a IS NULL OR b IS NULL)` has two, for neither is ever unknown."""
    for part in condition.conjuncts():
        match part:
            case Not(Or(parts)) if all(isinstance(one, IsNull) for one in parts):
                yield from (Not(one) for one in parts)
            case _:
                yield part


def is_free(condition: Condition, table: Table) -> bool:
    """Return True if the condition asks whether columns that are stored, or looked up, are NULL, and nothing else.

    No value is read.
    """
    return all(
        isinstance(leaf, IsNull) and isinstance(table.get_column(leaf.column).derivation, Lookup | None)
        for leaf in condition.leaves()
    )


def _drop(term: Term, table: Table) -> Term:
    implied = {Not(IsNull(name)) for name in list_factors(table, term.column)}

    def spell_out(leaf: Leaf) -> Condition:
        """Spell out that a product is NULL if a factor is."""
        return any_of(IsNull(name) for name in list_factors(table, leaf.column)) if isinstance(leaf, IsNull) else leaf

    spelled = term.condition.mapped(spell_out)
    return replace(term, condition=all_of(part for part in list_conjuncts(spelled) if part not in implied))
