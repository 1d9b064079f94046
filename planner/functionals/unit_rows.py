"""The rows of a subquery per unit, in one spelling: the same rows are one relation for sharing, reuse and rollups."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from planner.catalog.model import Value
from planner.errors import KeyholeError
from planner.functionals.identity import functional_identity
from planner.question.condition import (
    ALWAYS,
    And,
    Compare,
    Condition,
    Leaf,
    Like,
    Not,
    Within,
    columns,
)
from planner.question.condition_text import canonical
from planner.question.model import Functional, Measure, Question, Term, UnitRows, UnitTotal


def one_row(term: Term) -> Functional:
    """1 for a privacy unit with some row that the term counts."""
    return Functional(
        name="rows", measure=Measure.UNITS, terms=(term,), sensitivity=1, unit_range=None, unit_size=Decimal(1), rows=1
    )


def _total_meaning(total: UnitTotal) -> str:
    present = "" if total.present is None else functional_identity(total.present)
    return f"{functional_identity(total.functional)} steps {total.functional.unit_size} where {present}"


def canonical_rows(question: Question) -> Question:
    """The question with totals called by their meaning, and without those that nothing reads.

    So that it is the same question whatever its totals are called.
    """
    if question.per_unit is None:
        return question
    names = {total.name: f"total {_total_meaning(total)}" for total in question.per_unit.totals}
    read = columns(question.where)
    for made in question.computed:
        read |= set(made.columns)
        for term in made.terms:
            read |= columns(term.condition)
    kept = {known: new for known, new in names.items() if known in read}
    totals = sorted(
        (replace(total, name=kept[total.name]) for total in question.per_unit.totals if total.name in kept),
        key=lambda total: total.name,
    )
    renamed = question.with_computed(tuple(_rename_functional(made, kept) for made in question.computed))
    return replace(
        renamed,
        table=replace(
            question.table,
            columns=tuple(
                replace(column, name=kept.get(column.name, column.name))
                for column in question.table.columns
                if column.name not in names or column.name in kept
            ),
        ),
        where=rename_columns(question.where, kept),
        per_unit=replace(question.per_unit, totals=tuple(totals)),
    )


def unit_rows_text(question: Question, rows: UnitRows) -> Iterator[str]:
    """In words: what one row of a question per unit is, and how far each total counts."""
    keys = [key for key in question.keys.names if key not in rows.table.unit]
    groups = f" in each ({', '.join(keys)})" if keys else ""
    filtered = "" if rows.where == ALWAYS else f", over the rows with {canonical(rows.where)}"
    totals = ", ".join(total.written for total in rows.totals) or "one row"
    yield f"of each ({rows.table.unit_text}){groups}: {totals}{filtered}"
    for total in rows.totals:
        step = question.table.column(total.name).grid or Decimal(1)
        low, high = (format((step * edge).normalize(), "f") for edge in (total.low, total.high))
        yield f"{total.written} is clipped to {low} .. {high}"


def _rename_functional(made: Functional, names: Mapping[str, str]) -> Functional:
    return replace(
        made,
        terms=tuple(
            replace(
                term,
                column=None if term.column is None else names.get(term.column, term.column),
                condition=rename_columns(term.condition, names),
            )
            for term in made.terms
        ),
    )


def rename_columns(condition: Condition, names: Mapping[str, str]) -> Condition:
    """The condition with columns under other names."""
    return condition.mapped(lambda leaf: replace(leaf, column=names.get(leaf.column, leaf.column)))


def in_steps(condition: Condition, steps: Mapping[str, Fraction]) -> Condition:
    """The condition with totals compared as whole numbers of steps, NULL where it was.

    Parameters:
        steps: of the columns that are totals, what one step is worth.
    """

    def step_leaf(leaf: Leaf) -> Condition:
        match leaf:
            case Compare(column, operator, value) if column in steps:
                return _compare_steps(column, operator, _number(value) / steps[column])
            case Within(column, values) if column in steps:
                found = [_number(value) / steps[column] for value in values]
                whole = tuple(sorted(int(value) for value in found if value.denominator == 1))
                return Within(column, whole) if whole else _never(column)
            case Like() if leaf.column in steps:
                raise KeyholeError("KH900", "a total is no text")
            case _:
                return leaf

    return condition.mapped(step_leaf)


def _number(value: Value) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise KeyholeError("KH900", "a total is compared with what is no number")
    return Fraction(value)


def _compare_steps(column: str, operator: str, value: Fraction) -> Condition:
    match operator:
        case ">" | "<=":
            return Compare(column, operator, floor(value))
        case ">=" | "<":
            return Compare(column, operator, ceil(value))
        case _ if value.denominator == 1:
            return Compare(column, operator, int(value))
        case "=":
            return _never(column)
        case _:
            return Not(_never(column))


def _never(column: str) -> Condition:
    """False wherever the column has a value, NULL elsewhere."""
    return And((Compare(column, "<", 0), Compare(column, ">", 0)))
