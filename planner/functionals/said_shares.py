"""Thresholds on shares: "more than half of them smoke" reveals that about every returned group."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from planner.catalog.catalog import Table
from planner.catalog.key_space import format_value
from planner.question.condition import And, Compare, find_columns
from planner.question.question import Atom, Functional, Question, Term


@dataclass(frozen=True, slots=True)
class ShareThreshold:
    """One comparison of a share with a number: returned groups have more than `share`, or less unless `is_above`.

    `columns` decide who is counted in the share. If there is one such column and one value of it counts, that is
    `value`. For the mean of a column between 0 and 1 `value` is 1. `functional` is the index of the question's
    functional that is compared.
    """

    text: str
    functional: int
    share: Fraction
    is_above: bool
    columns: tuple[str, ...]
    value: str | None


def find_shares(question: Question) -> tuple[ShareThreshold, ...]:
    """Return the shares that a question's comparisons name: parts of a count, or means of a column from 0 to 1.

    A share is recognised by its sum: each row adds one fixed positive number or one fixed negative number.
    """
    return tuple(
        found
        for atom in question.atoms
        for found in _find_atom_shares(atom, question.functionals[atom.functional], question.table)
    )


def _find_atom_shares(atom: Atom, functional: Functional, table: Table) -> Iterator[ShareThreshold]:
    gained = [term for term in functional.terms if term.coefficient > 0]
    lost = [term for term in functional.terms if term.coefficient < 0]
    if (
        functional.off_each_unit
        or len(gained) != 1
        or len(lost) != 1
        or lost[0].power
        or not _is_part(gained[0], table)
    ):
        return
    (one,), (whole,) = gained, lost
    if functional.origin:
        share = Fraction(functional.origin)
    elif one.power:
        return
    else:
        share = Fraction(-whole.coefficient, one.coefficient)
    if not 0 < share < 1:
        return
    counted = {one.column} if one.column is not None and one.power else find_columns(one.condition)
    for_all = isinstance(one.condition, And) and not one.condition.conditions
    decides = one.condition
    value = format_value(decides.value) if isinstance(decides, Compare) and decides.operator == "=" else None
    if one.power:
        value = "1" if for_all else None
    for above in dict.fromkeys(above for _, above in atom.literals):
        yield ShareThreshold(atom.text, atom.functional, share, above, tuple(sorted(counted)), value)


def _is_part(term: Term, table: Table) -> bool:
    """Return True if a row adds the term once, in part or not at all: it counts, or adds a value between 0 and 1."""
    if not term.power or term.column is None:
        return True
    bounds = table.get_column(term.column).bounds
    return term.power == 1 and bounds is not None and bounds[0] >= 0 and bounds[1] <= 1
