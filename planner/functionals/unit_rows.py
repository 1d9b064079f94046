"""The rows of a subquery per unit in one canonical form, so that sharing, reuse and rollups recognise the same rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from planner.catalog.catalog import Column, Computed, ComputedName, Value
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.functionals.functional_identity import identify_functional
from planner.predicates.computed.text import spell
from planner.question.condition import ALWAYS, And, Compare, Condition, Leaf, Like, Not, Within, find_columns
from planner.question.condition_text import write_canonical
from planner.question.products import find_steps
from planner.question.question import Functional, Measure, Question, Term, UnitRows, UnitTotal, ValueKind

_PARTS_OF_STEP = 10**4  # a mean compares exactly with a constant of four more decimals than its values have
_LARGEST_MEAN = 2**52  # whose double is exact in double precision


def make_existence(term: Term) -> Functional:
    """Return a functional that is 1 for a privacy unit with at least one row that the term counts, else 0."""
    return Functional(
        name="rows", measure=Measure.UNITS, terms=(term,), sensitivity=1, unit_range=None, unit_size=Decimal(1), rows=1
    )


def find_parts_of_step(least: int, most: int) -> int:
    """Return the number of parts into which a grid step of a mean is divided: 10^4, or fewer to avoid overflow."""
    parts = _PARTS_OF_STEP
    while parts > 1 and parts * max(-least, most) > _LARGEST_MEAN:
        parts //= 10
    return parts


LARGEST_STEPS = 2**62
"""The most steps of a sum or mean of one unit's own values, so that no integer overflows."""


def scale_value(kind: ValueKind, column: Column, *, most: int) -> tuple[Fraction, int, int]:
    """Return the step in which a unit's own sum or mean of a measure is counted, and its range in these steps.

    A step of a mean is half a step of its sum, so that comparing it with whole numbers gives the exact result.

    Parameters:
        column: a measure with bounds.
        most: the rows of one unit. A sum is clipped to the range that as many rows can reach.
    """
    scaled = find_steps(column)
    assert scaled is not None, "a measure has bounds"
    step, low, high = scaled
    if kind == "mean":
        parts = find_parts_of_step(low, high)
        return step / (2 * parts), 2 * parts * low, 2 * parts * high
    return step, min(0, low * most), max(0, high * most)


def identify_total(total: UnitTotal) -> str:
    """Return the identity of a total without its name. Totals with equal identities are one column."""
    present = "" if total.presence_count is None else identify_functional(total.presence_count)
    return f"{identify_functional(total.functional)} steps {total.functional.unit_size} where {present}"


def canonicalise_rows(question: Question) -> Question:
    """Return the question with totals named by their identity, and without totals that nothing reads.

    So two questions that differ only in the names of totals become equal.
    """
    if question.per_unit is None:
        return question
    names = {total.name: f"total {identify_total(total)}" for total in question.per_unit.totals}
    read = find_stored_columns(find_columns(question.where))
    for made in question.computed_functionals:
        read |= find_stored_columns(made.columns)
        for term in made.terms:
            read |= find_stored_columns(find_columns(term.condition))
    kept = {known: new for known, new in names.items() if known in read}
    totals = sorted(
        (replace(total, name=kept[total.name]) for total in question.per_unit.totals if total.name in kept),
        key=lambda total: total.name,
    )
    renamed = question.replace_computed_functionals(
        tuple(_rename_functional(made, kept) for made in question.computed_functionals)
    )
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


def describe_unit_rows(question: Question, rows: UnitRows) -> Iterator[str]:
    """Yield sentences on the meaning of one row of a question per unit, and on the clipping of each total."""
    keys = [key for key in question.keys.names if key not in rows.table.unit]
    groups = f" in each ({', '.join(keys)})" if keys else ""
    filtered = "" if rows.where == ALWAYS else f", over the rows with {write_canonical(rows.where)}"
    totals = ", ".join(total.written_as for total in rows.totals) or "one row"
    yield f"of each ({rows.table.unit_text}){groups}: {totals}{filtered}"
    for total in rows.totals:
        step = question.table.get_column(total.name).grid or Decimal(1)
        low, high = (format((step * edge).normalize(), "f") for edge in (total.low, total.high))
        yield f"{total.written_as} is clipped to {low} .. {high}"


def _rename_functional(made: Functional, names: Mapping[str, str]) -> Functional:
    return replace(
        made,
        terms=tuple(
            replace(
                term,
                column=None if term.column is None else rename_column(term.column, names),
                condition=rename_columns(term.condition, names),
            )
            for term in made.terms
        ),
    )


def rename_columns(condition: Condition, names: Mapping[str, str]) -> Condition:
    """Return the condition with its columns renamed."""
    return condition.map_leaves(lambda leaf: replace(leaf, column=rename_column(leaf.column, names)))


def rename_column(column: str, names: Mapping[str, str]) -> str:
    """Return the new name of a column. For a computed column, rename the columns inside its expression."""

    def rename(term: RowTerm) -> RowTerm:
        return replace(term, value=names.get(str(term.value), term.value))

    return map_columns(column, rename) if isinstance(column, ComputedName) else names.get(column, column)


def map_columns(column: ComputedName, change: Callable[[RowTerm], RowTerm]) -> ComputedName:
    """Return the computed column with `change` applied to each column that it reads."""
    derived = column.column.derivation
    if not isinstance(derived, Computed):
        raise KeyholeError("KH900", "this column of a privacy unit should be computed from others")

    def visit(term: RowTerm) -> RowTerm:
        if term.function == "column":
            return change(term)
        return replace(term, arguments=tuple(map(visit, term.arguments)))

    mapped = visit(derived.term)
    ends = column.removeprefix(spell(derived.term))  # a name goes on with the range that is known of some rows alone
    return ComputedName.from_column(replace(column.column, name=spell(mapped) + ends, derivation=Computed(mapped)))


def find_stored_columns(names: Iterable[str]) -> frozenset[str]:
    """Return the stored columns among these names, and the stored columns that the computed ones read."""
    found: set[str] = set()
    for name in names:
        derived = name.column.derivation if isinstance(name, ComputedName) else None
        found |= derived.term.columns if isinstance(derived, Computed) else {name}
    return frozenset(found)


def convert_to_steps(condition: Condition, steps: Mapping[str, Fraction]) -> Condition:
    """Return the condition with totals compared in whole steps. It is NULL for the same rows as before.

    Parameters:
        steps: the worth of one step, by the name of each column that is a total.
    """

    def step_leaf(leaf: Leaf) -> Condition:
        match leaf:
            case Compare(column, operator, value) if column in steps:
                return _compare_steps(column, operator, _read_number(value) / steps[column])
            case Within(column, values) if column in steps:
                found = [_read_number(value) / steps[column] for value in values]
                whole = tuple(sorted(int(value) for value in found if value.denominator == 1))
                return Within(column, whole) if whole else _make_never_true(column)
            case Like() if leaf.column in steps:
                raise KeyholeError("KH900", "a total cannot be compared with a text pattern")
            case _ if isinstance(leaf.column, ComputedName):
                return replace(leaf, column=convert_column_to_steps(leaf.column, steps))
            case _:
                return leaf

    return condition.map_leaves(step_leaf)


def convert_column_to_steps(column: str, steps: Mapping[str, Fraction]) -> str:
    """Return the text of a computed column in which totals are stored as whole numbers of steps."""

    def count_steps(term: RowTerm) -> RowTerm:
        if term.value not in steps:
            return term
        factor = steps[str(term.value)] * 10**term.scale
        if factor.denominator != 1:
            raise KeyholeError("KH900", "a total has smaller steps than its decimal places allow")
        counted = RowTerm("column", TermKind.WHOLE, value=term.value, limit=term.limit)
        if factor == 1:
            return RowTerm("same", term.kind, (counted,), scale=term.scale, limit=term.limit)
        by = RowTerm("constant", TermKind.WHOLE, value=int(factor), limit=int(factor))
        return RowTerm("*", term.kind, (counted, by), scale=term.scale, limit=term.limit)

    return map_columns(column, count_steps) if isinstance(column, ComputedName) else column


def _read_number(value: Value) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise KeyholeError("KH900", "a total is compared with a value that is not a number")
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
            return _make_never_true(column)
        case _:
            return Not(_make_never_true(column))


def _make_never_true(column: str) -> Condition:
    """Return a condition that is false if the column has a value, and NULL otherwise."""
    return And((Compare(column, "<", 0), Compare(column, ">", 0)))
